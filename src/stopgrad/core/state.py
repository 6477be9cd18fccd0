"""What the current thread is doing: recording or not, at which level, inside which block, sweeping for whom.

One instance per thread, `state`. Whoever changes a field restores it in a `finally`. `bind` reads `recording` on every
operation, so it is a plain attribute; the rest is read only by gates, transforms and blocks.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from stopgrad.core.errors import ArgumentError, TapeError

_level_numbers = itertools.count(1).__next__
next_index = itertools.count(1).__next__
"""Numbers what is recorded, in order of creation, over all threads."""
IN_BODY = "recording in the body of a loop or branch"
"""What `state.recording` is while the body of a loop or branch is traced for a derivative that is going on outside."""
NO_SWITCHES: Mapping[str, bool] = MappingProxyType({})


class Level:
    """One differentiation in progress, a `grad`, `vjp`, `jvp` or tape: from its first recorded operation to its sweeps.

    `switches` maps the name of a gate to whether it stops for this level (`True`) or lets pass (`False`); a gate that
    is not named there does what it does by default. `met` holds the names of the gates that were passed while it
    recorded, so that a misspelt name can be told.
    """

    __slots__ = ("met", "number", "switches")

    def __init__(self, switches: Mapping[str, bool] = NO_SWITCHES) -> None:
        self.number = _level_numbers()
        self.switches = switches
        self.met: set[str] = set()

    def check_switches(self) -> None:
        """Raise if a gate was to be switched that was not passed."""
        for name in self.switches:
            if name not in self.met:
                passed = ", ".join(map(repr, sorted(self.met))) or "none with a name"
                raise ArgumentError(f"stop: no gate named {name!r} was passed; those that were passed: {passed}")

    def begin(self, state: State) -> dict[str, Any]:
        """Return the fields of the state while this level is recording."""
        in_body = state.graph is not None and state.graph.is_body
        return {"recording": IN_BODY if in_body else True, "levels": (*state.levels, self), "block": None}


Change = Callable[["State"], dict[str, Any]]


class State(threading.local):
    """The per-thread record of what is going on. See the module's docstring."""

    def __init__(self) -> None:
        # False, True, or `IN_BODY`, which is true as well, but takes operations on recorded tensors off the quick way.
        self.recording: bool | str = False
        self.levels: tuple[Level, ...] = ()
        self.sweeping_for: Level | None = None
        # About the sweep that runs, for rules that deal with all inputs of an operation together (loops, branches):
        # the indices of nodes that lie on a path, in a forward sweep the tangents found so far, and the indices of
        # nodes whose derivative holds zeros that stand for "absent", to which a rule may add.
        self.live: Set[int] = frozenset()
        self.tangents: Mapping[int, Any] = {}
        self.masked: set[int] = set()
        # The graph operations are added to while a program is traced; `None` when operations run.
        self.graph: Any = None
        # The mark of the innermost `no_gradient` block; every result computed inside carries it.
        self.block: Any = None
        # Variables inside a `frozen` block, by id, with the mark of that block.
        self.frozen: Mapping[int, Any] = {}
        # The blocks this thread is in, innermost last: who entered, how it changes the state, what to restore.
        self.entered: list[tuple[object, Change, dict[str, Any]]] = []
        # `check` holds gated values fixed through this (frozen replay): called at every gate with the gate's kind, the
        # value now, and the gate's surrogate, surrogate(value_now, value_recorded) -> value; returns the value to use.
        self.gate_observer: Callable[[str, Any, Callable[[Any, Any], Any]], Any] | None = None

    def enter(self, owner: object, change: Change) -> None:
        """Begin a block of code in which the state is what `change`, called with the state, returns: fields by name."""
        fields = change(self)
        self.entered.append((owner, change, {name: getattr(self, name) for name in fields}))
        for name, value in fields.items():
            setattr(self, name, value)

    def leave(self, owner: object) -> None:
        """End the innermost block of an owner.

        Blocks need not end in the order in which they began: a generator or a coroutine that was suspended in one may
        be resumed when others are open. Those begun since then stay open, as if this one had never been there.
        """
        for place in range(len(self.entered) - 1, -1, -1):
            if self.entered[place][0] is owner:
                break
        else:
            raise TapeError("a block (tape, no_gradient or frozen) was left in another thread than it was entered in")
        later = self.entered[place + 1 :]
        for _, _, before in reversed(self.entered[place:]):
            for name, value in before.items():
                setattr(self, name, value)
        del self.entered[place:]
        for other, change, _ in later:
            self.enter(other, change)

    @contextmanager
    def differentiate(self, level: Level) -> Iterator[None]:
        """Record for `level` until the block ends; also inside a `no_gradient` block, whose outside stays cut off."""
        self.enter(level, level.begin)
        try:
            yield
        finally:
            self.leave(level)
        level.check_switches()

    def meet_gate(self, name: str | None) -> None:
        """Let the levels that switch gates by name know that this one was passed."""
        if name is not None:
            for level in self.levels:
                if level.switches:
                    level.met.add(name)

    @contextmanager
    def sweep(
        self, level: Level | None, live: Set[int], masked: set[int], tangents: Mapping[int, Any]
    ) -> Iterator[None]:
        """Run a sweep on behalf of `level`: conditional gates ask for whom they are to stop."""
        before = self.sweeping_for, self.live, self.masked, self.tangents
        self.sweeping_for, self.live, self.masked, self.tangents = level, live, masked, tangents
        try:
            yield
        finally:
            self.sweeping_for, self.live, self.masked, self.tangents = before


state = State()
