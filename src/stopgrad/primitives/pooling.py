"""Pools over windows: the largest entry or the mean of each; and resizing by repeating the nearest entry.

Tensors are (batch, *spatial, channels). Padding takes no part: it is never the largest, and means do not count it.
Where several entries of a window are the largest they share its derivative evenly, as in `max`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, carries_derivative
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import ZERO, Operation, Rule, general, linear
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.casting import astype
from stopgrad.primitives.gathering import take
from stopgrad.primitives.geometry import Geometry, geometry_of, padded
from stopgrad.primitives.inputs import on_host, to_shape, to_tensor
from stopgrad.primitives.reductions import max, mean


def _lowest(dtype: Any) -> Any:
    return -np.inf if carries_derivative(dtype) else np.iinfo(dtype).min if dtype.kind in "iu" else False


def _largest(x: Any, geometry: Geometry) -> Any:
    spread = padded(x, geometry, _lowest(x.dtype))
    out: Any = None
    for _, index in geometry.places():
        out = spread[index].copy() if out is None else np.maximum(out, spread[index], out=out)
    return out


def _chosen(x: np.ndarray, out: np.ndarray, geometry: Geometry) -> tuple[list[np.ndarray], np.ndarray]:
    """Return for each place in the window where it holds the largest entry, and how many places do."""
    spread = padded(x, geometry, _lowest(x.dtype))
    inside = padded(np.ones((1, *geometry.size, 1), bool), geometry, False)
    at = []
    for _, index in geometry.places():
        entry = spread[index]
        at.append(((entry == out) | ((entry != entry) & (out != out))) & inside[index])
    return at, np.add.reduce(at, axis=0, dtype=x.dtype)


def _spread_largest(t: np.ndarray, x: np.ndarray, out: np.ndarray, geometry: Geometry) -> Any:
    at, count = _chosen(x, out, geometry)
    share = t / count
    result = np.zeros((len(x), *geometry.padded, x.shape[-1]), share.dtype)
    for (_, index), here in zip(geometry.places(), at, strict=True):
        result[index] += np.where(here, share, 0)
    return result[geometry.inside]


def _gather_largest(t: np.ndarray, x: np.ndarray, out: np.ndarray, geometry: Geometry) -> Any:
    at, count = _chosen(x, out, geometry)
    spread = padded(t, geometry)
    total = np.zeros(out.shape, t.dtype)
    for (_, index), here in zip(geometry.places(), at, strict=True):
        total += np.where(here, spread[index], 0)
    return total / count


def _by_host(kernel: Any) -> Rule:
    return lambda xp, *arrays_and_geometry: on_host(
        xp, lambda *hosts: kernel(*hosts, arrays_and_geometry[-1]), *arrays_and_geometry[:-1]
    )


def _constant(xp: Any, t: Any, _t: Any, _x: Any, _largest: Any, _out: Any, geometry: Geometry) -> Any:
    return ZERO


MAX_POOL: Operation = general(
    "max_pool",
    _by_host(_largest),
    numpy_kernel=_largest,
    vjps=(lambda xp, t, x, out, geometry: run(SPREAD_LARGEST, t, x, out, params=(geometry,)),),
    jvps=(lambda xp, t, x, out, geometry: run(GATHER_LARGEST, t, x, out, params=(geometry,)),),
    spec=lambda x, geometry: Spec((x.shape[0], *geometry.out, x.shape[-1]), x.dtype),
    masks=True,
)
"""max_pool(x; geometry)"""

SPREAD_LARGEST: Operation = general(
    "spread_largest",
    _by_host(_spread_largest),
    numpy_kernel=_spread_largest,
    vjps=(
        lambda xp, u, _t, x, largest, _out, geometry: run(GATHER_LARGEST, u, x, largest, params=(geometry,)),
        _constant,
        _constant,
    ),
    jvps=(
        lambda xp, u, _t, x, largest, _out, geometry: run(SPREAD_LARGEST, u, x, largest, params=(geometry,)),
        _constant,
        _constant,
    ),
    spec=lambda t, x, largest, geometry: x,
)
"""spread_largest(t, x, max_pool of x; geometry): t put where the largest entries are."""

GATHER_LARGEST: Operation = general(
    "gather_largest",
    _by_host(_gather_largest),
    numpy_kernel=_gather_largest,
    vjps=(
        lambda xp, u, _t, x, largest, _out, geometry: run(SPREAD_LARGEST, u, x, largest, params=(geometry,)),
        _constant,
        _constant,
    ),
    jvps=(
        lambda xp, u, _t, x, largest, _out, geometry: run(GATHER_LARGEST, u, x, largest, params=(geometry,)),
        _constant,
        _constant,
    ),
    spec=lambda t, x, largest, geometry: largest,
    masks=True,
)
"""gather_largest(t, x, max_pool of x; geometry): t taken where the largest entries are, its mean over ties."""


def _count(geometry: Geometry) -> np.ndarray:
    """Return how many entries each window has that are no padding, of shape (*out, 1)."""
    count = np.ones(())
    for axis, (size, window, out, stride, (before, _)) in enumerate(
        zip(geometry.size, geometry.window, geometry.out, geometry.strides, geometry.pads, strict=True)
    ):
        first = np.arange(out) * stride - before
        inside = np.minimum(first + window, size) - np.maximum(first, 0)
        count = count * inside.reshape((-1,) + (1,) * (len(geometry.size) - axis))
    return np.maximum(count, 1)


def _mean(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    spread = padded(x, geometry)
    out = np.zeros((len(x), *geometry.out, x.shape[-1]), x.dtype)
    for _, index in geometry.places():
        out += spread[index]
    out /= _count(geometry)
    return out


def _spread_mean(t: np.ndarray, geometry: Geometry) -> np.ndarray:
    share = (t / _count(geometry)).astype(t.dtype, copy=False)
    result = np.zeros((len(t), *geometry.padded, t.shape[-1]), t.dtype)
    for _, index in geometry.places():
        result[index] += share
    return result[geometry.inside]


AVG_POOL: Operation = linear(
    "avg_pool",
    _by_host(_mean),
    lambda xp, t, geometry: run(SPREAD_MEAN, t, params=(geometry,)),
    numpy_kernel=_mean,
    tangent=lambda xp, t, geometry: run(AVG_POOL, t, params=(geometry,)),
    spec=lambda x, geometry: Spec((x.shape[0], *geometry.out, x.shape[-1]), x.dtype),
)
"""avg_pool(x; geometry)"""

SPREAD_MEAN: Operation = linear(
    "spread_mean",
    _by_host(_spread_mean),
    lambda xp, t, geometry: run(AVG_POOL, t, params=(geometry,)),
    numpy_kernel=_spread_mean,
    tangent=lambda xp, t, geometry: run(SPREAD_MEAN, t, params=(geometry,)),
    spec=lambda t, geometry: Spec((t.shape[0], *geometry.size, t.shape[-1]), t.dtype),
)
"""spread_mean(t; geometry): t divided evenly over its windows."""


def max_pool(x: Any, window: Any, strides: Any = None, padding: Any = "VALID") -> Tensor:
    """Largest entry of each window.

    Ties: the derivative of a window is shared evenly among all entries equal to the largest. A window with a NaN gives
    NaN.

    Args:
        x: tensor of shape (batch, *spatial, channels), of a real dtype.
        window: its sizes, one number or one a spatial axis.
        strides: how far it moves each step; by default by its own size.
        padding: "VALID", "SAME", or for each spatial axis how many entries to add; see `conv`.

    Returns:
        Tensor of shape (batch, *results, channels).

    Raises:
        ShapeError: a window that does not fit, or too few axes.
        ArgumentError: a setting that makes no sense, such as a window of nothing but padding.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.reshape([1.0, 3.0, 2.0, 0.0], (1, 4, 1))
        >>> sg.max_pool(x, 2)[0, :, 0].numpy()
        array([3., 2.])
    """
    x, geometry = _pool("max_pool", x, window, strides, padding)
    return bind1(MAX_POOL, x, (geometry,))


def avg_pool(x: Any, window: Any, strides: Any = None, padding: Any = "VALID") -> Tensor:
    """Mean of each window, over its entries that are no padding.

    Args:
        x: tensor of shape (batch, *spatial, channels); integers become float64.
        window: its sizes, one number or one a spatial axis.
        strides: how far it moves each step; by default by its own size.
        padding: "VALID", "SAME", or for each spatial axis how many entries to add; see `conv`.

    Returns:
        Tensor of shape (batch, *results, channels).

    Raises:
        ShapeError: a window that does not fit, or too few axes.
        ArgumentError: a setting that makes no sense, such as a window of nothing but padding.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.reshape([1.0, 3.0, 2.0, 0.0], (1, 4, 1))
        >>> sg.avg_pool(x, 2)[0, :, 0].numpy()
        array([2., 1.])
    """
    x, geometry = _pool("avg_pool", x, window, strides, padding)
    x = x if carries_derivative(x.dtype) else astype(x, "float64")
    return bind1(AVG_POOL, x, (geometry,))


def _pool(name: str, x: Any, window: Any, strides: Any, padding: Any) -> tuple[Tensor, Geometry]:
    x = _spatial(name, x)
    geometry = geometry_of(name, x.shape[1:-1], window, window if strides is None else strides, padding)
    for (before, after), size in zip(geometry.pads, geometry.window, strict=True):
        if before >= size or after >= size:
            raise ArgumentError(
                f"{name}: padding {geometry.pads} is as large as the window {geometry.window}, which would leave "
                "windows of nothing but padding"
            )
    return x, geometry


def _spatial(name: str, x: Any) -> Tensor:
    tensor = to_tensor(x, name)
    if len(tensor.shape) < 3:
        raise ShapeError(
            f"{name}: x must be (batch, *spatial, channels), with at least three axes; got shape {tensor.shape}"
        )
    return tensor


def global_max_pool(x: Any, keepdims: bool = False) -> Tensor:
    """Largest entry over all spatial axes, shared evenly at ties.

    Args:
        x: tensor of shape (batch, *spatial, channels).
        keepdims: keep the spatial axes, with size 1.

    Returns:
        Tensor of shape (batch, channels).

    Raises:
        ShapeError: too few axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.global_max_pool(sg.reshape([1.0, 3.0, 2.0, 0.0], (1, 2, 2, 1))).numpy()
        array([[3.]])
    """
    x = _spatial("global_max_pool", x)
    return max(x, axis=tuple(range(1, len(x.shape) - 1)), keepdims=keepdims)


def global_avg_pool(x: Any, keepdims: bool = False) -> Tensor:
    """Mean over all spatial axes.

    Args:
        x: tensor of shape (batch, *spatial, channels).
        keepdims: keep the spatial axes, with size 1.

    Returns:
        Tensor of shape (batch, channels).

    Raises:
        ShapeError: too few axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.global_avg_pool(sg.reshape([1.0, 3.0, 2.0, 0.0], (1, 2, 2, 1))).numpy()
        array([[1.5]])
    """
    x = _spatial("global_avg_pool", x)
    return mean(x, axis=tuple(range(1, len(x.shape) - 1)), keepdims=keepdims)


def resize_nearest(x: Any, size: Any) -> Tensor:
    """Another size along the spatial axes, each new entry being the old one nearest to its centre.

    Args:
        x: tensor of shape (batch, *spatial, channels).
        size: the new sizes, one number or one a spatial axis.

    Returns:
        Tensor of shape (batch, *size, channels).

    Raises:
        ShapeError: sizes that do not fit the spatial axes, or an empty axis.

    Example:
        >>> import stopgrad as sg
        >>> sg.resize_nearest(sg.reshape([1.0, 2.0], (1, 2, 1)), 4)[0, :, 0].numpy()
        array([1., 1., 2., 2.])
    """
    tensor = _spatial("resize_nearest", x)
    before = tensor.shape[1:-1]
    after = to_shape("resize_nearest", size)
    after = after * len(before) if len(after) == 1 else after
    if len(after) != len(before) or not math.prod(before):
        raise ShapeError(
            f"resize_nearest: cannot bring spatial axes {before} to {after}; give a size for each, none empty"
        )
    for axis, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        if old != new:
            # The old entry in whose span the centre of the new one lies.
            tensor = take(tensor, (2 * np.arange(new) + 1) * old // (2 * new), axis)
    return tensor
