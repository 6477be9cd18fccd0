"""Reading graph files: every record checked before it is believed, in one pass, in time linear in the file.

Whatever is wrong with a file raises `GraphFileError`, which says what and in which record. An operation is added by the
same way as in tracing: its shape rule is asked again, and must say what the file says.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Spec
from stopgrad.core.errors import ArgumentError, GraphFileError, NonDifferentiableError
from stopgrad.core.graph import (
    CONSTANT,
    PLACEHOLDER,
    VARIABLE,
    ArrayParam,
    GraphOperation,
    Output,
    VariableParam,
)
from stopgrad.core.later import new_variable, operation_named
from stopgrad.core.operation import EveryInput, Operation
from stopgrad.graph.body import Body, BodyGraph
from stopgrad.graph.file_trees import TreeReader
from stopgrad.graph.file_values import (
    MAX_DEPTH,
    SettingsReader,
    dtype_named,
    from_little_endian,
    integer,
    listed,
    refuse,
    shape_from_json,
    shown,
    text,
)
from stopgrad.graph.graph import Graph
from stopgrad.graph.saving import HEAD, MAGIC, VERSION, padding
from stopgrad.graph.tracing import Traced

MAX_RECORD = 1 << 28
"""Bytes in one record."""
_CHUNK = 1 << 20
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_FORMS = ("full", "repeated", "scalar")
_INTERNAL = ("leaf", "project")
_SETTING_TYPES = {PLACEHOLDER: Spec, CONSTANT: ArrayParam, VARIABLE: VariableParam}
_LEVEL = ("conditional_stop", 2)


def load(path: str | os.PathLike[str], variables: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph in a file that `Graph.save` or `Traced.save` wrote.

    Args:
        path: the file.
        variables: by name, those the graph is to read; of the same shape and dtype. Others are made anew, with the
            values in the file.

    Raises:
        GraphFileError: the file is damaged, truncated, of another version or not to be trusted. It is raised before
            anything else happens; loading runs no code of the file's, for there is none.
        ArgumentError: a variable that is given is not in the graph, or does not fit; or one is not given whose value
            the file does not hold.
        OSError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> import stopgrad as sg
        >>> path = os.path.join(tempfile.mkdtemp(), "square.sg")
        >>> sg.trace(lambda x: x * sg.stop_gradient(x))(3.0).graph.save(path)
        >>> graph = sg.graph.load(path)
        >>> [operation.type for operation in graph]
        ['placeholder', 'stop_gradient', 'multiply']
    """
    return _read(path, variables, None)[0]


def load_traced(
    path: str | os.PathLike[str], variables: Mapping[str, Any] | None = None, types: Iterable[type] = ()
) -> Traced:
    """Return the traced function in a file that `Traced.save` wrote.

    Args:
        path: the file.
        variables: as for `load`.
        types: classes of named tuples among its arguments or in its result; a file holds only their names.

    Raises:
        GraphFileError: as for `load`; also a file that holds no traced function, or one that takes or returns a named
            tuple whose class is not given.
        ArgumentError: as for `load`.
        OSError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> import stopgrad as sg
        >>> path = os.path.join(tempfile.mkdtemp(), "square.sg")
        >>> sg.trace(lambda x: {"square": x * x})(3.0).save(path)
        >>> float(sg.graph.load_traced(path)(5.0)["square"])
        25.0
    """
    traced = _read(path, variables, {one.__name__: one for one in types})[1]
    if traced is None:
        raise GraphFileError(f"{Path(path)}: it holds a graph, but no traced function; read it with load")
    return traced


def _read(
    path: str | os.PathLike[str], variables: Mapping[str, Any] | None, classes: Mapping[str, Any] | None
) -> tuple[Graph, Traced | None]:
    with open(path, "rb") as file:
        try:
            reader = _Reader(dict(variables or {}), classes)
            with np.errstate(all="ignore"):  # shape rules try kernels on ones
                reader.read(file, os.fstat(file.fileno()).st_size)
        except GraphFileError as error:
            raise GraphFileError(f"{Path(path)}: {error}") from error
        unused = set(variables or {}) - reader.names_of_variables
        if unused:
            raise ArgumentError(f"load: {Path(path)} has no variable named {min(unused)!r}")
        return reader.graph, reader.traced


