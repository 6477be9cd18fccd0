"""Writing graph files: a graph as records of JSON, one a line, and the bytes of its arrays behind them.

docs/graph_files.md describes the format. Records come in the order in which operations were created, each after
whatever it refers to, so that a file is written and read in one pass. The same graph gives the same bytes.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, StopgradError
from stopgrad.core.graph import ArrayParam, BaseGraph, GraphOperation, Output, VariableParam
from stopgrad.core.operation import operations
from stopgrad.core.tensor import Tensor
from stopgrad.graph.file_trees import tree_to_json
from stopgrad.graph.file_values import (
    MAX_TEXT,
    SettingsWriter,
    little_endian,
    name_of_dtype,
    shape_to_json,
)

MAGIC = b"\x93sggraph"
VERSION = 1
HEAD = struct.Struct("<8sIIQQ")
"""Magic, version, CRC-32 of all that follows the head, bytes of records, bytes of arrays."""
ALIGNMENT = 16

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
_CHUNK = 1 << 20
_PLAIN = frozenset((int, bool, str, float, type(None)))
_LEVEL = {"conditional_stop": 2}
"""Where an operation has the number of a derivative in progress among its settings, which means nothing in a file."""


def padding(size: int) -> int:
    """Return how many zeros follow so many bytes."""
    return -size % ALIGNMENT


def save_graph(
    path: str | os.PathLike[str], graph: BaseGraph, *, variable_values: bool = True, sources: bool = True,
    traced: Any = None,
) -> None:  # fmt: skip
    """Write a graph, or a traced function, to a file, which is replaced as a whole or not at all.

    Args:
        path: where to.
        graph: a whole graph, not a body.
        variable_values: whether the values of variables are written.
        sources: whether files and lines are written.
        traced: the traced function the graph belongs to, if any.

    Raises:
        ArgumentError: a body, or a graph that uses something of another; two variables of one name.
        ArgumentTypeError: a setting that is no data.
        DTypeError: values of a dtype the format does not hold.
    """
    writer = _Writer(graph, variable_values, sources)
    target = Path(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as file:
            _write(file, writer, traced)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def _write(file: IO[bytes], writer: _Writer, traced: Any) -> None:
    file.write(bytes(HEAD.size))
    checksum = size = 0

    def put(data: bytes) -> None:
        nonlocal checksum, size
        checksum, size = zlib.crc32(data, checksum), size + len(data)
        file.write(data)

    pending: list[str] = []
    pending_size = 0
    for record in writer.records(traced):
        pending.append(record)
        pending_size += len(record) + 1
        if pending_size > _CHUNK:
            put(("\n".join(pending) + "\n").encode("ascii"))
            pending, pending_size = [], 0
    if pending:
        put(("\n".join(pending) + "\n").encode("ascii"))
    records, size = size, 0
    put(bytes(padding(records)))
    size = 0
    for array in writer.arrays:
        put(little_endian(array))
        put(bytes(padding(size)))
    file.seek(0)
    file.write(HEAD.pack(MAGIC, VERSION, checksum, records, size))


class _Writer:
    """Numbers what a graph consists of, and makes the records."""

    def __init__(self, graph: BaseGraph, variable_values: bool, sources: bool) -> None:
        if graph.is_body or graph.captures:
            raise ArgumentError("save: takes a whole graph, no body of a loop or branch, and none that uses another")
        self._graph = graph
        self._variable_values = variable_values
        self._sources = sources
        self.arrays: list[np.ndarray] = []
        self._records: list[str] = []
        self._numbers: dict[GraphOperation, int] = {}
        self._graphs: dict[BaseGraph, int] = {graph: 0}
        self._types: dict[Any, int] = {}
        self._specs: dict[Any, int] = {}
        self._files: dict[str, int] = {}
        self._arrays: dict[int, int] = {}
        self._variables: dict[int, int] = {}
        self._variable_names: set[str] = set()
        self._bodies: dict[int, int] = {}
        self._kept_alive: list[Any] = []
        self._settings = SettingsWriter(self._spec, self._part)
        self._current = 0

    def records(self, traced: Any) -> Iterator[str]:
        """Yield the records, in order."""
        for operation in _in_order(self._graph):
            try:
                self._add(operation)
            except StopgradError as error:
                raise type(error)(f"save: operation {operation.name!r}: {error}") from error
            yield from self._taken()
        for graph, number in self._graphs.items():
            for key, count in graph.scope_counts():
                self._put(["scope", number, key, count])
        if traced is not None:
            inputs = [self._operand(one) for one in traced.inputs]
            outputs = [self._operand(one) for one in traced.outputs]
            trees = tree_to_json(traced.in_tree), tree_to_json(traced.out_tree)
            self._put(["traced", traced.name, inputs, outputs, *trees])
        yield from self._taken()

    def _taken(self) -> list[str]:
        taken, self._records = self._records, []
        return taken

    def _put(self, record: list[Any]) -> None:
        self._records.append(_encode(record))

    def _add(self, operation: GraphOperation) -> None:
        if not 0 < len(operation.name) <= MAX_TEXT:
            raise ArgumentError(f"a graph file cannot hold names of more than {MAX_TEXT} characters")
        kind = self._type(operation)
        settings: list[Any] = []
        if operation.params:
            hidden = _LEVEL.get(operation.type)
            settings = [
                -1 if number == hidden and one is not None else self._settings.write(one)
                for number, one in enumerate(operation.params)
            ]
        inputs = [self._operand(one) for one in operation.inputs]
        specs: Any = [self._spec_of(one) for one in operation.outputs]
        record = [kind, operation.name, inputs, specs[0] if operation.single else specs, settings]
        if self._sources and operation.source is not None:
            file, line = operation.source
            record += [self._file(file), line]
        graph = self._graph_number(operation.graph)
        if graph != self._current:
            self._put(["in", graph])
            self._current = graph
        self._put(record)
        self._numbers[operation] = len(self._numbers)

    def _operand(self, one: Any) -> Any:
        if type(one) is not Output:
            return ["=", self._settings.write(one)]
        number = self._numbers[one.op]
        return [number, one.index] if one.index else number

    def _type(self, operation: GraphOperation) -> int:
        applied = operation.operation
        if operations.get(applied.name) is applied:
            key: Any = applied
            record: list[Any] = ["type", applied.name]
        else:  # made by custom_gradient or custom_jvp: passes on its last inputs, with a derivative that is Python code
            before = len(operation.inputs) - len(operation.outputs)
            key, record = (applied.name, before), ["custom", applied.name, before]
            passed = [one.spec for one in operation.inputs[before:] if type(one) is Output]
            if before < 0 or operation.params or passed != [one.spec for one in operation.outputs]:
                raise ArgumentTypeError("a graph file holds the library's own operations only")
        if key not in self._types:
            self._types[key] = len(self._types)
            self._put(record)
        return self._types[key]

    def _spec_of(self, output: Output) -> int:
        key = (output.shape, output.dtype)
        number = self._specs.get(key)
        return self._spec(output.spec) if number is None else number

    def _spec(self, spec: Spec) -> int:
        key = (tuple(spec.shape), spec.dtype)
        if key not in self._specs:
            self._put(["spec", name_of_dtype(spec.dtype), shape_to_json(spec.shape)])
            self._specs[key] = len(self._specs)
        return self._specs[key]

    def _file(self, name: str) -> int:
        if name not in self._files:
            self._files[name] = len(self._files)
            self._put(["file", name[:MAX_TEXT]])
        return self._files[name]

    def _part(self, value: Any) -> list[Any] | None:
        if type(value) is ArrayParam:
            return ["array", self._array(value.value)]
        if type(value) is VariableParam:
            return ["variable", self._variable(value.variable)]
        if hasattr(value, "body_graphs"):
            return ["body", self._body(value)]
        return None

    def _array(self, value: Any) -> int:
        if id(value) in self._arrays:
            return self._arrays[id(value)]
        if not isinstance(value, np.ndarray | np.generic):
            raise ArgumentTypeError(
                f"a graph file holds NumPy's arrays, not a {type(value).__module__}.{type(value).__name__}; trace with "
                "the array converted by np.asarray"
            )
        array = np.asarray(value)
        form = "scalar" if isinstance(value, np.generic) else "repeated" if _is_repeated(array) else "full"
        self._put(["array", name_of_dtype(array.dtype), shape_to_json(array.shape), form])
        self.arrays.append(array[(0,) * array.ndim] if form == "repeated" else array)
        self._kept_alive.append(value)  # so that its id stays its own
        self._arrays[id(value)] = len(self._arrays)
        return self._arrays[id(value)]

    def _variable(self, variable: Any) -> int:
        if id(variable) not in self._variables:
            name = str(variable.name)
            if name in self._variable_names:
                raise ArgumentError(f"two variables are named {name!r}; give each a name of its own")
            value = self._array(np.array(Tensor(variable.raw).numpy())) if self._variable_values else None
            spec = self._spec(Spec(tuple(variable.shape), variable.dtype))
            self._put(["variable", name[:MAX_TEXT], spec, bool(variable.trainable), value])
            self._variable_names.add(name)
            self._kept_alive.append(variable)
            self._variables[id(variable)] = len(self._variables)
        return self._variables[id(variable)]

    def _body(self, body: Any) -> int:
        if id(body) not in self._bodies:
            graph = self._graph_number(body.graph)
            inputs = [self._numbers[one.op] for one in body.inputs]
            outputs = [self._operand(one) for one in body.outputs]
            self._put(["body", graph, inputs, outputs])
            self._kept_alive.append(body)
            self._bodies[id(body)] = len(self._bodies)
        return self._bodies[id(body)]

    def _graph_number(self, graph: BaseGraph) -> int:
        """Return the number of a graph, after those around it got theirs; what is not a body stands for the whole."""
        known = self._graphs.get(graph)
        if known is not None:
            return known
        around: list[BaseGraph] = []
        one: BaseGraph | None = graph
        while one is not None and one.is_body and one not in self._graphs:
            around.append(one)
            one = one.outer
        outer = 0 if one is None else self._graphs.get(one, 0)
        for inner in reversed(around):
            self._put(["graph", outer])
            outer = self._graphs[inner] = len(self._graphs)
        return outer


def _is_repeated(array: np.ndarray) -> bool:
    """Whether an array is a view of one entry, repeated."""
    return array.size > 1 and not any(
        stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1
    )


def _in_order(graph: BaseGraph) -> list[GraphOperation]:
    """Return the operations of a graph and of all bodies that it uses, in order of creation."""
    found: dict[GraphOperation, None] = dict.fromkeys(graph.operations)
    bodies: dict[int, Any] = {}
    pending: list[Sequence[GraphOperation]] = [graph.operations]
    while pending:
        for operation in pending.pop():
            for body in _bodies_in(operation.params):
                if id(body) in bodies:
                    continue
                bodies[id(body)] = body
                inside = [*(one.op for one in body.inputs), *body.operations]
                added = [one for one in inside if one not in found]
                found.update(dict.fromkeys(added))
                pending.append(added)
    return sorted(found, key=lambda operation: operation.index)


def _bodies_in(params: tuple[Any, ...]) -> Iterator[Any]:
    for one in params:
        if type(one) in _PLAIN:
            continue
        if type(one) is tuple:
            yield from _bodies_in(one)
        elif hasattr(one, "body_graphs"):
            yield one
