"""`from_graphdef`: TensorFlow's GraphDefs, and SavedModels whose variables are frozen, as graphs of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import InterchangeError
from stopgrad.core.lazy import protobuf
from stopgrad.core.tensor import Tensor
from stopgrad.graph.tracing import Traced
from stopgrad.interchange.importing import Importer, Node, completed_spec, in_order, read_bytes
from stopgrad.interchange.protos import message_classes
from stopgrad.interchange.tensor_protos import array_of, dtype_of, known_shape
from stopgrad.interchange.tf_nodes import HANDLERS

_WHAT = "from_graphdef"
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


def from_graphdef(
    data_or_path: Any,
    inputs: Mapping[str, Any] | Sequence[str] | None = None,
    outputs: Sequence[str] | str | None = None,
) -> Traced:
    """Read a TensorFlow graph: a GraphDef, or a SavedModel whose variables have been frozen into constants.

    TensorFlow is not needed, only protobuf (`pip install stopgrad[interchange]`). A StopGradient comes back as a stop
    of the node's name, a PreventGradient as `prevent_gradient`, an Identity as nothing.

    Args:
        data_or_path: the serialised message as bytes; or the path of a file that holds it (`.pbtxt` for the text form),
            or of a SavedModel's folder.
        inputs: names of the tensors to take as arguments, in order, perhaps with a `Spec` or shape for each: needed
            where the graph leaves sizes open. Any tensor will do ("layer/Relu:0"): the graph is then cut before it.
            By default the graph's placeholders, in the order of the file (those the outputs depend on, if `outputs` is
            given), or the inputs of a SavedModel's signature.
        outputs: names of the tensors to return; one name for a single one. By default a SavedModel's (first) signature,
            else every node that no other one uses.

    Returns:
        Traced: call it with arrays; take its derivative with `grad`, or with `add_gradients` in its graph. The names of
        its operations are those of the nodes. It returns one tensor, or a tuple if there are several outputs.

    Raises:
        InterchangeError: a damaged file, an operation without counterpart, or a size that is open.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.interchange import from_graphdef, to_graphdef
        >>> data = to_graphdef(sg.trace(lambda x: x * sg.stop_gradient(x))(3.0))
        >>> float(sg.grad(from_graphdef(data))(3.0))
        3.0
    """
    graph_def, signature = _parsed(data_or_path)
    nodes = _by_name(graph_def)
    wanted_inputs = _wanted_inputs(inputs, signature, nodes)
    everything = outputs is None and signature is None and inputs is None
    if outputs is None:
        named = [signature.outputs[key].name for key in sorted(signature.outputs)] if signature is not None else []
        outputs = named or _unused(nodes)
    wanted = [_reference(one, nodes) for one in ([outputs] if isinstance(outputs, str) else outputs)]
    if not wanted:
        raise _error("the graph has no outputs")
    importer = Importer(_WHAT, HANDLERS)
    values: dict[tuple[str, int], Tensor] = {}
    cut = {_reference(name, nodes): name for name in wanted_inputs}
    needed = in_order(
        [one.node for one in wanted if one not in cut],
        lambda name: [
            one.node
            for one in (_reference(text, nodes) for text in nodes[name].input if not text.startswith("^"))
            if one not in cut
        ],
        _error,
    )
    importer.check_supported(((name, nodes[name].op) for name in needed), ("Const", *_PLACEHOLDERS))
    reached = {*needed}
    order = [
        name
        for name, node in nodes.items()
        if node.op in _PLACEHOLDERS and (everything or name in reached) and _Ref(name, 0) not in cut
    ]
    for reference, name in cut.items():
        values[reference] = importer.placeholder(name, _spec(nodes[reference.node], reference, wanted_inputs[name]))
    for name in order:
        values[_Ref(name, 0)] = importer.placeholder(name, _spec(nodes[name], _Ref(name, 0), None))
    used: dict[str, int] = {}
    for one in wanted + [_reference(text, nodes) for name in needed for text in nodes[name].input if text[:1] != "^"]:
        used[one.node] = max(used.get(one.node, 0), one.port + 1)
    for name in needed:
        if nodes[name].op not in _PLACEHOLDERS:
            _read(importer, nodes, name, values, used.get(name, 1))
    found = []
    for one in wanted:
        if one not in values:
            raise _error(f"node {one.node!r} has no output {one.port}")
        found.append(values[one])
    return importer.finish([*wanted_inputs, *order], found, "graphdef")


class _Ref(NamedTuple):
    """An output of a node."""

    node: str
    port: int


def _error(text: str) -> InterchangeError:
    return InterchangeError(f"{_WHAT}: {text}")


def _parsed(data_or_path: Any) -> tuple[Any, Any]:
    """Return the GraphDef, and a SavedModel's signature or `None`."""
    classes, parts = message_classes(), protobuf()
    as_text = False
    if not isinstance(data_or_path, bytes | bytearray | memoryview):
        try:
            path = Path(data_or_path)
        except TypeError as error:
            raise _error(f"takes bytes or a path, got a {type(data_or_path).__name__}") from error
        if path.is_dir():
            path /= "saved_model.pb"
        data_or_path, as_text = path, path.suffix in (".pbtxt", ".prototxt")
    data = read_bytes(data_or_path, _WHAT)
    try:
        if as_text:
            text = data.decode()
            saved = "meta_graphs" in text
            message = classes["SavedModel" if saved else "GraphDef"]()
            parts.text_format.Parse(text, message, allow_unknown_field=True)
        else:
            saved = data[:1] == b"\x08"  # the version of a SavedModel's layout; a GraphDef has no such field
            message = classes["SavedModel" if saved else "GraphDef"].FromString(data)
    except (parts.message.DecodeError, parts.text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise _error(f"this is no GraphDef, or a damaged one: {error}") from error
    if not saved:
        return message, None
    if not message.meta_graphs:
        raise _error("the SavedModel has no graph")
    meta = message.meta_graphs[0]
    keys = sorted(key for key in meta.signature_def if key != "__saved_model_init_op")
    key = "serving_default" if "serving_default" in keys else keys[0] if keys else None
    return meta.graph_def, None if key is None else meta.signature_def[key]


def _by_name(graph_def: Any) -> dict[str, Any]:
    nodes: dict[str, Any] = {}
    for node in graph_def.node:
        if not node.name or ":" in node.name or node.name.startswith("^"):
            raise _error(f"a node is named {node.name!r}")
        if node.name in nodes:
            raise _error(f"two nodes are named {node.name!r}")
        nodes[node.name] = node
    return nodes


def _reference(text: str, nodes: Mapping[str, Any]) -> _Ref:
    name, colon, index = text.partition(":")
    if name not in nodes:
        raise _error(f"there is no node {name!r}, which {text!r} refers to")
    if colon and not (index.isascii() and index.isdigit() and len(index) < 6):
        raise _error(f"{text!r} is no name of a tensor")
    return _Ref(name, int(index) if colon else 0)


def _unused(nodes: Mapping[str, Any]) -> list[str]:
    used = {text.lstrip("^").partition(":")[0] for node in nodes.values() for text in node.input}
    silent = ("NoOp", "Assert", "Const", *_PLACEHOLDERS)
    return [name for name, node in nodes.items() if name not in used and node.op not in silent] or [
        name for name, node in nodes.items() if name not in used and node.op not in ("NoOp", "Assert")
    ]


def _wanted_inputs(given: Any, signature: Any, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return by name the specs (or shapes, or `None`) the caller gives for inputs, in order."""
    if given is None:
        named = [] if signature is None else [signature.inputs[key].name for key in sorted(signature.inputs)]
        return {_reference(one, nodes).node if one.endswith(":0") else one: None for one in named}
    if isinstance(given, str):
        return {given: None}
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Iterable):
        return dict.fromkeys(given)
    raise _error(f"inputs must be names, or a dict from names to specs, got a {type(given).__name__}")


def _spec(node: Any, reference: _Ref, given: Any) -> Spec:
    """Return the spec of an input: what the file says, filled up by what the caller gives."""
    is_placeholder = node.op in _PLACEHOLDERS
    key = next((one for one in ("dtype", "T") if one in node.attr), None)
    dtype = None if key is None or not node.attr[key].type else dtype_of(node.attr[key].type)
    shape = known_shape(node.attr["shape"].shape) if is_placeholder and "shape" in node.attr else None
    name = reference.node if reference.port == 0 else f"{reference.node}:{reference.port}"
    if not is_placeholder and hasattr(given, "dtype"):
        dtype = given.dtype  # the attribute says what goes into the node, which need not be what comes out
    return completed_spec(name, dtype, shape if is_placeholder else None, given, _error)


def _read(importer: Importer, nodes: Mapping[str, Any], name: str, values: dict[Any, Tensor], used: int) -> None:
    node = nodes[name]
    if node.op == "Const":
        try:
            array = array_of(node.attr["value"].tensor)
        except (InterchangeError, ValueError, OverflowError) as error:
            raise _error(f"node {name!r} (Const): {error}") from error
        values[_Ref(name, 0)] = Tensor(importer.graph.constant(array, importer.graph.unique_name(name)))
        return
    inputs = []
    for text in node.input:
        if text.startswith("^"):
            continue
        reference = _reference(text, nodes)
        if reference not in values:
            raise _error(f"node {name!r} ({node.op}): node {reference.node!r} has no output {reference.port}")
        inputs.append(values[reference])
    results = importer.read(Node(importer, name, node.op, inputs, node.attr, used))
    values.update({_Ref(name, number): one for number, one in enumerate(results)})