class _Reader:
    """Builds a graph from records."""

    def __init__(self, variables: Mapping[str, Any], classes: Mapping[str, Any] | None) -> None:
        self.graph = Graph()
        self.traced: Traced | None = None
        self.names_of_variables: set[str] = set()
        self._given = variables
        self._classes = classes
        self._graphs: list[Graph] = [self.graph]
        self._current: Graph = self.graph
        self._types: list[_Type] = []
        self._specs: list[Spec] = []
        self._files: list[str] = []
        self._arrays: list[ArrayParam] = []
        self._array_bytes = b""
        self._variables: list[VariableParam] = []
        self._bodies: list[Body] = []
        self._operations: list[GraphOperation] = []
        self._work = 0
        self._settings = SettingsReader(
            lambda number: _at(self._specs, number, "spec"),
            {
                "array": lambda number: _at(self._arrays, number, "array"),
                "variable": lambda number: _at(self._variables, number, "variable"),
                "body": self._body_at,
            },
        )
        self._known = {
            "type": self._type,
            "custom": self._custom,
            "spec": self._spec,
            "file": self._file,
            "graph": self._inner_graph,
            "in": self._enter,
            "array": self._array,
            "variable": self._variable,
            "body": self._body,
            "scope": self._scope,
            "traced": self._traced,
        }

    def read(self, file: IO[bytes], size: int) -> None:
        """Read a whole file of this size."""
        records = self._check(file, size)
        file.seek(HEAD.size)
        number = 0
        try:
            while records:
                line = file.readline(min(records, MAX_RECORD) + 1)
                if len(line) > min(records, MAX_RECORD) or not line.endswith(b"\n"):
                    refuse(f"it does not end within {MAX_RECORD} bytes, or not with a newline")
                records -= len(line)
                self._record(_parsed(line))
                number += 1
        except ArgumentError:  # about variables the caller gave
            raise
        except GraphFileError as error:
            raise GraphFileError(f"record {number}: {error}") from error
        except Exception as error:  # nothing is known to come here; if it does, it is the file's fault all the same
            raise GraphFileError(f"record {number}: {type(error).__name__}: {shown(str(error))}") from error
        if self._array_offset != len(self._array_bytes):
            refuse("there are more bytes of arrays than the records tell of")

    def _check(self, file: IO[bytes], size: int) -> int:
        """Check head, sizes and checksum, read the bytes of arrays; return how many bytes of records there are."""
        head = file.read(HEAD.size)
        if len(head) < HEAD.size or not head.startswith(MAGIC):
            refuse("it is no graph file")
        _, version, checksum, records, arrays = HEAD.unpack(head)
        if version != VERSION:
            refuse(f"it is of version {version}, and this is a reader of version {VERSION}; take a newer stopgrad")
        if records + padding(records) + arrays != size - HEAD.size:
            refuse(f"it is {size} bytes long, but its head says {HEAD.size + records + padding(records) + arrays}")
        found, left = 0, records + padding(records)
        zeros = padding(records)
        while left:
            chunk = file.read(min(left, _CHUNK))
            if not chunk:
                refuse("it ends before its time")
            found, left = zlib.crc32(chunk, found), left - len(chunk)
        if zeros and chunk[-zeros:].strip(b"\0"):
            refuse("the padding after the records is not zero")
        self._array_bytes = file.read(arrays)
        self._array_offset = 0
        if zlib.crc32(self._array_bytes, found) != checksum:
            refuse("its checksum does not fit: it was damaged")
        return records

    def _record(self, record: Any) -> None:
        if type(record) is not list or not record:
            refuse(f"{shown(record)} is no record")
        tag = record[0]
        if type(tag) is int:
            self._operation(record)
        elif type(tag) is str and tag in self._known:
            if self.traced is not None:
                refuse("nothing may follow the traced function")
            self._known[tag](record)
        else:
            refuse(f"there is no record {shown(tag)}")

    def _type(self, record: list[Any]) -> None:
        (name,) = _fields(record, 1)
        operation = operation_named(text(name, "the name of an operation"))
        if operation is None or operation.name in _INTERNAL or operation.spec is None:
            refuse(f"there is no operation {shown(name)}")
        self._types.append(_Type(operation))

    def _custom(self, record: list[Any]) -> None:
        name, before = _fields(record, 2)
        self._types.append(
            _Type(_customised(text(name, "a name", least=1), integer(before, 0, len(self._operations), "a count")))
        )

    def _spec(self, record: list[Any]) -> None:
        dtype, shape = _fields(record, 2)
        self._specs.append(Spec(shape_from_json(shape), dtype_named(dtype)))

    def _file(self, record: list[Any]) -> None:
        (name,) = _fields(record, 1)
        self._files.append(text(name, "the name of a file"))

    def _inner_graph(self, record: list[Any]) -> None:
        (outer,) = _fields(record, 1)
        self._graphs.append(BodyGraph(_at(self._graphs, outer, "graph")))

    def _enter(self, record: list[Any]) -> None:
        (number,) = _fields(record, 1)
        self._current = _at(self._graphs, number, "graph")

    def _array(self, record: list[Any]) -> None:
        dtype_name, sizes, form = _fields(record, 3)
        dtype, shape = dtype_named(dtype_name), shape_from_json(sizes)
        if form not in _FORMS or type(form) is not str or (form == "scalar" and shape) or any(s < 0 for s in shape):
            refuse(f"an array cannot be {shown(form)} of shape {shape}")
        size = dtype.itemsize * (1 if form == "repeated" else math.prod(shape))
        end = self._array_offset + size
        if end + padding(size) > len(self._array_bytes):
            refuse(f"an array of {size} bytes does not fit into what is left of the file")
        data = memoryview(self._array_bytes)[self._array_offset : end]
        if any(self._array_bytes[end : end + padding(size)]):
            refuse("the padding after an array is not zero")
        self._array_offset = end + padding(size)
        entries = from_little_endian(data, dtype)
        if form == "repeated":
            try:
                value: Any = np.broadcast_to(entries[0], shape)
            except ValueError as error:
                refuse(f"an array cannot have the shape {shape}: {error}")
        else:
            value = entries[0] if form == "scalar" else entries.reshape(shape)
        self._arrays.append(ArrayParam(value))

    def _variable(self, record: list[Any]) -> None:
        name, number, trainable, array = _fields(record, 4)
        text(name, "the name of a variable")
        spec = _at(self._specs, number, "spec")
        if name in self.names_of_variables or type(trainable) is not bool:
            refuse(f"the variable {shown(name)} is there twice, or not said to be trainable or not")
        self.names_of_variables.add(name)
        value: Any = None if array is None else _at(self._arrays, array, "array").value
        if value is not None and (np.shape(value) != spec.shape or value.dtype != spec.dtype):
            refuse(f"the variable {shown(name)} is {spec}, but its value is not")
        variable = self._given.get(name)
        if variable is None and value is None:
            raise ArgumentError(f"load: the value of variable {name!r} is not in the file; give it in variables=")
        if variable is None:
            if any(stride == 0 and size > 1 for size, stride in zip(value.shape, value.strides, strict=True)):
                refuse(f"the value of variable {shown(name)} is a repeated entry")
            variable = new_variable(value, name, trainable)
        elif tuple(variable.shape) != spec.shape or variable.dtype != spec.dtype:
            raise ArgumentError(f"load: variable {name!r} is {spec} in the file, here {variable.dtype}{variable.shape}")
        self._variables.append(VariableParam(variable))

    def _operation(self, record: list[Any]) -> None:
        if len(record) not in (5, 7):
            refuse(f"an operation has 5 or 7 entries, got {len(record)}")
        kind = _at(self._types, record[0], "type")
        name, graph = record[1], self._current
        if type(name) is not str or text(name, "a name", least=1) in graph.names:
            refuse(f"an operation cannot be named {shown(name)}, or one is already")
        inputs = tuple([self._operand(one) for one in listed(record[2], "inputs")])
        for one in inputs:
            if type(one) is Output and one.op.graph is not graph:
                refuse(f"operation {shown(name)}: {one.name} belongs to another graph")
        params = tuple([self._settings.read(one) for one in listed(record[4], "settings")])
        kind.check(name, inputs, params)
        said = record[3]
        single = type(said) is int
        specs: Any = (
            _at(self._specs, said, "spec")
            if single
            else tuple([_at(self._specs, one, "spec") for one in listed(said, "specs")])
        )
        _compare(kind.operation, name, inputs, params, specs)
        source = None
        if len(record) == 7:
            source = (_at(self._files, record[5], "file"), integer(record[6], 0, 1 << 40, "a line"))
        try:
            added = graph.put(kind.operation, inputs, params, name, specs, source)
        except Exception as error:
            refuse(f"operation {shown(name)}: {error}")
        if kind.operation is CONSTANT:
            graph.note_constant(added)
        elif kind.operation is VARIABLE and (graph is not self.graph or graph.note_variable(added)):
            refuse(f"operation {shown(name)}: its variable is read elsewhere")
        self._operations.append(added)

    def _operand(self, one: Any) -> Any:
        if type(one) is int:
            return _at(self._operations, one, "operation before this").outputs[0]
        pair = listed(one, "an operand")
        if len(pair) == 2 and pair[0] == "=" and type(pair[0]) is str:
            number = self._settings.read(pair[1])
            if type(number) in PYTHON_SCALARS:
                return number
        elif len(pair) == 2:
            outputs = _at(self._operations, pair[0], "operation before this").outputs
            return outputs[integer(pair[1], 1, len(outputs) - 1, "the number of an output")]
        refuse(f"there is no operand {shown(one)}")

    def _body(self, record: list[Any]) -> None:
        number, given, results = _fields(record, 3)
        graph = _at(self._graphs, number, "graph")
        inputs = [self._operand(one) for one in listed(given, "inputs")]
        outputs = [self._operand(one) for one in listed(results, "outputs")]
        for one in (*inputs, *outputs):
            if type(one) is not Output or one.op.graph is not graph:
                refuse("a body takes and returns outputs of its graph")
        if not isinstance(graph, BodyGraph) or any(one.op.operation is not PLACEHOLDER for one in inputs):
            refuse("the inputs of a body are placeholders of a graph that is not the whole")
        if len(set(inputs)) != len(inputs):
            refuse("a body cannot take one placeholder twice")
        body = Body(graph, inputs, outputs)
        if any(one.operation is PLACEHOLDER for one in body.operations):
            refuse("a body depends on a placeholder that is not among its inputs")
        self._bodies.append(body)
        self._worked(len(body.operations) + len(inputs) + len(outputs))

    def _body_at(self, number: Any) -> Body:
        body = _at(self._bodies, number, "body")
        self._worked(len(body.inputs) + len(body.outputs))
        return body

    def _worked(self, count: int) -> None:
        """Count what is done for bodies, which may share operations: a file must not make that a square of its size."""
        self._work += count
        if self._work > 10_000 + 100 * len(self._operations):
            refuse("its bodies share more than programs do")

    def _scope(self, record: list[Any]) -> None:
        number, name, count = _fields(record, 3)
        graph = _at(self._graphs, number, "graph")
        graph.set_scope_count(text(name, "the name of a scope"), integer(count, 1, 1 << 53, "a count"))

    def _traced(self, record: list[Any]) -> None:
        name, given, results, in_tree, out_tree = _fields(record, 5)
        inputs = [self._operand(one) for one in listed(given, "inputs")]
        outputs = [self._operand(one) for one in listed(results, "outputs")]
        for one in inputs:
            if type(one) is not Output or one.op.graph is not self.graph or one.op.operation is not PLACEHOLDER:
                refuse("the inputs of a traced function are placeholders of the graph")
        if any(type(one) is Output and one.op.graph is not self.graph for one in outputs):
            refuse("the outputs of a traced function belong to the graph")
        trees = TreeReader(self._classes)
        before, after = trees.read(in_tree), trees.read(out_tree)
        if before.num_leaves != len(inputs) or after.num_leaves != len(outputs) or len(set(inputs)) != len(inputs):
            refuse("the structures of a traced function do not have as many leaves as it has inputs and outputs")
        self.traced = Traced(self.graph, inputs, outputs, before, after, text(name, "a name"))


