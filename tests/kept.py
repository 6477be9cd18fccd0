"""How much the record keeps: counts over the nodes a tensor was computed by."""

from __future__ import annotations

import math

import stopgrad as sg
from stopgrad.core.record import INDEX, KEPT, PARENTS


def kept_arrays(tensor: sg.Tensor) -> list[object]:
    """Return the distinct arrays held by the nodes behind a tensor (numbers are not counted)."""
    seen: set[int] = set()
    arrays: dict[int, object] = {}
    pending = [tensor.node]
    while pending:
        node = pending.pop()
        if type(node) is not tuple or node[INDEX] in seen:
            continue
        seen.add(node[INDEX])
        pending.extend(node[PARENTS])
        for kept in node[KEPT]:
            if hasattr(kept, "shape"):
                arrays[id(kept)] = kept
    return list(arrays.values())


def kept_values(tensor: sg.Tensor) -> int:
    """Return how many entries the nodes behind a tensor keep, each array counted once."""
    return sum(math.prod(array.shape) for array in kept_arrays(tensor))


def kept_bytes(tensor: sg.Tensor) -> int:
    """Return how many bytes the nodes behind a tensor keep, each array counted once."""
    return sum(math.prod(array.shape) * array.dtype.itemsize for array in kept_arrays(tensor))
