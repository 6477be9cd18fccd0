"""What `scan` and `while` have in common: what a loop is, what it reaches, and its derivative in forward mode.

Forward, a loop runs once more with tangents as further carries. Which carries have one is found out first, see
`stopgrad.control.phases`; for reverse mode see `stopgrad.control.reversing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopgrad.control.branching import SWITCH
from stopgrad.control.joint import (
    Found,
    add_to_graph,
    has_masked_tangent,
    mask_outputs,
    placed_in,
    pushed,
    zeros,
)
from stopgrad.control.phases import State, find_phases
from stopgrad.core.arrays import Spec
from stopgrad.core.graph import Output
from stopgrad.core.operation import ABSENT
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body, BodyGraph, closed


class Loop(NamedTuple):
    """A loop in the record: its body, what goes in and what comes out.

    The body takes one entry each of (consts, carries, slices of xs) and returns (carries, slices of ys). The outputs
    are: the carries at the end, ys, the history of each carry, and each carry before the last iteration.
    `length` is `None` if it is only known when the program runs; then `trips` is what it turned out to be.
    """

    body: Body
    consts: tuple[Any, ...]
    init: tuple[Any, ...]
    xs: tuple[Any, ...]
    outs: tuple[Tensor, ...]
    length: int | None
    trips: Tensor | None
    backwards: bool

    @property
    def carries(self) -> int:
        """How many carries there are."""
        return len(self.init)

    @property
    def ys(self) -> int:
        """How many stacked results there are."""
        return len(self.body.outputs) - len(self.init)

    @property
    def operands(self) -> tuple[Any, ...]:
        """Consts, initial carries and xs: positions here are those of the body's inputs."""
        return (*self.consts, *self.init, *self.xs)


class Draft(NamedTuple):
    """A loop to be added: a body that is not closed yet, and what goes in, in the order of the body's inputs.

    With `phased`, a carry that says in which phase the loop is comes before those of the loop it is derived from.
    """

    graph: BodyGraph
    body_consts: list[Output]
    body_carries: list[Output]
    body_xs: list[Output]
    body_outputs: list[Output]
    consts: list[Any]
    init: list[Any]
    xs: list[Any]
    phased: bool = False


# Adds the loop to the graph and returns its outputs, in the order described at `Loop`.
Emit = Callable[[Draft], Sequence[Tensor]]


def loop_reach(body: Body, consts: int, carries: int, may_be_empty: bool) -> list[int]:
    """Return for each output of a loop, as described at `Loop`, the operands that it reaches, as bits."""
    own = [1 << (consts + j) for j in range(carries)]
    reached = list(body.reach)
    while True:
        further = [bits | sum_of_bits(reached[j] for j in range(carries) if bits & own[j]) for bits in reached]
        if further == reached:
            break
        reached = further
    started = [bits | reached[j] for j, bits in enumerate(own)]
    return [*(started if may_be_empty else reached[:carries]), *reached[carries:], *started, *started]


def sum_of_bits(entries: Iterable[int]) -> int:
    """Return the bits that are in any of the entries."""
    together = 0
    for bits in entries:
        together |= bits
    return together


def push_loop(loop: Loop, tangents: Mapping[int, Any], emit: Emit) -> Mapping[int, Any]:
    """Return the tangents of a loop's outputs, for those of its operands.

    Args:
        loop: the loop.
        tangents: by position of the operand.
        emit: adds a loop that runs like this one, whose first carries are the same.
    """
    body, first, count = loop.body, len(loop.consts), loop.carries
    inside = range(first, first + count)
    with body.graph.written():
        seeds = {i: body.graph.placeholder(one.spec, "tangent") for i, one in enumerate(body.inputs)}
    masked = {i: has_masked_tangent(loop.operands[i]) for i in tangents}

    def step(state: State) -> tuple[Found, State]:
        given = {i: (seeds[i], masked[i]) for i in tangents if i not in inside}
        given |= {first + j: (seeds[first + j], is_masked) for j, is_masked in state.items()}
        found = pushed(body, given)
        return found, {j: j in found.masked for j in range(count) if j in found.derivatives}

    start = {i - first: masked[i] for i in tangents if i in inside}
    phases = find_phases(start, step, body.mark is not None)
    carries = phases.carries
    found = phases.found_in(loop.length)
    ys = [n for n in range(count, count + loop.ys) if any(n in one.derivatives for one in found)]
    if not phases.is_exact or len(phases.states) > 1 or any(one.masked for one in found):
        mask_outputs(loop.outs)
    consts = [i for i in tangents if i < first]
    xs = [i for i in tangents if i >= first + count]
    draft = Draft(
        body.graph,
        [*body.inputs[:first], *(seeds[i] for i in consts)],
        [*body.inputs[first : first + count], *(seeds[first + j] for j in carries)],
        [*body.inputs[first + count :], *(seeds[i] for i in xs)],
        [],
        [*loop.consts, *(tangents[i] for i in consts)],
        [*loop.init, *(tangents.get(first + j, Tensor(zeros(body.inputs[first + j]))) for j in carries)],
        [*loop.xs, *(tangents[i] for i in xs)],
    )
    branches = []
    for one in phases.found:
        with body.graph.written("tangents"):
            derivatives = [
                placed_in(body.graph, one.derivatives.get(n, ABSENT), body.outputs[n].spec) for n in (*carries, *ys)
            ]
        branches.append([*body.outputs[:count], *derivatives])
    outs = emit(in_phases(draft, branches, phases.follows))
    total = len(draft.init)
    if len(phases.states) > 1:  # the phase is the first carry
        phase = (0, total + 1 + len(ys), 2 * (total + 1) + len(ys))
        outs = [one for number, one in enumerate(outs) if number not in phase]
    histories = count + loop.ys
    ever, after = phases.ever(loop.length), phases.state_after(loop.length)
    before = after if loop.length is None else phases.state_after(max(loop.length - 1, 0))
    results = {n: outs[total + number] for number, n in enumerate(ys)}
    for number, j in enumerate(carries):
        own = count + number
        if j in after:
            results[j] = outs[own]
        if j in ever:
            results[histories + j] = outs[total + len(ys) + own]
        if j in before:
            results[histories + count + j] = outs[2 * total + len(ys) + own]
    return results


def in_phases(draft: Draft, branches: Sequence[Sequence[Output]], follows: Sequence[int]) -> Draft:
    """Return a draft with its outputs; where there are several phases, a first carry says which one it is."""
    graph = draft.graph
    if len(branches) == 1:
        return draft._replace(body_outputs=list(branches[0]))
    inputs = [*draft.body_consts, *draft.body_carries, *draft.body_xs]
    with graph.written():
        numbers = [graph.imported(np.asarray(number)) for number in follows]
    bodies, taken = closed(
        [(graph, inputs, [number, *outputs]) for number, outputs in zip(numbers, branches, strict=True)]
    )
    outer: Any = graph.outer
    around = BodyGraph(outer)
    with around.written():
        phase = around.placeholder(Spec((), np.dtype(np.int64)), "phase")
        copies = [around.placeholder(one.spec, one.op.name) for one in inputs]
        outs = add_to_graph(SWITCH, (Tensor(phase), *taken, *map(Tensor, copies)), (tuple(bodies),), bodies[0])
    consts, carries = len(draft.body_consts), len(draft.body_carries)
    return Draft(
        around,
        copies[:consts],
        [phase, *copies[consts : consts + carries]],
        copies[consts + carries :],
        [one.value for one in outs],
        draft.consts,
        [Tensor(np.asarray(0)), *draft.init],
        draft.xs,
        phased=True,
    )
