"""Reductions over axes: sum, product, mean, largest and smallest, and the counting ones that carry no derivative.

Where several entries are the largest (or smallest), the derivative is shared evenly among them, in both modes and also
along axes: TensorFlow's rule for `reduce_max` and `reduce_min`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, is_numpy
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import Operation, general, linear
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reducing import (
    Axes,
    all_axes,
    behind_reduced,
    lined_up,
    reduced_shape,
    reduced_size,
    reduced_spec,
    reduction_params,
    spread,
)
from stopgrad.primitives.scans import CUMULATIVE_PROD


def sum(x: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over axes.

    Args:
        x: tensor of any shape and dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        dtype: dtype to sum in and to return; by default as `sum`.
        keepdims: keep the summed axes, with size 1.

    Returns:
        Tensor without the summed axes (or with them as 1). A sum over nothing is 0.

    Raises:
        ShapeError: an axis is out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.sum([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
        array([3., 7.])
    """
    if type(x) is not Tensor:
        x = to_tensor(x, "sum")
    return bind1(SUM, x, (*reduction_params("sum", x.value.shape, axis, keepdims), dtype))


def mean(x: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Mean over axes.

    Args:
        x: tensor of any shape and dtype; integers and bools are averaged in float64.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        dtype: dtype to average in and to return.
        keepdims: keep the averaged axes, with size 1.

    Returns:
        Tensor without the averaged axes (or with them as 1). A mean over nothing is NaN, as in NumPy.

    Raises:
        ShapeError: an axis is out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.mean([[1.0, 2.0], [3.0, 4.0]], axis=0).numpy()
        array([2., 3.])
    """
    if type(x) is not Tensor:
        x = to_tensor(x, "mean")
    return bind1(MEAN, x, (*reduction_params("mean", x.value.shape, axis, keepdims), dtype))


def max(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Largest entry over axes; NaN if there is one.

    Ties: the derivative is shared evenly among all entries equal to the largest (or among the NaNs, if any), in both
    modes: at [1, 1, 0] the gradient is [½, ½, 0].

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of the dtype of x without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range, or there is no entry to choose from.

    Example:
        >>> import stopgrad as sg
        >>> sg.grad(sg.max)(sg.tensor([1.0, 1.0, 0.0])).numpy()
        array([0.5, 0.5, 0. ])
    """
    return _extreme(MAX, x, axis, keepdims)


def min(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Smallest entry over axes; NaN if there is one.

    Ties: as `max`, the derivative is shared evenly among all entries equal to the smallest.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of the dtype of x without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range, or there is no entry to choose from.

    Example:
        >>> import stopgrad as sg
        >>> sg.min([[3.0, 1.0], [2.0, 4.0]], axis=1).numpy()
        array([1., 2.])
    """
    return _extreme(MIN, x, axis, keepdims)


amax = max
amin = min


def prod(x: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Product over axes; its derivatives are right also where factors are 0, at every order.

    Args:
        x: tensor of any shape and dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        dtype: dtype to multiply in and to return; by default as `sum`.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1). A product over nothing is 1.

    Raises:
        ShapeError: an axis is out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.grad(sg.prod)(sg.tensor([2.0, 0.0, 5.0])).numpy()
        array([ 0., 10.,  0.])
    """
    x = to_tensor(x, "prod")
    return bind1(PROD, x, (*reduction_params("prod", x.value.shape, axis, keepdims), dtype))


def _extreme(operation: Operation, x: Any, axis: Any, keepdims: bool) -> Tensor:
    name = operation.name
    if type(x) is not Tensor:
        x = to_tensor(x, name)
    params = reduction_params(name, x.value.shape, axis, keepdims)
    # Nothing to choose from is an error, save where there is nothing to choose for either.
    if 0 in params[2] and reduced_size(params[0], params[2]) == 0:
        raise ShapeError(f"{name}: there is no entry along axis {axis} of shape {x.shape} to choose from")
    return bind1(operation, x, params)


_LARGEST_HALF = 65504
_add = np.add.reduce  # a third of the price of np.sum, and of looking it up each time


def _sum_spec(x: Spec, axis: Axes, keepdims: bool, shape: Shape, dtype: Any) -> Spec:
    return Spec(reduced_shape(axis, keepdims, x.shape), np.add.reduce(np.ones(1, x.dtype), dtype=dtype).dtype)


SUM = general(
    "sum",
    lambda xp, x, axis, keepdims, shape, dtype: xp.sum(x, axis=axis, dtype=dtype, keepdims=keepdims),
    vjps=(lambda xp, t, _x, _out, axis, keepdims, shape, dtype: spread(xp, t, axis, keepdims, shape),),
    jvps=(lambda xp, t, _x, _out, axis, keepdims, shape, dtype: xp.sum(t, axis=axis, keepdims=keepdims),),
    numpy_kernel=lambda x, axis, keepdims, shape, dtype: _add(x, axis, dtype, None, keepdims),
    spec=_sum_spec,
    passes_masks=True,
)
"""sum(x; axis, keepdims, shape, dtype)"""


def _mean_kernel(xp: Any, x: Any, axis: Axes, keepdims: bool, shape: Shape, dtype: Any) -> Any:
    if dtype is not None:
        x = xp.astype(x, dtype)
    elif not xp.isdtype(x.dtype, ("real floating", "complex floating")):
        x = xp.astype(x, xp.float64)
    return xp.mean(x, axis=axis, keepdims=keepdims)


def _mean_numpy(x: Any, axis: Axes, keepdims: bool, shape: Shape, dtype: Any) -> Any:
    if dtype is None and type(x) is np.ndarray:
        kind = x.dtype.kind
        if kind in "biu":
            dtype = np.float64
        elif x.dtype.itemsize == 2:  # as NumPy: half precision is summed in single
            return (np.add.reduce(x, axis, np.float32, None, keepdims) / reduced_size(axis, shape)).astype(x.dtype)
    return np.add.reduce(x, axis, dtype, None, keepdims) / reduced_size(axis, shape)


def _mean_spec(x: Spec, axis: Axes, keepdims: bool, shape: Shape, dtype: Any) -> Spec:
    return Spec(reduced_shape(axis, keepdims, x.shape), np.mean(np.ones(1, x.dtype), dtype=dtype).dtype)


def _shared(t: Any, count: int) -> Any:
    """Return t divided by a number of entries, which may be greater than any number of half precision."""
    return t * (1 / count) if count > _LARGEST_HALF else t / count


MEAN = linear(
    "mean",
    _mean_kernel,
    lambda xp, t, axis, keepdims, shape, dtype: spread(
        xp, _shared(t, reduced_size(axis, shape)), axis, keepdims, shape
    ),
    numpy_kernel=_mean_numpy,
    tangent=lambda xp, t, axis, keepdims, shape, dtype: xp.mean(t, axis=axis, keepdims=keepdims),
    spec=_mean_spec,
    passes_masks=True,
)
"""mean(x; axis, keepdims, shape, dtype)"""


def _chosen(xp: Any, x: Any, out: Any, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    """Return which entries are the extreme one: those equal to it, or the NaNs where it is NaN."""
    out = lined_up(xp, out, axis, keepdims, shape)
    if is_numpy(out) and not np.isnan(out).any():
        return x == out
    return (x == out) | ((x != x) & (out != out))


def _extreme_vjp(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    chosen = _chosen(xp, x, out, axis, keepdims, shape)
    share = lined_up(xp, t, axis, keepdims, shape) / _count(xp, chosen, t.dtype, axis, True)
    return xp.where(chosen, share, xp.zeros_like(share))


def _extreme_jvp(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    chosen = _chosen(xp, x, out, axis, keepdims, shape)
    picked = xp.sum(xp.where(chosen, t, xp.zeros_like(t)), axis=axis, keepdims=keepdims)
    return picked / _count(xp, chosen, t.dtype, axis, keepdims)


def _count(xp: Any, chosen: Any, dtype: Any, axis: Axes, keepdims: bool) -> Any:
    if xp is np:
        return np.add.reduce(chosen, axis, dtype, None, keepdims)
    return xp.sum(xp.astype(chosen, dtype), axis=axis, keepdims=keepdims)


MAX = general(
    "max",
    lambda xp, x, axis, keepdims, shape: xp.max(x, axis=axis, keepdims=keepdims),
    vjps=(_extreme_vjp,),
    jvps=(_extreme_jvp,),
    numpy_kernel=lambda x, axis, keepdims, shape: np.maximum.reduce(x, axis, None, None, keepdims),
    spec=reduced_spec,
    masks=True,
)
"""max(x; axis, keepdims, shape)"""

MIN = general(
    "min",
    lambda xp, x, axis, keepdims, shape: xp.min(x, axis=axis, keepdims=keepdims),
    vjps=(_extreme_vjp,),
    jvps=(_extreme_jvp,),
    numpy_kernel=lambda x, axis, keepdims, shape: np.minimum.reduce(x, axis, None, None, keepdims),
    spec=reduced_spec,
    masks=True,
)
"""min(x; axis, keepdims, shape)"""


def _as_one_axis(xp: Any, x: Any, axes: tuple[int, ...], shape: Shape) -> tuple[Any, int, Any]:
    """Return x with the reduced axes made one, which axis that is, and a function that undoes it."""
    if len(axes) == 1:
        return x, axes[0], lambda y: y
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    order = kept + axes
    permuted = tuple(shape[i] for i in order)
    back = tuple(order.index(i) for i in range(len(order)))
    lined = xp.reshape(xp.permute_dims(x, order), (*permuted[: len(kept)], reduced_size(axes, shape)))
    return lined, len(kept), lambda y: xp.permute_dims(xp.reshape(y, permuted), back)


def _product_of_others(xp: Any, x: Any, axis: Axes, shape: Shape) -> Any:
    """Return for each entry the product of all others: of those before it times of those after it, without dividing."""
    lined, along, restore = _as_one_axis(xp, x, all_axes(axis, shape), shape)
    before = run(CUMULATIVE_PROD, lined, params=(along, True, False, None))
    after = run(CUMULATIVE_PROD, lined, params=(along, True, True, None))
    return restore(before * after)


def _prod_spec(x: Spec, axis: Axes, keepdims: bool, shape: Shape, dtype: Any) -> Spec:
    return Spec(reduced_shape(axis, keepdims, x.shape), np.multiply.reduce(np.ones(1, x.dtype), dtype=dtype).dtype)


PROD = general(
    "prod",
    lambda xp, x, axis, keepdims, shape, dtype: xp.prod(x, axis=axis, dtype=dtype, keepdims=keepdims),
    vjps=(
        lambda xp, t, x, _out, axis, keepdims, shape, dtype: (
            lined_up(xp, t, axis, keepdims, shape) * _product_of_others(xp, x, axis, shape)
        ),
    ),
    jvps=(
        lambda xp, t, x, _out, axis, keepdims, shape, dtype: xp.sum(
            t * _product_of_others(xp, x, axis, shape), axis=axis, keepdims=keepdims
        ),
    ),
    numpy_kernel=lambda x, axis, keepdims, shape, dtype: np.multiply.reduce(x, axis, dtype, None, keepdims),
    spec=_prod_spec,
    behind=behind_reduced,
)
"""prod(x; axis, keepdims, shape, dtype)"""
