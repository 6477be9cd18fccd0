"""Central differences that find their own step: Richardson extrapolation over a sequence of halved steps.

For each entry of the result the estimate with the smallest estimated error is taken (Ridders 1982, "Accurate
computation of F'(x) and F'(x)F''(x)"). The sequence is lengthened to both sides until every entry has settled: to
smaller steps for functions that vary fast or near a kink or the edge of their domain, to larger ones against noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stopgrad.check.layout import Vector
from stopgrad.core.errors import GradientCheckError, StopgradError

Curve = Callable[[float], Vector]
"""The function along one direction: t -> f(x + t·direction), a vector."""

_LEVELS = 4
# A step that leads out of the function's domain is passed over, as long as others do not.
_STEP_ERRORS = (StopgradError, ValueError, ArithmeticError)


class Estimate(NamedTuple):
    """Derivative of a curve at 0, entry by entry: an error of infinity where no difference was finite.

    `rounding` is what rounding the result alone contributes to the error, `step` the smallest step that was used.
    Values below `size` do not count: a millionth of the largest difference at this step or larger ones.
    """

    value: Vector
    error: Vector
    rounding: Vector
    step: Vector
    size: Vector
    settled: bool


class Slopes(NamedTuple):
    """The slopes of a curve at a kink, to the left and to the right of it."""

    left: float
    right: float


def derivative(curve: Curve, epsilon: float, tolerance: float, step: float | None = None) -> Estimate:
    """Return the derivative of a curve at 0 by central differences.

    Args:
        curve: see `Curve`.
        epsilon: relative spacing of the numbers the curve computes in.
        tolerance: relative error below which an entry counts as settled.
        step: the largest step; `None` to search for good ones.
    """
    table = _Table(curve, epsilon)
    if step is not None:
        table.extend(step, 4)
        table.raise_if_empty()
        return table.best(tolerance)
    digits = -math.log2(epsilon)
    first, last = round(digits / 7.5), round(digits / 2) + 1
    low, high = first, first + 4
    # 13/16 keeps steps from being periods of the function, and is short enough to add up without rounding.
    table.extend(0.8125 * 2.0**-low, high - low)
    estimate = table.best(tolerance)
    while not estimate.settled and (low > max(first - 4, 1) or high < last):
        if low > max(first - 4, 1):
            low -= 1
            table.extend_upwards()
        more = min(4, last - high)
        table.extend(0.8125 * 2.0**-high, more)
        high += more
        estimate = table.best(tolerance)
    table.raise_if_empty()
    return estimate


class _Table:
    """Central differences for steps that halve from row to row, and what is extrapolated from them."""

    def __init__(self, curve: Curve, epsilon: float) -> None:
        self._curve = curve
        self._epsilon = epsilon
        self._steps: list[float] = []
        self._differences: list[Vector] = []
        self._floors: list[Vector] = []
        self._failure: Exception | None = None

    def extend(self, step: float, count: int) -> None:
        """Add rows for the given step and its halves."""
        for i in range(count):
            self._add(step / 2**i, at_front=False)

    def extend_upwards(self) -> None:
        """Add a row for twice the largest step."""
        self._add(self._steps[0] * 2, at_front=True)

    def raise_if_empty(self) -> None:
        """Raise what the function raised, if it did at every step."""
        if self._failure is not None and not any(difference.size for difference in self._differences):
            raise self._failure

    def _add(self, step: float, *, at_front: bool) -> None:
        try:
            after, before = self._curve(step), self._curve(-step)
            with np.errstate(all="ignore"):
                difference = (after - before) / (2 * step)
                floor = 2 * self._epsilon * ((np.abs(after) + np.abs(before)) / 2 + np.abs(difference)) / step
        except GradientCheckError:
            raise
        except _STEP_ERRORS as error:
            self._failure = error
            difference = floor = np.zeros(0)
        where = 0 if at_front else len(self._steps)
        self._steps.insert(where, step)
        self._differences.insert(where, difference)
        self._floors.insert(where, floor)

    def best(self, tolerance: float) -> Estimate:
        """Return for each entry the extrapolated value whose estimated error is smallest.

        Of two that contradict each other, the one from smaller steps: larger ones may agree among themselves on a
        function they do not resolve.
        """
        size = max((one.size for one in self._differences), default=0)
        missing = np.full(size, np.nan)
        rows = [one if one.size == size else missing for one in self._differences]
        floors = [one if one.size == size else missing for one in self._floors]
        value, error = np.full(size, np.nan), np.full(size, np.inf)
        rounding, step, least = np.zeros(size), np.full(size, self._steps[-1]), np.zeros(size)
        with np.errstate(all="ignore"):
            largest = np.maximum.accumulate([np.nan_to_num(np.abs(row), posinf=0.0) for row in rows])
            for last in reversed(range(1, len(rows))):
                for here, spread in _extrapolated(rows[max(last - _LEVELS, 0) : last + 1]):
                    floor = floors[last] + self._epsilon * largest[last]
                    here_error = spread + floor
                    agrees = np.isinf(error) | (np.abs(here - value) <= 4 * (error + here_error))
                    better = (here_error < error) & agrees  # False where it is NaN
                    value = np.where(better, here, value)
                    error = np.where(better, here_error, error)
                    rounding = np.where(better, floor, rounding)
                    step = np.where(better, self._steps[last], step)
                    least = np.where(better, 1e-6 * largest[last], least)
            settled = bool(np.all((error <= tolerance * (np.abs(value) + least)) | (error <= 2 * rounding)))
        return Estimate(value, error, rounding, step, least, settled)


def _extrapolated(rows: list[Vector]) -> Iterator[tuple[Vector, Vector]]:
    """Yield the value at step 0 that each number of the last rows gives, with its distance from what it is made of."""
    level = rows
    for order in range(1, len(rows)):
        weight = 4.0**order
        finer = [(weight * fine - coarse) / (weight - 1) for coarse, fine in pairwise(level)]
        yield finer[-1], np.maximum(np.abs(finer[-1] - level[-1]), np.abs(finer[-1] - level[-2]))
        level = finer


def noise(curve: Curve, epsilon: float, *, coarse: bool = False) -> Vector:
    """Return the rounding noise of a curve near 0: the standard deviation of each entry's error.

    From differences of high order over very close points, where what is smooth vanishes (Moré and Wild 2011,
    "Estimating computational noise"); on the side that has less, as a jump or kink at 0 is no noise.

    Args:
        curve: see `Curve`.
        epsilon: relative spacing of the numbers the curve computes in.
        coarse: look over points less close, for noise so coarse that the closest have equal values.
    """
    digits = -math.log2(epsilon)
    spacing, first = (2.0 ** -round(digits / 4), 4) if coarse else (2.0 ** -round(0.8 * digits), 2)
    sides = []
    for side in (-spacing, spacing):
        try:
            table = np.array([curve(side * i) for i in range(1, 9)])
        except _STEP_ERRORS:
            continue
        level = np.zeros(table.shape[1])
        with np.errstate(all="ignore"):
            for order in range(1, 7):
                table = np.diff(table, axis=0)
                if order >= first:
                    share = math.factorial(order) ** 2 / math.factorial(2 * order)
                    level = np.maximum(level, np.sqrt(share * np.mean(table**2, axis=0)))
        sides.append(level)
    if not sides:
        return np.zeros_like(curve(0.0))
    return np.nan_to_num(np.fmin(sides[0], sides[-1]))


def kink(curve: Curve, entry: int | Vector, epsilon: float) -> Slopes | None:
    """Return the slopes on either side if the curve has a kink at 0 or very near, else `None`.

    It has one if the differences to the left and to the right disagree far more than either changes with the step, and
    than rounding explains.

    Args:
        curve: see `Curve`.
        entry: which entry of the result to look at, or weights to add up its entries with.
        epsilon: relative spacing of the numbers the curve computes in.
    """

    def look(t: float) -> float:
        result = curve(t)
        return float(result[entry] if isinstance(entry, int) else entry @ result)

    last = round(-math.log2(epsilon) / 2)
    measured = np.maximum(noise(curve, epsilon), noise(curve, epsilon, coarse=True))
    rounding = 16 * float(measured[entry] if isinstance(entry, int) else np.abs(entry) @ measured)
    try:
        middle = look(0.0)
        before: Slopes | None = None
        for exponent in range(3, last, 2):
            step = 2.0**-exponent
            here = Slopes((middle - look(-step)) / step, (look(step) - middle) / step)
            jump = abs(here.right - here.left)
            if before is not None and jump > 1e-4 * max(abs(here.left), abs(here.right)):
                change = abs(here.left - before.left) + abs(here.right - before.right)
                if jump > 10 * change + (64 * epsilon * abs(middle) + rounding) / step:
                    return here
            before = here
    except _STEP_ERRORS:
        return None
    return None
