"""`from_onnx`: ONNX models as graphs of ours; nodes noted as stops are stops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import InterchangeError
from stopgrad.core.lazy import onnx, protobuf
from stopgrad.core.tensor import Tensor
from stopgrad.gates import prevent_gradient
from stopgrad.graph.tracing import Traced
from stopgrad.interchange.importing import Importer, Node, completed_spec, in_order, read_bytes
from stopgrad.interchange.onnx_export import NOTE
from stopgrad.interchange.onnx_nodes import HANDLERS

_WHAT = "from_onnx"
OPSETS = range(13, 24)
"""The versions of ONNX's operations that are read."""

_NAMED_STOP = re.compile(r"(?:.*/)?stop_?gradient(?:_\d+)?(?::(?P<name>.*))?", re.IGNORECASE | re.DOTALL)


def from_onnx(
    data_or_path: Any, inputs: Mapping[str, Any] | None = None, outputs: Sequence[str] | str | None = None
) -> Traced:
    """Read an ONNX model, of opset 13 to 23.

    An Identity is nothing, unless it is noted to be a gate: by `to_onnx`, by a doc string "stop_gradient" or
    "stop_gradient:NAME", or by such a name of the node ("model/StopGradient" is one too, as converters leave it).

    Args:
        data_or_path: the serialised model as bytes, or the path of its file. All weights must be in it.
        inputs: by the name of an input its `Spec` or shape, needed where the model leaves sizes open.
        outputs: names of the values to return, of any on the way; one name for a single one. By default the model's.

    Returns:
        Traced: call it with arrays, one for each of the model's inputs, in order; take its derivative with `grad`. It
        returns one tensor, or a tuple if there are several outputs.

    Raises:
        InterchangeError: a damaged file, an operation without counterpart, or a size that is open.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.interchange import from_onnx, to_onnx
        >>> model = to_onnx(sg.trace(lambda x: sg.stop_gradient(x, name="target") * x)(3.0))
        >>> from_onnx(model).graph.operation("stop_gradient").params
        ('target',)
    """
    model = _parsed(data_or_path)
    graph = model.graph
    importer = Importer(_WHAT, {**HANDLERS, "Identity": _identity})
    values: dict[str, Tensor] = {}
    constants = _constants(graph)
    producers, nodes = _producers(graph, constants)
    given = dict(inputs or {})
    names = [one.name for one in graph.input if one.name not in constants]
    if unknown := set(given) - set(names):
        raise _error(f"there is no input named {sorted(unknown)[0]!r}; the inputs are {names}")
    for one in graph.input:
        if one.name not in constants:
            if one.name in values or one.name in producers:
                raise _error(f"two values are named {one.name!r}")
            values[one.name] = importer.placeholder(one.name, _spec(one, given.get(one.name)))
    wanted = [one.name for one in graph.output] if outputs is None else outputs
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    if not wanted:
        raise _error("the model has no outputs")

    def inputs_of(key: str) -> list[str]:
        found = []
        for name in nodes[key].input:
            if name in producers:
                found.append(producers[name])
            elif name and name not in values and name not in constants:
                raise _error(f"there is no value {name!r}, which node {nodes[key].name or key!r} takes")
        return found

    needed = in_order([producers[name] for name in wanted if name in producers], inputs_of, _error)
    importer.check_supported((key, _operation(nodes[key])) for key in needed)

    def value_of(name: str) -> Tensor | None:
        if not name:
            return None
        if name not in values:
            if name not in constants:
                raise _error(f"there is no value {name!r}")
            label = importer.graph.unique_name(name)
            values[name] = Tensor(importer.graph.constant(_array(constants[name]), label))
        return values[name]

    for key in needed:
        proto = nodes[key]
        node = Node(importer, key, proto.op_type, [value_of(one) for one in proto.input], _attributes(proto), 1)
        node.used = max((i + 1 for i, one in enumerate(proto.output) if one), default=1)
        values.update({name: one for name, one in zip(proto.output, importer.read(node), strict=False) if name})
    results = []
    for name in wanted:
        result = value_of(name)
        if result is None:
            raise _error("an output has no name")
        results.append(result)
    return importer.finish(names, results, "onnx")


def _error(text: str) -> InterchangeError:
    return InterchangeError(f"{_WHAT}: {text}")


