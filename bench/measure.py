"""How things are timed: every contestant in turn, many rounds, medians; and ratios beside one of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds a call, over the rounds."""

    median: float
    low: float
    high: float


def in_turn(contestants: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 5) -> dict[str, Timing]:
    """Time the contestants A B C, A B C, …, so that a machine whose speed drifts is the same for all of them.

    `low` and `high` are the quartiles.
    """
    for call in contestants.values():
        for _ in range(warm_up):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    for _ in range(rounds):
        for name, call in contestants.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    timings = {}
    for name, all_seconds in seconds.items():
        low, median, high = statistics.quantiles(all_seconds, n=4)
        timings[name] = Timing(median, low, high)
    return timings
