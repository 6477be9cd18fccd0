"""Clipping of gradients before an update: each entry to a bound, or all of them together to a norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import is_numpy, namespace_of


def global_norm(arrays: Sequence[Any]) -> float:
    """Return the Euclidean norm of all entries of all arrays taken together.

    Squares that overflow do not make it infinite: then it is computed again with everything scaled down.
    """
    total = 0.0
    for array in arrays:
        if is_numpy(array):
            flat = np.reshape(array, -1)
            total += float(np.dot(flat, flat))
        else:
            xp = namespace_of(array)
            total += float(xp.sum(array * array))
    return math.sqrt(total) if math.isfinite(total) else _scaled_norm(arrays)


def clip_by_norm(arrays: Sequence[Any], limit: float) -> Sequence[Any]:
    """Return the arrays scaled down together so that their global norm is at most `limit`.

    A norm that is NaN clips nothing, so a NaN stays with the variable it belongs to. An infinite one scales everything
    finite to zero.
    """
    norm = global_norm(arrays)
    if not norm > limit:
        return arrays
    scale = limit / norm
    return [array * scale for array in arrays]


def clip_by_value(arrays: Sequence[Any], limit: float) -> Sequence[Any]:
    """Return the arrays with their entries clipped to [-limit, limit]; NaN stays."""
    return [namespace_of(array).clip(array, -limit, limit) for array in arrays]


def _scaled_norm(arrays: Sequence[Any]) -> float:
    magnitudes = [namespace_of(array).abs(array) for array in arrays if math.prod(array.shape)]
    peaks = [float(namespace_of(magnitude).max(magnitude)) for magnitude in magnitudes]
    if any(math.isnan(peak) for peak in peaks):
        return math.nan
    largest = max(peaks)
    if math.isinf(largest):
        return math.inf
    total = 0.0
    for magnitude in magnitudes:
        scaled = magnitude / largest
        total += float(namespace_of(scaled).sum(scaled * scaled))
    return largest * math.sqrt(total)
