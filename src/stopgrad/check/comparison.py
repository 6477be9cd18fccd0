"""`Comparison`: the checks of one subject's first derivatives along random directions, in each mode and between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from stopgrad.check.differences import kink, noise
from stopgrad.check.layout import Vector
from stopgrad.check.locate import Suspect, against_differences, against_other_mode
from stopgrad.check.probe import Probe, Tolerance
from stopgrad.check.subject import Subject, rounding_shown

Leaves = Sequence[Any] | None
Weighted = tuple[Vector, Vector]
"""Weights of the outputs, and the gradient by reverse mode of the outputs added up with them."""


class Comparison:
    """Compares a subject's derivatives along two directions, of its outputs added up with two sets of weights.

    The second direction and the second weights are balanced so that each entry matters about as much as any other.

    Args:
        subject: whose derivatives.
        modes: "forward", "reverse" or both.
        directions: two.
        weights: the first set.
        tolerance: how near is near enough.
    """

    def __init__(
        self, subject: Subject, modes: tuple[str, ...], directions: list[Vector], weights: Vector, tolerance: Tolerance
    ) -> None:
        self._subject, self._modes, self._tolerance = subject, modes, tolerance
        self._directions, self._weights = directions, weights

    def lines(self) -> list[str]:
        """Return a line for each mode that disagrees with the differences, or with the other mode."""
        subject, (plain, other), weights = self._subject, self._directions, self._weights
        gradients: list[Weighted] = []
        if "reverse" in self._modes:
            gradients.append((weights, subject.reverse(weights)))
            other = other * _balance(other * gradients[0][1], subject.epsilon)
        probes = self._settled([Probe(subject, direction, self._tolerance) for direction in (plain, other)])
        if "reverse" in self._modes:
            balanced = weights * _balance(weights * probes[0].value, subject.epsilon)
            gradients.append((balanced, subject.reverse(balanced)))
        tangents = [subject.forward(probe.direction) for probe in probes] if "forward" in self._modes else []
        pairs = list(zip(probes, tangents, strict=False))
        lines = [self._forward_line(pairs), self._reverse_line(probes, gradients)]
        if lines == [None, None]:
            lines = [self._modes_line(pairs, gradients)]
        return [line for line in lines if line is not None]

    def _settled(self, probes: list[Probe]) -> list[Probe]:
        """Return the probes that can be relied on: one may be too coarse for the function, both must not."""
        sharp = [probe for probe in probes if not probe.vague.any()]
        settled = sharp or [probe for probe in probes if not probe.unsettled.any()]
        if not settled:
            probes[-1].raise_unsettled()
        return settled

    def _forward_line(self, pairs: list[tuple[Probe, Vector]]) -> str | None:
        for probe, tangent in pairs:
            wrong = probe.wrong(tangent)
            if not wrong.any():
                continue
            deviation = np.nan_to_num(np.abs(tangent - probe.value), nan=np.inf)
            scatter = self._scatter(probe, partial(self._tangent, probe))
            rounding = wrong & (deviation <= 16 * (scatter + probe.coarse_noise))
            if rounding.any() and not self._kink(probe, _unit(deviation, rounding)):
                wrong &= ~rounding
            if wrong.any():
                return against_differences(self._suspect("forward", probe, _unit(deviation, wrong)))
        return None

    def _reverse_line(self, probes: list[Probe], gradients: list[Weighted]) -> str | None:
        for weights, gradient in gradients:
            for probe in probes:
                terms = (gradient * probe.direction)[probe.direction != 0]
                total = float(np.sum(terms))
                if not probe.wrong_sum(total, weights, float(np.sum(np.abs(terms)))):
                    continue
                scatter = self._scatter(probe, partial(self._pulled, probe, weights))
                rounding = 16 * (scatter[0] + np.abs(weights) @ probe.coarse_noise)
                if not abs(total - probe.sum(weights)) <= rounding or self._kink(probe, weights):
                    return against_differences(self._suspect("reverse", probe, weights))
        return None

    def _modes_line(self, pairs: list[tuple[Probe, Vector]], gradients: list[Weighted]) -> str | None:
        """Check ⟨u, Jv⟩ = ⟨Jᵀu, v⟩, which holds to rounding and so sees more than differences do."""
        for weights, gradient in gradients:
            for probe, tangent in pairs:
                moving, compared = probe.direction != 0, weights != 0
                pulled = gradient[moving] * probe.direction[moving]
                pushed = weights[compared] * tangent[compared]
                deviation = float(abs(np.sum(pulled) - np.sum(pushed)))
                size = float(np.sum(np.abs(pulled)) + np.sum(np.abs(pushed)))
                allowed = self._tolerance.absolute + 0.1 * self._tolerance.relative * size
                if deviation <= allowed + np.abs(weights) @ probe.estimate.rounding:
                    continue
                scatter = self._scatter(probe, partial(self._pulled, probe, weights))
                scatter += self._scatter(probe, partial(self._pushed, probe, weights))
                if not deviation <= 16 * scatter[0] or self._kink(probe, weights):
                    return against_other_mode(self._suspect("reverse", probe, weights))
        return None

    def _tangent(self, probe: Probe, factor: float, leaves: Leaves) -> Any:
        return self._subject.forward(probe.direction * factor, leaves)

    def _pulled(self, probe: Probe, weights: Vector, factor: float, leaves: Leaves) -> Any:
        moving = probe.direction != 0
        return self._subject.reverse(weights * factor, leaves)[moving] @ probe.direction[moving]

    def _pushed(self, probe: Probe, weights: Vector, factor: float, leaves: Leaves) -> Any:
        compared = weights != 0
        return weights[compared] @ self._subject.forward(probe.direction * factor, leaves)[compared]

    def _scatter(self, probe: Probe, derivative: Callable[[float, Leaves], Any]) -> Any:
        """Return the rounding noise in a derivative of ours: how unevenly it changes with the point and with its seed.

        Beside what is measured for the differences, it shows what rounding explains; at a kink, where the derivative
        jumps, neither does.

        Args:
            probe: along whose direction.
            derivative: by the factor that its seed is multiplied by, and at other leaves than the point's if given.
        """
        subject, moving = self._subject, probe.direction != 0

        def along(t: float) -> Vector:
            point = np.where(moving, subject.point + t * probe.direction, subject.point)
            return np.atleast_1d(derivative(1.0, subject.inputs.arrays(point)))

        shown = rounding_shown(lambda factor: np.atleast_1d(derivative(factor, None)))
        return noise(along, subject.epsilon) + shown

    def _kink(self, probe: Probe, weights: Vector) -> bool:
        return kink(probe.curve, weights, self._subject.epsilon) is not None

    def _suspect(self, mode: str, probe: Probe, weights: Vector) -> Suspect:
        return Suspect(self._subject, mode, probe.direction, weights, self._tolerance, probe.rounding)


def _unit(deviation: Vector, among: np.ndarray) -> Vector:
    """Return weights that take only the output, among some, that deviates most."""
    unit = np.zeros_like(deviation)
    unit[int(np.argmax(np.where(among, deviation, -1.0)))] = 1.0
    return unit


def _balance(parts: Vector, epsilon: float) -> Vector:
    """Return factors (powers of two, at most 1) that bring the parts of a sum to about the same size."""
    size = np.abs(parts)
    usable = np.isfinite(size) & (size > 0)
    if not usable.any():
        return np.ones_like(parts)
    ratio = np.median(size[usable]) / np.where(usable, size, np.inf)
    return np.where(usable, 2.0 ** np.round(np.log2(np.clip(ratio, epsilon**0.25, 1.0))), 1.0)
