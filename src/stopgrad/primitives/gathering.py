"""Entries by number along an axis: `take`, `take_along_axis` and `repeat`.

Two pairs of operations, each the other's adjoint: `take` and `sum_segments` along one axis, `take_along_axis` and
`add_along_axis` with an index for each line. They keep the indices only. An embedding is `take(table, ids, axis=0)`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, broadcast_shapes, normalize_axis
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.operation import ABSENT, general
from stopgrad.core.record import bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import on_host, to_host, to_integers, to_tensor
from stopgrad.primitives.shape import broadcast_to, expand_dims, ravel, reshape

_MODES = ("raise", "wrap", "clip")


def take(x: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """The entries with the given numbers along an axis, in the order and as often as they are given.

    Derivatives: an entry taken several times gets the sum of its cotangents.

    Args:
        x: tensor, array or number.
        indices: integers, of any shape; negative ones count from the end.
        axis: along which axis; by default x is flattened first.
        mode: what to do outside the axis: "raise", "wrap" around, or "clip" to the first or last entry (negative
            ones too).

    Returns:
        Tensor with the axes of the indices in place of the axis.

    Raises:
        BoundsError: an index out of range, with mode "raise".
        ArgumentTypeError: indices that are not integers.

    Example:
        >>> import stopgrad as sg
        >>> sg.take([10.0, 20.0, 30.0], [2, 0, 2]).numpy()
        array([30., 10., 30.])
    """
    x = to_tensor(x, "take")
    if mode not in _MODES:
        raise ArgumentError(f"take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis("take", axis, len(x.shape))
    return bind2(TAKE, x, to_indices("take", "indices", indices), (axis, mode, x.shape[axis]))


def to_indices(name: str, argument: str, indices: Any) -> Tensor:
    """Return an argument that must hold integers as a tensor, or raise in the name of the function."""
    numbers = to_tensor(indices, name)
    if numbers.size == 0 and str(numbers.dtype) == "float64":
        return Tensor(np.zeros(numbers.shape, np.intp))
    if "int" not in str(numbers.dtype):
        raise ArgumentTypeError(f"{name}: {argument} must be integers, got {numbers.dtype}; convert them with astype")
    return numbers


def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """For each line along an axis, the entries with that line's numbers: what argsort and argmax give an index for.

    Args:
        x: tensor or array.
        indices: integers with as many axes as x; the other axes broadcast against those of x.
        axis: along which axis; `None` flattens x.

    Returns:
        Tensor of the shape of the indices (broadcast).

    Raises:
        BoundsError: an index out of range.
        ShapeError: the numbers of axes differ, or the other axes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.take_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]], axis=1).numpy()
        array([[2.],
               [3.]])
    """
    x = to_tensor(x, "take_along_axis")
    indices = to_indices("take_along_axis", "indices", indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis("take_along_axis", axis, len(x.shape))
    lines_shape("take_along_axis", x.shape, indices.shape, axis)
    return bind2(TAKE_ALONG_AXIS, x, indices, (axis, x.shape))


def lines_shape(name: str, shape: Shape, indices: Shape, axis: int) -> Shape:
    """Return the shape of what an index for each line along an axis selects."""
    if len(shape) != len(indices):
        raise ShapeError(f"{name}: x has {len(shape)} axes and indices {len(indices)}; give both the same number")
    others = broadcast_shapes(name, (*shape[:axis], 1, *shape[axis + 1 :]), (*indices[:axis], 1, *indices[axis + 1 :]))
    return (*others[:axis], indices[axis], *others[axis + 1 :])


def numbers_along(size: int, axis: int, ndim: int, stride: int = 1) -> np.ndarray:
    """Return 0, 1, … along one of several axes."""
    return np.arange(0, size * stride, stride).reshape((-1,) + (1,) * (ndim - axis - 1))


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Every entry repeated in place.

    Args:
        x: tensor, array or number.
        repeats: how many times, one number for all or one for each entry along the axis.
        axis: along which axis; by default x is flattened first.

    Returns:
        Tensor with the axis longer.

    Raises:
        ShapeError: a negative number, or not as many as there are entries.

    Example:
        >>> import stopgrad as sg
        >>> sg.repeat([1.0, 2.0], 2).numpy()
        array([1., 1., 2., 2.])
    """
    x = to_tensor(x, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis("repeat", axis, len(x.shape))
    size = x.shape[axis]
    counts = to_integers("repeat", "repeats", to_host(repeats.value) if isinstance(repeats, Tensor) else repeats)
    if any(count < 0 for count in counts) or len(counts) not in (1, size):
        raise ShapeError(f"repeat: repeats must be one number or {size}, none negative; got {counts}")
    if len(counts) == 1:
        (count,) = counts
        spread = expand_dims(x, axis + 1)
        repeated = broadcast_to(spread, (*x.shape[: axis + 1], count, *x.shape[axis + 1 :]))
        return reshape(repeated, (*x.shape[:axis], size * count, *x.shape[axis + 1 :]))
    return take(x, np.repeat(np.arange(size), counts), axis)


def _taken_spec(x: Spec, indices: Spec, axis: int, _mode: str, _size: int) -> Spec:
    return Spec((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _take_numpy(x: Any, indices: Any, axis: int, mode: str, size: int) -> Any:
    if mode != "drop":
        return x.take(indices, axis, None, mode)
    inside = (indices >= 0) & (indices < size)
    if size == 0:
        return np.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    taken = x.take(np.where(inside, indices, 0), axis)
    if np.all(inside):
        return taken
    return np.where(inside.reshape(inside.shape + (1,) * (len(x.shape) - axis - 1)), taken, np.zeros((), x.dtype))


def _take(xp: Any, x: Any, indices: Any, axis: int, mode: str, size: int) -> Any:
    if mode == "drop" or size == 0:
        return on_host(xp, lambda a, b: _take_numpy(a, b, axis, mode, size), x, indices)
    flat = xp.reshape(indices, (-1,))
    if mode == "wrap":
        flat = xp.remainder(flat, size)
    elif mode == "clip":
        flat = xp.clip(flat, 0, size - 1)
    else:
        flat = xp.where(flat < 0, flat + size, flat)
    return xp.reshape(xp.take(x, flat, axis=axis), (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _sum_segments_numpy(t: Any, indices: Any, axis: int, mode: str, size: int) -> Any:
    before, after = t.shape[:axis], t.shape[axis + np.ndim(indices) :]
    lines, width = math.prod(before), math.prod(after)
    numbers = np.ravel(indices)
    entries = np.reshape(t, (lines, numbers.size, width))
    if mode == "wrap":
        numbers = numbers % size
    elif mode == "clip":
        numbers = np.clip(numbers, 0, size - 1)
    elif mode == "drop":
        inside = (numbers >= 0) & (numbers < size)
        if not inside.all():
            numbers, entries = numbers[inside], entries[:, inside]
    else:
        numbers = np.where(numbers < 0, numbers + size, numbers)
    out = np.zeros((lines, size, width), t.dtype)
    positions = numbers[:, None] * width + np.arange(width)
    if lines != 1:
        positions = np.arange(0, lines * size * width, size * width or 1)[:, None, None] + positions
    np.add.at(out.reshape(-1), positions.reshape(-1), np.ascontiguousarray(entries).reshape(-1))
    return out.reshape((*before, size, *after))


def _sum_segments(xp: Any, t: Any, indices: Any, axis: int, mode: str, size: int) -> Any:
    return on_host(xp, lambda a, b: _sum_segments_numpy(a, b, axis, mode, size), t, indices)


def _take_rule(xp: Any, t: Any, _x: Any, indices: Any, _out: Any, *params: Any) -> Any:
    return run(TAKE, t, indices, params=params)


def _sum_segments_rule(xp: Any, t: Any, _x: Any, indices: Any, _out: Any, *params: Any) -> Any:
    return run(SUM_SEGMENTS, t, indices, params=params)


def _no_path(xp: Any, t: Any, _x: Any, _indices: Any, _out: Any, *params: Any) -> Any:
    return ABSENT


TAKE = general(
    "take",
    _take,
    numpy_kernel=_take_numpy,
    vjps=(_sum_segments_rule, _no_path),
    jvps=(_take_rule, _no_path),
    spec=_taken_spec,
    masks=True,
    passes_masks=True,
)
"""take(x, indices; axis, mode, size of that axis); mode "drop" gives zero outside."""

SUM_SEGMENTS = general(
    "sum_segments",
    _sum_segments,
    numpy_kernel=_sum_segments_numpy,
    vjps=(_take_rule, _no_path),
    jvps=(_sum_segments_rule, _no_path),
    spec=lambda t, indices, axis, _mode, size: Spec(
        (*t.shape[:axis], size, *t.shape[axis + len(indices.shape) :]), t.dtype
    ),
    masks=True,
)
"""sum_segments(t, indices; axis, mode, size): zeros of that size along the axis, with t added where take would look."""


def _take_along_axis(xp: Any, x: Any, indices: Any, axis: int, _shape: Shape) -> Any:
    return on_host(xp, lambda a, b: np.take_along_axis(a, b, axis), x, indices)


def _add_along_axis_numpy(t: Any, indices: Any, axis: int, shape: Shape) -> Any:
    numbers = np.where(indices < 0, indices + shape[axis], indices)
    index: list[Any] = [numbers_along(size, position, len(shape)) for position, size in enumerate(shape)]
    index[axis] = numbers
    out = np.zeros(shape, t.dtype)
    if np.size(t) < 1024:
        np.add.at(out, tuple(index), t)
        return out
    positions = np.zeros((), np.intp)
    stride = 1
    for position in reversed(range(len(shape))):
        positions = positions + index[position] * stride
        stride *= shape[position]
    np.add.at(out.reshape(-1), positions.reshape(-1), np.ascontiguousarray(t).reshape(-1))
    return out


def _add_along_axis(xp: Any, t: Any, indices: Any, axis: int, shape: Shape) -> Any:
    return on_host(xp, lambda a, b: _add_along_axis_numpy(a, b, axis, shape), t, indices)


def _take_along_rule(xp: Any, t: Any, _x: Any, indices: Any, _out: Any, axis: int, shape: Shape) -> Any:
    return run(TAKE_ALONG_AXIS, t, indices, params=(axis, shape))


def _add_along_rule(xp: Any, t: Any, _x: Any, indices: Any, _out: Any, axis: int, shape: Shape) -> Any:
    return run(ADD_ALONG_AXIS, t, indices, params=(axis, shape))


TAKE_ALONG_AXIS = general(
    "take_along_axis",
    _take_along_axis,
    numpy_kernel=lambda x, indices, axis, _shape: np.take_along_axis(x, indices, axis),
    vjps=(_add_along_rule, _no_path),
    jvps=(_take_along_rule, _no_path),
    spec=lambda x, indices, axis, shape: Spec(lines_shape("take_along_axis", shape, indices.shape, axis), x.dtype),
    masks=True,
    passes_masks=True,
)
"""take_along_axis(x, indices; axis, shape of x)"""

ADD_ALONG_AXIS = general(
    "add_along_axis",
    _add_along_axis,
    numpy_kernel=_add_along_axis_numpy,
    vjps=(_take_along_rule, _no_path),
    jvps=(_add_along_rule, _no_path),
    spec=lambda t, _indices, _axis, shape: Spec(shape, t.dtype),
    passes_masks=True,
)
"""add_along_axis(t, indices; axis, shape): zeros of the shape, with t added where take_along_axis would look."""
