"""`again`: a gate's operation applied once more, to tensors, as a graph wrote it down.

For what runs a graph on tensors that may be recorded: the gate must then do all that it did where it stood, remember
its name and line and answer a derivative check among it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopgrad.core.builtin import STOP
from stopgrad.core.marks import Origin, mark_of
from stopgrad.core.operation import Operation
from stopgrad.core.record import bind
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.gates.operations import (
    CLIP_BY_NORM,
    CLIP_BY_VALUE,
    CONDITIONAL_STOP,
    PREVENT,
    SCALE,
    STOP_WHERE,
    STRAIGHT_THROUGH,
)
from stopgrad.gates.passing import by_example, observed
from stopgrad.gates.stop import stopped
from stopgrad.primitives.selection import WHERE

GATES = frozenset((STOP, STOP_WHERE, CONDITIONAL_STOP, SCALE, STRAIGHT_THROUGH, CLIP_BY_VALUE, CLIP_BY_NORM, PREVENT))

CLIPPING = frozenset((CLIP_BY_VALUE, CLIP_BY_NORM))
"""What passes them is not proportional to what comes: clipping a sum is not summing what was clipped."""


def again(
    operation: Operation, inputs: Sequence[Any], params: tuple[Any, ...], source: tuple[str, int] | None
) -> Tensor:
    """Return the gate's result on these tensors.

    Args:
        operation: the gate's.
        inputs: tensors; the first is what is gated.
        params: the operation's settings.
        source: file and line where the gate stands.
    """
    x = inputs[0]
    if operation is STOP:
        return _stopped(x, params[0], source)
    if operation is STOP_WHERE and state.gate_observer is not None:
        return bind(WHERE, (inputs[1], _stopped(x, None, source), x))
    if operation in CLIPPING:
        x = by_example(x)
        inputs = (x,)
    gated = bind(operation, inputs, params)
    if operation in (CONDITIONAL_STOP, STOP_WHERE):
        return gated
    if operation is SCALE:
        factor = getattr(inputs[1], "value", inputs[1])
        return observed(gated, x.value, "scale_gradient", lambda now, old: old + factor * (now - old))
    if operation is STRAIGHT_THROUGH:
        return observed(gated, x.value, "straight_through", lambda now, old: gated.value + (now - old))
    return observed(gated, x.value, operation.name.partition("_by_")[0], lambda now, old: now)


def _stopped(x: Tensor, name: str | None, source: tuple[str, int] | None) -> Tensor:
    file, line = (None, None) if source is None else source
    kind, own = ("no_gradient", None) if name == "no_gradient" else ("stop_gradient", name)
    return stopped(x, mark_of(frozenset((Origin(kind, own, file, line),))), name)
