"""How much the record keeps: counts over the nodes a tensor was computed by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import stopgrad as sg
from stopgrad.core.record import INDEX, KEPT, PARENTS, Node


def nodes_behind(*tensors: sg.Tensor) -> Iterator[Node]:
    """Yield the nodes that tensors were computed by, each once."""
    seen: set[int] = set()
    pending = [tensor.node for tensor in tensors]
    while pending:
        node = pending.pop()
        if type(node) is tuple and node[INDEX] not in seen:
            seen.add(node[INDEX])
            pending.extend(node[PARENTS])
            yield node


def kept_arrays(*tensors: sg.Tensor) -> list[Any]:
    """Return the distinct arrays held by the nodes behind tensors (numbers are not counted)."""
    arrays: dict[int, Any] = {}
    for node in nodes_behind(*tensors):
        for kept in node[KEPT]:
            for array in kept if type(kept) is tuple else (kept,):  # several outputs are kept as a tuple
                if hasattr(array, "shape"):
                    arrays[id(array)] = array
    return list(arrays.values())


def kept_values(*tensors: sg.Tensor) -> int:
    """Return how many entries the nodes behind tensors keep, each array counted once."""
    return sum(math.prod(array.shape) for array in kept_arrays(*tensors))


def kept_bytes(*tensors: sg.Tensor) -> int:
    """Return how many bytes the nodes behind tensors keep alive: a view counts for all of what it is a view of."""
    owners = {id(owner): owner for owner in map(_owner, kept_arrays(*tensors))}
    return sum(math.prod(owner.shape) * owner.dtype.itemsize for owner in owners.values())


def _owner(array: Any) -> Any:
    while getattr(getattr(array, "base", None), "dtype", None) is not None:
        array = array.base
    return array
