"""The operations `switch`, which runs one of several bodies, and `checkpoint`, which runs one.

A branch's derivative is a branch of the derivative: the body recomputes what its rules need, so nothing is kept but the
inputs; for `checkpoint` that is all there is to it. An input is connected if it is in some branch. Where the branch
that runs stops it, it gets zeros, and the sweep is told that they stand for "absent", so that no infinite derivative
behind them makes NaN of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stopgrad.control.joint import (
    Found,
    Pulling,
    Pushing,
    add_to_graph,
    gates_of,
    has_masked_tangent,
    is_live,
    is_masked,
    mask,
    mask_outputs,
    placed_in,
    pulled,
    pushed,
)
from stopgrad.core.arrays import Spec
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import ABSENT, ZERO, Operation, Slots, general
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body, closed

Branches = tuple[Body, ...]


def _pull(t: Slots, inputs: Sequence[Any], outs: Sequence[Tensor], branches: Branches) -> Mapping[int, Any]:
    operation, first = _operation_of(branches, inputs)
    operands = inputs[first:]
    wanted = [i for i, one in enumerate(operands) if is_live(one)]
    from_masked = is_masked(outs)
    seeds, found = [], []
    for body in branches:
        with body.graph.written():
            seeds.append({n: body.graph.placeholder(body.outputs[n].spec, "cotangent") for n in t})
        found.append(pulled(body, {n: (one, from_masked) for n, one in seeds[-1].items()}, wanted))
    specs = branches[0].in_specs
    results, connected = _joined(found, specs)
    mask(operands[i] for i in connected if _may_be_absent(found, i))
    if connected:
        bodies, taken = _derived(branches, seeds, found, connected, specs)
        cotangents = add_to_graph(operation, (*inputs[:first], *taken, *operands, *t.values()), (bodies,), bodies[0])
        results |= dict(zip(connected, cotangents, strict=True))
    return {first + i: cotangent for i, cotangent in results.items()}


def _push(
    tangents: Mapping[int, Any], inputs: Sequence[Any], outs: Sequence[Tensor], branches: Branches
) -> Mapping[int, Any]:
    operation, first = _operation_of(branches, inputs)
    operands = inputs[first:]
    seeds, found = [], []
    for body in branches:
        with body.graph.written():
            seeds.append({i: body.graph.placeholder(body.inputs[i - first].spec, "tangent") for i in tangents})
        found.append(pushed(body, {i - first: (one, has_masked_tangent(inputs[i])) for i, one in seeds[-1].items()}))
    specs = branches[0].out_specs
    results, connected = _joined(found, specs)
    if any(_may_be_absent(found, number) for number in connected):
        mask_outputs(outs)
    if connected:
        bodies, taken = _derived(branches, seeds, found, connected, specs)
        derivatives = add_to_graph(
            operation, (*inputs[:first], *taken, *operands, *tangents.values()), (bodies,), bodies[0]
        )
        results |= dict(zip(connected, derivatives, strict=True))
    return results


def _operation_of(branches: Branches, inputs: Sequence[Any]) -> tuple[Operation, int]:
    """Return which of the two operations this is, and how many inputs come before the operands."""
    first = len(inputs) - len(branches[0].inputs)
    return (SWITCH if first else CHECKPOINT), first


def _joined(found: Sequence[Found], specs: Sequence[Spec]) -> tuple[dict[int, Any], list[int]]:
    """Return results that are zero in all branches, and the positions of those that have to be computed."""
    zero, connected = {}, []
    for position in range(len(specs)):
        entries = [one.derivatives.get(position, ABSENT) for one in found]
        if any(one is not ABSENT and one is not ZERO for one in entries):
            connected.append(position)
        elif any(one is ZERO for one in entries):
            zero[position] = ZERO
    return zero, connected


def _may_be_absent(found: Sequence[Found], position: int) -> bool:
    return any(position not in one.derivatives or position in one.masked for one in found)


def _derived(
    branches: Branches,
    seeds: Sequence[Mapping[int, Any]],
    found: Sequence[Found],
    connected: Sequence[int],
    specs: Sequence[Spec],
) -> tuple[Branches, list[Tensor]]:
    """Return bodies that take the inputs and the seeds and return the derivatives at the connected positions."""
    drafts = []
    for body, placeholders, one in zip(branches, seeds, found, strict=True):
        with body.graph.written():
            outputs = [placed_in(body.graph, one.derivatives.get(i, ABSENT), specs[i]) for i in connected]
        drafts.append((body.graph, (*body.inputs, *placeholders.values()), outputs))
    bodies, taken = closed(drafts)
    return tuple(bodies), taken


def _reach(branches: Branches) -> list[int]:
    """Return for each output the operands that it reaches in some branch, as bits."""
    together = [0] * len(branches[0].outputs)
    for body in branches:
        together = [known | bits for known, bits in zip(together, body.reach, strict=True)]
    return together


def _chosen(selector: Any, count: int) -> int:
    return min(max(int(selector), 0), count - 1)


def _run_switch(wanted: Sequence[bool], inputs: Sequence[Any], params: tuple[Any, ...]) -> tuple[Any, ...]:
    branches: Branches = params[0]
    return branches[_chosen(inputs[0], len(branches))].run(inputs[1:], wanted)


def _switch_spec(selector: Spec, *operands_and_branches: Any) -> tuple[Spec, ...]:
    *operands, branches = operands_and_branches
    if selector.shape != () or str(selector.dtype) == "object":
        raise ArgumentError(f"switch: the selector must be one integer or boolean, got {selector}")
    return _checked("switch", operands, branches)


def _checked(name: str, operands: Sequence[Spec], branches: Branches) -> tuple[Spec, ...]:
    for body in branches:
        if body.in_specs != tuple(operands) or body.out_specs != branches[0].out_specs:
            raise ArgumentError(f"{name}: a body does not take the operands, or returns something else than another")
    return branches[0].out_specs


SWITCH = general(
    "switch",
    lambda xp, *inputs_and_branches: _run_switch(
        (True,) * len(inputs_and_branches[-1][0].outputs), inputs_and_branches[:-1], inputs_and_branches[-1:]
    ),
    vjps=Pulling(_pull, "branches"),
    jvps=Pushing(_push, 1),
    spec=_switch_spec,
    run_some=_run_switch,
    gates=lambda branches: gates_of(*branches),
    reach=lambda branches: [bits << 1 for bits in _reach(branches)],
)
"""switch(selector, *operands; branches): one result for each output of the branches, of the one selected.

The selector is a boolean or an integer, which counts as the nearest that there is a branch for.
"""

CHECKPOINT = general(
    "checkpoint",
    lambda xp, *operands_and_bodies: tuple(operands_and_bodies[-1][0].run(operands_and_bodies[:-1])),
    vjps=Pulling(_pull, "bodies"),
    jvps=Pushing(_push, 1),
    spec=lambda *operands_and_bodies: _checked("checkpoint", operands_and_bodies[:-1], operands_and_bodies[-1]),
    run_some=lambda wanted, operands, params: params[0][0].run(operands, wanted),
    gates=lambda bodies: gates_of(*bodies),
    reach=_reach,
)
"""checkpoint(*operands; bodies): the results of the one body, whose inside is computed again by derivatives."""
