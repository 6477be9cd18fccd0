"""The operation `scan`: a body run along the first axis of arrays, with carries handed from one slice to the next.

Besides its results it has two further outputs for each carry, which nobody computes who does not use them: the history
(what each iteration started from) and what the last iteration started from. They are what derivatives need of the
forward loop, so a history is kept if and only if a path that no gate cuts asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.control.joint import Pulling, Pushing, add_to_graph, gates_of
from stopgrad.control.looping import Draft, Loop, loop_reach, push_loop
from stopgrad.control.reversing import pull_loop
from stopgrad.core.arrays import UNKNOWN, Spec, namespace_of
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import Slots, general
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body, closed
from stopgrad.graph.plan import Plan


def emit_scan(draft: Draft, length: int | None, count: Any, backwards: bool) -> tuple[Tensor, ...]:
    """Add a scan to the graph; `length` is `None` if only `count` will tell. Returns all its outputs."""
    inputs = [*draft.body_consts, *draft.body_carries, *draft.body_xs]
    (body,), taken = closed([(draft.graph, inputs, draft.body_outputs)])
    operands = (*taken, *draft.consts, *draft.init, *draft.xs)
    params = (body, len(taken) + len(draft.consts), len(draft.init), UNKNOWN if length is None else length, backwards)
    return add_to_graph(SCAN, operands if length is not None else (count, *operands), params, body)


def _loop(
    inputs: Sequence[Any], outs: Sequence[Tensor], body: Body, consts: int, carries: int, length: int, backwards: bool
) -> Loop:
    known = length != UNKNOWN
    count, operands = (None, inputs) if known else (inputs[0], inputs[1:])
    return Loop(
        body,
        tuple(operands[:consts]),
        tuple(operands[consts : consts + carries]),
        tuple(operands[consts + carries :]),
        tuple(outs),
        int(length) if known else None,
        count,
        backwards,
    )


def _pull(t: Slots, inputs: Sequence[Any], outs: Sequence[Tensor], *params: Any) -> Mapping[int, Any]:
    loop = _loop(inputs, outs, *params)
    found = pull_loop(loop, t, lambda draft: emit_scan(draft, loop.length, loop.trips, not loop.backwards))
    return found if loop.trips is None else {i + 1: one for i, one in found.items()}


def _push(
    tangents: Mapping[int, Any], inputs: Sequence[Any], outs: Sequence[Tensor], *params: Any
) -> Mapping[int, Any]:
    loop = _loop(inputs, outs, *params)
    by_position = tangents if loop.trips is None else {i - 1: one for i, one in tangents.items()}
    return push_loop(loop, by_position, lambda draft: emit_scan(draft, loop.length, loop.trips, loop.backwards))


class Stack:
    """Slices of one array, put together one after the other; `spec` is that of a slice."""

    __slots__ = ("_backwards", "_length", "_number", "_rows", "_spec")

    def __init__(self, spec: Spec, length: int | None, backwards: bool) -> None:
        self._spec = spec
        self._length = length
        self._backwards = backwards
        self._number = 0
        self._rows: Any = None

    def add(self, row: Any) -> None:
        """Put a slice after (backwards: before) those that are there."""
        if self._rows is None:
            known = self._length is not None and isinstance(row, np.ndarray | np.generic)
            self._rows = np.empty((self._length, *self._spec.shape), self._spec.dtype) if known else []
        if type(self._rows) is list:
            self._rows.append(row)
        else:
            number = self._number
            self._rows[len(self._rows) - 1 - number if self._backwards else number] = row
            self._number = number + 1

    def array(self) -> Any:
        """Return the array."""
        if self._rows is None:
            return np.zeros((0, *self._spec.shape), self._spec.dtype)
        if type(self._rows) is not list:
            return self._rows
        rows = self._rows[::-1] if self._backwards else self._rows
        return namespace_of(*rows).stack(rows, axis=0)


def make_stacks(body: Body, wanted: Sequence[bool], carries: int, length: int | None, backwards: bool) -> list[Any]:
    """Return a stack for each of (ys, histories) that is wanted, `None` for the others."""
    specs = [*(one.spec for one in body.outputs[carries:]), *(one.spec for one in body.outputs[:carries])]
    asked = wanted[carries : carries + len(specs)]
    return [Stack(spec, length, backwards) if want else None for spec, want in zip(specs, asked, strict=True)]


def carries_needed(body: Body, consts: int, carries: int, wanted: Sequence[bool], more: set[int]) -> tuple[bool, ...]:
    """Return which outputs of the body have to be computed for the outputs of the loop that are wanted.

    Args:
        body: the loop's body.
        consts: how many of its inputs come before the carries.
        carries: how many carries there are.
        wanted: which outputs of the loop are.
        more: carries that are needed besides.
    """
    ys = len(body.outputs) - carries
    histories = carries + ys
    needed = {j for j in range(carries) if wanted[j] or wanted[histories + j] or wanted[histories + carries + j]} | more
    while True:
        asked = [body.outputs[n] for n in range(histories) if (wanted[n] if n >= carries else n in needed)]
        larger = needed | {i - consts for i in body.reads(asked) if consts <= i < consts + carries}
        if larger == needed:
            return tuple(wanted[n] if n >= carries else n in needed for n in range(histories))
        needed = larger


def known_plan(body: Body, key: Any, make: Callable[[], Any]) -> Any:
    """Return what was worked out for a body under this key, made when it is first asked for."""
    if key not in body.plans:
        body.plans[key] = make()
    return body.plans[key]


def _run(wanted: Sequence[bool], inputs: Sequence[Any], params: tuple[Any, ...]) -> tuple[Any, ...]:
    body, consts, carries, length, backwards = params
    if length == UNKNOWN:
        length, inputs = int(inputs[0]), inputs[1:]
    asked, plan = known_plan(body, (consts, carries, tuple(wanted)), lambda: _planned(body, consts, carries, wanted))
    constant = list(inputs[:consts])
    carry = list(inputs[consts : consts + carries])
    xs = inputs[consts + carries :]
    stacks = make_stacks(body, wanted, carries, length, backwards)
    ys = len(stacks) - carries
    before = carry
    histories = [(j, stacks[ys + j]) for j in range(carries) if stacks[ys + j] is not None]
    places = [(n, stacks[n - carries]) for n in asked if n >= carries]
    for number in range(length - 1, -1, -1) if backwards else range(length):
        for j, stack in histories:
            stack.add(carry[j])
        results = dict(zip(asked, plan.run([*constant, *carry, *[x[number] for x in xs]]), strict=True))
        before, carry = carry, [results.get(j) for j in range(carries)]
        for n, stack in places:
            stack.add(results[n])
    arrays = [None if stack is None else stack.array() for stack in stacks]
    return (*carry, *arrays, *before)


def _planned(body: Body, consts: int, carries: int, wanted: Sequence[bool]) -> tuple[list[int], Plan]:
    needed = carries_needed(body, consts, carries, wanted, set())
    return [n for n, need in enumerate(needed) if need], body.plan(needed)


def _kernel(xp: Any, *inputs_and_params: Any) -> tuple[Any, ...]:
    inputs, params = inputs_and_params[:-5], inputs_and_params[-5:]
    return _run((True,) * (len(params[0].outputs) + 2 * params[2]), inputs, params)


def loop_specs(body: Body, carries: int, length: int) -> tuple[Spec, ...]:
    """Return the specs of (carries, ys, histories, carries before the last iteration)."""
    specs = body.out_specs
    first = specs[:carries]
    stacked = tuple(Spec((length, *one.shape), one.dtype) for one in (*specs[carries:], *first))
    return (*first, *stacked, *first)


def _spec(*inputs_and_params: Any) -> tuple[Spec, ...]:
    *inputs, body, consts, carries, length, _ = inputs_and_params
    operands = tuple(inputs[1:] if length == UNKNOWN else inputs)
    expected = body.in_specs
    along = tuple(Spec((length, *one.shape), one.dtype) for one in expected[consts + carries :])
    if operands != (*expected[: consts + carries], *along) or body.out_specs[:carries] != expected[consts:][:carries]:
        raise ArgumentError("scan: the body does not take these operands, or does not return its carries")
    return loop_specs(body, carries, length)


def _reach(body: Body, consts: int, carries: int, length: int, backwards: bool) -> list[int]:
    bits = loop_reach(body, consts, carries, length == UNKNOWN or not length)
    return [one << 1 for one in bits] if length == UNKNOWN else bits


SCAN = general(
    "scan",
    _kernel,
    vjps=Pulling(_pull, "body", "consts", "carries", "length", "backwards"),
    jvps=Pushing(_push, 5),
    spec=_spec,
    run_some=_run,
    gates=lambda body, *_: gates_of(body),
    reach=_reach,
)
"""scan(*consts, *init, *xs; body, consts, carries, length, backwards), with outputs as described at `Loop`.

 If the length is `UNKNOWN`, the first input is the number of iterations.
"""
