"""Running a graph: kernels one by one, in the order of the operations, each array let go after its last use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, spec_of
from stopgrad.core.errors import DTypeError, ShapeError
from stopgrad.core.graph import Output
from stopgrad.graph.plan import Plan, needed

__all__ = ["checked_feed", "needed", "run_graph"]


def run_graph(outputs: Sequence[Any], feed: Mapping[Output, Any]) -> list[Any]:
    """Return the raw values of outputs, given raw values for some others (placeholders, or anything on the way)."""
    plan = Plan(outputs, tuple(feed))
    with np.errstate(all="ignore"):  # derivatives compute with inf and NaN at entries that are then not selected
        return plan.run(list(feed.values()))


def checked_feed(feed: Mapping[Output, Any]) -> dict[Output, Any]:
    """Return a feed with its values as raw arrays, checked to have the shapes and dtypes of what they stand for."""
    checked = {}
    for output, value in feed.items():
        raw = getattr(value, "value", value)
        array = np.asarray(raw, output.dtype) if type(raw) in PYTHON_SCALARS or isinstance(raw, list) else raw
        spec = spec_of(array)
        if spec.shape != output.shape:
            raise ShapeError(f"run: {output.name} has shape {output.shape}, but was fed {spec.shape}")
        if spec.dtype != output.dtype:
            raise DTypeError(f"run: {output.name} has dtype {output.dtype}, but was fed {spec.dtype}; cast it first")
        checked[output] = array
    return checked
