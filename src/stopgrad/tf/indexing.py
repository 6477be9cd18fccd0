"""Choosing, placing and counting entries: gather, boolean_mask, where, one_hot, scatter, segments, unique."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import normalize_axis
from stopgrad.core.errors import ArgumentError, BoundsError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.dtypes import as_dtype, bool, float32, int32, int64
from stopgrad.tf.values import as_tensor, integers, known_values, operands, python_int


class TopK(NamedTuple):
    """The largest entries, and where they were."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """The different entries in the order they first occur, and which of them each entry is."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """As `Unique`, and how often each entry occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, which hides that of tuples


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Return the entries with given numbers along an axis, the first after the batch axes if none is given.

    Numbers count from 0; negative ones are out of range, as in TensorFlow. An integer in the third place is taken for
    the axis, as in TensorFlow.js; TensorFlow's `validate_indices` is not used.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.gather([10.0, 20.0, 30.0], [2, 0]).numpy()
        array([30., 10.], dtype=float32)
    """
    tensor, numbers = as_tensor(params, "gather"), as_tensor(indices, "gather")
    if axis is None and type(validate_indices) is int:
        axis = validate_indices
    along = None if axis is None else python_int(axis, "gather: axis")
    _refuse_negative(numbers, "gather")
    return p.gather(tensor, numbers, along, batch_dims)


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """Return the entries or slices at given places, whose coordinates the last axis of `indices` holds."""
    tensor, places = as_tensor(params, "gather_nd"), as_tensor(indices, "gather_nd")
    _refuse_negative(places, "gather_nd")
    if batch_dims:
        batch = tensor.shape[:batch_dims]
        grid = np.indices(batch).reshape(len(batch), *batch, *(1,) * (places.ndim - 1 - batch_dims))
        spread = np.broadcast_to(np.moveaxis(grid, 0, -1), (*places.shape[:-1], len(batch)))
        places = Tensor(np.concatenate([spread, places.numpy()], -1))
    return p.gather_nd(tensor, places)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return the entries at which a mask holds, along one axis in place of those the mask covers."""
    along = 0 if axis is None else python_int(axis, "boolean_mask: axis")
    return p.boolean_mask(as_tensor(tensor, "boolean_mask"), as_tensor(mask, "boolean_mask"), along)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Take x where the condition holds and y elsewhere; without them, return the int64 places where it holds.

    Nothing of the side that was not taken leaks into a gradient, be its derivative infinite or NaN.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.where([True, False, True]).tolist(), tf.where([True, False], 1.0, [3.0, 4.0]).tolist()
        ([[0], [2]], [1.0, 4.0])
    """
    holds = as_tensor(condition, "where")
    if x is None and y is None:
        return p.astype(p.argwhere(holds), int64)
    if x is None or y is None:
        raise ArgumentError("where: give both x and y, or neither for the places where the condition holds")
    return p.where(holds, *operands("where", x, y))


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return rows that are on (1) at given numbers and off (0) elsewhere; float32 unless the values or dtype say so.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.one_hot([0, 2, -1], 3).numpy()
        array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """
    numbers, length = as_tensor(indices, "one_hot"), python_int(depth, "one_hot: depth")
    given = [value for value in (on_value, off_value) if value is not None]
    found = operands("one_hot", *given)[0].dtype if given else float32
    if dtype is not None:
        found = as_dtype(dtype)
    on = as_tensor(1 if on_value is None else on_value, "one_hot", found)
    off = as_tensor(0 if off_value is None else off_value, "one_hot", found)
    return p.one_hot(numbers, length, on, off, -1 if axis is None else axis)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return zeros of a shape with updates added at given places; those for one place add up."""
    places = as_tensor(indices, "scatter_nd")
    return p.scatter_nd(places, as_tensor(updates, "scatter_nd"), integers(shape, "scatter_nd: shape"))


def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return a tensor with updates added at given places, whose coordinates the last axis of `indices` holds.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.tensor_scatter_nd_add([1, 2, 3], [[0], [0]], [10, 20]).numpy()
        array([31,  2,  3], dtype=int32)
    """
    x, values, index = _scattered(tensor, indices, updates, "tensor_scatter_nd_add")
    return p.at_add(x, index, values)


