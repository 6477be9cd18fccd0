"""What both importers share: nodes in order, each read by a handler into operations of a graph, under its own name.

A handler takes a `Node`: the inputs as symbolic tensors, the attributes, and `integers(i)` for an input that must be
known at import, such as an axis; those are computed from the constants they depend on, within a bound, so that a small
hostile file cannot ask for a large computation. Whatever goes wrong is one `InterchangeError` that names the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import Shape, Spec, carries_derivative
from stopgrad.core.builtin import STOP
from stopgrad.core.errors import InterchangeError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, ArrayParam, Output
from stopgrad.core.order import needed
from stopgrad.core.pytree import flatten
from stopgrad.core.record import compute
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import building
from stopgrad.graph.graph import Graph
from stopgrad.graph.tracing import Traced

Handler = Callable[["Node"], Any]

MOST_STATIC = 1 << 16
"""Entries of the largest array that is computed at import."""
MOST_PARTS = 1 << 12
"""Outputs of a node."""
MOST_ENTRIES = 1 << 40
"""Entries of the largest array a graph may make."""


def read_bytes(data_or_path: Any, what: str) -> bytes:
    """Return the bytes given, or those of the file whose path is given."""
    if isinstance(data_or_path, bytes | bytearray | memoryview):
        return bytes(data_or_path)
    try:
        return Path(data_or_path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        raise InterchangeError(f"{what}: cannot be read: {error}") from error


def checked_shape(sizes: Iterable[Any]) -> Shape:
    """Return sizes as a shape, or raise if an array of this shape is beyond what is sensible."""
    shape = tuple(int(size) for size in sizes)
    if any(size < 0 for size in shape) or prod(shape) > MOST_ENTRIES or len(shape) > 32:
        raise InterchangeError(f"the shape {shape} makes no sense")
    return shape


def completed_spec(
    name: str, dtype: Any, known: Sequence[int | None] | None, given: Any, fail: Callable[[str], InterchangeError]
) -> Spec:
    """Return the spec of an input: what the file says of its dtype and sizes, completed by a spec or shape given."""
    said = "unknown" if known is None else f"({', '.join('?' if n is None else str(n) for n in known)})"
    asks = f"give it: inputs={{{name!r}: Spec(shape, dtype)}}"
    if dtype is not None and hasattr(given, "dtype") and np.dtype(given.dtype) != dtype:
        raise fail(f"input {name!r} has dtype {dtype}, not {np.dtype(given.dtype)}")
    dtype = dtype if dtype is not None else getattr(given, "dtype", None)
    if dtype is None:
        raise fail(f"the dtype of input {name!r} is unknown; {asks}")
    if given is not None:
        shape = tuple(int(n) for n in getattr(given, "shape", given))
        fits = known is None or (
            len(shape) == len(known) and all(b is None or a == b for a, b in zip(shape, known, strict=True))
        )
        if not fits:
            raise fail(f"input {name!r} has shape {said}, which {shape} does not fit")
        return Spec(shape, np.dtype(dtype))
    sizes = [n for n in known or () if n is not None]
    if known is None or len(sizes) != len(known):
        raise fail(f"the shape of input {name!r} is {said}; {asks}")
    return Spec(tuple(sizes), np.dtype(dtype))


def of_one(function: Callable[..., Tensor]) -> Handler:
    """Return the handler of a function of one input."""
    return lambda node: function(node[0])


def of_two(function: Callable[..., Tensor]) -> Handler:
    """Return the handler of a function of two inputs."""
    return lambda node: function(node[0], node[1])


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, for integers rounded towards zero as in C."""
    if carries_derivative(a.dtype):
        return p.divide(a, b)
    floor = p.floor_divide(a, b)
    inexact = p.not_equal(p.multiply(floor, b), a)
    return p.add(floor, p.astype(p.logical_and(p.less(floor, 0), inexact), floor.dtype))


