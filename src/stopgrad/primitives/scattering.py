"""Gathering and scattering by places and numbers, as TensorFlow has it, and sums over segments.

All of it is built of the operations of `stopgrad.primitives.gathering` and `stopgrad.primitives.indexing`.
"""

from __future__ import annotations

import math
from typing import Any

from stopgrad.core.arrays import Shape, normalize_axis
from stopgrad.core.errors import BoundsError, ShapeError
from stopgrad.core.record import bind, bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.gathering import (
    SUM_SEGMENTS,
    lines_shape,
    numbers_along,
    take,
    take_along_axis,
    to_indices,
)
from stopgrad.primitives.indexing import SCATTER, getitem, parse
from stopgrad.primitives.inputs import to_host, to_shape, to_tensor
from stopgrad.primitives.reductions import sum
from stopgrad.primitives.shape import broadcast_to, reshape
from stopgrad.primitives.updating import at_set


def gather(x: Any, indices: Any, axis: int | None = None, batch_dims: int = 0) -> Tensor:
    """The entries with the given numbers along an axis, separately for each place of the leading batch axes.

    Args:
        x: tensor or array.
        indices: integers; their first `batch_dims` axes are those of x.
        axis: along which axis; the first after the batch axes by default.
        batch_dims: how many leading axes the two share. With 0 this is `take`.

    Returns:
        Tensor of shape x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis + 1:].

    Raises:
        BoundsError: an index out of range.
        ShapeError: the batch axes differ, or the axis is one of them.

    Example:
        >>> import stopgrad as sg
        >>> sg.gather([[1.0, 2.0], [3.0, 4.0]], [1, 0], batch_dims=1).numpy()
        array([2., 3.])
    """
    x = to_tensor(x, "gather")
    indices = to_indices("gather", "indices", indices)
    batch = batch_dims + len(indices.shape) if batch_dims < 0 else batch_dims
    axis = batch if axis is None else normalize_axis("gather", axis, len(x.shape))
    if batch == 0:
        return take(x, indices, axis)
    if axis < batch or x.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(
            f"gather: the first {batch} axes of x, of shape {x.shape}, and of indices, of shape {indices.shape}, must "
            f"be the same, and axis {axis} must come after them"
        )
    # Flatten the batch and the axes between into lines, take along each, and give the axes back.
    between, after = x.shape[batch:axis], x.shape[axis + 1 :]
    lines = reshape(x, (math.prod(x.shape[:batch]), math.prod(between), x.shape[axis], math.prod(after)))
    each = reshape(indices, (lines.shape[0], 1, math.prod(indices.shape[batch:]), 1))
    taken = take_along_axis(lines, each, axis=2)
    return reshape(taken, (*x.shape[:axis], *indices.shape[batch:], *after))


def gather_nd(x: Any, indices: Any) -> Tensor:
    """The entries or slices of x at given places: the last axis of the indices holds the coordinates of one.

    Args:
        x: tensor or array.
        indices: integers of shape (..., k), k at most the number of axes of x.

    Returns:
        Tensor of shape indices.shape[:-1] + x.shape[k:].

    Raises:
        BoundsError: an index out of range, or more coordinates than axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.gather_nd([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 1]]).numpy()
        array([2., 4.])
    """
    x = to_tensor(x, "gather_nd")
    places = _coordinates("gather_nd", indices, x.shape)
    if not places:
        return broadcast_to(x, (*to_tensor(indices, "gather_nd").shape[:-1], *x.shape))
    return getitem(x, places)


