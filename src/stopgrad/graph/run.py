"""Running a graph: kernels one by one, in the order of the operations, each array let go after its last use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, spec_of
from stopgrad.core.errors import ArgumentError, DTypeError, ShapeError
from stopgrad.core.graph import PLACEHOLDER, GraphOperation, Output
from stopgrad.core.record import compute


def needed(outputs: Iterable[Any], given: Iterable[Output] = ()) -> list[GraphOperation]:
    """Return the operations that outputs depend on, in order; the search ends at outputs that are given."""
    known = set(given)
    seen: set[GraphOperation] = set()
    pending = [one for one in outputs if type(one) is Output and one not in known]
    while pending:
        operation = pending.pop().op
        if operation in seen:
            continue
        seen.add(operation)
        pending.extend(one for one in operation.inputs if type(one) is Output and one not in known)
    return sorted(seen, key=lambda operation: operation.index)


def run_graph(outputs: Sequence[Any], feed: Mapping[Output, Any]) -> list[Any]:
    """Return the raw values of outputs, given raw values for some others (placeholders, or anything on the way)."""
    order = needed(outputs, feed)
    uses: dict[Output, int] = {}
    for operation in order:
        for one in operation.inputs:
            if type(one) is Output:
                uses[one] = uses.get(one, 0) + 1
    for one in outputs:
        if type(one) is Output:
            uses[one] = uses.get(one, 0) + 1
    values = dict(feed)
    with np.errstate(all="ignore"):  # derivatives compute with inf and NaN at entries that are then not selected
        _run(order, values, uses)
    return [values[one] if type(one) is Output else one for one in outputs]


def _run(order: Sequence[GraphOperation], values: dict[Output, Any], uses: dict[Output, int]) -> None:
    for operation in order:
        if operation.operation is PLACEHOLDER:
            raise ArgumentError(f"run: {operation.outputs[0]} is needed but was not fed; name it in feed")
        inputs = [values[one] if type(one) is Output else one for one in operation.inputs]
        result = compute(operation.operation, inputs, operation.params)
        for out, value in zip(operation.outputs, (result,) if operation.single else result, strict=True):
            if out in uses:
                values[out] = value
        for one in operation.inputs:
            if type(one) is Output:
                uses[one] -= 1
                if not uses[one]:
                    del values[one]


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