def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return a tensor with updates subtracted at given places; see `tensor_scatter_nd_add`."""
    x, values, index = _scattered(tensor, indices, updates, "tensor_scatter_nd_sub")
    return p.at_add(x, index, p.negative(values))


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return a tensor with the entries at given places replaced; of updates for one place the last counts."""
    x, values, index = _scattered(tensor, indices, updates, "tensor_scatter_nd_update")
    return p.at_set(x, index, values)


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any) -> Tensor:
    """Return a tensor with the entries at given places replaced. Of TensorFlow.js."""
    return tensor_scatter_nd_update(tensor, indices, updates)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Return the sums of entries with the same number; those with a negative number are left out."""
    count = python_int(num_segments, "unsorted_segment_sum: num_segments")
    numbers = as_tensor(segment_ids, "unsorted_segment_sum")
    return p.unsorted_segment_sum(as_tensor(data, "unsorted_segment_sum"), numbers, count)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the sums of entries with the same number, as many as the largest number asks for."""
    return p.segment_sum(as_tensor(data, "segment_sum"), as_tensor(segment_ids, "segment_sum"))


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the means of entries with the same number; 0 for a number that does not occur."""
    x, numbers = as_tensor(data, "segment_mean"), as_tensor(segment_ids, "segment_mean")
    totals = p.segment_sum(x, numbers)
    counts = p.segment_sum(p.ones(numbers.shape, totals.dtype), numbers)
    return p.divide_no_nan(totals, p.reshape(counts, (*counts.shape, *(1,) * (totals.ndim - counts.ndim))))


def top_k(input: Any, k: Any = 1, sorted: Any = True, index_type: Any = int32, name: str | None = None) -> TopK:
    """Return the k largest entries along the last axis, the largest first, and where they were.

    Example:
        >>> import stopgrad.tf as tf
        >>> values, indices = tf.math.top_k([1, 5, 3], 2)
        >>> values.tolist(), indices.tolist()
        ([5, 3], [1, 2])
    """
    values, places = p.top_k(as_tensor(input, "top_k"), python_int(k, "top_k: k"))
    return TopK(values, p.astype(places, as_dtype(index_type)))


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Return, for each row, whether fewer than k predictions are larger than that of its target."""
    rows, numbers = as_tensor(predictions, "in_top_k"), as_tensor(targets, "in_top_k")
    chosen = p.take_along_axis(rows, p.expand_dims(numbers, -1), -1)
    is_among = p.less(p.count_nonzero(p.greater(rows, chosen), -1), python_int(k, "in_top_k: k"))
    return p.logical_and(is_among, p.all(p.isfinite(chosen), -1))


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """Return the different entries of a vector in the order they first occur, and which of them each entry is.

    Example:
        >>> import stopgrad.tf as tf
        >>> y, idx = tf.unique([7, 1, 7])
        >>> y.tolist(), idx.tolist()
        ([7, 1], [0, 1, 0])
    """
    values, numbers, _ = _unique(x, "unique")
    return Unique(Tensor(values), Tensor(numbers.astype(as_dtype(out_idx))))


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """Return what `unique` does, and how often each entry occurs."""
    values, numbers, counts = _unique(x, "unique_with_counts")
    dtype = as_dtype(out_idx)
    return UniqueWithCounts(Tensor(values), Tensor(numbers.astype(dtype)), Tensor(counts.astype(dtype)))


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None
) -> Tensor:
    """Return where values would go among ascending entries (of the last axis) to keep them in order."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    inside, sought = (one.numpy() for one in operands("searchsorted", sorted_sequence, values))
    if inside.shape[:-1] != sought.shape[:-1]:
        raise ShapeError(f"searchsorted: shapes {inside.shape} and {sought.shape} must agree but for the last axis")
    rows, columns = inside.reshape(-1, inside.shape[-1]), sought.reshape(-1, sought.shape[-1])
    where: Any = side
    places = [np.searchsorted(row, column, where) for row, column in zip(rows, columns, strict=True)]
    return Tensor(np.array(places, as_dtype(out_type)).reshape(sought.shape))


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Tensor:
    """Return how often each of the numbers 0, 1, … occurs, or the sums of the weights that go with them."""
    numbers = p.reshape(as_tensor(arr, "bincount"), -1)
    _refuse_negative(numbers, "bincount")
    length = int(p.max(numbers)) + 1 if numbers.size else 0
    length = max(length, 0 if minlength is None else python_int(minlength, "bincount: minlength"))
    if maxlength is not None:
        length = min(length, python_int(maxlength, "bincount: maxlength"))
    if weights is None:
        counted = p.ones(numbers.shape, as_dtype(dtype))
    else:
        counted = p.reshape(as_tensor(weights, "bincount"), -1)
    return p.unsorted_segment_sum(counted, numbers, length)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Tensor:
    """Return how often each label (row) met each prediction (column)."""
    right, guessed = as_tensor(labels, "confusion_matrix"), as_tensor(predictions, "confusion_matrix")
    if num_classes is None:
        count = int(np.maximum(p.max(right), p.max(guessed)).item()) + 1
    else:
        count = python_int(num_classes, "confusion_matrix: num_classes")
    one = p.ones(right.shape, as_dtype(dtype)) if weights is None else as_tensor(weights, "confusion_matrix", dtype)
    return p.scatter_nd(p.stack([right, guessed], -1), one, (count, count))


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = bool, name: str | None = None) -> Tensor:
    """Return rows that hold for as many entries as the lengths say.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.sequence_mask([1, 2], 3, tf.int32).numpy()
        array([[1, 0, 0],
               [1, 1, 0]], dtype=int32)
    """
    counts = as_tensor(lengths, "sequence_mask")
    if maxlen is None:
        length = int(p.max(counts)) if counts.size else 0
    else:
        length = python_int(maxlen, "sequence_mask: maxlen")
    return p.astype(p.less(p.arange(length), p.expand_dims(counts, -1)), as_dtype(dtype))


def _refuse_negative(numbers: Tensor, name: str) -> None:
    host = known_values(numbers)
    if host is not None and host.dtype.kind == "i" and host.size and host.min() < 0:
        raise BoundsError(f"{name}: the index {host.min()} is negative; TensorFlow counts from the start only")


def _scattered(tensor: Any, indices: Any, updates: Any, name: str) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
    """Return what is updated, the updates in its dtype, and the index where they go."""
    x, values = operands(name, tensor, updates)
    places = as_tensor(indices, name)
    _refuse_negative(places, name)
    if not places.ndim or places.shape[-1] > x.ndim:
        raise ShapeError(f"{name}: indices of shape {places.shape} do not hold coordinates in shape {x.shape}")
    depth = places.shape[-1]
    expected = (*places.shape[:-1], *x.shape[depth:])
    if values.shape != expected:
        raise ShapeError(f"{name}: updates must have shape {expected}, got {values.shape}")
    return x, values, tuple(p.getitem(places, (..., number)) for number in range(depth))


def _unique(x: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    host = as_tensor(x, name).numpy()
    normalize_axis(name, 0, host.ndim)
    if host.ndim != 1:
        raise ShapeError(f"{name}: takes a tensor of one axis, got shape {host.shape}")
    values, first, numbers, counts = np.unique(host, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return values[order], position[numbers], counts[order]
