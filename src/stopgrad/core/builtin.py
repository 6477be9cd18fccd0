"""The three operations the record itself needs: a leaf, one output of an operation that has several, and stacking.

Stacking is here because a nested list that holds tensors is stacked wherever a tensor is expected.
"""

from __future__ import annotations

from typing import Any

from stopgrad.core.arrays import Spec, result_dtype
from stopgrad.core.operation import ABSENT, EveryInput, Slots, general, nondifferentiable
from stopgrad.core.placing import Placed

LEAF = general(
    "leaf",
    lambda xp, x: x,
    vjps=(lambda xp, t, _x, _out: t,),
    jvps=(lambda xp, t, _x, _out: t,),
    spec=lambda x: x,
    passes_masks=True,
)

PROJECT = general(
    "project",
    lambda xp, outputs, number: outputs[number],
    vjps=(lambda xp, t, _outputs, _out, number: Slots({number: t}),),
    jvps=(lambda xp, t, _outputs, _out, number: t.get(number, ABSENT),),
    spec=lambda outputs, number: outputs[number],
    passes_masks=True,
)

STOP = nondifferentiable("stop_gradient", lambda xp, x, name: x, spec=lambda x, name: x)
"""stop_gradient(x; name): the gate as an operation of a graph. Eager programs need none: its result is a constant."""


def _stack_spec(*inputs_and_axis: Any) -> Spec:
    *inputs, axis = inputs_and_axis
    shape = list(inputs[0].shape)
    shape.insert(axis, len(inputs))
    return Spec(tuple(shape), result_dtype(inputs))


def _unstacked(i: int, xp: Any, t: Any, inputs: Any, out: Any, axis: int) -> Any:
    return t[(*(slice(None),) * axis, i, ...)]


def _stacked(i: int, xp: Any, t: Any, inputs: Any, out: Any, axis: int) -> Any:
    shape = (*t.shape[:axis], len(inputs), *t.shape[axis:])
    return Placed([t], [(*((None, None, None),) * axis, i)], shape)


STACK = general(
    "stack",
    lambda xp, *inputs_and_axis: xp.stack(inputs_and_axis[:-1], axis=inputs_and_axis[-1]),
    vjps=EveryInput(_unstacked, 1, keep_inputs=False),
    jvps=EveryInput(_stacked, 1, keep_inputs=False),
    spec=_stack_spec,
    passes_masks=True,
)
"""stack(*inputs, axis): equal shapes along a new axis, `axis` counted from the front of the result."""
