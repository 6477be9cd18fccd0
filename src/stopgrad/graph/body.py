"""`Body`: a program as a setting of an operation, such as the body of a loop; and `BodyGraph`, where it is written.

A body is a graph with inputs and outputs. Several bodies may share a graph: that of a loop and those of its derivatives
do, so that a derivative finds what the rules kept. Only what a body's outputs depend on belongs to it; by that two
bodies are compared: operations, settings and wiring, names aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Spec, carries_derivative
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, BaseGraph, GraphOperation, Output
from stopgrad.core.marks import Mark
from stopgrad.core.order import needed
from stopgrad.core.record import INDEX
from stopgrad.core.state import IN_BODY, next_index, state
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import building
from stopgrad.graph.graph import Graph
from stopgrad.graph.plan import Plan
from stopgrad.sweeps.path import find_path


class BodyGraph(Graph):
    """A graph inside another, which takes in what it uses from outside.

    What is taken in is a tensor: a value and its node, for one value may stand in the record at several places (as the
    argument of a `grad` and outside of it), and derivatives have to find theirs. Arrays become constants of the graph
    outside, and are taken in, unless they are a single number.

    Attributes:
        taken: by value and node, the tensor outside and the placeholder that stands for it here.
    """

    is_body = True

    def __init__(self, outer: BaseGraph) -> None:
        super().__init__(outer)
        self.taken: dict[tuple[Output, int | None], tuple[Tensor, Output]] = {}
        self._outside: dict[Output, Output] = {}
        self._since = next_index()

    def taken_in(self, value: Any, node: Any) -> tuple[Any, Any]:
        """Return the placeholder for a tensor from outside: a symbolic one, or one recorded there.

        Its node stays outside; a mark it keeps. Another tensor is returned as it is.
        """
        is_symbolic = type(value) is Output
        recorded_outside = type(node) is tuple and node[INDEX] < self._since
        if is_symbolic and value.op.graph is self:
            if not recorded_outside or value not in self._outside:
                return value, node
            value = self._outside[value]
        elif not is_symbolic and not recorded_outside:
            return value, node
        outer: Any = self.outer
        if type(value) is not Output or value.op.graph is not outer:
            value, node = outer.taken_in(value, node)
            value = outer.imported(value)
        key = (value, node[INDEX] if type(node) is tuple else None)
        if key not in self.taken:
            inner = self.placeholder(value.spec, "outer")
            self.taken[key] = (Tensor(value, node), inner)
            self._outside[inner] = value
        return self.taken[key][1], node if type(node) is Mark else None

    def _captured(self, value: Output) -> Output:
        return self.taken_in(value, None)[0]

    def constant(self, value: Any, name: str | None = None) -> Output:
        """Add a number, or take in an array as a constant of the graph outside."""
        if _is_one_number(value):
            return super().constant(value, name)
        outer: Any = self.outer
        return self._captured(outer.constant(value))

    def variable(self, variable: Any) -> Output:
        """Take in what stands for a variable outside."""
        outer: Any = self.outer
        return self._captured(outer.variable(variable))

    @contextmanager
    def written(self, scope: str | None = None, *, traced: bool = False) -> Iterator[None]:
        """Add to this graph what is computed in the block.

        It is not recorded for derivatives that are going on: those find what they need in the graph.

        Args:
            scope: a name for a scope that is entered.
            traced: users' code runs in the block, and may use what is recorded outside.
        """
        recording, block = state.recording, state.block
        state.recording, state.block = IN_BODY if traced and recording else False, None
        try:
            with building(self), self.scope(self.prefix if scope is None else self.unique_scope(scope)):
                yield
        finally:
            state.recording, state.block = recording, block


def _is_one_number(value: Any) -> bool:
    """Whether an array is one number, be it everywhere: then a body holds it as a setting, compared by value."""
    return isinstance(value, np.ndarray | np.generic) and (value.size == 1 or not any(value.strides))


class Body:
    """A program with inputs and outputs, as a setting of an operation. Hashed and compared by structure.

    Args:
        graph: where its operations are.
        inputs: placeholders of the graph.
        outputs: outputs of the graph.
    """

    __slots__ = ("_hash", "_key", "_mark", "_reach", "graph", "inputs", "operations", "outputs", "plans")

    def __init__(self, graph: BodyGraph, inputs: Sequence[Output], outputs: Sequence[Output]) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.operations: tuple[GraphOperation, ...] = tuple(needed(outputs, inputs))
        self._key: Any = None
        self._hash = 0
        self.plans: dict[Any, Any] = {}
        self._reach: tuple[int, ...] | None = None
        self._mark: list[Mark | None] = []

    @property
    def in_specs(self) -> tuple[Spec, ...]:
        """Shapes and dtypes of the inputs."""
        return tuple(one.spec for one in self.inputs)

    @property
    def out_specs(self) -> tuple[Spec, ...]:
        """Shapes and dtypes of the outputs."""
        return tuple(one.spec for one in self.outputs)

    @property
    def mark(self) -> Mark | None:
        """The gates, and operations without derivative, on the way back from the outputs."""
        if not self._mark:
            self._mark.append(find_path([one.node for one in self.outputs], ()).mark)
        return self._mark[0]

    def plan(self, wanted: tuple[bool, ...] | None = None) -> Plan:
        """Return how to run the body for some of its outputs, by default for all."""
        if wanted not in self.plans:
            chosen = self.outputs if wanted is None else chosen_from(self.outputs, wanted)
            self.plans[wanted] = Plan(chosen, self.inputs)
        plan: Plan = self.plans[wanted]
        return plan

    def run(self, given: Sequence[Any], wanted: Sequence[bool] | None = None) -> tuple[Any, ...]:
        """Return the raw values of the outputs, `None` for those not wanted, for raw values of the inputs."""
        if wanted is None or all(wanted):
            return tuple(self.plan().run(given))
        found = iter(self.plan(tuple(wanted)).run(given))
        return tuple(next(found) if want else None for want in wanted)

    def reads(self, outputs: Iterable[Output] | None = None) -> set[int]:
        """Return the positions of the inputs that some outputs, or all, depend on in any way."""
        wanted = self.outputs if outputs is None else tuple(outputs)
        found = {*wanted}
        for operation in needed(wanted, self.inputs):
            found.update(one for one in operation.inputs if type(one) is Output)
        return {position for position, one in enumerate(self.inputs) if one in found}

    @property
    def reach(self) -> tuple[int, ...]:
        """For each output the inputs a derivative may pass to, as the bits of an integer; open gates count as such."""
        if self._reach is None:
            bits = {one: 1 << i for i, one in enumerate(self.inputs) if carries_derivative(one.dtype)}
            for operation in self.operations:
                if operation.operation.differentiable:
                    reached = 0
                    for one in operation.inputs:
                        reached |= bits.get(one, 0)
                    bits.update(dict.fromkeys((o for o in operation.outputs if carries_derivative(o.dtype)), reached))
            self._reach = tuple(bits.get(one, 0) for one in self.outputs)
        return self._reach

    def body_graphs(self) -> list[tuple[str, tuple[Graph, list[Any]]]]:
        """Return the body as a graph of its own, to be printed."""
        alone = Graph()
        images: dict[Any, Any] = {one: alone.placeholder(one.spec, f"in{i}") for i, one in enumerate(self.inputs)}
        for operation in self.operations:
            inputs = [images[one] if type(one) is Output else one for one in operation.inputs]
            added = alone.add(operation.operation, inputs, operation.params, operation.name, operation.source)
            images.update(zip(operation.outputs, added.outputs, strict=True))
        return [("", (alone, [images[one] for one in self.outputs]))]

    def __repr__(self) -> str:
        return f"<body: {len(self.inputs)} inputs, {len(self.operations)} operations, {len(self.outputs)} outputs>"

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash(self._structure())
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Body) and hash(self) == hash(other) and self._structure() == other._structure()

    def _structure(self) -> Any:
        if self._key is None:
            numbers: dict[Any, Any] = {one: number for number, one in enumerate(self.inputs)}
            lines = []
            for operation in self.operations:
                inputs = tuple(
                    numbers[one] if type(one) is Output else (type(one), repr(one)) for one in operation.inputs
                )
                lines.append((operation.operation.name, inputs, _settings(operation)))
                for out in operation.outputs:
                    numbers[out] = len(numbers)
            self._key = (self.in_specs, tuple(lines), tuple(numbers[one] for one in self.outputs))
        return self._key


def _settings(operation: GraphOperation) -> Any:
    """Return the settings of an operation so that equal ones do the same: a number's type and sign are part of it."""
    if operation.operation is CONSTANT:
        array = np.asarray(operation.params[0].value)
        return (array.shape, array.dtype, array.flat[0].tobytes() if array.size else b"")
    return tuple((type(one), repr(one)) if type(one) in PYTHON_SCALARS else one for one in operation.params)