class Node:
    """One node that is being imported."""

    __slots__ = ("attributes", "importer", "inputs", "name", "op", "used")

    def __init__(
        self,
        importer: Importer,
        name: str,
        op: str,
        inputs: Sequence[Tensor | None],
        attributes: Mapping[str, Any],
        used: int,
    ) -> None:
        self.importer = importer
        self.name = name
        self.op = op
        self.inputs: list[Any] = list(inputs)
        self.attributes = attributes
        # The number of the last output that something uses, plus one.
        self.used = used

    def __getitem__(self, number: int) -> Tensor:
        """Return an input that must be there."""
        if not -len(self.inputs) <= number < len(self.inputs) or self.inputs[number] is None:
            raise InterchangeError(f"input {number} is missing, it has {len(self.inputs)}")
        found: Tensor = self.inputs[number]
        return found

    def has(self, number: int) -> bool:
        """Whether an optional input is there."""
        return number < len(self.inputs) and self.inputs[number] is not None

    def attribute(self, name: str, default: Any = ...) -> Any:
        """Return an attribute; without a default it must be there."""
        found = self.attributes.get(name, default)
        if found is ...:
            raise InterchangeError(f"attribute {name!r} is missing")
        return found

    def static(self, number: int) -> np.ndarray:
        """Return the value of an input that must be known at import."""
        return self.importer.static(self[number])

    def integers(self, number: int) -> tuple[int, ...]:
        """Return an input that must be known at import, of one axis or none, as integers."""
        value = self.static(number)
        if value.ndim > 1 or value.dtype.kind not in "iu":
            raise InterchangeError(f"input {number} must be a list of integers, got {value.dtype}{value.shape}")
        return tuple(int(one) for one in value.reshape(-1))

    def integer(self, number: int) -> int:
        """Return an input that must be known at import, as one integer."""
        (value,) = self.integers(number)
        return value

    def constant(self, value: np.ndarray) -> Tensor:
        """Return an array as a constant of the graph."""
        return Tensor(self.importer.graph.add(CONSTANT, (), (ArrayParam(value),), "constant").outputs[0])

    def stop(self, x: Tensor, name: str | None) -> Tensor:
        """Return a value behind a stop."""
        return Tensor(self.importer.graph.add(STOP, (x.value,), (name,)).outputs[0])


