"""Derivatives of operations whose settings are bodies: all inputs together, by sweeps over the bodies' own graphs.

`pulled` and `pushed` run the ordinary sweeps over a body and add what the rules compute to its graph; new bodies are
then cut out of that. So whatever a rule or a gate does outside a body it does inside, at every order. `Jointly` is how
such an operation, which finds the derivatives of all its inputs at once, meets sweeps that ask for one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Spec
from stopgrad.core.builtin import PROJECT
from stopgrad.core.graph import Output
from stopgrad.core.marks import Mark, merge
from stopgrad.core.operation import ABSENT, ZERO, EveryInput, Operation, Slots
from stopgrad.core.record import INDEX, OPERATION, PARENTS, bind_many, coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body, BodyGraph
from stopgrad.sweeps.forward import forward
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse

# pull(cotangents of outputs, inputs, outputs, *params) -> cotangents of inputs, by number.
Pull = Callable[..., Mapping[int, Any]]
# push(tangents of inputs, inputs, outputs, *params) -> tangents of outputs, by number.
Push = Callable[..., Mapping[int, Any]]


def add_to_graph(
    operation: Operation, inputs: Iterable[Any], params: tuple[Any, ...], body: Body
) -> tuple[Tensor, ...]:
    """Add an operation with bodies to the graph around them, and return its outputs.

    Also if all its inputs are known: that they may be recorded, as the rules need them, only a graph ensures.
    """
    graph: Any = body.graph.outer if state.graph is None else state.graph
    symbolic = []
    for one in inputs:
        value, node = coerce(one)
        symbolic.append(Tensor(graph.imported(value, node), node))
    return bind_many(operation, symbolic, params)


class Pulling(EveryInput):
    """Reverse rules of an operation that finds the cotangents of all its inputs at once; it also names the settings."""

    def __init__(self, pull: Pull, *setting_names: str) -> None:
        def rule(i: int, xp: Any, t: Slots, inputs: Any, outs: Any, *params: Any) -> Any:
            if t.together is None:  # the slots belong to one node in one sweep
                t.together = pull(t, inputs[:-1], outs, *params)
            return t.together.get(i, ABSENT)

        self.setting_names = setting_names
        super().__init__(rule, len(setting_names), keep_inputs=True, keep_output=True)


class Pushing(EveryInput):
    """Forward rules of an operation that finds the tangents of all its outputs at once."""

    def __init__(self, push: Push, param_count: int) -> None:
        def rule(i: int, xp: Any, t: Any, inputs: Any, outs: Any, *params: Any) -> Any:
            tangents = {}
            for number, one in enumerate(inputs[:-1]):
                tangent = state.tangents.get(_index_of(one), ABSENT)
                if tangent is not ABSENT:
                    tangents[number] = Tensor(zeros(one)) if tangent is ZERO else tangent
                    if tangent is not ZERO and number < i:
                        return ABSENT  # said already, when asked for that input
            return Slots(push(tangents, inputs[:-1], outs, *params))

        super().__init__(rule, param_count, keep_inputs=True, keep_output=True)


def _index_of(one: Any) -> int:
    """Return the index of the node of an input, -1 if it is not recorded."""
    node = getattr(one, "node", None)
    return node[INDEX] if type(node) is tuple else -1


def is_live(one: Any) -> bool:
    """Whether the sweep that runs wants the cotangent of this input of an operation."""
    return _index_of(one) in state.live


def is_masked(outs: Sequence[Tensor]) -> bool:
    """Whether the cotangents of an operation with these outputs hold masked zeros."""
    nodes = [one.node for one in outs if type(one.node) is tuple and one.node[OPERATION] is PROJECT]
    return bool(state.masked) and any(node[PARENTS][0][INDEX] in state.masked for node in nodes)


def has_masked_tangent(one: Any) -> bool:
    """Whether the tangent of this input, in the forward sweep that runs, holds masked zeros."""
    return _index_of(one) in state.masked


def mask(inputs: Iterable[Any]) -> None:
    """Tell the sweep that what these inputs get may hold zeros that stand for "absent"."""
    state.masked.update(one.node[INDEX] for one in inputs if type(one.node) is tuple)


def mask_outputs(outs: Sequence[Tensor]) -> None:
    """Tell a forward sweep that the tangents of an operation with these outputs may hold such zeros."""
    nodes = [one.node for one in outs if type(one.node) is tuple and one.node[OPERATION] is PROJECT]
    state.masked.update(node[PARENTS][0][INDEX] for node in nodes[:1])


def zeros(like: Any) -> np.ndarray:
    """Return zeros of the shape and dtype of something, a view of a single one."""
    return np.broadcast_to(np.zeros((), like.dtype), like.shape)


def gates_of(*bodies: Body) -> Mark | None:
    """Return the merged mark of bodies."""
    mark = None
    for body in bodies:
        mark = merge(mark, body.mark)
    return mark


class Found(NamedTuple):
    """Derivatives a sweep over a body found, by position of the input or output, and which hold masked zeros."""

    derivatives: dict[int, Any]
    masked: frozenset[int]


def pulled(body: Body, seeds: Mapping[int, tuple[Output, bool]], wanted: Iterable[int]) -> Found:
    """Run the reverse sweep over a body, adding what it computes to the body's graph.

    Args:
        body: what to differentiate.
        seeds: for positions of outputs, the placeholder of the cotangent and whether it holds masked zeros.
        wanted: positions of inputs.

    Returns:
        Tensors of the body's graph (or `ZERO`) by input; what is missing is unconnected.
    """
    positions = {body.inputs[i].node[INDEX]: i for i in wanted if type(body.inputs[i].node) is tuple}
    connected = [(number, *seed) for number, seed in seeds.items() if type(body.outputs[number].node) is tuple]
    masked = {body.outputs[number].node[INDEX] for number, _, is_masked in connected if is_masked}
    with body.graph.written("cotangents"):
        path = find_path(
            [body.outputs[number].node for number, _, _ in connected],
            [body.inputs[i].node for i in positions.values()],
        )
        found = reverse(
            path,
            [(body.outputs[number].node, Tensor(seed)) for number, seed, _ in connected],
            positions,
            state.sweeping_for,
            masked=masked,
        )
    return Found(
        {positions[index]: one for index, one in found.items()},
        frozenset(i for index, i in positions.items() if index in masked),
    )


def pushed(body: Body, seeds: Mapping[int, tuple[Output, bool]]) -> Found:
    """Run the forward sweep over a body; like `pulled`, from tangents of inputs to those of outputs."""
    connected = [(i, *seed) for i, seed in seeds.items() if type(body.inputs[i].node) is tuple]
    masked = {body.inputs[i].node[INDEX] for i, _, is_masked in connected if is_masked}
    nodes = {number: one.node for number, one in enumerate(body.outputs) if type(one.node) is tuple}
    with body.graph.written("tangents"):
        path = find_path(list(nodes.values()), [body.inputs[i].node for i, _, _ in connected])
        found = forward(
            path,
            [(body.inputs[i].node, Tensor(seed)) for i, seed, _ in connected],
            list(nodes.values()),
            state.sweeping_for,
            masked=masked,
        )
    return Found(
        {number: found[node[INDEX]] for number, node in nodes.items() if node[INDEX] in found},
        frozenset(number for number, node in nodes.items() if node[INDEX] in masked),
    )


def placed_in(graph: BodyGraph, derivative: Any, like: Spec) -> Output:
    """Return a derivative that was found in a body's graph as an output of it: zeros for `ZERO` and `ABSENT`."""
    nothing = derivative is ZERO or derivative is ABSENT
    output: Output = graph.imported(zeros(like) if nothing else derivative.value)
    return output
