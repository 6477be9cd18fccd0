"""Scans along an axis: running sums, products and log-sums of exponentials.

Each has `reverse` (from the end) and `exclusive` (an entry itself does not count) where TensorFlow has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, normalize_axis
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import Operation, general, linear
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.recurrence import recurrence, shifted
from stopgrad.primitives.reducing import behind_all
from stopgrad.primitives.shape import ravel


def cumulative_sum(
    x: Any, axis: int | None = None, *, dtype: Any = None, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Running sum along an axis.

    Args:
        x: tensor of one or more axes.
        axis: along which; may be left out where there is one axis only.
        dtype: dtype to sum in and to return; by default as `sum`.
        exclusive: entry i is the sum of those before it, without itself.
        reverse: sum from the end.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.
        ArgumentError: no axis is given, and x has several or none.

    Example:
        >>> import stopgrad as sg
        >>> sg.cumulative_sum([1.0, 2.0, 3.0]).numpy()
        array([1., 3., 6.])
        >>> sg.cumulative_sum([1.0, 2.0, 3.0], exclusive=True, reverse=True).numpy()
        array([5., 3., 0.])
    """
    x = to_tensor(x, "cumulative_sum")
    along = _scan_axis("cumulative_sum", axis, x.ndim)
    return bind1(CUMULATIVE_SUM, x, (along, bool(exclusive), bool(reverse), dtype))