class Importer:
    """One import: the graph that is being made, and the values that have been read so far.

    Args:
        what: what errors begin with.
        handlers: how each operation of the format is read.
    """

    def __init__(self, what: str, handlers: Mapping[str, Handler]) -> None:
        self.what = what
        self.handlers = handlers
        self.graph = Graph()
        self.placeholders: dict[str, Output] = {}
        self._known: dict[Output, Any] = {}

    def fail(self, text: str) -> InterchangeError:
        """Return the error to raise."""
        return InterchangeError(f"{self.what}: {text}")

    def check_supported(self, nodes: Iterable[tuple[str, str]], extra: Iterable[str] = ()) -> None:
        """Raise one error for all nodes, (name, operation), that cannot be imported."""
        allowed = {*extra}
        unknown: dict[str, list[str]] = {}
        for name, op in nodes:
            if op not in self.handlers and op not in allowed:
                unknown.setdefault(op, []).append(name)
        if unknown:
            op, names = next(iter(unknown.items()))
            listed = ", ".join(f"{one} ({len(where)})" for one, where in sorted(unknown.items()))
            raise self.fail(
                f"node {names[0]!r} is a {op}, which has no counterpart here; not supported in this graph: {listed}. "
                "Replace them before exporting, or cut the graph before them with inputs= and outputs="
            )

    def placeholder(self, name: str, spec: Spec) -> Tensor:
        """Add an input of the graph."""
        checked_shape(spec.shape)
        output = self.graph.placeholder(Spec(tuple(map(int, spec.shape)), np.dtype(spec.dtype)))
        self.graph.rename(output.op, self.graph.unique_name(name))
        self.placeholders[name] = output
        return Tensor(output)

    def read(self, node: Node) -> tuple[Tensor, ...]:
        """Add the operations of a node; the last one gets its name."""
        graph = self.graph
        before = len(graph)
        try:
            with building(graph), graph.scope(node.name), np.errstate(all="ignore"):
                result = self.handlers[node.op](node)
                results = tuple(result) if isinstance(result, tuple | list) else (result,)
                tensors = [self._symbolic(one) for one in results]
            for one in tensors:
                checked_shape(one.shape)
        except Exception as error:  # what a damaged file makes a handler do cannot be listed
            text = " ".join(str(error).split()) or type(error).__name__
            raise self.fail(f"node {node.name!r} ({node.op}): {text}") from error
        if len(tensors) == 1 and len(graph) > before and tensors[0].value.op is graph.operations[-1]:
            graph.rename(graph.operations[-1], graph.unique_name(node.name))
        return tuple(tensors)

    def _symbolic(self, one: Any) -> Tensor:
        value = one.value if isinstance(one, Tensor) else one
        return Tensor(value if type(value) is Output else self.graph.constant(np.asarray(value)))

    def static(self, tensor: Tensor) -> np.ndarray:
        """Return the value of a tensor that depends on constants only, computed within bounds."""
        output = tensor.value
        pending = [output]
        while pending:
            one = pending[-1]
            if one in self._known:
                pending.pop()
                continue
            if one.size > MOST_STATIC:
                raise InterchangeError(f"what must be known at import depends on an array of shape {one.shape}")
            if one.op.operation is PLACEHOLDER:
                raise InterchangeError(
                    f"a value that must be known at import (a shape, an axis …) depends on the input {one.op.name!r}; "
                    "make it a constant of the graph"
                )
            missing = [x for x in one.op.inputs if type(x) is Output and x not in self._known]
            if missing:
                pending += missing
                continue
            inputs = [self._known[x] if type(x) is Output else x for x in one.op.inputs]
            with np.errstate(all="ignore"):
                found = compute(one.op.operation, inputs, one.op.params)
            self._known.update(zip(one.op.outputs, (found,) if one.op.single else found, strict=True))
        return np.asarray(self._known[output])

    def finish(self, names: Sequence[str], outputs: Sequence[Tensor], name: str) -> Traced:
        """Return the graph as a traced function of the named inputs; one output is returned as it is."""
        inputs = [self.placeholders[one] for one in names]
        raw = [one.value for one in outputs]
        listed = {*inputs}
        for operation in needed(raw):
            if operation.operation is PLACEHOLDER and operation.outputs[0] not in listed:
                raise self.fail(f"the outputs depend on {operation.name!r}, which is not among the inputs")
        _, in_tree = flatten((0,) * len(inputs))
        _, out_tree = flatten(0 if len(raw) == 1 else (0,) * len(raw))
        return Traced(self.graph, inputs, raw, in_tree, out_tree, name)


def in_order(
    wanted: Iterable[str], inputs_of: Callable[[str], Iterable[str]], fail: Callable[[str], InterchangeError]
) -> list[str]:
    """Return nodes that the wanted ones depend on, each after its inputs.

    Raises:
        InterchangeError: nodes that depend on themselves.
    """
    order: list[str] = []
    state: dict[str, bool] = {}  # False: being visited
    for start in wanted:
        pending: list[tuple[str, Any]] = []
        if start not in state:
            state[start] = False
            pending.append((start, iter(tuple(inputs_of(start)))))
        while pending:
            name, rest = pending[-1]
            for one in rest:
                if one not in state:
                    state[one] = False
                    pending.append((one, iter(tuple(inputs_of(one)))))
                    break
                if state[one] is False:
                    raise fail(f"node {name!r} depends on itself, by way of {one!r}")
            else:
                state[name] = True
                order.append(name)
                pending.pop()
    return order
