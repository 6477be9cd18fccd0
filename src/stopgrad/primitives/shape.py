"""Shapes: reshaping, adding and dropping axes of size 1, broadcasting and tiling.

All are linear, keep nothing, and come down to two operations, `reshape` and `broadcast_to`.
"""

from __future__ import annotations

import math
from typing import Any

from stopgrad.core.arrays import Shape, Spec, broadcast_shapes, normalize_axes
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import linear
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import only_row_major, to_integers, to_shape, to_tensor

RESHAPE = linear(
    "reshape",
    lambda xp, x, shape, _before: xp.reshape(x, shape),
    lambda xp, t, _shape, before: xp.reshape(t, before),
    spec=lambda x, shape, _before: Spec(shape, x.dtype),
    numpy_kernel=lambda x, shape, _before: x.reshape(shape),
    passes_masks=True,
)
"""reshape(x; shape, shape of x)"""


BROADCAST_TO = linear(
    "broadcast_to",
    lambda xp, x, shape: xp.broadcast_to(x, shape),
    lambda xp, t, shape: t,  # the sweep sums it to the shape of x
    spec=lambda x, shape: Spec(shape, x.dtype),
    tangent=lambda xp, t, shape: t,  # and broadcasts this one
    passes_masks=True,
)
"""broadcast_to(x; shape)"""


def reshape(x: Any, shape: int | tuple[int, ...], order: str = "C") -> Tensor:
    """The same entries in the same (row-major) order, in another shape.

    Args:
        x: tensor, array or number.
        shape: the new shape; one size may be -1, which takes what is left.
        order: only "C".

    Returns:
        Tensor of that shape and the dtype of x.

    Raises:
        ShapeError: the number of entries differs.

    Example:
        >>> import stopgrad as sg
        >>> sg.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)).numpy()
        array([[1., 2.],
               [3., 4.]])
    """
    only_row_major("reshape", order)
    x = to_tensor(x, "reshape")
    sizes = to_integers("reshape", "shape", shape)
    return bind1(RESHAPE, x, (_completed(sizes, x.shape), x.shape))


