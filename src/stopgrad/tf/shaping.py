"""Shapes and order: reshape, transpose, concat, split, pad, reverse, sort and their kin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.dtypes import int32
from stopgrad.tf.values import as_tensor, axes, integers, operands, python_int


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the same entries in another shape, of which one size may be -1."""
    return p.reshape(as_tensor(tensor, "reshape"), integers(shape, "reshape: shape"))


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Tensor:
    """Permute the axes, or reverse them if `perm` is not given; `conjugate` takes complex conjugates too.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.transpose(tf.zeros([2, 3, 4]), perm=[0, 2, 1]).shape
        (2, 4, 3)
    """
    moved = p.transpose(as_tensor(a, "transpose"), None if perm is None else integers(perm, "transpose: perm"))
    return p.conj(moved) if conjugate else moved


def expand_dims(input: Any, axis: Any = 0, name: str | None = None) -> Tensor:
    """Insert an axis of size 1."""
    return p.expand_dims(as_tensor(input, "expand_dims"), axes(axis, "expand_dims"))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Drop axes of size 1: all of them, or those named."""
    found = axes(axis, "squeeze")
    return p.squeeze(as_tensor(input, "squeeze"), None if found == () else found)


def concat(values: Any, axis: Any = 0, name: str = "concat") -> Tensor:
    """Join tensors along an axis; all in the dtype of the tensors among them.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.concat([tf.constant([1.0]), [2, 3]], axis=0).numpy()
        array([1., 2., 3.], dtype=float32)
    """
    tensors = operands("concat", *_listed(values, "concat"))
    return tensors[0] if len(tensors) == 1 else p.concat(tensors, axis=python_int(axis, "concat: axis"))


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Put tensors of one shape together along a new axis."""
    return p.stack(operands("stack", *_listed(values, "stack")), axis=axis)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Return the slices of a tensor along an axis as a list, the axis dropped."""
    tensor = as_tensor(value, "unstack")
    along = normalize_axis("unstack", axis, tensor.ndim)
    count = tensor.shape[along]
    if num is not None and num != count:
        raise ShapeError(
            f"unstack: num is {num}, but axis {axis} of shape {tensor.shape} has {count}; write axis= for an axis"
        )
    return [p.getitem(tensor, (slice_(None),) * along + (i,)) for i in range(count)]


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str = "split") -> list[Tensor]:
    """Cut a tensor along an axis into equal parts (an integer), or into parts of given sizes (one may be -1).

    Example:
        >>> import stopgrad.tf as tf
        >>> [part.tolist() for part in tf.split([1, 2, 3, 4], [1, -1])]
        [[1], [2, 3, 4]]
    """
    tensor = as_tensor(value, "split")
    along = normalize_axis("split", python_int(axis, "split: axis"), tensor.ndim)
    length = tensor.shape[along]
    if isinstance(num_or_size_splits, list | tuple) or getattr(num_or_size_splits, "shape", ()) != ():
        sizes = list(integers(num_or_size_splits, "split: num_or_size_splits"))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = length - sum(sizes) - 1
    else:
        count = python_int(num_or_size_splits, "split: num_or_size_splits")
        if count < 1 or length % count:
            raise ShapeError(f"split: axis {axis} of size {length} cannot be cut into {count} equal parts")
        sizes = [length // count] * count
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise ShapeError(f"split: sizes {sizes} do not add up to {length}, the size of axis {axis}")
    ends = np.cumsum([0, *sizes]).tolist()
    before = (slice_(None),) * along
    return [p.getitem(tensor, (*before, slice_(a, b))) for a, b in pairwise(ends)]


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a whole tensor along its axes."""
    tensor, counts = as_tensor(input, "tile"), integers(multiples, "tile: multiples")
    if len(counts) != tensor.ndim:
        raise ShapeError(f"tile: multiples {counts} must have an entry for each of the {tensor.ndim} axes")
    return p.tile(tensor, counts)


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeat each entry along an axis, or of the flattened tensor."""
    counts = integers(repeats, "repeat: repeats")
    return p.repeat(as_tensor(input, "repeat"), counts[0] if len(counts) == 1 else counts, axis=axis)


def pad(
    tensor: Any, paddings: Any, mode: Any = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Add entries before and after along each axis: a constant, or mirror images ("REFLECT", "SYMMETRIC").

    A number in place of the mode is taken for the constant, as in TensorFlow.js.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.pad([1, 2, 3], [[2, 1]], "REFLECT").numpy()
        array([3, 2, 1, 2, 3, 2], dtype=int32)
    """
    x = as_tensor(tensor, "pad")
    flat = integers(np.asarray(paddings).reshape(-1).tolist(), "pad: paddings")
    widths = tuple(zip(flat[::2], flat[1::2], strict=True))
    if len(widths) != x.ndim:
        raise ShapeError(f"pad: paddings must have a row (before, after) for each of the {x.ndim} axes")
    if not isinstance(mode, str):
        mode, constant_values = "CONSTANT", mode
    kind = mode.lower()
    if kind == "constant":
        return p.pad(x, widths, mode="constant", constant_values=as_tensor(constant_values, "pad").item())
    if kind not in ("reflect", "symmetric"):
        raise ArgumentError(f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {mode!r}")
    return p.pad(x, widths, mode=kind)


def reverse(tensor: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Reverse the order of entries along axes; along all of them if none is given."""
    return p.flip(as_tensor(tensor, "reverse"), axes(axis, "reverse"))


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Move entries along axes; those that fall off the end come in at the start."""
    return p.roll(as_tensor(input, "roll"), axes(shift, "roll"), axes(axis, "roll"))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along axes of size 1 or missing to give it a shape."""
    return p.broadcast_to(as_tensor(input, "broadcast_to"), integers(shape, "broadcast_to: shape"))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Return the shape two shapes broadcast to, as a tensor."""
    return Tensor(np.array(broadcast_static_shape(shape_x, shape_y), int32))


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> tuple[int, ...]:
    """Return the shape two shapes broadcast to."""
    shapes = (integers(shape_x, "broadcast_static_shape"), integers(shape_y, "broadcast_static_shape"))
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(f"broadcast_static_shape: shapes {shapes[0]} and {shapes[1]} do not broadcast") from error


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor as it is, or raise if its shape is not the given one, in which `None` stands for any size."""
    tensor = as_tensor(x, "ensure_shape")
    fits = len(shape) == tensor.ndim and all(
        want is None or want == got for want, got in zip(shape, tensor.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"ensure_shape: the tensor has shape {tensor.shape}, expected {tuple(shape)}")
    return tensor


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each list of coordinates along an axis.

    Example:
        >>> import stopgrad.tf as tf
        >>> [grid.tolist() for grid in tf.meshgrid([1, 2], [3, 4])]
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    vectors = [p.reshape(as_tensor(one, "meshgrid"), -1) for one in args]
    order = list(range(len(vectors)))  # the axis each vector lies along
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple(vectors[k].size for k in order)
    placed = [tuple(-1 if axis == along else 1 for axis in range(len(vectors))) for along in order]
    return [p.broadcast_to(p.reshape(one, sizes), shape) for one, sizes in zip(vectors, placed, strict=True)]


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Sort along an axis; derivatives go back to where the entries came from.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.sort([3, 1, 2], direction="DESCENDING").numpy()
        array([3, 2, 1], dtype=int32)
    """
    found = p.sort(as_tensor(values, "sort"), axis=axis)
    return p.flip(found, axis) if _descends(direction, "sort") else found


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Return the int32 positions that sort along an axis; equal entries stay in order."""
    tensor = as_tensor(values, "argsort")
    if not _descends(direction, "argsort"):
        return p.astype(p.argsort(tensor, axis=axis), int32)
    # The stable ascending order of the reversed entries, read backwards, is the stable descending one.
    backwards = p.argsort(p.flip(tensor, axis), axis=axis)
    return p.astype(p.subtract(tensor.shape[axis] - 1, p.flip(backwards, axis)), int32)


def slice(input_: Any, begin: Any, size: Any = None, name: str | None = None) -> Tensor:
    """Return the part of a tensor that begins at a position and has a size, -1 (or no size) meaning up to the end.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.slice([[1, 2], [3, 4]], [0, 1], [2, -1]).numpy()
        array([[2],
               [4]], dtype=int32)
    """
    tensor = as_tensor(input_, "slice")
    starts = integers(begin, "slice: begin")
    counts = (-1,) * len(starts) if size is None else integers(size, "slice: size")
    if len(starts) != len(counts) or len(starts) > tensor.ndim:
        raise ShapeError(f"slice: begin {starts} and size {counts} do not fit shape {tensor.shape}")
    index = []
    for start, count, length in zip(starts, counts, tensor.shape, strict=False):
        stop = length if count == -1 else start + count
        if not 0 <= start <= stop <= length:
            raise ShapeError(f"slice: begin {starts} with size {counts} reaches outside shape {tensor.shape}")
        index.append(slice_(start, stop))
    return p.getitem(tensor, tuple(index))


def strided_slice(input_: Any, begin: Any, end: Any, strides: Any = None, name: str | None = None) -> Tensor:
    """Return every `strides`-th entry from `begin` to before `end` along the first axes, as Python slices do."""
    firsts, ends = integers(begin, "strided_slice: begin"), integers(end, "strided_slice: end")
    steps = (1,) * len(firsts) if strides is None else integers(strides, "strided_slice: strides")
    index = tuple(slice_(a, b, step) for a, b, step in zip(firsts, ends, steps, strict=True))
    return p.getitem(as_tensor(input_, "strided_slice"), index)


slice_ = type(np.s_[:])  # Python's own, whose name TensorFlow gives to a function


def _descends(direction: str, name: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentError(f"{name}: direction must be 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


def _listed(values: Any, name: str) -> list[Any]:
    """Return the tensors to be joined: a list of them, the slices of one along its first axis, or a single one."""
    if isinstance(values, list | tuple):
        listed = list(values)
    else:
        tensor = as_tensor(values, name)
        listed = [tensor] if not tensor.ndim else unstack(tensor)
    if not listed:
        raise ArgumentError(f"{name}: got an empty list; give at least one tensor")
    return listed
