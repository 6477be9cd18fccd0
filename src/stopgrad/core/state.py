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

_level_numbers = itertools.count(1).__next__
next_index = itertools.count(1).__next__
"""Numbers what is recorded, in order of creation, over all threads."""
IN_BODY = "recording in the body of a loop or branch"
"""What `state.recording` is while the body of a loop or branch is traced for a derivative that is going on outside."""
NO_SWITCHES: Mapping[str, bool] = MappingProxyType({})


class Level:
    """One differentiation in progress, a `grad`, `vjp`, `jvp` or tape: from its first recorded operation to its sweeps.

    `switches` maps the name of a gate to whether it stops for this level (`True`) or lets pass (`False`); a gate that
    is not named there does what it does by default.
    """

    __slots__ = ("number", "switches")

    def __init__(self, switches: Mapping[str, bool] = NO_SWITCHES) -> None:
        self.number = _level_numbers()
        self.switches = switches


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
        # What `no_gradient` and `frozen` blocks that are open restore when they close, innermost last.
        self.entered: list[Any] = []
        # `check` holds gated values fixed through this (frozen replay): called at every gate with the gate's kind, the
        # value now, and the gate's surrogate, surrogate(value_now, value_recorded) -> value; returns the value to use.
        self.gate_observer: Callable[[str, Any, Callable[[Any, Any], Any]], Any] | None = None

    @contextmanager
    def differentiate(self, level: Level) -> Iterator[None]:
        """Record for `level` until the block ends; also inside a `no_gradient` block, whose outside stays cut off."""
        recording, levels, block = self.recording, self.levels, self.block
        in_body = self.graph is not None and self.graph.is_body
        self.recording, self.levels, self.block = IN_BODY if in_body else True, (*levels, level), None
        try:
            yield
        finally:
            self.recording, self.levels, self.block = recording, levels, block

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
