"""What both exporters share: the operations of a graph in order, each written as nodes of another format.

A format gives a table of the elementwise operations it has (`elementwise`) and one method for each structural one. What
it lacks is written in terms of what it has, by `composites` and `lowering`. Names of nodes are those of the operations.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stopgrad.core.arrays import Shape, Spec
from stopgrad.core.errors import InterchangeError, StopgradError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, VARIABLE, GraphOperation, Output
from stopgrad.core.order import needed
from stopgrad.graph.tracing import Traced
from stopgrad.primitives.geometry import Geometry


class Value(NamedTuple):
    """A result in the format that is written."""

    name: str
    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


Axes = tuple[int, ...]
_BOOLEAN = frozenset(f"logical_{name}" for name in ("and", "or", "xor", "not")).union(
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit")
)
_ON_BOOLEANS = {
    "add": "logical_or",
    "bitwise_and": "logical_and",
    "bitwise_invert": "logical_not",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
    "maximum": "logical_or",
    "minimum": "logical_and",
    "multiply": "logical_and",
}


class Exporter(ABC):
    """One export. Subclasses write nodes.

    Args:
        traced: what to export.
        what: what errors begin with.
        composites: elementwise operations in terms of others: called with the exporter and values of one dtype.
        lowering: how every other operation is written: called with the exporter and the operation.
    """

    elementwise: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        traced: Traced,
        what: str,
        composites: Mapping[str, Callable[..., Value]],
        lowering: Mapping[str, Callable[[Exporter, GraphOperation], Value]],
    ) -> None:
        if not isinstance(traced, Traced):
            raise InterchangeError(f"{what}: takes what trace(f)(*args) returned, got a {type(traced).__name__}")
        self.what = what
        self.traced = traced
        self.values: dict[Output, Value] = {}
        self._composites = composites
        self._lowering = lowering
        self._names: set[str] = set()
        self._scope = ""
        # The name of the last node, if it is of the operation that is being written.
        self.last = ""

    def export(self) -> Any:
        """Write everything and return the finished message."""
        order = needed([one for one in self.traced.outputs if type(one) is Output], self.traced.inputs)
        known = {*self.elementwise, *self._composites, *self._lowering, "constant", "variable", "placeholder"}
        unknown: dict[str, list[str]] = {}
        for operation in order:
            if operation.type not in known:
                unknown.setdefault(operation.type, []).append(operation.name)
        if unknown:
            listed = ", ".join(f"{type_} ({names[0]})" for type_, names in sorted(unknown.items()))
            raise InterchangeError(f"{self.what}: these operations have no counterpart there: {listed}")
        for one in self.traced.inputs:
            self.values[one] = self.placeholder(self.unique(one.op.name), one.spec)
        for operation in order:
            self._write(operation)
        for number, one in enumerate(self.traced.outputs):
            value = self.values[one] if type(one) is Output else self.constant(np.asarray(one))
            self.output(self.unique("output" if number == 0 else f"output_{number}"), value)
        return self.finished()

    def _write(self, operation: GraphOperation) -> None:
        if operation.operation is PLACEHOLDER:
            raise InterchangeError(f"{self.what}: {operation.name!r} is a placeholder that is not among the inputs")
        self._scope, self.last = operation.name, ""
        if operation.operation is CONSTANT or operation.operation is VARIABLE:
            cell = operation.params[0]
            held = cell.value if operation.operation is CONSTANT else cell.variable.raw
            self._scope = ""
            self.values[operation.outputs[0]] = self.constant(np.asarray(held), operation.name)
            return
        try:
            if operation.type in self._lowering:
                value = self._lowering[operation.type](self, operation)
            else:
                value = self.do(operation.type, *self.promoted(operation))
        except InterchangeError as error:
            raise InterchangeError(f"{self.what}: {operation.name!r} ({operation.type}): {error}") from error
        except (StopgradError, ValueError, TypeError, KeyError) as error:
            raise InterchangeError(
                f"{self.what}: {operation.name!r} ({operation.type}) as used here: {error}"
            ) from error
        out = operation.outputs[0]
        value = self.cast(value, out.dtype)
        self.values[out] = self.renamed(value, self.unique(operation.name)) if value.name == self.last else value

    # What lowerings call.

    def inputs(self, operation: GraphOperation) -> list[Value]:
        """Return an operation's inputs; Python numbers have the dtype of the result."""
        dtype = operation.outputs[0].dtype
        return [self.values[x] if type(x) is Output else self.constant(np.asarray(x, dtype)) for x in operation.inputs]

    def promoted(self, operation: GraphOperation, skip: int = 0) -> list[Value]:
        """Return an operation's inputs in the dtype they promote to together, all after the first `skip`."""
        rest = operation.inputs[skip:]
        common = np.result_type(*(x.dtype if type(x) is Output else x for x in rest))
        out = operation.outputs[0].dtype
        if common.kind in "biu" and out.kind in "fc":
            common = out
        first = [self.values[x] for x in operation.inputs[:skip]]
        return first + [
            self.cast(self.values[x], common) if type(x) is Output else self.constant(np.asarray(x, common))
            for x in rest
        ]

    def do(self, kind: str, *values: Value) -> Value:
        """Write an elementwise operation, on values of one dtype."""
        dtype = values[-1].dtype
        if dtype.kind == "b" and kind in _ON_BOOLEANS:
            kind = _ON_BOOLEANS[kind]
        if kind not in self.elementwise:
            return self._composites[kind](self, *values)
        out = np.dtype(bool) if kind in _BOOLEAN else dtype
        if kind in ("absolute", "real", "imag") and dtype.kind == "c":
            out = dtype.type(0).real.dtype
        shape = np.broadcast_shapes(*(value.shape for value in values))
        return self.node(self.elementwise[kind], values, Spec(shape, out))

    def number(self, like: Value, number: float) -> Value:
        """Return a number in the dtype of a value."""
        return self.constant(np.asarray(number, like.dtype))

    def unique(self, name: str) -> str:
        """Return a name that nothing has yet, of the characters both formats allow."""
        base = re.sub(r"[^A-Za-z0-9_./-]", "_", name).lstrip("_/-") or "node"
        found, number = base, 0
        while found in self._names:
            number += 1
            found = f"{base}_{number}"
        self._names.add(found)
        return found

    def inner(self, kind: str) -> str:
        """Return a unique name for a node that is part of the operation being written."""
        return self.unique(f"{self._scope}/{kind}" if self._scope else kind)

    # What a format writes.

    @abstractmethod
    def node(self, op: str, inputs: Sequence[Value], spec: Spec, **attributes: Any) -> Value:
        """Write a node with one output."""

    @abstractmethod
    def renamed(self, value: Value, name: str) -> Value:
        """Give the last node, whose output the value is, another name."""

    @abstractmethod
    def placeholder(self, name: str, spec: Spec) -> Value:
        """Write an input."""

    @abstractmethod
    def output(self, name: str, value: Value) -> None:
        """Write a result."""

    @abstractmethod
    def finished(self) -> Any:
        """Return the message."""

    @abstractmethod
    def constant(self, array: np.ndarray, name: str = "constant") -> Value:
        """Write an array."""

    @abstractmethod
    def gate(self, kind: str, x: Value, label: str | None) -> Value:
        """Write a `stop_gradient` with its name or a `prevent_gradient` with its message."""

    @abstractmethod
    def cast(self, x: Value, dtype: Any) -> Value:
        """Write a change of dtype, nothing if there is none."""

    @abstractmethod
    def reshape(self, x: Value, shape: Shape) -> Value:
        """Write a change of shape, nothing if there is none."""

    @abstractmethod
    def transpose(self, x: Value, axes: Axes) -> Value:
        """Write a permutation of the axes, nothing if there is none."""

    @abstractmethod
    def broadcast(self, x: Value, shape: Shape) -> Value:
        """Write a repetition to a shape, nothing if there is none."""

    @abstractmethod
    def reduce(self, kind: str, x: Value, axes: Axes, keepdims: bool) -> Value:
        """Write a sum, mean, max, min, prod, any or all."""

    @abstractmethod
    def arg(self, kind: str, x: Value, axis: int) -> Value:
        """Write an argmax or argmin, of dtype int64."""

    @abstractmethod
    def matmul(self, a: Value, b: Value) -> Value:
        """Write a product of (stacks of) matrices."""

    @abstractmethod
    def einsum(self, equation: str, a: Value, b: Value, shape: Shape) -> Value:
        """Write a contraction."""

    @abstractmethod
    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Write a concatenation."""

    @abstractmethod
    def cut(self, x: Value, ranges: Sequence[range]) -> Value:
        """Write a slice of each axis."""

    @abstractmethod
    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        """Write a choice of entries along an axis, by indices that are not negative."""

    @abstractmethod
    def pad(self, x: Value, widths: Sequence[tuple[int, int]], fill: float) -> Value:
        """Write a border of one number."""

    @abstractmethod
    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """Write a choice between two values."""

    @abstractmethod
    def cumulative(self, kind: str, x: Value, axis: int, exclusive: bool, reverse: bool) -> Value:
        """Write a running sum or product."""

    @abstractmethod
    def softmax(self, kind: str, x: Value) -> Value:
        """Write a softmax or log_softmax along the last axis."""

    @abstractmethod
    def conv(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        """Write a convolution, channels last."""

    @abstractmethod
    def conv_input(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        """Write a transposed convolution, channels last."""

    @abstractmethod
    def pool(self, kind: str, x: Value, geometry: Geometry, spec: Spec) -> Value:
        """Write a max_pool or avg_pool, channels last."""
