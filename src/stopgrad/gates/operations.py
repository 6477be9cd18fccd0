"""The gates as operations: the identity forward, each with a rule of its own for what passes.

A full stop is not among them: its result is a constant, so that nothing of what lies behind it is recorded or kept (see
`stopgrad.gates.stop`). These are the gates through which something passes.
"""

from __future__ import annotations

from typing import Any

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import GradientPreventedError
from stopgrad.core.operation import ABSENT, Operation, elementwise, general
from stopgrad.core.state import state


def _identity_spec(x: Spec, *_: Any) -> Spec:
    return x


def _passing_gate(name: str, rule: Any) -> Operation:
    """Define an identity whose one rule, `rule(xp, t, _x, _out, *params)`, serves cotangents and tangents alike."""
    return general(
        name,
        lambda xp, x, *_params: x,
        vjps=(rule,),
        jvps=(rule,),
        spec=_identity_spec,
        passes_masks=True,
    )


def _absent(xp: Any, t: Any, _x: Any, _other: Any, _out: Any) -> Any:
    return ABSENT


STOP_WHERE = elementwise(
    "stop_where",
    lambda xp, x, mask: x,
    lambda xp, t, _x, mask, _out: xp.where(mask, xp.zeros_like(t), t),
    _absent,
    masks=True,
)
"""stop_where(x, mask): nothing passes where the mask holds; the mask has the shape of x."""

SCALE = elementwise(
    "scale_gradient",
    lambda xp, x, factor: x,
    lambda xp, t, _x, factor, _out: t * factor,
    _absent,
)
"""scale_gradient(x, factor): derivatives pass multiplied by the factor, which has none itself."""

STRAIGHT_THROUGH = elementwise(
    "straight_through",
    lambda xp, x, y: y,
    lambda xp, t, _x, _y, _out: t,
    _absent,
)
"""straight_through(x, y): the value is y, derivatives pass to x as through the identity."""


def _clip_by_value(xp: Any, t: Any, _x: Any, _out: Any, limit: float) -> Any:
    return xp.clip(t, -limit, limit)


def _clip_by_norm(xp: Any, t: Any, _x: Any, _out: Any, limit: float, leading: int = 0) -> Any:
    axes = tuple(range(leading, len(t.shape)))
    size = xp.abs(t)
    largest = xp.max(size, axis=axes, keepdims=True) if t.size else xp.sum(size, axis=axes, keepdims=True)
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    scaled = t / safe
    norm = xp.sqrt(xp.sum(xp.real(scaled * xp.conj(scaled)), axis=axes, keepdims=True)) * safe
    return xp.where(norm > limit, t * (limit / xp.where(norm > 0, norm, xp.ones_like(norm))), t)


CLIP_BY_VALUE = _passing_gate("clip_gradient_by_value", _clip_by_value)
CLIP_BY_NORM = _passing_gate("clip_gradient_by_norm", _clip_by_norm)
"""clip_gradient_by_norm(x; limit, leading): one norm for each place along that many leading axes, none if not given."""


def _conditional(xp: Any, t: Any, _x: Any, _out: Any, name: str | None, stops: bool, level: int | None) -> Any:
    sweeping = state.sweeping_for
    if sweeping is not None:
        if name is not None and name in sweeping.switches:
            return ABSENT if sweeping.switches[name] else t
        if level is not None:
            return ABSENT if sweeping.number == level else t
    return ABSENT if stops else t


CONDITIONAL_STOP = _passing_gate("conditional_stop", _conditional)
"""conditional_stop(x; name, stops, level): whether it stops depends on who sweeps.

A gradient call that switches `name` has its way; else, if `level` is given, only that level is stopped; else `stops`.
"""


def _prevented(xp: Any, t: Any, _x: Any, _out: Any, message: str, file: str, line: int) -> Any:
    raise GradientPreventedError(f"{message} (a derivative reached the prevent_gradient at {file}:{line})")


PREVENT = _passing_gate("prevent_gradient", _prevented)
