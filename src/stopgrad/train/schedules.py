"""Learning rates that change as training goes on: functions from the number of steps done to a rate.

An optimizer's `learning_rate` is a number or any such function; it is asked once a step, with 0 before the first.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence

from stopgrad.core.errors import ArgumentError

Schedule = Callable[[int], float]


def constant(rate: float) -> Schedule:
    """Return a schedule that is always `rate`.

    Example:
        >>> import stopgrad as sg
        >>> sg.train.schedules.constant(0.1)(1000)
        0.1
    """
    return lambda step: rate


def exponential_decay(rate: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> Schedule:
    """Return the schedule rate · decay_rate^(step / decay_steps).

    Args:
        rate: at step 0.
        decay_steps: number of steps in which the rate shrinks by the factor `decay_rate`.
        decay_rate: that factor.
        staircase: shrink only at whole multiples of `decay_steps`.

    Example:
        >>> import stopgrad as sg
        >>> sg.train.schedules.exponential_decay(0.5, 10, 0.5)(20)
        0.125
    """
    _check_positive("exponential_decay", "decay_steps", decay_steps)

    def schedule(step: int) -> float:
        exponent = step / decay_steps
        return float(rate * decay_rate ** (math.floor(exponent) if staircase else exponent))

    return schedule


def inverse_time_decay(rate: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> Schedule:
    """Return the schedule rate / (1 + decay_rate · step / decay_steps).

    Example:
        >>> import stopgrad as sg
        >>> sg.train.schedules.inverse_time_decay(0.5, 10, 0.5)(20)
        0.25
    """
    _check_positive("inverse_time_decay", "decay_steps", decay_steps)

    def schedule(step: int) -> float:
        elapsed = step / decay_steps
        return rate / (1 + decay_rate * (math.floor(elapsed) if staircase else elapsed))

    return schedule


def cosine_decay(rate: float, decay_steps: float, alpha: float = 0.0) -> Schedule:
    """Return a schedule that falls along half a cosine from `rate` to `alpha · rate`, and stays there.

    Loshchilov and Hutter, 2016, arXiv:1608.03983, without restarts.

    Example:
        >>> import stopgrad as sg
        >>> schedule = sg.train.schedules.cosine_decay(1.0, 10)
        >>> schedule(0), round(schedule(5), 12), schedule(10)
        (1.0, 0.5, 0.0)
    """
    _check_positive("cosine_decay", "decay_steps", decay_steps)

    def schedule(step: int) -> float:
        done = min(step, decay_steps) / decay_steps
        return rate * ((1 - alpha) * 0.5 * (1 + math.cos(math.pi * done)) + alpha)

    return schedule


def piecewise_constant(boundaries: Sequence[int], rates: Sequence[float]) -> Schedule:
    """Return a schedule that is rates[i] up to and including step boundaries[i], and the last rate after them all.

    Raises:
        ArgumentError: not one rate more than there are boundaries, or boundaries that do not increase.

    Example:
        >>> import stopgrad as sg
        >>> schedule = sg.train.schedules.piecewise_constant([10, 20], [1.0, 0.5, 0.25])
        >>> schedule(10), schedule(11), schedule(21)
        (1.0, 0.5, 0.25)
    """
    edges, values = list(boundaries), list(rates)
    if len(values) != len(edges) + 1:
        raise ArgumentError(
            f"piecewise_constant: {len(edges)} boundaries need {len(edges) + 1} rates, got {len(values)}"
        )
    if any(second <= first for first, second in itertools.pairwise(edges)):
        raise ArgumentError(f"piecewise_constant: boundaries must increase, got {edges}")
    return lambda step: values[bisect.bisect_left(edges, step)]


def warmup(rate: float | Schedule, steps: int) -> Schedule:
    """Return a schedule that rises evenly over the first `steps` steps and then follows `rate`.

    Step i of the rise (from 0) has (i + 1) / steps of the rate; a schedule that follows starts from its own step 0.

    Example:
        >>> import stopgrad as sg
        >>> schedule = sg.train.schedules.warmup(1.0, 4)
        >>> [schedule(step) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """
    _check_positive("warmup", "steps", steps)
    after = rate if callable(rate) else constant(rate)
    return lambda step: after(0) * (step + 1) / steps if step < steps else after(step - steps)


def _check_positive(where: str, name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"{where}: {name} must be positive, got {value!r}")
