"""A class for every operation, for graphs written by hand: `Add.create(scope, a, b)`, `StopGradient.create(scope, x)`.

The classes are generated from the registry of operations. `create` takes what the function of the same name takes
(`Sum.create(scope, x, axis=0)` as `stopgrad.sum(x, axis=0)`); for the few operations that are no function by themselves
it takes the operands and `params=`, the operation's settings in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

import stopgrad.primitives as primitives
from stopgrad import gates
from stopgrad.core.arrays import Spec
from stopgrad.core.builtin import STOP
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, VARIABLE, ArrayParam, GraphOperation, Output
from stopgrad.core.operation import Operation, operations
from stopgrad.core.record import bind
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import as_output
from stopgrad.graph.scope import Scope
from stopgrad.primitives import linalg
from stopgrad.primitives.inputs import to_tensor

# Names that are not just the operation's with its words capitalised.
_NAMES = {
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctan2": "Atan2",
    "arctanh": "Atanh",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "matmul": "MatMul",
    "logsumexp": "LogSumExp",
}


class PrimitiveOp:
    """An operation of a graph, as the op class that created it. Equal, and of equal hash, if the operation is one.

    Example:
        >>> import stopgrad as sg
        >>> graph = sg.graph.Graph()
        >>> scope = sg.graph.Scope(graph)
        >>> x = sg.graph.ops.Placeholder.create(scope, sg.Spec((2,), float))
        >>> stop = sg.graph.ops.StopGradient.create(scope, x)
        >>> stop
        StopGradient('StopGradient', (<output Placeholder:0 float64[2]>,))
        >>> stop.output().op is stop.op()
        True
    """

    __slots__ = ("_op",)

    operation: Operation

    def __init__(self, op: GraphOperation) -> None:
        self._op = op

    def op(self) -> GraphOperation:
        """Return the operation of the graph."""
        return self._op

    def output(self, index: int = 0) -> Output:
        """Return one of its outputs, the first by default."""
        return self._op.output(index)

    def as_output(self) -> Output:
        """Return its only output, which makes it an operand of other operations.

        Raises:
            ArgumentError: it has several; take one with `output(index)`.
        """
        if len(self._op.outputs) != 1:
            raise ArgumentError(f"{self!r} has {len(self._op.outputs)} outputs; take one of them with output(index)")
        return self._op.outputs[0]

    def __tensor__(self) -> Tensor:
        return Tensor(self.as_output())

    @classmethod
    def create(cls, scope: Scope, *operands: Any, **settings: Any) -> Self:
        """Add the operation to the scope's graph and return it."""
        with scope.adding() as graph:
            count = len(graph)
            made = _created(cls.operation, operands, settings)
            op = as_output(made[0] if isinstance(made, tuple | list) else made).op
            if len(graph) == count or op.graph is not graph:
                raise ArgumentError(f"{cls.__name__}.create: its operands are not in the scope's graph")
        scope.name_last(cls.__name__, op)
        return cls(op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimitiveOp) and self._op is other._op

    def __hash__(self) -> int:
        return hash(self._op)

    def __repr__(self) -> str:
        inputs = ", ".join(repr(one) for one in self._op.inputs)
        return f"{type(self).__name__}({self._op.name!r}, ({inputs}{',' if len(self._op.inputs) == 1 else ''}))"


def _created(operation: Operation, operands: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    if operation is STOP:
        return gates.stop_gradient(Tensor(as_output(operands[0])), **settings)
    function = _function_of(operation)
    if function is not None:
        return function(*operands, **settings)
    params = tuple(settings.pop("params", ()))
    if settings:
        raise ArgumentError(f"{operation.name}: takes operands and params=, not {', '.join(settings)}")
    return bind(operation, operands, params)


def _function_of(operation: Operation) -> Callable[..., Any] | None:
    """Return the public function that applies an operation, if there is one of its name."""
    for module in (primitives, linalg, gates):
        function: Callable[..., Any] | None = getattr(module, operation.name, None)
        if callable(function):
            return function
    return None


class Placeholder(PrimitiveOp):
    """An input of the graph, to be fed when it is run."""

    __slots__ = ()
    operation = PLACEHOLDER

    @classmethod
    def create(cls, scope: Scope, spec: Spec) -> Self:
        """Add an input of the given shape and dtype."""
        with scope.adding() as graph:
            op = graph.placeholder(Spec(tuple(spec.shape), np.dtype(spec.dtype))).op
        scope.name_last("Placeholder", op)
        return cls(op)


class Constant(PrimitiveOp):
    """An array as part of the graph."""

    __slots__ = ()
    operation = CONSTANT

    @classmethod
    def create(cls, scope: Scope, value: Any) -> Self:
        """Add an array, number or nested list as a constant; an array is copied."""
        with scope.adding() as graph:
            op = graph.add(CONSTANT, (), (ArrayParam(np.array(to_tensor(value, "Constant").value)),))
        scope.name_last("Constant", op)
        return cls(op)


class Variable(PrimitiveOp):
    """The value a variable has when the graph is run."""

    __slots__ = ()
    operation = VARIABLE

    @classmethod
    def create(cls, scope: Scope, variable: Any) -> Self:
        """Add a reading of a `stopgrad.Variable`; one that is in the graph already is returned as it is."""
        with scope.adding() as graph:
            return cls(graph.variable(variable).op)


def _class_name(name: str) -> str:
    return _NAMES.get(name, "".join(word[:1].upper() + word[1:] for word in name.split("_")))


def _class_of(operation: Operation) -> type[PrimitiveOp]:
    function = _function_of(operation)
    doc = (function.__doc__ if function is not None else None) or f"The operation {operation.name!r}."
    body = {"__slots__": (), "operation": operation, "__doc__": doc, "__module__": __name__}
    return type(_class_name(operation.name), (PrimitiveOp,), body)


_BY_HAND = {one.operation.name: one for one in (Placeholder, Constant, Variable)}
_INTERNAL = ("leaf", "project")
classes: dict[str, type[PrimitiveOp]] = {
    name: _BY_HAND.get(name) or _class_of(operation) for name, operation in operations.items() if name not in _INTERNAL
}
"""The op class of every operation, by the operation's name."""

globals().update({one.__name__: one for one in classes.values()})
__all__ = ["PrimitiveOp", "classes", *sorted(one.__name__ for one in classes.values())]  # noqa: PLE0604
