"""Passes: a graph rewritten into a smaller one that computes the same values.

A pass takes a graph and the outputs that are wanted and builds a new graph, keeping placeholders, names and source
lines. `dead_code`, `common_subexpressions`, `constants` and `algebra` keep derivatives, gates included: an operation's
identity includes its settings, so gates with different names or bounds are never merged, and none is removed.
`without_gates` erases those that let everything pass by value; it is for after the last differentiation.

What only a stopped path needs vanishes from a derivative by `dead_code` alone, because the gradient builder never asked
for it. `algebra` uses identities that hold bit for bit in IEEE arithmetic, signed zeros, infinities and NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, VARIABLE, ArrayParam, GraphOperation, Output
from stopgrad.core.order import needed
from stopgrad.core.record import compute
from stopgrad.graph.graph import Graph

FOLDED_ENTRIES = 1 << 16
"""Constants are folded if the result has no more entries than this, so that a graph does not grow by folding."""

GATES = frozenset(
    ("stop_gradient", "conditional_stop", "stop_where", "scale_gradient", "straight_through", "prevent_gradient",
     "clip_gradient_by_value", "clip_gradient_by_norm")
)  # fmt: skip


class Rewritten(NamedTuple):
    """A graph after a pass.

    `outputs` are the wanted ones in the new graph (or plain numbers), `images` what became of each output of the old.
    """

    graph: Graph
    outputs: list[Any]
    images: dict[Output, Any]


@dataclass(frozen=True)
class Pass:
    """A rewriting of graphs. Call it with a graph and the wanted outputs."""

    name: str
    make_visitor: Callable[[], Visitor]
    keeps_derivatives: bool = True

    def __call__(self, graph: Graph, outputs: Sequence[Any]) -> Rewritten:
        """Return the rewritten graph; all placeholders stay, in their order."""
        return _rebuilt(graph, outputs, self.make_visitor())


# Called with the new graph, an operation of the old and its inputs in the new; returns results, or `None` to copy it.
Visitor = Callable[[Graph, GraphOperation, tuple[Any, ...]], "tuple[Any, ...] | None"]


def simplify(graph: Graph, outputs: Sequence[Any], passes: Sequence[Pass] | None = None) -> Rewritten:
    """Apply passes in turn; by default all that keep derivatives, and dead code once more at the end.

    Args:
        graph: what to rewrite; it stays as it is.
        outputs: the results that are wanted.
        passes: which ones.

    Example:
        >>> import stopgrad as sg
        >>> traced = sg.trace(lambda x: (x * 1.0) + sg.exp(x) * sg.exp(x))(2.0)
        >>> len(traced.graph), len(sg.graph.simplify(traced.graph, traced.outputs).graph)
        (6, 4)
    """
    chosen = (constants, algebra, common_subexpressions, dead_code) if passes is None else passes
    images: dict[Output, Any] = {out: out for operation in graph for out in operation.outputs}
    current = Rewritten(graph, list(outputs), images)
    for one in chosen:
        after = one(current.graph, current.outputs)
        images = {old: after.images.get(new) if type(new) is Output else new for old, new in images.items()}
        current = Rewritten(after.graph, after.outputs, {old: new for old, new in images.items() if new is not None})
    return current


def _rebuilt(graph: Graph, outputs: Sequence[Any], visit: Visitor) -> Rewritten:
    if graph.outer is not None:
        raise ArgumentError("passes take a whole graph, not the body of a loop or branch")
    rebuilt = Graph()
    images: dict[Output, Any] = {}
    wanted = set(needed(outputs))
    for operation in graph:
        if operation not in wanted and operation.operation is not PLACEHOLDER:
            continue
        inputs = tuple(images[one] if type(one) is Output else one for one in operation.inputs)
        results = visit(rebuilt, operation, inputs)
        if results is None:
            results = copied(rebuilt, operation, inputs).outputs
        images.update(zip(operation.outputs, results, strict=True))
    return Rewritten(rebuilt, [images[one] if type(one) is Output else one for one in outputs], images)


def copied(graph: Graph, operation: GraphOperation, inputs: Sequence[Any]) -> GraphOperation:
    """Add an operation as it is to another graph, under its name, with other inputs."""
    return graph.add(operation.operation, inputs, operation.params, operation.name, operation.source)


def _dead_code() -> Visitor:
    return lambda graph, operation, inputs: None


def _common_subexpressions() -> Visitor:
    seen: dict[Any, tuple[Any, ...]] = {}

    def visit(graph: Graph, operation: GraphOperation, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if operation.operation is PLACEHOLDER:
            return None
        # A number's type takes part in promotion, and 0.0 == -0.0 though they differ: key by what is printed.
        keys = tuple(one if type(one) is Output else (type(one), repr(one)) for one in inputs)
        key = (operation.operation, keys, _params_key(operation))
        if key not in seen:
            seen[key] = copied(graph, operation, inputs).outputs
        return seen[key]

    return visit


def _params_key(operation: GraphOperation) -> Any:
    if operation.operation is not CONSTANT:
        return tuple((type(one), repr(one)) if type(one) in PYTHON_SCALARS else one for one in operation.params)
    array = operation.params[0].value
    if isinstance(array, np.ndarray) and array.size <= FOLDED_ENTRIES:
        return (array.shape, array.dtype, array.tobytes())
    return id(array)


def _constants() -> Visitor:
    def visit(graph: Graph, operation: GraphOperation, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if operation.operation in (PLACEHOLDER, CONSTANT, VARIABLE) or operation.type in GATES:
            return None
        values = [_constant_value(one) for one in inputs]
        if any(value is None for value in values) or any(out.size > FOLDED_ENTRIES for out in operation.outputs):
            return None
        with np.errstate(all="ignore"):
            result = compute(operation.operation, values, operation.params)
        results = (result,) if operation.single else result
        return tuple(
            graph.add(CONSTANT, (), (ArrayParam(np.asarray(one)),), operation.name, operation.source).outputs[0]
            for one in results
        )

    return visit


def _constant_value(one: Any) -> Any:
    """Return the value of an input that is a number or a constant, else `None`."""
    if type(one) is not Output:
        return one
    return one.op.params[0].value if one.op.operation is CONSTANT else None


def _is_number(one: Any, number: float) -> bool:
    """Whether an input is this number everywhere, its sign included."""
    value = _constant_value(one)
    if value is None or getattr(value, "size", 1) == 0:
        return False
    array = np.asarray(value)
    return bool((array == number).all() and (np.signbit(array.real) == np.signbit(number)).all())


def _algebra() -> Visitor:
    def visit(graph: Graph, operation: GraphOperation, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        same = _same_as(operation, inputs)
        out = operation.outputs[0]
        fits = type(same) is Output and same.shape == out.shape and same.dtype == out.dtype
        return (same,) if fits else None

    return visit


def _same_as(operation: GraphOperation, inputs: tuple[Any, ...]) -> Any:
    """Return what an operation's result is the same as, bit for bit, if it is something that is there already."""
    name = operation.type
    if name == "multiply":
        return inputs[0] if _is_number(inputs[1], 1.0) else inputs[1] if _is_number(inputs[0], 1.0) else None
    if name == "divide":
        return inputs[0] if _is_number(inputs[1], 1.0) else None
    if name == "subtract":
        return inputs[0] if _is_number(inputs[1], 0.0) else None
    if name == "add":  # x + 0.0 is not x at -0.0; x + -0.0 is
        return inputs[0] if _is_number(inputs[1], -0.0) else inputs[1] if _is_number(inputs[0], -0.0) else None
    if name in ("negative", "conj") and type(inputs[0]) is Output and inputs[0].op.type == name:
        return inputs[0].op.inputs[0]
    if name in ("reshape", "broadcast_to", "astype", "positive"):
        return inputs[0]  # only if shape and dtype are those of the result
    if name == "where" and inputs[1] is inputs[2]:
        return inputs[1]
    if name == "permute_dims":
        if operation.params[0] == tuple(range(len(operation.params[0]))):
            return inputs[0]
        inner = inputs[0].op
        if inner.type == name and tuple(inner.params[0][axis] for axis in operation.params[0]) == tuple(
            range(len(operation.params[0]))
        ):
            return inner.inputs[0]
    return None


def _without_gates() -> Visitor:
    def visit(graph: Graph, operation: GraphOperation, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if operation.type not in GATES:
            return None
        return (inputs[1],) if operation.type == "straight_through" else (inputs[0],)

    return visit


dead_code = Pass("dead_code", _dead_code)
common_subexpressions = Pass("common_subexpressions", _common_subexpressions)
constants = Pass("constants", _constants)
algebra = Pass("algebra", _algebra)
without_gates = Pass("without_gates", _without_gates, keeps_derivatives=False)