def chosen_from(entries: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Return the entries that are wanted."""
    return [one for one, want in zip(entries, wanted, strict=True) if want]


def closed(drafts: Sequence[tuple[BodyGraph, Sequence[Output], Sequence[Output]]]) -> tuple[list[Body], list[Tensor]]:
    """Return bodies with the same first inputs: all that their graphs have taken in and their outputs depend on.

    Args:
        drafts: of each body graph, inputs and outputs, the inputs without (further) ones that were taken in.

    Returns:
        The bodies, and the tensors outside that their first inputs stand for.
    """
    outer: dict[Any, Tensor] = {}
    for graph, inputs, outputs in drafts:
        listed = {*inputs}
        read = {one for operation in needed(outputs, inputs) for one in operation.outputs}
        outer.update(
            (key, tensor) for key, (tensor, inner) in graph.taken.items() if inner in read and inner not in listed
        )
    bodies = []
    for graph, inputs, outputs in drafts:
        first, listed = [], {*inputs}
        for key, tensor in outer.items():
            known = graph.taken.get(key, (None, None))[1]
            if known is None or known in listed:
                known = graph.placeholder(Spec(tensor.shape, tensor.dtype), "unused")
            first.append(known)
        bodies.append(Body(graph, (*first, *inputs), outputs))
    for body in bodies:
        if any(operation.type == "placeholder" for operation in body.operations):
            raise ArgumentError(f"{body} depends on a placeholder that is not among its inputs")
    return bodies, list(outer.values())
