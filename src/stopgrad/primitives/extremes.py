"""Running largest and smallest entries along an axis, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, is_bool, normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import Operation, nondifferentiable
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import subtract
from stopgrad.primitives.comparison import not_equal
from stopgrad.primitives.gathering import take_along_axis
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import on_host, to_integer, to_tensor


def cummax(x: Any, axis: int = -1, *, reverse: bool = False) -> Tensor:
    """Largest entry so far along an axis; NaN from the first NaN on.

    Ties: the derivative goes to the first of equal entries that was met.

    Args:
        x: tensor of a real dtype and one or more axes.
        axis: along which.
        reverse: run from the end.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.cummax([1.0, 3.0, 2.0, 5.0]).numpy()
        array([1., 3., 3., 5.])
    """
    return _running(LARGEST_SO_FAR, "cummax", x, axis, reverse)


def cummin(x: Any, axis: int = -1, *, reverse: bool = False) -> Tensor:
    """Smallest entry so far along an axis; NaN from the first NaN on.

    Ties: the derivative goes to the first of equal entries that was met.

    Args:
        x: tensor of a real dtype and one or more axes.
        axis: along which.
        reverse: run from the end.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.cummin([3.0, 1.0, 2.0, 0.0]).numpy()
        array([3., 1., 1., 0.])
    """
    return _running(SMALLEST_SO_FAR, "cummin", x, axis, reverse)


def diff(x: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours along an axis, taken n times.

    Args:
        x: tensor of one or more axes.
        n: how many times; 0 gives x itself.
        axis: along which.

    Returns:
        Tensor of the shape of x, with n entries fewer along the axis.

    Raises:
        ShapeError: the axis is out of range.
        ArgumentError: n is negative.

    Example:
        >>> import stopgrad as sg
        >>> sg.diff([1.0, 4.0, 9.0]).numpy()
        array([3., 5.])
    """
    x = to_tensor(x, "diff")
    along = normalize_axis("diff", axis, x.ndim)
    if to_integer("diff", "n", n) < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    difference = not_equal if is_bool(x.dtype) else subtract
    before = (slice(None),) * along
    for _ in range(n):
        x = difference(getitem(x, (*before, slice(1, None))), getitem(x, (*before, slice(0, -1))))
    return x


def _running(operation: Operation, name: str, x: Any, axis: int, reverse: bool) -> Tensor:
    x = to_tensor(x, name)
    if not x.ndim:
        raise ShapeError(f"{name}: the tensor has no axis to run along")
    along = normalize_axis(name, axis, x.ndim)
    return take_along_axis(x, bind1(operation, x, (along, bool(reverse))), along)


def _where_so_far(x: Any, axis: int, reverse: bool, ufunc: Any, beats: Any) -> Any:
    """Return for each place along an axis the index of the extreme entry up to there, the first met of equals."""
    lines = np.moveaxis(x, axis, 0)
    lines = lines[::-1] if reverse else lines
    so_far = ufunc.accumulate(lines, 0)
    fresh = np.zeros(lines.shape, np.bool)
    fresh[1:] = beats(lines[1:], so_far[:-1]) | (np.isnan(lines[1:]) & ~np.isnan(so_far[:-1]))
    numbers = np.arange(len(lines)).reshape(-1, *(1,) * (lines.ndim - 1))
    places = np.maximum.accumulate(np.where(fresh, numbers, 0), 0)
    if reverse:
        places = (len(lines) - 1 - places)[::-1]
    return np.moveaxis(places, 0, axis)


def _define(name: str, ufunc: Any, beats: Any) -> Operation:
    return nondifferentiable(
        name,
        lambda xp, x, axis, reverse: on_host(xp, lambda y: _where_so_far(y, axis, reverse, ufunc, beats), x),
        numpy_kernel=lambda x, axis, reverse: _where_so_far(x, axis, reverse, ufunc, beats),
        spec=lambda x, axis, reverse: Spec(x.shape, np.dtype(np.intp)),
    )


LARGEST_SO_FAR = _define("largest_so_far", np.maximum, np.greater)
SMALLEST_SO_FAR = _define("smallest_so_far", np.minimum, np.less)
"""largest_so_far, smallest_so_far (x; axis, reverse): indices along the axis."""
