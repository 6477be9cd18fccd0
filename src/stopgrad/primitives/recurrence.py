"""First-order linear recurrences along an axis, yᵢ = bᵢ + aᵢ yᵢ₋₁, and the shift of entries along an axis.

What the derivatives of running products and the like are made of. Nothing is ever divided, so they are right at zeros,
at every order: the derivative of a recurrence is a recurrence again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, result_dtype
from stopgrad.core.operation import Operation, general, linear
from stopgrad.core.record import run
from stopgrad.primitives.reducing import behind_all

_FEW_LANES = 24


def shifted(x: Any, axis: int, by: int) -> Any:
    """Return x moved along an axis by one place, forwards (`by=1`) or backwards (`by=-1`), with a zero moved in."""
    return run(SHIFT, x, params=(axis, by))


def recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """Return y with yᵢ = bᵢ + aᵢ yᵢ₋₁ along an axis, from its end with `reverse` (yᵢ₊₁ then); the first a is not used.

    Args:
        a: array or tensor.
        b: likewise, of the same shape.
        axis: along which, counted from the front.
        reverse: run from the last entry to the first.
    """
    return run(LINEAR_RECURRENCE, a, b, params=(axis, reverse))


def _shift(xp: Any, x: Any, axis: int, by: int) -> Any:
    if not x.shape[axis]:
        return x
    before = (slice(None),) * axis
    if by == 1:
        return xp.concat([xp.zeros_like(x[(*before, slice(0, 1), ...)]), x[(*before, slice(0, -1), ...)]], axis=axis)
    return xp.concat([x[(*before, slice(1, None), ...)], xp.zeros_like(x[(*before, slice(0, 1), ...)])], axis=axis)


SHIFT: Operation = linear(
    "shift",
    _shift,
    lambda xp, t, axis, by: run(SHIFT, t, params=(axis, -by)),
    tangent=lambda xp, t, axis, by: run(SHIFT, t, params=(axis, by)),
    spec=lambda x, axis, by: x,
    passes_masks=True,
)
"""shift(x; axis, by): by is 1 or -1."""


def _recurrence_kernel(xp: Any, a: Any, b: Any, axis: int, reverse: bool) -> Any:
    before = (slice(None),) * axis
    y: Any = None
    steps: list[Any] = []
    for i in _order(b.shape[axis], reverse):
        y = b[(*before, i, ...)] if y is None else b[(*before, i, ...)] + a[(*before, i, ...)] * y
        steps.append(y)
    if not steps:
        return xp.zeros_like(b)
    return xp.stack(steps[::-1] if reverse else steps, axis=axis)


def _recurrence_numpy(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    out = np.empty(b.shape, np.result_type(a, b))
    if not out.size:
        return out
    first = np.moveaxis
    a_rows, b_rows, rows = first(a, axis, 0), first(b, axis, 0), first(out, axis, 0)
    order = _order(len(rows), reverse)
    if out.size // len(rows) <= _FEW_LANES:  # Python's own numbers are faster than arrays of a few
        for lane in np.ndindex(rows.shape[1:]):
            column = (slice(None), *lane)
            rows[column] = _run_lane(a_rows[column].tolist(), b_rows[column].tolist(), order)
        return out
    y: Any = None
    for i in order:
        row = rows[i]
        if y is None:
            row[...] = b_rows[i]
        else:
            np.multiply(a_rows[i], y, out=row)
            row += b_rows[i]
        y = row
    return out


def _run_lane(a: list[Any], b: list[Any], order: range) -> list[Any]:
    y = b[order[0]]
    out = [y] * len(b)
    for i in order[1:]:
        y = b[i] + a[i] * y
        out[i] = y
    return out


def _order(count: int, reverse: bool) -> range:
    return range(count - 1, -1, -1) if reverse else range(count)


def _pulled(t: Any, a: Any, axis: int, reverse: bool) -> Any:
    """Return the cotangent of b: wᵢ = tᵢ + aᵢ₊₁ wᵢ₊₁, the recurrence run the other way."""
    return recurrence(shifted(a, axis, 1 if reverse else -1), t, axis, not reverse)


LINEAR_RECURRENCE = general(
    "linear_recurrence",
    _recurrence_kernel,
    vjps=(
        lambda xp, t, a, _b, out, axis, reverse: (
            _pulled(t, a, axis, reverse) * shifted(out, axis, -1 if reverse else 1)
        ),
        lambda xp, t, a, _b, _out, axis, reverse: _pulled(t, a, axis, reverse),
    ),
    jvps=(
        lambda xp, t, a, _b, out, axis, reverse: recurrence(
            a, t * shifted(out, axis, -1 if reverse else 1), axis, reverse
        ),
        lambda xp, t, a, _b, _out, axis, reverse: recurrence(a, t, axis, reverse),
    ),
    numpy_kernel=_recurrence_numpy,
    spec=lambda a, b, axis, reverse: Spec(b.shape, result_dtype((a, b))),
    behind=behind_all,
)
"""linear_recurrence(a, b; axis, reverse): see `recurrence`."""
