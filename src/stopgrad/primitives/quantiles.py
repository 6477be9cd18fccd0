"""Quantiles along axes: median, quantile, percentile, each a combination of two neighbours in sorted order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import carries_derivative
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.record import bind, coerce
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import add, multiply
from stopgrad.primitives.axes import permute_dims
from stopgrad.primitives.casting import astype
from stopgrad.primitives.comparison import not_equal
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.joining import stack
from stopgrad.primitives.reducing import all_axes, reduced_shape, reduced_size, reduction_params
from stopgrad.primitives.selection import WHERE
from stopgrad.primitives.shape import reshape
from stopgrad.primitives.sorting import sort

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def median(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Median over axes: the middle entry in order, or the mean of the two middle ones. NaN if there is one.

    Ties: as `sort`.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range, or there is no entry.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.median([1.0, 10.0, 3.0, 2.0]))
        2.5
    """
    return _quantiles("median", x, 0.5, axis, "linear", keepdims)


def quantile(x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Quantiles over axes: the entry at the fraction q of the way through the sorted entries. NaN if there is one.

    Ties: as `sort`. No derivative is taken for q.

    Args:
        x: tensor of a real dtype.
        q: a number between 0 and 1, or several along one axis, which then is the first of the result.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        method: what to do between two neighbours: "linear" interpolates, "lower" and "higher" take one, "nearest" the
            nearer (the even one halfway), "midpoint" their mean.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1), led by the axis of q if q has one.

    Raises:
        ShapeError: an axis is out of range, or there is no entry.
        ArgumentError: q outside [0, 1], or an unknown method.

    Example:
        >>> import stopgrad as sg
        >>> sg.quantile([0.0, 10.0, 20.0], [0.25, 0.5]).numpy()
        array([ 5., 10.])
    """
    return _quantiles("quantile", x, q, axis, method, keepdims)


def percentile(x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Percentiles over axes: `quantile` with q in hundredths.

    Args:
        x: tensor of a real dtype.
        q: a number between 0 and 100, or several along one axis.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        method: see `quantile`.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1), led by the axis of q if q has one.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.percentile([0.0, 10.0, 20.0], 25))
        5.0
    """
    q = np.asarray(coerce(q, "percentile: q")[0]) / 100
    return _quantiles("percentile", x, q, axis, method, keepdims)


def _quantiles(name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Tensor:
    if method not in _METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}")
    fractions = np.asarray(coerce(q, f"{name}: q")[0], np.float64)
    if fractions.ndim > 1 or not ((fractions >= 0) & (fractions <= 1)).all():
        raise ArgumentError(f"{name}: q must lie between 0 and 1 (0 and 100 for percentile), got {q!r:.60}")
    x = to_tensor(x, name)
    if not carries_derivative(x.dtype):
        x = astype(x, np.float64)
    axes, keepdims, shape = reduction_params(name, x.shape, axis, keepdims)
    count = reduced_size(axes, shape)
    if not count:
        raise ShapeError(f"{name}: there is no entry along axis {axis} of shape {shape}")
    out_shape = reduced_shape(axes, keepdims, shape)
    axes = all_axes(axes, shape)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    lines = reshape(permute_dims(x, kept + axes), (*(shape[i] for i in kept), count))
    ordered = sort(lines)
    last = getitem(ordered, (..., -1))
    has_nan = not_equal(last, last)  # NaNs are sorted to the end
    if not fractions.size:
        return reshape(getitem(ordered, (..., slice(0, 0))), (0, *out_shape))
    results = []
    for fraction in np.atleast_1d(fractions).tolist():
        between = bind(WHERE, (has_nan, last, _at(ordered, fraction * (count - 1), method)))
        results.append(reshape(between, out_shape))
    return stack(results) if fractions.ndim else results[0]


def _at(ordered: Tensor, position: float, method: str) -> Tensor:
    """Return the entry at a position between whole ones along the last axis."""
    low, high = math.floor(position), math.ceil(position)
    if method == "lower" or low == high:
        return getitem(ordered, (..., low))
    if method == "higher":
        return getitem(ordered, (..., high))
    if method == "nearest":
        return getitem(ordered, (..., round(position)))
    weight = 0.5 if method == "midpoint" else position - low
    return add(multiply(getitem(ordered, (..., low)), 1 - weight), multiply(getitem(ordered, (..., high)), weight))
