"""Batching rules of loops, whose bodies run for all examples by the same sweep.

With values at hand a loop becomes a Python loop over that sweep, each step recorded by itself; while a program is
traced it becomes a loop whose body is the sweep, written down. Where examples leave a loop at different times it runs
until the last one does, and those that are done keep what they have. What each passed by is stacked for all iterations;
who reads it reads no further than the example went.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.batching.application import Application, Entry, Rules, in_front
from stopgrad.control.batched import BatchedBody, each_its_own
from stopgrad.control.looping import Draft
from stopgrad.control.loops import scan
from stopgrad.control.scanning import emit_scan
from stopgrad.control.tracing import arguments, traced, tracing_graph
from stopgrad.control.whiling import emit_while
from stopgrad.core.arrays import UNKNOWN, Spec
from stopgrad.core.graph import Output
from stopgrad.core.tensor import Tensor

Step = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]
"""One iteration: from carries and slices to the carries after it and what is stacked."""


class _Flags(NamedTuple):
    """What of a loop differs between examples."""

    consts: list[bool]
    carries: list[bool]
    slices: list[bool]
    stacked: list[bool]

    @property
    def inputs(self) -> list[bool]:
        """Of the body's inputs."""
        return [*self.consts, *self.carries, *self.slices]

    @property
    def outputs(self) -> list[bool]:
        """Of the body's outputs."""
        return [*self.carries, *self.stacked]


def _flags(body: BatchedBody, mapped: Sequence[bool], consts: int, carries: int, all_carries: bool) -> _Flags:
    """Follow what differs through iterations until nothing is added; `all_carries` if they end at different times."""
    own = [all_carries or flag for flag in mapped[consts : consts + carries]]
    while True:
        outputs = body.mapped([*mapped[:consts], *own, *mapped[consts + carries :]])
        larger = [before or after for before, after in zip(own, outputs[:carries], strict=True)]
        if larger == own:
            return _Flags(list(mapped[:consts]), own, list(mapped[consts + carries :]), outputs[carries:])
        own = larger


