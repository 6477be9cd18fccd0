"""Log-sum-exp, softmax and standardisation: operations that normalise along axes, each one node of the record.

All subtract the largest entry first, so large inputs do not overflow; the derivatives do not depend on which entry that
was, so ties are fine. softmax and log_softmax keep their output only, logsumexp its input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, normalize_axes
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import general
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reducing import (
    Axes,
    all_axes,
    behind_all,
    behind_reduced,
    lined_up,
    mean_over,
    reduced_shape,
    reduction_params,
)


def logsumexp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials over axes, without overflow.

    The gradient is softmax(x). Over nothing, and where all entries are -inf, the value is -inf and the gradient 0;
    where some are +inf the value is +inf and the gradient is shared evenly among them.

    Args:
        x: tensor of a real dtype.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.logsumexp([1000.0, 1000.0]).numpy()
        array(1000.69314718)
    """
    x = to_tensor(x, "logsumexp")
    return bind1(LOGSUMEXP, x, reduction_params("logsumexp", x.value.shape, axis, keepdims))


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """Exponentials divided by their sum along an axis, without overflow.

    Args:
        x: tensor of a real dtype.
        axis: along which the result sums to 1; a tuple of axes, or `None` for all, sums over them together.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.softmax([1000.0, 1001.0]).numpy()
        array([0.26894142, 0.73105858])
    """
    x = to_tensor(x, "softmax")
    return bind1(SOFTMAX, x, (normalize_axes("softmax", axis, x.ndim), False))


def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """Logarithm of softmax, x - logsumexp(x), without overflow or cancellation.

    Args:
        x: tensor of a real dtype.
        axis: along which the exponentials of the result sum to 1; see `softmax`.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.log_softmax([0.0, 1000.0]).numpy()
        array([-1000.,     0.])
    """
    x = to_tensor(x, "log_softmax")
    return bind1(LOG_SOFTMAX, x, (normalize_axes("log_softmax", axis, x.ndim),))


def standardize(x: Any, axis: Any = -1, *, epsilon: float = 1e-5) -> Tensor:
    """Bring entries to mean 0 and variance 1 along an axis: (x - mean) / √(variance + epsilon).

    What layer normalisation does before it scales and shifts (Ba, Kiros and Hinton, 2016, arXiv:1607.06450).

    Args:
        x: tensor of a real floating dtype.
        axis: over which mean and variance are taken; a tuple of axes, or `None` for all, takes them together.
        epsilon: added to the variance, so that equal entries give 0.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.
        ArgumentError: epsilon is negative.

    Example:
        >>> import stopgrad as sg
        >>> sg.standardize([1.0, 2.0, 3.0], epsilon=0.0).numpy()
        array([-1.22474487,  0.        ,  1.22474487])
    """
    x = to_tensor(x, "standardize")
    if not epsilon >= 0:
        raise ArgumentError(f"standardize: epsilon must not be negative, got {epsilon!r}")
    return bind1(STANDARDIZE, x, (normalize_axes("standardize", axis, x.ndim), float(epsilon)))


def _float_spec(shape: Shape, dtype: Any) -> Spec:
    return Spec(shape, np.exp(np.ones(1, dtype)).dtype)


def _as_float(x: Any) -> Any:
    return x.astype(np.exp(x[:0] if x.ndim else x).dtype) if x.dtype.kind in "biu" else x


def _finite_largest(xp: Any, x: Any, axis: Axes) -> Any:
    """Return the largest entries, with 1 for the size of the axes, and 0 for those that are not finite."""
    largest = xp.max(x, axis=axis, keepdims=True)
    return xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))


