"""`Probe`: what differences give along one direction, and how far a derivative may be from it without being wrong."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stopgrad.check.differences import Estimate, derivative, noise
from stopgrad.check.layout import Vector
from stopgrad.check.subject import Subject
from stopgrad.core.errors import GradientCheckError


class Tolerance(NamedTuple):
    """How near is near enough, and the largest step of differences (`None`: search)."""

    absolute: float
    relative: float
    step: float | None

    @classmethod
    def of(cls, epsilon: float, absolute: float | None, relative: float | None, step: float | None) -> Tolerance:
        """Return the tolerance for numbers of this relative spacing where the user gives none."""
        return cls(
            0.0 if absolute is None else absolute, 8 * math.sqrt(epsilon) if relative is None else relative, step
        )


class Probe:
    """Differences of a subject along a direction.

    `value` and `error` have an entry for each of the subject's outputs. `rounding` is the size of the roundings that
    derivatives are taken to have; by default it is read off the values.
    """

    def __init__(
        self, subject: Subject, direction: Vector, tolerance: Tolerance, rounding: float | None = None
    ) -> None:
        self.subject = subject
        self.direction = direction
        self.tolerance = tolerance
        self.curve = subject.along(direction)
        self.estimate = self._estimate(1.0)
        self.value, self.error = self.estimate.value, self.estimate.error
        largest = float(np.max(np.abs(self.value), initial=0.0, where=np.isfinite(self.value)))
        self.rounding = 64 * subject.epsilon * largest if rounding is None else rounding

    def _estimate(self, length: float) -> Estimate:
        curve = self.curve if length == 1 else self.subject.along(self.direction * length)
        return derivative(curve, self.subject.epsilon, self.tolerance.relative / 20, self.tolerance.step)

    @cached_property
    def noise(self) -> Vector:
        """What rounding inside the function does to the differences: measured, and by taking them anew.

        It costs more than the differences themselves, and is asked for only where they disagree with a derivative.
        """
        measured = (noise(self.curve, self.subject.epsilon) + self.subject.rounding) / self.estimate.step
        again = [self._estimate(length).value / length for length in (23 / 32, 27 / 32, 37 / 32)]
        total: Vector = measured + np.max(np.abs(np.nan_to_num(again) - np.nan_to_num(self.value)), axis=0)
        return total

    @cached_property
    def coarse_noise(self) -> Vector:
        """What coarse rounding inside the function does to the differences, such as adding and taking away 10¹²."""
        coarse: Vector = noise(self.curve, self.subject.epsilon, coarse=True) / self.estimate.step
        return coarse

    def wrong(self, derivatives: Vector) -> Any:
        """Return which of the subject's derivatives along the direction, one for each output, differ."""
        allowed = self._allowed(np.abs(self.value), self.error) + self.rounding
        deviation = np.abs(derivatives - self.value)
        wrong = self.subject.comparable & ~(deviation <= allowed)  # a NaN is wrong
        return wrong & ~(deviation <= allowed + 16 * self.noise) if wrong.any() else wrong

    def wrong_sum(self, derivative_of_sum: float, weights: Vector, terms: float) -> bool:
        """Whether a derivative of the weighted sum of outputs differs.

        Args:
            derivative_of_sum: along the direction.
            weights: with which the outputs are added up.
            terms: sum of the sizes of what the derivative is a sum of, for its rounding.
        """
        size = np.abs(weights)
        total = self.sum(weights)
        rounding = 0.01 * math.sqrt(self.subject.epsilon) * terms
        allowed = self._allowed(abs(total), size @ self.error) + rounding
        deviation = abs(derivative_of_sum - total)
        return not deviation <= allowed and not deviation <= allowed + 16 * (size @ self.noise)

    def sum(self, weights: Vector) -> float:
        """Return what differences give for the weighted sum of outputs."""
        return float(weights @ self.value)

    def _allowed(self, size: Any, error: Any) -> Any:
        return self.tolerance.absolute + self.tolerance.relative * size + 4 * error

    @cached_property
    def vague(self) -> Any:
        """Which outputs differences say little about."""
        most = np.max(np.abs(self.value), initial=0.0, where=np.isfinite(self.value))
        size = np.abs(self.value) + 1e-3 * most + self.estimate.size
        loose = max(1e-4, 10 * self.tolerance.relative)
        return self.subject.comparable & ~(4 * self.error <= self.tolerance.absolute + loose * size)

    @cached_property
    def unsettled(self) -> Any:
        """Which outputs differences say little about, for another reason than rounding."""
        if not self.vague.any():
            return self.vague
        epsilon = self.subject.epsilon
        measured = (noise(self.curve, epsilon) + self.subject.rounding) / self.estimate.step
        # Slopes below a rounding of the arguments are what remains of a result that cancels to zero.
        cancelled = epsilon * float(np.max(np.abs(self.direction), initial=0.0))
        return self.vague & ~(self.error <= 16 * (measured + self.estimate.rounding + cancelled))

    def raise_unsettled(self) -> None:
        """Raise, for an output that differences say nothing about."""
        place = int(np.flatnonzero(self.unsettled)[0])
        what = (
            "are not finite near by"
            if not math.isfinite(self.error[place])
            else f"do not settle: {self.value[place]:.4g} ± {self.error[place]:.1g} along a random direction"
        )
        raise GradientCheckError(
            f"check_gradients: differences of {self.subject.outputs.entry(place)} {what}, so there is nothing to "
            "compare derivatives with; the function is not smooth here (a kink, a jump or the edge of its domain is "
            "very near) or varies faster than the steps tried: choose another point, or give step="
        )