def _completed(sizes: Shape, before: Shape) -> Shape:
    """Return the new shape with -1 replaced, checked to have as many entries as before."""
    unknown = sizes.count(-1)
    known = math.prod(size for size in sizes if size != -1)
    total = math.prod(before)
    fits = unknown < 2 and all(size >= -1 for size in sizes)
    fits = fits and (known != 0 and total % known == 0 if unknown else known == total)
    if not fits:
        raise ShapeError(
            f"reshape: {total} entries of shape {before} do not fit shape {sizes}; the sizes must multiply to {total}, "
            "and at most one may be -1"
        )
    return tuple(total // known if size == -1 else size for size in sizes) if unknown else sizes


def ravel(x: Any, order: str = "C") -> Tensor:
    """All entries along one axis, in row-major order.

    Args:
        x: tensor, array or number.
        order: only "C".

    Returns:
        Tensor of shape (x.size,).

    Example:
        >>> import stopgrad as sg
        >>> sg.ravel([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([1., 2., 3., 4.])
    """
    only_row_major("ravel", order)
    x = to_tensor(x, "ravel")
    return bind1(RESHAPE, x, ((math.prod(x.shape),), x.shape))


def flatten(x: Any, order: str = "C") -> Tensor:
    """Same as `ravel`: all entries along one axis, in row-major order.

    Example:
        >>> import stopgrad as sg
        >>> sg.flatten([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([1., 2., 3., 4.])
    """
    return ravel(x, order)


def expand_dims(x: Any, axis: int | tuple[int, ...] = 0) -> Tensor:
    """New axes of size 1.

    Args:
        x: tensor, array or number.
        axis: where the new axes are in the result; negative counts from its end.

    Returns:
        Tensor with one axis more for each given.

    Raises:
        ShapeError: an axis out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.expand_dims([1.0, 2.0], axis=-1).shape
        (2, 1)
    """
    x = to_tensor(x, "expand_dims")
    count = len(axis) if isinstance(axis, tuple | list) else 1
    new = normalize_axes("expand_dims", axis, len(x.shape) + count)
    sizes = iter(x.shape)
    shape = tuple(1 if position in new else next(sizes) for position in range(len(x.shape) + count))
    return bind1(RESHAPE, x, (shape, x.shape))


def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Drop axes of size 1.

    Args:
        x: tensor, array or number.
        axis: which axes; all of size 1 by default.

    Returns:
        Tensor without those axes.

    Raises:
        ShapeError: an axis out of range, or whose size is not 1.

    Example:
        >>> import stopgrad as sg
        >>> sg.squeeze([[1.0], [2.0]], axis=1).numpy()
        array([1., 2.])
    """
    x = to_tensor(x, "squeeze")
    if axis is None:
        axes = tuple(position for position, size in enumerate(x.shape) if size == 1)
    else:
        axes = normalize_axes("squeeze", axis, len(x.shape))
        for one in axes:
            if x.shape[one] != 1:
                raise ShapeError(f"squeeze: axis {one} has size {x.shape[one]} in shape {x.shape}; only size 1 can go")
    shape = tuple(size for position, size in enumerate(x.shape) if position not in axes)
    return bind1(RESHAPE, x, (shape, x.shape))


def atleast_1d(x: Any) -> Tensor:
    """The tensor with at least one axis: a number gets shape (1,).

    Example:
        >>> import stopgrad as sg
        >>> sg.atleast_1d(2.0).shape
        (1,)
    """
    x = to_tensor(x, "atleast_1d")
    return x if x.shape else bind1(RESHAPE, x, ((1,), x.shape))


def atleast_2d(x: Any) -> Tensor:
    """The tensor with at least two axes, new ones in front: shape (n,) becomes (1, n).

    Example:
        >>> import stopgrad as sg
        >>> sg.atleast_2d([1.0, 2.0]).shape
        (1, 2)
    """
    x = to_tensor(x, "atleast_2d")
    missing = 2 - len(x.shape)
    return x if missing <= 0 else bind1(RESHAPE, x, ((1,) * missing + x.shape, x.shape))


def atleast_3d(x: Any) -> Tensor:
    """The tensor with at least three axes, as NumPy's: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Example:
        >>> import stopgrad as sg
        >>> sg.atleast_3d([1.0, 2.0]).shape
        (1, 2, 1)
    """
    tensor = to_tensor(x, "atleast_3d")
    if len(tensor.shape) >= 3:
        return tensor
    shape = (1, 1, 1) if not tensor.shape else (1, *tensor.shape, 1) if len(tensor.shape) == 1 else (*tensor.shape, 1)
    return bind1(RESHAPE, tensor, (shape, tensor.shape))


def broadcast_to(x: Any, shape: int | tuple[int, ...]) -> Tensor:
    """The tensor repeated along new axes, and along axes of size 1, to the given shape.

    Args:
        x: tensor, array or number.
        shape: what to broadcast to.

    Returns:
        Tensor of that shape; NumPy's is a read-only view.

    Raises:
        ShapeError: x does not broadcast to the shape.

    Example:
        >>> import stopgrad as sg
        >>> sg.broadcast_to([1.0, 2.0], (2, 2)).numpy()
        array([[1., 2.],
               [1., 2.]])
    """
    tensor = to_tensor(x, "broadcast_to")
    target = to_shape("broadcast_to", shape)
    if tensor.shape == target:
        return tensor
    if len(tensor.shape) > len(target) or any(
        size not in (1, wanted) for size, wanted in zip(reversed(tensor.shape), reversed(target), strict=False)
    ):
        raise ShapeError(
            f"broadcast_to: shape {tensor.shape} does not broadcast to {target}; sizes must be equal or 1, counted "
            "from the last axis"
        )
    return bind1(BROADCAST_TO, tensor, (target,))


def broadcast_arrays(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors broadcast to one shape.

    Raises:
        ShapeError: the shapes do not broadcast together.

    Example:
        >>> import stopgrad as sg
        >>> a, b = sg.broadcast_arrays([1.0, 2.0], [[3.0], [4.0]])
        >>> a.shape, b.shape
        ((2, 2), (2, 2))
    """
    given = [to_tensor(one, "broadcast_arrays") for one in tensors]
    shape = broadcast_shapes("broadcast_arrays", *(one.shape for one in given))
    return tuple(broadcast_to(one, shape) for one in given)


def tile(x: Any, reps: int | tuple[int, ...]) -> Tensor:
    """The whole tensor repeated side by side.

    Args:
        x: tensor, array or number.
        reps: how many times along each axis; missing ones, in front, count as 1, and new axes are made as needed.

    Returns:
        Tensor whose sizes are multiplied by `reps`.

    Raises:
        ShapeError: a negative number of repetitions.

    Example:
        >>> import stopgrad as sg
        >>> sg.tile([1.0, 2.0], 2).numpy()
        array([1., 2., 1., 2.])
    """
    x = to_tensor(x, "tile")
    times = to_shape("tile", reps)
    ndim = max(len(times), len(x.shape))
    times = (1,) * (ndim - len(times)) + times
    sizes = (1,) * (ndim - len(x.shape)) + x.shape
    spread = reshape(x, tuple(n for size in sizes for n in (1, size)))
    repeated = broadcast_to(spread, tuple(n for pair in zip(times, sizes, strict=True) for n in pair))
    return reshape(repeated, tuple(time * size for time, size in zip(times, sizes, strict=True)))