def _logsumexp_kernel(xp: Any, x: Any, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    if 0 in shape:
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    largest = _finite_largest(xp, x, axis)
    total = xp.sum(xp.exp(x - largest), axis=axis, keepdims=keepdims)
    return xp.log(total) + (largest if keepdims else xp.squeeze(largest, axis=all_axes(axis, shape)))


def _logsumexp_numpy(x: Any, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    x = _as_float(x)
    largest = np.maximum.reduce(x, axis, None, None, True, -np.inf)
    if np.isfinite(largest).all():
        total = np.add.reduce(np.exp(x - largest), axis, None, None, keepdims)
        return np.log(total) + (largest if keepdims else largest.reshape(total.shape))
    with np.errstate(divide="ignore", over="ignore"):
        largest = np.where(np.isfinite(largest), largest, 0).astype(largest.dtype)
        total = np.add.reduce(np.exp(x - largest), axis, None, None, keepdims)
        return np.log(total) + largest.reshape(total.shape)


def _weights(x: Any, axis: Axes) -> Any:
    """Return softmax(x), with limits at infinities; exp(x - logsumexp(x)) would lose digits where x is large."""
    return run(SOFTMAX, x, params=(all_axes(axis, x.shape), True))


LOGSUMEXP = general(
    "logsumexp",
    _logsumexp_kernel,
    vjps=(lambda xp, t, x, _out, axis, keepdims, shape: lined_up(xp, t, axis, keepdims, shape) * _weights(x, axis),),
    jvps=(lambda xp, t, x, _out, axis, keepdims, shape: xp.sum(t * _weights(x, axis), axis=axis, keepdims=keepdims),),
    numpy_kernel=_logsumexp_numpy,
    behind=behind_reduced,
    spec=lambda x, axis, keepdims, shape: _float_spec(reduced_shape(axis, keepdims, shape), x.dtype),
)
"""logsumexp(x; axis, keepdims, shape)"""


def _softmax_kernel(xp: Any, x: Any, axis: tuple[int, ...], limits: bool) -> Any:
    if 0 in x.shape:
        return xp.exp(x)
    largest = xp.max(x, axis=axis, keepdims=True)
    if not limits:
        exponentials = xp.exp(x - largest)
        return exponentials / xp.sum(exponentials, axis=axis, keepdims=True)
    exponentials = xp.exp(x - _finite_largest(xp, x, axis))
    exponentials = xp.where(largest == float("inf"), xp.astype(x == largest, x.dtype), exponentials)
    total = xp.sum(exponentials, axis=axis, keepdims=True)
    return exponentials / xp.where(total == 0, xp.ones_like(total), total)


def _softmax_numpy(x: Any, axis: tuple[int, ...], limits: bool) -> Any:
    x = _as_float(x)
    if not x.size:
        return x
    largest = np.maximum.reduce(x, axis, None, None, True)
    if limits and not np.isfinite(largest).all():
        with np.errstate(over="ignore", invalid="ignore"):
            return _softmax_kernel(np, x, axis, limits)
    exponentials = np.exp(x - largest)
    exponentials /= np.add.reduce(exponentials, axis, None, None, True)
    return exponentials


def _softmax_rule(xp: Any, t: Any, _x: Any, out: Any, axis: tuple[int, ...], limits: bool) -> Any:
    """The Jacobian, diag(p) - p pᵀ, is symmetric: one rule serves both directions."""
    if xp is np:
        weighted = t * out
        return weighted - out * np.add.reduce(weighted, axis, None, None, True)
    return out * (t - xp.sum(t * out, axis=axis, keepdims=True))


SOFTMAX = general(
    "softmax",
    _softmax_kernel,
    vjps=(_softmax_rule,),
    jvps=(_softmax_rule,),
    numpy_kernel=_softmax_numpy,
    behind=behind_all,
    spec=lambda x, axis, limits: _float_spec(x.shape, x.dtype),
)
"""softmax(x; axis, limits): with `limits`, not NaN but: entries of +inf share 1 evenly, and -inf alone gives 0."""


def _log_softmax_kernel(xp: Any, x: Any, axis: tuple[int, ...]) -> Any:
    if 0 in x.shape:
        return xp.exp(x)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_numpy(x: Any, axis: tuple[int, ...]) -> Any:
    x = _as_float(x)
    if not x.size:
        return x
    shifted = x - np.maximum.reduce(x, axis, None, None, True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis, None, None, True))


LOG_SOFTMAX = general(
    "log_softmax",
    _log_softmax_kernel,
    vjps=(lambda xp, t, _x, out, axis: t - xp.exp(out) * xp.sum(t, axis=axis, keepdims=True),),
    jvps=(lambda xp, t, _x, out, axis: t - xp.sum(t * xp.exp(out), axis=axis, keepdims=True),),
    numpy_kernel=_log_softmax_numpy,
    behind=behind_all,
    spec=lambda x, axis: _float_spec(x.shape, x.dtype),
)
"""log_softmax(x; axis)"""


def _standardize_kernel(xp: Any, x: Any, axis: tuple[int, ...], epsilon: float) -> Any:
    centred = x - mean_over(xp, x, axis)
    variance = mean_over(xp, centred * centred, axis)
    return centred / _root(xp, variance, epsilon)


def _root(xp: Any, variance: Any, epsilon: float) -> Any:
    """Return √(variance + epsilon), 1 where that is 0: there all entries are equal, and the result is 0."""
    square = variance + epsilon
    return xp.sqrt(square if epsilon > 0 else xp.where(square == 0, xp.ones_like(square), square))


def _standardize_rule(xp: Any, t: Any, x: Any, _out: Any, axis: tuple[int, ...], epsilon: float) -> Any:
    """With y the result and r = 1 / √(variance + ε): r (t - mean t - y mean(y t)), symmetric, so for both modes."""
    centred = x - mean_over(xp, x, axis)
    root = _root(xp, mean_over(xp, centred * centred, axis), epsilon)
    y = centred / root
    return (t - mean_over(xp, t, axis) - y * mean_over(xp, y * t, axis)) / root


STANDARDIZE = general(
    "standardize",
    _standardize_kernel,
    vjps=(_standardize_rule,),
    jvps=(_standardize_rule,),
    spec=lambda x, axis, epsilon: _float_spec(x.shape, x.dtype),
    behind=behind_all,
)
"""standardize(x; axis, epsilon)"""
