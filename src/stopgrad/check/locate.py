"""Going through derivatives entry by entry, once a random direction has shown that one of them is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stopgrad.check.differences import kink
from stopgrad.check.layout import Vector
from stopgrad.check.probe import Probe, Tolerance
from stopgrad.check.subject import Subject

_FEW_PLACES = 256
_FEW_OUTPUTS = 64


class Suspect(NamedTuple):
    """What failed: a mode's derivative along a direction, of the outputs added up with weights."""

    subject: Subject
    mode: str
    direction: Vector
    weights: Vector
    tolerance: Tolerance
    rounding: float


class _Entry(NamedTuple):
    place: int
    output: int | None
    ours: float
    theirs: float


def against_differences(suspect: Suspect) -> str:
    """Return a line that says at which entry the mode and differences differ most."""
    subject, tolerance, weights = suspect.subject, suspect.tolerance, suspect.weights

    def deviation(direction: Vector) -> float:
        probe = Probe(subject, direction, tolerance)
        return abs(_along(suspect, direction) - probe.sum(weights))

    columns = _Columns(suspect)
    worst: _Entry | None = None
    for place in _narrowed(suspect.direction, deviation):
        unit = _unit(suspect.direction, place)
        probe = Probe(subject, unit, tolerance, suspect.rounding)
        size = unit[place]
        ours = columns.column(unit)
        if ours is None:
            derivative = columns.gradient[place] * size
            if probe.wrong_sum(derivative, weights, abs(derivative)):
                worst = _worse(worst, _Entry(place, None, derivative / size, probe.sum(weights) / size))
            continue
        wrong = probe.wrong(ours)
        if wrong.any():
            far = np.where(wrong, np.abs(np.nan_to_num(ours - probe.value, nan=np.inf)), -1.0)
            output = int(np.argmax(far))
            worst = _worse(worst, _Entry(place, output, ours[output] / size, probe.value[output] / size))
    if worst is None:
        probe = Probe(subject, suspect.direction, tolerance)
        numbers = _numbers(suspect.mode, _along(suspect, suspect.direction), "differences", probe.sum(weights))
        return f"along a random direction: {numbers}{_kink_note(subject, suspect.direction, weights, 1.0)}"
    unit = _unit(suspect.direction, worst.place)
    note = _kink_note(subject, unit, weights if worst.output is None else worst.output, unit[worst.place])
    return f"{_name(subject, worst)}: {_numbers(suspect.mode, worst.ours, 'differences', worst.theirs)}{note}"


def against_other_mode(suspect: Suspect) -> str:
    """Return a line that says at which entry reverse mode differs most from forward mode."""
    subject, weights = suspect.subject, suspect.weights
    gradient = subject.reverse(weights)

    def deviation(direction: Vector) -> float:
        return abs(float(weights @ subject.forward(direction)) - float(gradient @ direction))

    columns = _Columns(suspect)
    worst: _Entry | None = None
    for place in _narrowed(suspect.direction, deviation):
        unit = _unit(suspect.direction, place)
        size = unit[place]
        theirs, ours = subject.forward(unit), columns.column(unit)
        if ours is None:
            entry = _Entry(place, None, gradient[place], float(weights @ theirs) / size)
        else:
            output = int(np.argmax(np.where(subject.comparable, np.abs(ours - theirs), -1.0)))
            entry = _Entry(place, output, ours[output] / size, theirs[output] / size)
        worst = _worse(worst, entry)
    assert worst is not None
    return f"{_name(subject, worst)}: {_numbers('reverse', worst.ours, 'forward', worst.theirs)}"


class _Columns:
    """Derivatives of all outputs by one input, in the suspected mode."""

    def __init__(self, suspect: Suspect) -> None:
        self._suspect = suspect
        subject = suspect.subject
        count = int(np.count_nonzero(subject.comparable))
        self.gradient = np.zeros(0)
        self._rows: Vector | None = None
        if suspect.mode == "reverse":
            if count <= _FEW_OUTPUTS:
                self._rows = np.zeros((subject.outputs.size, subject.inputs.size))
                for output in np.flatnonzero(subject.comparable):
                    self._rows[output] = subject.reverse(_unit(np.ones(subject.outputs.size), int(output)))
            else:
                self.gradient = subject.reverse(suspect.weights)

    def column(self, unit: Vector) -> Vector | None:
        """Return the derivatives along one entry; `None` where only those of the weighted sum are known."""
        if self._suspect.mode == "forward":
            return self._suspect.subject.forward(unit)
        if self._rows is None:
            return None
        place = int(np.flatnonzero(unit)[0])
        column: Vector = self._rows[:, place] * unit[place]
        return column


def _along(suspect: Suspect, direction: Vector) -> float:
    """Return the mode's derivative of the weighted sum along a direction."""
    if suspect.mode == "forward":
        return float(suspect.weights @ suspect.subject.forward(direction))
    gradient = suspect.subject.reverse(suspect.weights)
    moving = direction != 0
    return float(gradient[moving] @ direction[moving])


def _narrowed(direction: Vector, deviation: Callable[[Vector], float]) -> list[int]:
    """Return the places of a direction, or those of a part of it that deviates, if they are many."""
    places = np.flatnonzero(direction)
    while len(places) > _FEW_PLACES:
        halves = np.array_split(places, 2)
        parts = [np.where(np.isin(np.arange(len(direction)), half), direction, 0.0) for half in halves]
        first, second = (np.nan_to_num(deviation(part), nan=np.inf) for part in parts)
        places = halves[0] if first >= second else halves[1]
    return [int(place) for place in places]


def _unit(direction: Vector, place: int) -> Vector:
    """Return a direction along one entry, as long as the given direction is there."""
    unit = np.zeros_like(direction)
    unit[place] = abs(direction[place])
    return unit


def _worse(first: _Entry | None, second: _Entry) -> _Entry:
    if first is None or not abs(first.ours - first.theirs) >= abs(second.ours - second.theirs):
        return second
    return first


def _name(subject: Subject, entry: _Entry) -> str:
    name = subject.inputs.entry(entry.place)
    if subject.outputs.size == 1:
        return name if not subject.path else f"{name} (of {subject.outputs.entry(0)})"
    if entry.output is None:
        return f"{name} (of the results' sum with random weights)"
    return f"{name} (of {subject.outputs.entry(entry.output)})"


def _numbers(name: str, ours: float, other_name: str, theirs: float) -> str:
    size = max(abs(ours), abs(theirs))
    relative = abs(ours - theirs) / size if size else 0.0
    return f"{name} gives {ours:.10g}, {other_name} {theirs:.10g} (relative {_short(relative)})"


def _short(number: float) -> str:
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _kink_note(subject: Subject, direction: Vector, entry: int | Vector, size: float) -> str:
    slopes = kink(subject.along(direction), entry, subject.epsilon)
    if slopes is None:
        return ""
    left, right = (0.0 if abs(slope) < 1e-6 * max(map(abs, slopes)) else slope / size for slope in slopes)
    return f"; a kink (tie) near here: slope {left:.4g} to the left, {right:.4g} to the right"
