"""Frozen replay: run a function again near by with everything a gate stops held at its first value.

Differences cannot see a stop. But every derivative of a function with stops equals that of the same function with the
stopped values put in as constants, and there differences work. So the first run records the value at every gate, and
every later run gets, at each gate, what the gate's *surrogate* makes of the value now and the value recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stopgrad.core.errors import GradientCheckError
from stopgrad.core.state import state

Surrogate = Callable[[Any, Any], Any]


class Replay:
    """The values at the gates of one function, in the order in which it comes to them."""

    def __init__(self) -> None:
        self._kinds: list[str] = []
        self._values: list[Any] = []
        self._position = 0

    @property
    def kinds(self) -> frozenset[str]:
        """Which kinds of gates there are."""
        return frozenset(self._kinds)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the value at every gate that the block comes to."""
        self._kinds.clear()
        self._values.clear()
        with _observed_by(self._record):
            yield

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Hold the gates that the block comes to at what was recorded; they must be the same ones in the same order."""
        self._position = 0
        with _observed_by(self._replay):
            yield
        if self._position != len(self._kinds):
            raise GradientCheckError(
                f"check_gradients: the function met {len(self._kinds)} gates at the given point but {self._position} "
                f"near by ({self._kinds[self._position]} did not come); which gates it meets must not depend on the "
                "values of its arguments, nor change from one call to the next"
            )

    def _record(self, kind: str, value: Any, surrogate: Surrogate) -> Any:
        self._kinds.append(kind)
        self._values.append(value)
        return surrogate(value, value)

    def _replay(self, kind: str, value: Any, surrogate: Surrogate) -> Any:
        number = self._position
        recorded = self._kinds[number] if number < len(self._kinds) else "no more"
        if kind != recorded:
            raise GradientCheckError(
                f"check_gradients: gate number {number} that the function meets is {kind} near by, where at the given "
                f"point it was {recorded}; which gates it meets must not depend on the values of its arguments, nor "
                "change from one call to the next"
            )
        before = self._values[number]
        if tuple(value.shape) != tuple(before.shape):
            raise GradientCheckError(
                f"check_gradients: the value at gate number {number}, {kind}, has shape {tuple(value.shape)} near by, "
                f"where at the given point it had {tuple(before.shape)}; shapes must not depend on values"
            )
        self._position += 1
        return surrogate(value, before)


@contextmanager
def _observed_by(observer: Callable[[str, Any, Surrogate], Any]) -> Iterator[None]:
    before = state.gate_observer
    state.gate_observer = observer
    try:
        yield
    finally:
        state.gate_observer = before


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run the block as if nothing around it were being differentiated, stopped or replayed."""
    before = state.recording, state.levels, state.block, state.gate_observer
    state.recording, state.levels, state.block, state.gate_observer = False, (), None, None
    try:
        yield
    finally:
        state.recording, state.levels, state.block, state.gate_observer = before
