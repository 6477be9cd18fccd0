"""The operation `while`: a body run for as long as a condition holds.

How often that is, only the run tells. Its history outputs are arrays whose first axis has the size `UNKNOWN`; the
reverse derivative is a scan over them, of as many iterations as the loop counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.control.joint import Pulling, Pushing, add_to_graph, gates_of
from stopgrad.control.looping import Draft, Loop, loop_reach, push_loop
from stopgrad.control.reversing import pull_loop
from stopgrad.control.scanning import carries_needed, emit_scan, known_plan, loop_specs, make_stacks
from stopgrad.core.arrays import UNKNOWN, Spec
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import Output
from stopgrad.core.operation import Slots, general
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body, BodyGraph, closed
from stopgrad.graph.plan import Plan


def _loop(inputs: Sequence[Any], outs: Sequence[Tensor], body: Body, consts: int) -> Loop:
    return Loop(body, tuple(inputs[:consts]), tuple(inputs[consts:]), (), tuple(outs), None, outs[-1], False)


def _pull(
    t: Slots, inputs: Sequence[Any], outs: Sequence[Tensor], cond: Body, body: Body, consts: int, limit: int | None
) -> Mapping[int, Any]:
    loop = _loop(inputs, outs, body, consts)
    return pull_loop(loop, t, lambda draft: emit_scan(draft, None, loop.trips, True))


def _push(
    tangents: Mapping[int, Any],
    inputs: Sequence[Any],
    outs: Sequence[Tensor],
    cond: Body,
    body: Body,
    consts: int,
    limit: int | None,
) -> Mapping[int, Any]:
    loop = _loop(inputs, outs, body, consts)

    def emit(draft: Draft) -> Sequence[Tensor]:
        return emit_while(cond.graph, _as_inputs_of(cond, loop, draft), cond.outputs, draft, limit)

    return push_loop(loop, tangents, emit)


def _as_inputs_of(cond: Body, loop: Loop, draft: Draft) -> list[Output]:
    """Return the condition's inputs lined up with those of a body with further consts and carries."""
    with cond.graph.written():

        def unused(ones: Sequence[Output]) -> list[Output]:
            return [cond.graph.placeholder(one.spec, "unused") for one in ones]

        consts, carries = len(loop.consts), loop.carries
        return [
            *cond.inputs[:consts],
            *unused(draft.body_consts[consts:]),
            *unused(draft.body_carries[: draft.phased]),
            *cond.inputs[consts:],
            *unused(draft.body_carries[carries + draft.phased :]),
        ]


def emit_while(
    cond_graph: BodyGraph,
    cond_inputs: Sequence[Output],
    cond_outputs: Sequence[Output],
    draft: Draft,
    limit: int | None,
) -> tuple[Tensor, ...]:
    """Add a while loop to the graph. Returns all its outputs."""
    inputs = [*draft.body_consts, *draft.body_carries]
    (cond, body), taken = closed([(cond_graph, cond_inputs, cond_outputs), (draft.graph, inputs, draft.body_outputs)])
    consts = len(taken) + len(draft.consts)
    return add_to_graph(WHILE, (*taken, *draft.consts, *draft.init), (cond, body, consts, limit), body)


def _run(wanted: Sequence[bool], inputs: Sequence[Any], params: tuple[Any, ...]) -> tuple[Any, ...]:
    cond, body, consts, limit = params
    carries = len(body.outputs)
    asked, plan = known_plan(body, (cond, consts, tuple(wanted)), lambda: _planned(cond, body, consts, wanted))
    condition = cond.plan()
    constant, carry = list(inputs[:consts]), list(inputs[consts:])
    stacks = make_stacks(body, wanted, carries, None, False)
    histories = [(j, stack) for j, stack in enumerate(stacks) if stack is not None]
    before, count = carry, 0
    while (limit is None or count < limit) and condition.run([*constant, *carry])[0]:
        for j, stack in histories:
            stack.add(carry[j])
        results = dict(zip(asked, plan.run([*constant, *carry]), strict=True))
        before, carry = carry, [results.get(j) for j in range(carries)]
        count += 1
    arrays = [None if stack is None else stack.array() for stack in stacks]
    return (*carry, *arrays, *before, np.asarray(count))


def _planned(cond: Body, body: Body, consts: int, wanted: Sequence[bool]) -> tuple[list[int], Plan]:
    asked_for = {i - consts for i in cond.reads() if i >= consts}
    needed = carries_needed(body, consts, len(body.outputs), wanted, asked_for)
    return [n for n, need in enumerate(needed) if need], body.plan(needed)


def _kernel(xp: Any, *inputs_and_params: Any) -> tuple[Any, ...]:
    inputs, params = inputs_and_params[:-4], inputs_and_params[-4:]
    return _run((True,) * (3 * len(params[1].outputs) + 1), inputs, params)


def _spec(*inputs_and_params: Any) -> tuple[Spec, ...]:
    *inputs, cond, body, consts, _ = inputs_and_params
    operands = tuple(inputs)
    if operands != body.in_specs or operands != cond.in_specs or body.out_specs != operands[consts:]:
        raise ArgumentError("while: the bodies do not take these operands, or do not return the carries")
    if cond.out_specs != (Spec((), np.dtype(bool)),):
        raise ArgumentError("while: the condition must return one boolean")
    return (*loop_specs(body, len(body.outputs), UNKNOWN), Spec((), np.dtype(np.int64)))


WHILE = general(
    "while",
    _kernel,
    vjps=Pulling(_pull, "cond", "body", "consts", "limit"),
    jvps=Pushing(_push, 4),
    spec=_spec,
    run_some=_run,
    gates=lambda cond, body, *_: gates_of(body),
    reach=lambda cond, body, consts, limit: [*loop_reach(body, consts, len(body.outputs), True), 0],
)
"""while(*consts, *init; cond, body, consts, limit): carries, histories, carries before the last iteration, count.

It ends when the condition no longer holds, or after `limit` iterations.
"""