class _Type:
    """An operation of the library, and how many inputs and settings it takes, where that is fixed."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._setting = _SETTING_TYPES.get(operation)
        code = getattr(operation.kernel, "__code__", None)
        self._inputs: int | None = None
        self._total: int | None = None
        if code is not None and not code.co_flags & 0x04:  # no *arguments
            self._total = code.co_argcount - 1
            self._inputs = len(operation.vjps) if operation.vjps and operation.fixed_arity else None

    def check(self, name: str, inputs: tuple[Any, ...], params: tuple[Any, ...]) -> None:
        """Refuse other numbers of inputs and settings."""
        if (self._inputs is not None and len(inputs) != self._inputs) or (
            self._total is not None and len(inputs) + len(params) != self._total
        ):
            refuse(f"operation {shown(name)}: {self.operation.name} does not take {len(inputs)} inputs "
                   f"and {len(params)} settings")  # fmt: skip
        if self._setting is not None and (inputs or [type(one) for one in params] != [self._setting]):
            refuse(f"operation {shown(name)}: {self.operation.name} takes a {self._setting.__name__} only")
        if self.operation.name == _LEVEL[0] and params[_LEVEL[1]] not in (None, -1):
            refuse(f"operation {shown(name)}: a level in a file can only be null or -1")


def _compare(operation: Operation, name: str, inputs: tuple[Any, ...], params: tuple[Any, ...], specs: Any) -> None:
    """Refuse an operation whose shape rule does not say what the file says."""
    try:
        computed = operation.spec(*[one.spec if type(one) is Output else one for one in inputs], *params)  # type: ignore[misc]
        same = computed == specs and isinstance(computed, Spec) == isinstance(specs, Spec)
    except Exception as error:  # whatever settings that nobody checked make a shape rule raise
        refuse(f"operation {shown(name)} ({operation.name}) cannot be: {shown(str(error))}")
    if not same:
        refuse(f"operation {shown(name)} ({operation.name}) does not give what the file says it gives")


def _customised(name: str, before: int) -> Operation:
    """Return the operation that stands for a function of custom_gradient or custom_jvp, without its derivative."""

    def rule(*_: Any) -> Any:
        raise NonDifferentiableError(
            f"the derivative of {name} is Python code (custom_gradient or custom_jvp) and no graph file holds it; "
            "add the gradients to the graph before it is saved"
        )

    return Operation(
        name,
        lambda xp, *values: values[before:],
        vjps=EveryInput(rule, 0, keep_inputs=False),
        jvps=EveryInput(rule, 0, keep_inputs=False),
        spec=lambda *specs: specs[before:],
    )


def _fields(record: list[Any], count: int) -> list[Any]:
    if len(record) != count + 1:
        refuse(f"a record {shown(record[0])} has {count} entries, got {len(record) - 1}")
    return record[1:]


def _at(entries: list[Any], number: Any, what: str) -> Any:
    if type(number) is not int or not 0 <= number < len(entries):
        refuse(f"there is no {what} {shown(number)}")
    return entries[number]


def _no_number(digits: str) -> Any:
    refuse(f"{shown(digits)} is no integer")


_decode = json.JSONDecoder(parse_float=_no_number, parse_constant=_no_number).decode


def _parsed(line: bytes) -> Any:
    if line.count(b"[") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        refuse(f"brackets are nested more than {MAX_DEPTH} deep")
    try:
        return _decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, GraphFileError):
            raise
        refuse(f"it is no JSON: {error}")


def _depth(line: bytes) -> int:
    """Return how deep brackets are nested in a line of JSON."""
    brackets = np.frombuffer(_STRINGS.sub(b"", line), np.uint8)
    steps = (brackets == ord("[")).astype(np.int64) - (brackets == ord("]"))
    return int(np.cumsum(steps).max(initial=0))