def scatter_nd(indices: Any, updates: Any, shape: int | tuple[int, ...]) -> Tensor:
    """Zeros with the updates added at given places; the adjoint of `gather_nd`. Updates for one place add up.

    Args:
        indices: integers of shape (..., k): coordinates of an entry or slice along the last axis.
        updates: tensor of shape indices.shape[:-1] + shape[k:].
        shape: of the result.

    Returns:
        Tensor of that shape and the dtype of the updates.

    Raises:
        BoundsError: an index out of range, or more coordinates than axes.
        ShapeError: updates of another shape.

    Example:
        >>> import stopgrad as sg
        >>> sg.scatter_nd([[0], [2], [0]], [1.0, 2.0, 3.0], (4,)).numpy()
        array([4., 0., 2., 0.])
    """
    sizes = to_shape("scatter_nd", shape)
    indices, updates = to_tensor(indices, "scatter_nd"), to_tensor(updates, "scatter_nd")
    places = _coordinates("scatter_nd", indices, sizes)
    expected = (*indices.shape[:-1], *sizes[len(places) :])
    if updates.shape != expected:
        raise ShapeError(f"scatter_nd: updates must have shape {expected}, got {updates.shape}")
    if not places:
        return sum(reshape(updates, (-1, *sizes)), axis=0)
    template, arrays = parse("scatter_nd", places, sizes)
    return bind(SCATTER, (updates, *arrays), (template, sizes))


def _coordinates(name: str, indices: Any, shape: Shape) -> tuple[Tensor, ...]:
    indices = to_indices(name, "indices", indices)
    if not indices.shape or indices.shape[-1] > len(shape):
        raise BoundsError(
            f"{name}: the last axis of indices, of shape {indices.shape}, must hold at most {len(shape)} coordinates, "
            f"one for each axis of shape {shape}"
        )
    return tuple(getitem(indices, (..., number)) for number in range(indices.shape[-1]))


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Sums of the entries that have the same number: out[k] is the sum of data[i] where segment_ids[i] == k.

    Args:
        data: tensor or array.
        segment_ids: integers whose shape is that of the first axes of data. Entries whose number is negative or at
            least `num_segments` are left out.
        num_segments: how many sums.

    Returns:
        Tensor of shape (num_segments,) + data.shape[segment_ids.ndim:].

    Raises:
        ShapeError: the shape of the numbers is not that of the first axes of data.

    Example:
        >>> import stopgrad as sg
        >>> sg.unsorted_segment_sum([1.0, 2.0, 4.0], [0, 2, 0], 3).numpy()
        array([5., 0., 2.])
    """
    data = to_tensor(data, "unsorted_segment_sum")
    ids = to_indices("unsorted_segment_sum", "segment_ids", segment_ids)
    if data.shape[: len(ids.shape)] != ids.shape:
        raise ShapeError(
            f"unsorted_segment_sum: segment_ids of shape {ids.shape} do not number the first axes of data, of shape "
            f"{data.shape}"
        )
    (count,) = to_shape("unsorted_segment_sum", num_segments)
    return bind2(SUM_SEGMENTS, data, ids, (0, "drop", count))


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Tensor:
    """Sums of the entries that have the same number; by default as many sums as the largest number asks for.

    See `unsorted_segment_sum`; the numbers need not be sorted here either.

    Example:
        >>> import stopgrad as sg
        >>> sg.segment_sum([1.0, 2.0, 4.0], [0, 0, 1]).numpy()
        array([3., 4.])
    """
    ids = to_indices("segment_sum", "segment_ids", segment_ids)
    if num_segments is None:
        num_segments = int(to_host(ids.value).max()) + 1 if ids.size else 0
    return unsorted_segment_sum(data, ids, num_segments)


def put_along_axis(x: Any, indices: Any, values: Any, axis: int = -1) -> Tensor:
    """A copy of x in which, for each line along an axis, the entries with that line's numbers are the values.

    NumPy's function of this name writes into its argument; this one leaves x as it is. See `at_set` for derivatives.

    Args:
        x: tensor or array.
        indices: integers with as many axes as x; the other axes broadcast against those of x.
        values: broadcasts to the shape of the indices.
        axis: along which axis.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        BoundsError: an index out of range.
        ShapeError: the numbers of axes differ, or the values do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.put_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]], 0.0, axis=1).numpy()
        array([[1., 0.],
               [0., 4.]])
    """
    x = to_tensor(x, "put_along_axis")
    indices = to_indices("put_along_axis", "indices", indices)
    axis = normalize_axis("put_along_axis", axis, len(x.shape))
    lines_shape("put_along_axis", x.shape, indices.shape, axis)
    ndim = len(x.shape)
    index: list[Any] = [numbers_along(size, position, ndim) for position, size in enumerate(x.shape)]
    index[axis] = indices
    return at_set(x, tuple(index), values)