def _parsed(data_or_path: Any) -> Any:
    library, parts = onnx(), protobuf()
    data = read_bytes(data_or_path, _WHAT)
    try:
        model = library.ModelProto.FromString(data)
    except parts.message.DecodeError as error:
        raise _error(f"this is no ONNX model, or a damaged one: {error}") from error
    if not all(isinstance(text, str) for text in _texts(model)):  # this message type does not check when it reads
        raise _error("this is no ONNX model, or a damaged one: a name is not valid UTF-8")
    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    if len(versions) != 1 or versions[0] not in OPSETS:
        raise _error(
            f"reads models of opset {OPSETS[0]} to {OPSETS[-1]}, this one is of {versions or 'none'}; convert it with "
            "onnx.version_converter"
        )
    return model


def _texts(model: Any) -> Iterator[Any]:
    graph = model.graph
    yield from (one.domain for one in model.opset_import)
    yield from (one.name for one in (*graph.input, *graph.output, *graph.initializer))
    for node in graph.node:
        yield from (node.name, node.doc_string, node.op_type, node.domain, *node.input, *node.output)
        yield from (one.name for one in node.attribute)
        for note in node.metadata_props:
            yield from (note.key, note.value)


def _constants(graph: Any) -> dict[str, Any]:
    if graph.sparse_initializer:
        raise _error("sparse initializers are not supported")
    found: dict[str, Any] = {}
    for one in graph.initializer:
        if not one.name or one.name in found:
            raise _error(f"an initializer is named {one.name!r}, or two are")
        found[one.name] = one
    return found


def _producers(graph: Any, constants: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return by value the node that makes it, and by name the nodes: a node is called as its first output."""
    producers: dict[str, str] = {}
    nodes: dict[str, Any] = {}
    for node in graph.node:
        key = next((name for name in node.output if name), "")
        if not key:
            continue
        nodes[key] = node
        for name in node.output:
            if name in producers or name in constants:
                raise _error(f"two values are named {name!r}")
            if name:
                producers[name] = key
    return producers, nodes


def _operation(node: Any) -> str:
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"


def _array(tensor: Any) -> np.ndarray:
    if tensor.data_location:
        raise _error(f"the values of {tensor.name!r} are in another file; save the model as one file")
    try:
        array = onnx().numpy_helper.to_array(tensor)
    except Exception as error:  # what damaged data leads to cannot be listed
        raise _error(f"the values of {tensor.name!r} are damaged: {error}") from error
    if array.dtype.kind not in "biufcV":
        raise _error(f"the values of {tensor.name!r} are of dtype {array.dtype}")
    return np.asarray(array)


def _spec(one: Any, given: Any) -> Spec:
    """Return the spec of an input: what the model says, filled up by what the caller gives."""
    kind = one.type.tensor_type
    try:
        dtype = np.dtype(onnx().helper.tensor_dtype_to_np_dtype(kind.elem_type))
    except KeyError:
        raise _error(f"input {one.name!r} is no tensor of a known dtype") from None
    if dtype.kind not in "biufcV":
        raise _error(f"input {one.name!r} is of dtype {dtype}")
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    return completed_spec(one.name, dtype, sizes if kind.HasField("shape") else None, given, _error)


def _attributes(node: Any) -> dict[str, Any]:
    get = onnx().helper.get_attribute_value
    found: dict[str, Any] = {"note": _note(node)}
    for one in node.attribute:
        try:
            found[one.name] = get(one)
        except ValueError as error:
            raise _error(f"node {node.name!r} ({node.op_type}): {error}") from error
    return found


def _note(node: Any) -> str:
    """Return the gate an Identity stands for, as `to_onnx` writes it, or an empty text."""
    if node.op_type != "Identity":
        return ""
    for one in node.metadata_props:
        if one.key == NOTE:
            return str(one.value)
    for text in (node.doc_string, node.name):
        if match := _NAMED_STOP.fullmatch(text):
            return "stop_gradient" if match["name"] is None else f"stop_gradient:{match['name']}"
        if text.startswith("prevent_gradient:"):
            return str(text)
    return ""


def _identity(node: Node) -> Tensor:
    kind, colon, label = node.attribute("note", "").partition(":")
    if kind == "stop_gradient":
        return node.stop(node[0], label if colon else None)
    if kind == "prevent_gradient":
        gated: Tensor = prevent_gradient(node[0], label)
        return gated
    if kind:
        raise InterchangeError(f"an Identity noted as {kind!r}")
    return node[0]
