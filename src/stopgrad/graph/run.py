"""Running a graph: kernels one by one, in the order of the operations, each array let go after its last use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, spec_of
from stopgrad.core.builtin import STOP
from stopgrad.core.errors import ArgumentError, DTypeError, ShapeError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, VARIABLE, Output
from stopgrad.core.order import needed
from stopgrad.core.record import bind, bind_many
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.gates.operations import CONDITIONAL_STOP
from stopgrad.gates.stop import stop_gradient
from stopgrad.graph.plan import Plan


def run_graph(outputs: Sequence[Any], feed: Mapping[Output, Any]) -> list[Any]:
    """Return the raw values of outputs, given raw values for some others (placeholders, or anything on the way)."""
    plan = Plan(outputs, tuple(feed))
    with np.errstate(all="ignore"):  # derivatives compute with inf and NaN at entries that are then not selected
        return plan.run(list(feed.values()))


def replay(outputs: Sequence[Any], feed: Mapping[Output, Tensor]) -> list[Any]:
    """Return outputs as tensors, by applying the operations anew to tensors: recorded, or added to another graph.

    Stops are among the operations, so what is behind them is unconnected in the new record too.
    """
    values: dict[Any, Any] = dict(feed)
    for added in needed(outputs, feed):
        if added.operation is PLACEHOLDER:
            raise ArgumentError(f"run: {added.outputs[0]} is needed but was not fed; name it in feed")
        if added.operation is CONSTANT:
            values[added.outputs[0]] = Tensor(added.params[0].value)
        elif added.operation is VARIABLE:
            values[added.outputs[0]] = added.params[0].variable.__tensor__()
        else:
            inputs = [values[one] if type(one) is Output else one for one in added.inputs]
            if added.operation is STOP:
                values[added.outputs[0]] = stop_gradient(inputs[0], name=added.params[0])
            elif added.single:
                if added.operation is CONDITIONAL_STOP:
                    state.meet_gate(added.params[0])
                values[added.outputs[0]] = bind(added.operation, inputs, added.params)
            else:
                values.update(zip(added.outputs, bind_many(added.operation, inputs, added.params), strict=True))
    return [values[one] if type(one) is Output else one for one in outputs]


def checked_feed(feed: Mapping[Output, Any]) -> dict[Output, Any]:
    """Return a feed with its values as raw arrays, checked to have the shapes and dtypes of what they stand for."""
    checked = {}
    for output, value in feed.items():
        raw = getattr(value, "value", value)
        array = np.asarray(raw, output.dtype) if type(raw) in PYTHON_SCALARS or isinstance(raw, list) else raw
        spec = spec_of(array)
        if spec.shape != output.shape:
            raise ShapeError(f"run: {output.name} has shape {output.shape}, but was fed {spec.shape}")
        if spec.dtype != output.dtype and str(spec.dtype).removeprefix("torch.") != str(output.dtype):
            raise DTypeError(f"run: {output.name} has dtype {output.dtype}, but was fed {spec.dtype}; cast it first")
        checked[output] = array
    return checked
