"""Statistics over axes: variance, standard deviation, weighted average, range, and sums that leave NaNs out."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, carries_derivative, is_complex, normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import general
from stopgrad.core.record import bind, bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import divide, multiply, subtract
from stopgrad.primitives.comparison import equal
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reducing import (
    Axes,
    behind_reduced,
    lined_up,
    mean_over,
    reduced_shape,
    reduced_size,
    reduction_params,
)
from stopgrad.primitives.reductions import max, mean, min, sum
from stopgrad.primitives.selection import WHERE
from stopgrad.primitives.shape import reshape


def var(
    x: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Tensor:
    """Variance over axes: the mean of |x - mean|².

    Args:
        x: tensor of any shape; integers and bools are taken as float64.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        ddof: what is taken off the number of entries in the divisor; 1 for the unbiased estimate.
        correction: the array API's name for the same; give one of the two.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of a real floating dtype without the reduced axes (or with them as 1); NaN over nothing.

    Raises:
        ShapeError: an axis is out of range or named twice.
        ArgumentError: both `ddof` and `correction` are given.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.var([1.0, 2.0, 3.0])), float(sg.var([1.0, 2.0, 3.0], ddof=1))
        (0.6666666666666666, 1.0)
    """
    return _deviation(VAR, x, axis, ddof, correction, keepdims)


def std(
    x: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Tensor:
    """Standard deviation over axes: the root of the variance.

    Where all entries are equal it has a kink (it is a length, as |x| is), and its gradient there is 0.

    Args:
        x: tensor of any shape; integers and bools are taken as float64.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        ddof: what is taken off the number of entries in the divisor; 1 for the unbiased variance.
        correction: the array API's name for the same; give one of the two.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of a real floating dtype without the reduced axes (or with them as 1); NaN over nothing.

    Raises:
        ShapeError: an axis is out of range or named twice.
        ArgumentError: both `ddof` and `correction` are given.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.std([1.0, 3.0]))
        1.0
        >>> sg.grad(sg.std)(sg.tensor([2.0, 2.0])).numpy()
        array([0., 0.])
    """
    return _deviation(STD, x, axis, ddof, correction, keepdims)


def _deviation(operation: Any, x: Any, axis: Any, ddof: float, correction: float | None, keepdims: bool) -> Tensor:
    name = operation.name
    if correction is not None:
        if ddof:
            raise ArgumentError(f"{name}: ddof and correction are the same thing; give one of them")
        ddof = correction
    x = to_tensor(x, name)
    return bind1(operation, x, (*reduction_params(name, x.value.shape, axis, keepdims), ddof))


def ptp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Range over axes: the largest entry less the smallest. Ties as in `max` and `min`.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of the dtype of x without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range, or there is no entry.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.ptp([1.0, 5.0, 2.0]))
        4.0
    """
    x = to_tensor(x, "ptp")
    return subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def average(x: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    """Weighted mean over axes: sum(weights · x) / sum(weights). The weights are differentiated too.

    Args:
        x: tensor of any shape.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        weights: tensor of the shape of x, or of one axis as long as the one averaged over; `None` for equal ones.
        keepdims: keep the averaged axes, with size 1.

    Returns:
        Tensor without the averaged axes (or with them as 1).

    Raises:
        ShapeError: the weights fit neither x nor the axis.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.average([1.0, 2.0, 4.0], weights=[1.0, 1.0, 2.0]))
        2.75
    """
    x = to_tensor(x, "average")
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    weights = to_tensor(weights, "average: weights")
    if weights.shape != x.shape:
        if axis is None or isinstance(axis, tuple | list) or weights.ndim != 1:
            raise ShapeError(
                f"average: weights have shape {weights.shape}, x has {x.shape}; give weights of the shape of x, or of "
                "one axis together with axis="
            )
        along = normalize_axis("average", axis, x.ndim)
        if weights.shape[0] != x.shape[along]:
            raise ShapeError(f"average: {weights.shape[0]} weights for {x.shape[along]} entries along axis {axis}")
        weights = reshape(weights, tuple(-1 if i == along else 1 for i in range(x.ndim)))
    total = sum(weights, axis, keepdims=keepdims)
    return divide(sum(multiply(x, weights), axis, keepdims=keepdims), total)


def nansum(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Sum over axes with NaNs counted as 0; their gradient is 0.

    Args:
        x: tensor of any shape.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the summed axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> float(sg.nansum([1.0, float("nan"), 2.0]))
        3.0
    """
    return sum(_without_nan(x, 0, "nansum"), axis, keepdims=keepdims)


def nanmean(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Mean over axes of the entries that are not NaN; the gradient of the others is 0. NaN where all are.

    Args:
        x: tensor of any shape.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the averaged axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> float(sg.nanmean([1.0, float("nan"), 2.0]))
        1.5
    """
    x = to_tensor(x, "nanmean")
    count = sum(equal(x, x), axis, keepdims=keepdims)
    return divide(sum(_without_nan(x, 0, "nanmean"), axis, keepdims=keepdims), count)


def nanmax(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Largest entry over axes that is not NaN; -inf where all are. Ties as in `max`.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> float(sg.nanmax([1.0, float("nan"), 2.0]))
        2.0
    """
    return max(_without_nan(x, float("-inf"), "nanmax"), axis, keepdims=keepdims)


def nanmin(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Smallest entry over axes that is not NaN; +inf where all are. Ties as in `min`.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> float(sg.nanmin([1.0, float("nan"), 2.0]))
        1.0
    """
    return min(_without_nan(x, float("inf"), "nanmin"), axis, keepdims=keepdims)


def _without_nan(x: Any, instead: float, name: str) -> Tensor:
    x = to_tensor(x, name)
    if not carries_derivative(x.dtype):
        return x
    return bind(WHERE, (equal(x, x), x, instead))


def _real_spec(x: Spec, axis: Axes, keepdims: bool, shape: Shape, ddof: float) -> Spec:
    return Spec(reduced_shape(axis, keepdims, shape), np.var(np.ones(1, x.dtype)).dtype)


def _centred(xp: Any, x: Any, axis: Axes) -> Any:
    return x - mean_over(xp, x, axis)


def _inner(xp: Any, a: Any, b: Any) -> Any:
    """Return the real part of conj(a) · b, entry by entry."""
    return xp.real(xp.conj(a) * b) if is_complex(a.dtype) else a * b


def _divisor(axis: Axes, shape: Shape, ddof: float) -> float:
    degrees = reduced_size(axis, shape) - ddof
    return degrees if degrees > 0 else 0


def _var_kernel(xp: Any, x: Any, axis: Axes, keepdims: bool, shape: Shape, ddof: float) -> Any:
    if not xp.isdtype(x.dtype, ("real floating", "complex floating")):
        x = xp.astype(x, xp.float64)
    centred = _centred(xp, x, axis)
    return xp.sum(_inner(xp, centred, centred), axis=axis, keepdims=keepdims) / _divisor(axis, shape, ddof)


def _var_numpy(x: Any, axis: Axes, keepdims: bool, shape: Shape, ddof: float) -> Any:
    kind = x.dtype.kind
    if kind in "biu":
        x = x.astype(np.float64)
    elif x.dtype.itemsize == 2:  # as NumPy: half precision is summed in single
        return _var_numpy(x.astype(np.float32), axis, keepdims, shape, ddof).astype(x.dtype)
    centred = _centred(np, x, axis)
    square = _inner(np, centred, centred)
    return np.add.reduce(square, axis, None, None, keepdims) / _divisor(axis, shape, ddof)


def _conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if is_complex(x.dtype) else x


VAR = general(
    "var",
    _var_kernel,
    vjps=(
        lambda xp, t, x, _out, axis, keepdims, shape, ddof: (
            lined_up(xp, t * 2 / _divisor(axis, shape, ddof), axis, keepdims, shape) * _conj(xp, _centred(xp, x, axis))
        ),
    ),
    jvps=(
        lambda xp, t, x, _out, axis, keepdims, shape, ddof: (
            xp.sum(_inner(xp, _centred(xp, x, axis), t), axis=axis, keepdims=keepdims) * 2 / _divisor(axis, shape, ddof)
        ),
    ),
    numpy_kernel=_var_numpy,
    spec=_real_spec,
    behind=behind_reduced,
)
"""var(x; axis, keepdims, shape, ddof)"""


def _nonzero(xp: Any, out: Any) -> Any:
    """Return the standard deviation, 1 where it is 0: there x - mean is 0, and so are the derivatives."""
    return xp.where(out == 0, xp.ones_like(out), out)


STD = general(
    "std",
    lambda xp, x, *params: xp.sqrt(_var_kernel(xp, x, *params)),
    vjps=(
        lambda xp, t, x, out, axis, keepdims, shape, ddof: (
            lined_up(xp, t / _nonzero(xp, out) / _divisor(axis, shape, ddof), axis, keepdims, shape)
            * _conj(xp, _centred(xp, x, axis))
        ),
    ),
    jvps=(
        lambda xp, t, x, out, axis, keepdims, shape, ddof: (
            xp.sum(_inner(xp, _centred(xp, x, axis), t), axis=axis, keepdims=keepdims)
            / _nonzero(xp, out)
            / _divisor(axis, shape, ddof)
        ),
    ),
    numpy_kernel=lambda x, *params: np.sqrt(_var_numpy(x, *params)),
    spec=_real_spec,
    behind=behind_reduced,
)
"""std(x; axis, keepdims, shape, ddof)"""
