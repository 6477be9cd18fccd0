"""Which carries of a loop have a derivative in which iteration: the fixpoint that decides what its derivative carries.

A sweep over the body tells, for a set of carries that have a derivative when an iteration begins, which have one when
it ends; a carry that is stopped, or that nothing differentiable leads to, is absent. From the set at the start follows
a sequence of sets that ends in a cycle, usually a single set, and each distinct set is a *phase*.

Most loops need one body for all phases. If the sets only grow (the loss is on every step's output, say, and the carry
gets its first cotangent from the step behind it), the largest serves, and what is not there yet starts as zeros that
the sweep knows to be masked. Where gates make sets shrink, every phase gets a body of its own, so that what a gate cut
off is never multiplied by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from stopgrad.control.joint import Found

State = dict[int, bool]
"""The carries that have a derivative, by number, and whether it may be a zero that stands for "absent"."""

MOST_PHASES = 6
"""With more distinct sets than this, one body serves them all."""


class Phases(NamedTuple):
    """What the iterations of a loop's derivative do.

    Attributes:
        states: the carries that have a derivative at the start of each phase.
        found: what the sweep over the body found in each phase.
        follows: the phase after each.
        history: what happens in truth, set by set and what was found from it; the last is followed by `again`.
        again: the number in `history` that its last is followed by; `None` if the sequence was not followed to its end.
    """

    states: list[State]
    found: list[Found]
    follows: list[int]
    history: list[tuple[State, Found]]
    again: int | None

    @property
    def carries(self) -> list[int]:
        """All carries that have a derivative at some time."""
        return sorted({j for state in self.states for j in state})

    @property
    def is_exact(self) -> bool:
        """Whether no phase starts with zeros that stand for "absent"."""
        return not any(masked for state in self.states for masked in state.values())

    def state_after(self, count: int | None) -> set[int]:
        """Return the carries that have a derivative after so many iterations; `None` stands for any number."""
        if count is None or self.again is None:
            return set(self.carries)
        return set(self.history[self._step(count)][0])

    def found_in(self, count: int | None) -> list[Found]:
        """Return what is found in the first so many iterations."""
        if count is None or self.again is None:
            return self.found
        return [found for _, found in self.history[:count]]

    def ever(self, count: int | None) -> set[int]:
        """Return the carries that have a derivative at the start of some of the first so many iterations."""
        if count is None or self.again is None:
            return set(self.carries)
        return {j for state, _ in self.history[:count] for j in state}

    def _step(self, count: int) -> int:
        if count < len(self.history):
            return count
        assert self.again is not None
        return self.again + (count - self.again) % (len(self.history) - self.again)


def find_phases(start: State, step: Callable[[State], tuple[Found, State]], gated: bool) -> Phases:
    """Follow the sets of carries with a derivative until they repeat.

    Args:
        start: those that have one at first.
        step: sweeps over the body; returns what was found and which carries have a derivative then.
        gated: whether there are gates in the body, that may cut off what has been there.
    """
    history: list[tuple[State, Found]] = []
    states, again = [start], None
    while again is None and len(history) < MOST_PHASES:
        found, following = step(states[-1])
        history.append((states[-1], found))
        again = next((number for number, (earlier, _) in enumerate(history) if earlier == following), None)
        states.append(following)
    if again is not None and (len(history) == 1 or (gated and not _only_grow(states))):
        follows = [*range(1, len(history)), again]
        return Phases(states[:-1], [found for _, found in history], follows, history, again)
    together = _joined(states)
    for number, (state, found) in enumerate(history):
        if state == together and _joined([state, states[number + 1]]) == together:
            return Phases([together], [found], [0], history, again)
    while True:
        found, following = step(together)
        larger = _joined([together, following])
        if larger == together:
            return Phases([together], [found], [0], history, again)
        together = larger


def _only_grow(states: Sequence[State]) -> bool:
    return all(earlier.keys() <= later.keys() for earlier, later in pairwise(states))


def _joined(states: Sequence[State]) -> State:
    """Return the carries of any state; what is not in all of them may be absent."""
    return {j: any(state.get(j, True) for state in states) for j in sorted({j for state in states for j in state})}