def scan_rule(application: Application, rules: Rules) -> list[Entry]:
    """Rule of scan (*consts, *init, *xs; body, consts, carries, length, backwards); a count first if UNKNOWN."""
    program, consts, carries, length, backwards = application.params
    body = BatchedBody(program, application.size, rules)
    values, mapped = list(application.inputs), list(application.mapped)
    count, by_example = (values.pop(0), mapped.pop(0)) if length == UNKNOWN else (None, False)
    flags = _flags(body, mapped, consts, carries, by_example)
    ys = len(flags.stacked)
    histories = [j for j in range(carries) if application.wanted[carries + ys + j]]
    last = [j for j in range(carries) if application.wanted[2 * carries + ys + j]]

    def once(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        carry = state[:carries]
        after = body.run([*values[:consts], *carry, *slices], flags.inputs, flags.outputs)
        return [*after[:carries], *(carry[j] for j in last)], [*after[carries:], *(carry[j] for j in histories)]

    init = [
        in_front(Entry(*pair), flag, application.size)
        for *pair, flag in zip(values[consts:], mapped[consts:], flags.carries, strict=False)
    ]
    xs = [_by_iteration(*pair) for pair in zip(values[consts + carries :], flags.slices, strict=True)]
    start = [*init, *(init[j] for j in last)]
    step: Step = once
    if by_example:
        step, start, count = _while_counting(once, start, application.inputs[0], backwards)
    state, stacked = _scanned(step, start, xs, None if length == UNKNOWN else int(length), count, backwards)
    results = [Entry(None, False)] * len(application.wanted)
    for j in range(carries):
        results[j] = Entry(state[j], flags.carries[j])
    for number, j in enumerate(last):
        results[2 * carries + ys + j] = Entry(state[carries + number], flags.carries[j])
    places = [
        *((carries + n, flags.stacked[n]) for n in range(ys)),
        *((carries + ys + j, flags.carries[j]) for j in histories),
    ]
    for (place, flag), one in zip(places, stacked, strict=True):
        results[place] = Entry(_by_example(one, flag), flag)
    return results


def _while_counting(
    step: Step, start: list[Tensor], count: Tensor, backwards: bool
) -> tuple[Step, list[Tensor], Tensor]:
    """Return a loop in which every example runs only the first so many iterations; its last carry counts them."""
    total = primitives.max(count) if count.size else Tensor(np.asarray(0))

    def counted(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        *own, number = state
        after, stacked = step(own, slices)
        runs = primitives.less(number, count)
        return [
            *(each_its_own(runs, *pair) for pair in zip(after, own, strict=True)),
            number - 1 if backwards else number + 1,
        ], stacked

    first = total - 1 if backwards else Tensor(np.zeros((), total.dtype))
    return counted, [*start, first], total


def _by_iteration(x: Tensor, mapped: bool) -> Tensor:
    """Return slices with the axis of iterations in front, before that of examples."""
    return primitives.swapaxes(x, 0, 1) if mapped else x


_by_example = _by_iteration


def _scanned(
    step: Step, start: list[Tensor], xs: list[Tensor], length: int | None, count: Tensor | None, backwards: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the carries after a loop, and what it stacked; the number of iterations is `count` if not `length`."""
    if length is None and type(count.value) is not Output:  # type: ignore[union-attr]
        length = int(count.value)  # type: ignore[union-attr]
        xs = [x[:length] for x in xs]
    if length is not None:
        return scan(step, start, xs, length=length, reverse=backwards)
    carries, slices = arguments(start, "vmap"), arguments(xs, "vmap")
    args = [
        (carries.specs, carries.treedef, "carry"),
        ([Spec(one.shape[1:], one.dtype) for one in slices.specs], slices.treedef, "x"),
    ]
    outer = tracing_graph([count, *carries.tensors])  # type: ignore[list-item]
    assert outer is not None
    made = traced(step, outer, args, "vmap")
    draft = Draft(made.graph, [], made.inputs[0], made.inputs[1], made.outputs, [], carries.tensors, slices.tensors)
    outs = emit_scan(draft, None, count, backwards)
    return list(outs[: len(start)]), list(outs[len(start) : len(made.outputs)])


def while_rule(application: Application, rules: Rules) -> list[Entry]:
    """Rule of while (*consts, *init; cond, body, consts, limit)."""
    program, body_program, consts, limit = application.params
    size = application.size
    condition, body = BatchedBody(program, size, rules), BatchedBody(body_program, size, rules)
    values, mapped = list(application.inputs), list(application.mapped)
    carries = len(values) - consts
    flags = _flags(body, mapped, consts, carries, False)
    (by_example,) = condition.mapped(flags.inputs)
    if by_example:
        flags = _flags(body, mapped, consts, carries, True)
    last = [j for j in range(carries) if application.wanted[2 * carries + j]]

    def holds(state: list[Tensor]) -> Tensor:
        return condition.run([*values[:consts], *state[:carries]], flags.inputs, [by_example])[0]

    def step(state: list[Tensor]) -> list[Tensor]:
        carry = state[:carries]
        after = body.run([*values[:consts], *carry], flags.inputs, flags.outputs)
        new = [*after, *(carry[j] for j in last), state[-1] + 1]
        if not by_example:
            return new
        runs = holds(state)
        return [each_its_own(runs, *pair) for pair in zip(new, state, strict=True)]

    init = [
        in_front(Entry(*pair), flag, size)
        for *pair, flag in zip(values[consts:], mapped[consts:], flags.carries, strict=True)
    ]
    counts = Tensor(np.zeros((size,) if by_example else (), np.int64))
    goes_on = (lambda state: primitives.any(holds(state))) if by_example else holds
    wanted = [j for j in range(carries) if application.wanted[carries + j]]
    state, histories = _repeated(goes_on, step, [*init, *(init[j] for j in last), counts], limit, wanted)
    results = [Entry(None, False)] * len(application.wanted)
    for j in range(carries):
        results[j] = Entry(state[j], flags.carries[j])
    for j in wanted:
        results[carries + j] = Entry(_by_example(histories[j], flags.carries[j]), flags.carries[j])
    for number, j in enumerate(last):
        results[2 * carries + j] = Entry(state[carries + number], flags.carries[j])
    results[-1] = Entry(state[-1], by_example)
    return results


def _repeated(
    goes_on: Callable[[list[Tensor]], Tensor],
    step: Callable[[list[Tensor]], list[Tensor]],
    start: list[Tensor],
    limit: int | None,
    wanted: Sequence[int],
) -> tuple[list[Tensor], dict[int, Tensor]]:
    """Return the state after a while loop, and for the wanted places what each iteration started from, stacked."""
    given = arguments(start, "vmap")
    outer = tracing_graph(given.tensors)
    if outer is not None:
        args = [(given.specs, given.treedef, "carry")]
        cond, body = traced(goes_on, outer, args, "vmap"), traced(step, outer, args, "vmap")
        draft = Draft(body.graph, [], body.inputs[0], [], body.outputs, [], given.tensors, [])
        outs = emit_while(cond.graph, cond.inputs[0], cond.outputs, draft, limit)
        return list(outs[: len(start)]), {j: outs[len(start) + j] for j in wanted}
    state, number = given.tensors, 0
    passed: dict[int, list[Tensor]] = {j: [] for j in wanted}
    while (limit is None or number < limit) and bool(goes_on(state)):
        for j in wanted:
            passed[j].append(state[j])
        state, number = step(state), number + 1
    return state, {
        j: primitives.stack(rows) if rows else Tensor(np.zeros((0, *start[j].shape), start[j].dtype))
        for j, rows in passed.items()
    }
