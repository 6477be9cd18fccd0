"""The derivative of a loop in reverse mode, as a further loop.

It runs the other way over what the forward loop passed by: its slices of xs and, of those carries that the rules need,
the history. Its carries are cotangents of carries, and sums for what is the same in all iterations; the inside of the
body is computed again. Which carries have a cotangent is found out first, see `stopgrad.control.phases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import stopgrad.primitives as primitives
from stopgrad.control.branching import CHECKPOINT, SWITCH
from stopgrad.control.joint import Found, add_to_graph, is_live, is_masked, mask, placed_in, pulled, zeros
from stopgrad.control.looping import Draft, Emit, Loop, in_phases
from stopgrad.control.phases import Phases, State, find_phases
from stopgrad.core.arrays import Spec
from stopgrad.core.graph import Output
from stopgrad.core.operation import ABSENT, ZERO, Slots
from stopgrad.core.order import needed
from stopgrad.core.placing import PLACE
from stopgrad.core.record import run
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import closed


def pull_loop(loop: Loop, t: Slots, emit: Emit) -> Mapping[int, Any]:
    """Return the cotangents of a loop's operands, for those of its outputs.

    Args:
        loop: the loop.
        t: cotangents of its outputs.
        emit: adds a loop of as many iterations that runs the other way.
    """
    return _Pull(loop, t).result(emit)


class _Pull:
    """What is known while a loop's reverse derivative is made."""

    def __init__(self, loop: Loop, t: Slots) -> None:
        body, first, count = loop.body, len(loop.consts), loop.carries
        self.loop = loop
        self.t = t
        self.first = first
        self.wanted = [i for i, one in enumerate(loop.operands) if is_live(one)]
        histories = count + loop.ys
        self.final = {j: t[j] for j in range(count) if j in t}
        self.rows = {j: t[histories + j] for j in range(count) if histories + j in t}
        self.before = {j: t[histories + count + j] for j in range(count) if histories + count + j in t}
        self.useful = self._useful_carries()
        bits = sum(1 << i for i in self.wanted) | sum(1 << (first + j) for j in self.useful)
        self.slices = [n for n in range(count, histories) if n in t and body.reach[n] & bits]
        self.from_masked = is_masked(loop.outs)
        self.placeholders: dict[Any, Output] = {}

    def _useful_carries(self) -> list[int]:
        """Return the carries that something wanted leads to."""
        loop, first = self.loop, self.first
        inside = range(first, first + loop.carries)
        found = {i - first for i in self.wanted if i in inside}
        while True:
            bits = sum(1 << i for i in self.wanted if i not in inside) | sum(1 << (first + j) for j in found)
            larger = found | {j for j in range(loop.carries) if loop.body.reach[j] & bits}
            if larger == found:
                return sorted(found)
            found = larger

    def placeholder(self, key: Any, like: Any) -> Output:
        """Return the placeholder in the body's graph for something, made when it is first asked for."""
        if key not in self.placeholders:
            with self.loop.body.graph.written():
                spec = Spec(like.shape, like.dtype)
                self.placeholders[key] = self.loop.body.graph.placeholder(spec, "cotangent")
        return self.placeholders[key]

    def step(self, state: State) -> tuple[Found, State]:
        """Sweep over the body: which carries get a cotangent if those in the state have one."""
        body = self.loop.body
        seeds = {j: (self.placeholder(j, body.outputs[j]), masked) for j, masked in state.items()}
        seeds |= {n: (self.placeholder(n, body.outputs[n]), self.from_masked) for n in self.slices}
        inside = range(self.first, self.first + self.loop.carries)
        wanted = [i for i in self.wanted if i not in inside] + [self.first + j for j in self.useful]
        found = pulled(body, seeds, wanted)
        following = {}
        for j in self.useful:
            if self.first + j in found.derivatives:
                following[j] = self.first + j in found.masked
            elif j in self.rows:
                following[j] = self.from_masked
            elif j in self.before:
                following[j] = True  # in the last iteration only
        return found, following

    def result(self, emit: Emit) -> Mapping[int, Any]:
        """Return the cotangents of the operands."""
        loop, length = self.loop, self.loop.length
        start = {j: self.from_masked for j in self.useful if j in self.final}
        if not (start or self.slices or any(j in self.rows or j in self.before for j in self.useful)):
            return {}
        if length == 0:
            return self._without_iterations()
        phases = find_phases(start, self.step, loop.body.mark is not None)
        found = phases.found_in(length)
        results: dict[int, Any] = {}
        computed: list[int] = []
        inside = range(self.first, self.first + loop.carries)
        after = phases.state_after(length)
        for i in self.wanted:
            entries = [one.derivatives.get(i, ABSENT) for one in found]
            if i in inside:
                if i - self.first in after:
                    computed.append(i)
            elif any(one is not ABSENT and one is not ZERO for one in entries):
                computed.append(i)
            elif any(one is ZERO for one in entries):
                results[i] = ZERO
        if not computed:
            return results
        certain = length is not None and phases.is_exact and len(phases.states) == 1
        mask(loop.operands[i] for i in computed if not certain or any(i in one.masked for one in found))
        if self._is_last_only(phases):
            return {**results, **self._last_only(phases.history[0][1], computed)}
        return {**results, **self._looped(phases, computed, emit)}

    def _is_last_only(self, phases: Phases) -> bool:
        """Whether only the last iteration has a cotangent, and what it started from can be had without a history."""
        if self.slices or self.rows or self.before or (self.loop.length is None and self.loop.xs):
            return False
        return len(phases.history) > 1 and not phases.history[1][0]

    def _without_iterations(self) -> dict[int, Any]:
        both = {j: [one[j] for one in (self.final, self.before) if j in one] for j in self.useful}
        return {self.first + j: _sum(some) for j, some in both.items() if some and self.first + j in self.wanted}

    def _last_only(self, found: Found, computed: Sequence[int]) -> dict[int, Any]:
        """Return the cotangents where only the last iteration has any: that one alone, with what it started from."""
        loop, body, first, count = self.loop, self.loop.body, self.first, self.loop.carries
        given: dict[Output, Any] = {body.inputs[i]: one for i, one in enumerate(loop.consts)}
        before = loop.outs[2 * count + loop.ys :]
        given |= {body.inputs[first + j]: before[j] for j in range(count)}
        if loop.length is not None:
            last = 0 if loop.backwards else loop.length - 1
            given |= {body.inputs[first + count + m]: one[last] for m, one in enumerate(loop.xs)}
        given |= {self.placeholder(j, body.outputs[j]): one for j, one in self.final.items() if j in self.useful}
        with body.graph.written():
            outputs = [placed_in(body.graph, found.derivatives.get(i, ABSENT), body.inputs[i].spec) for i in computed]
            untouched = [
                self.placeholder(i - first, body.inputs[i])
                if i - first in self.final and first <= i < first + count
                else placed_in(body.graph, ZERO, body.inputs[i].spec)
                for i in computed
            ]
        read = _read(outputs + untouched)
        inputs = [one for one in given if one in read]
        operands = [given[one] for one in inputs]
        if loop.length is None:
            bodies, taken = closed([(body.graph, inputs, untouched), (body.graph, inputs, outputs)])
            some = primitives.greater(loop.trips, 0)
            cotangents = add_to_graph(SWITCH, (some, *taken, *operands), (tuple(bodies),), bodies[0])
        else:
            bodies, taken = closed([(body.graph, inputs, outputs)])
            cotangents = add_to_graph(CHECKPOINT, (*taken, *operands), (tuple(bodies),), bodies[0])
        results = dict(zip(computed, cotangents, strict=True))
        for i in computed:
            if i >= first + count:
                shape = loop.operands[i].shape
                results[i] = run(PLACE, results[i], params=(((last,),), shape))
        return results

    def _looped(self, phases: Phases, computed: Sequence[int], emit: Emit) -> dict[int, Any]:
        loop, body, first, count = self.loop, self.loop.body, self.first, self.loop.carries
        carries = phases.carries
        sums = [i for i in computed if i < first]
        slices = [i for i in computed if i >= first + count]
        pending = [j for j in carries if j in self.before]
        rows = [j for j in carries if j in self.rows]
        inner = {
            **{(j, "sum"): body.inputs[j] for j in sums},
            **{(j, "pending"): body.inputs[first + j] for j in pending},
            **{(j, "row"): body.inputs[first + j] for j in rows},
        }
        extra = {key: self.placeholder(key, like) for key, like in inner.items()}
        branches = []
        for found in phases.found:
            with body.graph.written("cotangents"):
                outputs = []
                for j in carries:
                    terms = [Tensor(extra[j, kind]) for kind in ("row", "pending") if (j, kind) in extra]
                    one = found.derivatives.get(first + j, ABSENT)
                    if not terms or (one is not ABSENT and one is not ZERO):
                        terms.append(Tensor(placed_in(body.graph, one, body.inputs[first + j].spec)))
                    outputs.append(_sum(terms).value)
                outputs += [placed_in(body.graph, ZERO, body.inputs[first + j].spec) for j in pending]
                for i in sums:
                    one = found.derivatives.get(i, ABSENT)
                    there = one is not ABSENT and one is not ZERO
                    outputs.append(_sum([Tensor(extra[i, "sum"]), *([one] if there else [])]).value)
                outputs += [
                    placed_in(body.graph, found.derivatives.get(i, ABSENT), body.inputs[i].spec) for i in slices
                ]
            branches.append(outputs)
        read = _read([one for outputs in branches for one in outputs])
        consts = [i for i in range(first) if body.inputs[i] in read]
        histories = [j for j in range(count) if body.inputs[first + j] in read]
        xs = [i for i in range(first + count, len(body.inputs)) if body.inputs[i] in read]
        nothing = [Tensor(zeros(body.inputs[first + j])) for j in range(count)]
        stacks = loop.outs[count + loop.ys :]
        draft = Draft(
            body.graph,
            [body.inputs[i] for i in consts],
            [self.placeholder(j, body.outputs[j]) for j in carries]
            + [extra[j, "pending"] for j in pending]
            + [extra[i, "sum"] for i in sums],
            [body.inputs[i] for i in xs]
            + [body.inputs[first + j] for j in histories]
            + [self.placeholder(n, body.outputs[n]) for n in self.slices]
            + [extra[j, "row"] for j in rows],
            [],
            [loop.consts[i] for i in consts],
            [self.final.get(j, nothing[j]) for j in carries]
            + [self.before[j] for j in pending]
            + [Tensor(zeros(body.inputs[i])) for i in sums],
            [loop.operands[i] for i in xs]
            + [stacks[j] for j in histories]
            + [self.t[n] for n in self.slices]
            + [self.rows[j] for j in rows],
        )
        outs = emit(in_phases(draft, branches, phases.follows))
        state = len(phases.states) > 1
        outs = outs[1:] if state else outs
        results = dict(zip((first + j for j in carries), outs, strict=False))
        for number, j in enumerate(pending):
            if loop.length is None:  # without an iteration it is pending still
                results[first + j] = results[first + j] + outs[len(carries) + number]
        results |= dict(zip(sums, outs[len(carries) + len(pending) :], strict=False))
        results |= dict(zip(slices, outs[len(draft.init) :], strict=False))
        return {i: results[i] for i in computed}


def _read(outputs: Iterable[Output]) -> set[Output]:
    """Return everything in a graph that outputs depend on, and they themselves."""
    return {one for operation in needed(outputs) for one in operation.outputs}


def _sum(terms: Sequence[Any]) -> Any:
    total = terms[0]
    for one in terms[1:]:
        total = total + one
    return total