def cumulative_prod(
    x: Any, axis: int | None = None, *, dtype: Any = None, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Running product along an axis; its derivatives are right at zeros, at every order.

    Args:
        x: tensor of one or more axes.
        axis: along which; may be left out where there is one axis only.
        dtype: dtype to multiply in and to return; by default as `prod`.
        exclusive: entry i is the product of those before it, without itself.
        reverse: multiply from the end.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.
        ArgumentError: no axis is given, and x has several or none.

    Example:
        >>> import stopgrad as sg
        >>> sg.cumulative_prod([1.0, 2.0, 3.0]).numpy()
        array([1., 2., 6.])
    """
    x = to_tensor(x, "cumulative_prod")
    along = _scan_axis("cumulative_prod", axis, x.ndim)
    return bind1(CUMULATIVE_PROD, x, (along, bool(exclusive), bool(reverse), dtype))


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running sum along an axis, of the flattened tensor if `None`: NumPy's form of `cumulative_sum`.

    Args:
        x: tensor.
        axis: along which; `None` for the flattened tensor.
        dtype: dtype to sum in and to return.

    Returns:
        Tensor of the shape of x, or of one axis if `None`.

    Example:
        >>> import stopgrad as sg
        >>> sg.cumsum([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([ 1.,  3.,  6., 10.])
    """
    return cumulative_sum(ravel(x), dtype=dtype) if axis is None else cumulative_sum(x, axis, dtype=dtype)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running product along an axis, of the flattened tensor if `None`: NumPy's form of `cumulative_prod`.

    Args:
        x: tensor.
        axis: along which; `None` for the flattened tensor.
        dtype: dtype to multiply in and to return.

    Returns:
        Tensor of the shape of x, or of one axis if `None`.

    Example:
        >>> import stopgrad as sg
        >>> sg.cumprod([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([ 1.,  2.,  6., 24.])
    """
    return cumulative_prod(ravel(x), dtype=dtype) if axis is None else cumulative_prod(x, axis, dtype=dtype)


def logcumsumexp(x: Any, axis: int = -1, *, reverse: bool = False) -> Tensor:
    """Logarithm of the running sum of exponentials along an axis, without overflow.

    An entry of -inf counts as nothing, and so its derivative is 0.

    Args:
        x: tensor of a real dtype and one or more axes.
        axis: along which.
        reverse: sum from the end.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.logcumsumexp([1000.0, 1000.0]).numpy()
        array([1000.        , 1000.69314718])
    """
    x = to_tensor(x, "logcumsumexp")
    return bind1(LOGCUMSUMEXP, x, (normalize_axis("logcumsumexp", axis, x.ndim), bool(reverse)))


def _scan_axis(name: str, axis: int | None, ndim: int) -> int:
    if axis is None:
        if ndim != 1:
            raise ArgumentError(f"{name}: give axis=, the axis to run along; the tensor has {ndim} axes")
        return 0
    return normalize_axis(name, axis, ndim)


def _accumulated(ufunc: Any, x: Any, axis: int, exclusive: bool, reverse: bool, dtype: Any) -> Any:
    backwards = (*(slice(None),) * axis, slice(None, None, -1))
    if reverse:
        x = x[backwards]
    out = ufunc.accumulate(x, axis, dtype)
    if exclusive:
        before = (slice(None),) * axis
        moved = np.empty_like(out)
        moved[(*before, slice(0, 1))] = ufunc.identity
        moved[(*before, slice(1, None))] = out[(*before, slice(0, -1))]
        out = moved
    return out[backwards] if reverse else out


def _scanned(xp: Any, scan: Any, first: Any, x: Any, axis: int, exclusive: bool, reverse: bool, dtype: Any) -> Any:
    if reverse:
        x = xp.flip(x, axis=axis)
    out = scan(x, axis=axis, dtype=dtype)
    if exclusive and out.shape[axis]:
        before = (slice(None),) * axis
        out = xp.concat([first(out[(*before, slice(0, 1), ...)]), out[(*before, slice(0, -1), ...)]], axis=axis)
    return xp.flip(out, axis=axis) if reverse else out


def _scan_spec(ufunc: Any) -> Any:
    def spec(x: Spec, axis: int, exclusive: bool, reverse: bool, dtype: Any) -> Spec:
        return Spec(x.shape, ufunc.accumulate(np.ones(1, x.dtype), 0, dtype).dtype)

    return spec


CUMULATIVE_SUM: Operation = linear(
    "cumulative_sum",
    lambda xp, x, axis, exclusive, reverse, dtype: _scanned(
        xp, xp.cumulative_sum, xp.zeros_like, x, axis, exclusive, reverse, dtype
    ),
    lambda xp, t, axis, exclusive, reverse, dtype: run(CUMULATIVE_SUM, t, params=(axis, exclusive, not reverse, None)),
    tangent=lambda xp, t, axis, exclusive, reverse, dtype: run(
        CUMULATIVE_SUM, t, params=(axis, exclusive, reverse, None)
    ),
    numpy_kernel=lambda x, axis, exclusive, reverse, dtype: _accumulated(np.add, x, axis, exclusive, reverse, dtype),
    spec=_scan_spec(np.add),
    passes_masks=True,
)
"""cumulative_sum(x; axis, exclusive, reverse, dtype)"""


def _product_before(x: Any, axis: int, reverse: bool) -> Any:
    return run(CUMULATIVE_PROD, x, params=(axis, True, reverse, None))


def _cumprod_vjp(xp: Any, t: Any, x: Any, _out: Any, axis: int, exclusive: bool, reverse: bool, dtype: Any) -> Any:
    """With P the product before an entry: x̄ᵢ = Pᵢ wᵢ, where wᵢ = tᵢ + xᵢ₊₁ wᵢ₊₁ (tᵢ₊₁ for tᵢ if exclusive)."""
    back = 1 if reverse else -1
    after = recurrence(shifted(x, axis, back), shifted(t, axis, back) if exclusive else t, axis, not reverse)
    return _product_before(x, axis, reverse) * after


def _cumprod_jvp(xp: Any, t: Any, x: Any, _out: Any, axis: int, exclusive: bool, reverse: bool, dtype: Any) -> Any:
    forth = -1 if reverse else 1
    changes = t * _product_before(x, axis, reverse)
    if exclusive:
        return recurrence(shifted(x, axis, forth), shifted(changes, axis, forth), axis, reverse)
    return recurrence(x, changes, axis, reverse)


CUMULATIVE_PROD = general(
    "cumulative_prod",
    lambda xp, x, axis, exclusive, reverse, dtype: _scanned(
        xp, xp.cumulative_prod, xp.ones_like, x, axis, exclusive, reverse, dtype
    ),
    vjps=(_cumprod_vjp,),
    jvps=(_cumprod_jvp,),
    numpy_kernel=lambda x, axis, exclusive, reverse, dtype: _accumulated(
        np.multiply, x, axis, exclusive, reverse, dtype
    ),
    spec=_scan_spec(np.multiply),
    behind=behind_all,
)
"""cumulative_prod(x; axis, exclusive, reverse, dtype)"""


def _logcumsumexp_kernel(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    before = (slice(None),) * axis
    count = x.shape[axis]
    steps: list[Any] = []
    for i in range(count - 1, -1, -1) if reverse else range(count):
        entry = x[(*before, i, ...)]
        steps.append(xp.logaddexp(steps[-1], entry) if steps else entry)
    return xp.stack(steps[::-1] if reverse else steps, axis=axis) if steps else xp.zeros_like(x)


def _logcumsumexp_numpy(x: Any, axis: int, reverse: bool) -> Any:
    return _accumulated(np.logaddexp, x, axis, False, reverse, None)


def _decay(xp: Any, later: Any, earlier: Any) -> Any:
    """Return exp(earlier - later), 1 where both are the same infinity."""
    return xp.exp(xp.where(later == earlier, xp.zeros_like(later), earlier - later))


def _share(xp: Any, x: Any, out: Any) -> Any:
    """Return exp(x - out), an entry's share in its own running sum; 0 for an entry of -inf."""
    return xp.where(x == float("-inf"), xp.zeros_like(x), _decay(xp, out, x))


def _logcumsumexp_vjp(xp: Any, t: Any, x: Any, out: Any, axis: int, reverse: bool) -> Any:
    """x̄ᵢ = exp(xᵢ - yᵢ) wᵢ, where wᵢ = tᵢ + exp(yᵢ - yᵢ₊₁) wᵢ₊₁: no factor above 1, so nothing overflows."""
    following = shifted(out, axis, 1 if reverse else -1)
    return _share(xp, x, out) * recurrence(_decay(xp, following, out), t, axis, not reverse)


def _logcumsumexp_jvp(xp: Any, t: Any, x: Any, out: Any, axis: int, reverse: bool) -> Any:
    preceding = shifted(out, axis, -1 if reverse else 1)
    return recurrence(_decay(xp, out, preceding), _share(xp, x, out) * t, axis, reverse)


LOGCUMSUMEXP = general(
    "logcumsumexp",
    _logcumsumexp_kernel,
    vjps=(_logcumsumexp_vjp,),
    jvps=(_logcumsumexp_jvp,),
    numpy_kernel=_logcumsumexp_numpy,
    spec=lambda x, axis, reverse: x,
    behind=behind_all,
)
"""logcumsumexp(x; axis, reverse)"""
