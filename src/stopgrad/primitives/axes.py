"""The order of axes and of the entries along them: permuting axes, flipping, rolling, turning.

All are linear, keep nothing, and come down to three operations, `permute_dims`, `flip` and `roll`.
"""

from __future__ import annotations

from typing import Any

from stopgrad.core.arrays import Spec, normalize_axes, normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import linear
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_integer, to_integers, to_tensor
from stopgrad.primitives.shape import ravel, reshape


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


PERMUTE_DIMS = linear(
    "permute_dims",
    lambda xp, x, axes: xp.permute_dims(x, axes),
    lambda xp, t, axes: xp.permute_dims(t, _inverse(axes)),
    spec=lambda x, axes: Spec(tuple(x.shape[axis] for axis in axes), x.dtype),
    numpy_kernel=lambda x, axes: x.transpose(axes),
    passes_masks=True,
)
"""permute_dims(x; axes)"""

FLIP = linear(
    "flip",
    lambda xp, x, axes: xp.flip(x, axis=axes),
    lambda xp, t, axes: xp.flip(t, axis=axes),
    spec=lambda x, axes: x,
    passes_masks=True,
)
"""flip(x; axes)"""

ROLL = linear(
    "roll",
    lambda xp, x, shifts, axes: xp.roll(x, shifts, axis=axes),
    lambda xp, t, shifts, axes: xp.roll(t, tuple(-shift for shift in shifts), axis=axes),
    spec=lambda x, shifts, axes: x,
    passes_masks=True,
)
"""roll(x; shifts, axes)"""


def permute_dims(x: Any, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order: axis i of the result is axis axes[i] of x.

    Args:
        x: tensor, array or number.
        axes: every axis of x once.

    Returns:
        Tensor with the same entries.

    Raises:
        ShapeError: an axis missing, out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.permute_dims([[1.0, 2.0, 3.0]], (1, 0)).shape
        (3, 1)
    """
    x = to_tensor(x, "permute_dims")
    order = normalize_axes("permute_dims", tuple(axes), len(x.shape))
    if len(order) != len(x.shape):
        raise ShapeError(f"permute_dims: axes {tuple(axes)} must name each of the {len(x.shape)} axes of x once")
    return bind1(PERMUTE_DIMS, x, (order,))


def transpose(x: Any, axes: tuple[int, ...] | None = None) -> Tensor:
    """The axes in another order; reversed by default.

    Args:
        x: tensor, array or number.
        axes: every axis of x once, or `None` to reverse them.

    Returns:
        Tensor with the same entries.

    Raises:
        ShapeError: an axis missing, out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.transpose([[1.0, 2.0, 3.0]]).shape
        (3, 1)
    """
    x = to_tensor(x, "transpose")
    return permute_dims(x, tuple(reversed(range(len(x.shape)))) if axes is None else axes)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged.

    Raises:
        ShapeError: x has fewer than two axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.matrix_transpose([[[1.0, 2.0, 3.0]]]).shape
        (1, 3, 1)
    """
    x = to_tensor(x, "matrix_transpose")
    if len(x.shape) < 2:
        raise ShapeError(f"matrix_transpose: needs at least two axes, got shape {x.shape}")
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    Raises:
        ShapeError: an axis out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.swapaxes([[1.0, 2.0, 3.0]], 0, 1).shape
        (3, 1)
    """
    x = to_tensor(x, "swapaxes")
    order = list(range(len(x.shape)))
    first = normalize_axis("swapaxes", axis1, len(order))
    second = normalize_axis("swapaxes", axis2, len(order))
    order[first], order[second] = second, first
    return bind1(PERMUTE_DIMS, x, (tuple(order),))


def moveaxis(x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
    """Axes moved to other positions; the rest keep their order.

    Args:
        x: tensor, array or number.
        source: which axes.
        destination: where each is in the result.

    Returns:
        Tensor with the same entries.

    Raises:
        ShapeError: an axis out of range or named twice, or not as many destinations as sources.

    Example:
        >>> import stopgrad as sg
        >>> sg.moveaxis([[[1.0, 2.0, 3.0]]], -1, 0).shape
        (3, 1, 1)
    """
    x = to_tensor(x, "moveaxis")
    ndim = len(x.shape)
    sources = normalize_axes("moveaxis", source, ndim)
    destinations = normalize_axes("moveaxis", destination, ndim)
    if len(sources) != len(destinations):
        raise ShapeError(
            f"moveaxis: {len(sources)} source axes but {len(destinations)} destinations; give one for each"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return bind1(PERMUTE_DIMS, x, (tuple(order),))


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """One axis moved back until it lies before axis `start`, as NumPy's; `moveaxis` is easier to read.

    Raises:
        ShapeError: axis or start out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.rollaxis([[[1.0, 2.0, 3.0]]], 2).shape
        (3, 1, 1)
    """
    x = to_tensor(x, "rollaxis")
    ndim = len(x.shape)
    source = normalize_axis("rollaxis", axis, ndim)
    target = start + ndim if start < 0 else start
    if not 0 <= target <= ndim:
        raise ShapeError(f"rollaxis: start {start} is out of range for a tensor with {ndim} axes")
    return moveaxis(x, source, target - 1 if source < target else target)


def flip(x: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The entries in reverse order along axes.

    Args:
        x: tensor, array or number.
        axis: which axes; all by default.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: an axis out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.flip([1.0, 2.0, 3.0]).numpy()
        array([3., 2., 1.])
    """
    x = to_tensor(x, "flip")
    return bind1(FLIP, x, (normalize_axes("flip", axis, len(x.shape)),))


def flipud(x: Any) -> Tensor:
    """The rows (axis 0) in reverse order; see `flip`.

    Example:
        >>> import stopgrad as sg
        >>> sg.flipud([[1.0], [2.0]]).numpy()
        array([[2.],
               [1.]])
    """
    return flip(x, 0)


def fliplr(x: Any) -> Tensor:
    """The columns (axis 1) in reverse order; see `flip`.

    Example:
        >>> import stopgrad as sg
        >>> sg.fliplr([[1.0, 2.0]]).numpy()
        array([[2., 1.]])
    """
    return flip(x, 1)


def roll(x: Any, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The entries moved along axes; those pushed over the end come in again at the beginning.

    Args:
        x: tensor, array or number.
        shift: by how many places, one for all axes or one for each.
        axis: along which axes; `None` rolls the flattened tensor and gives it its shape back.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: an axis out of range.
        ArgumentError: shifts and axes do not match in number.

    Example:
        >>> import stopgrad as sg
        >>> sg.roll([1.0, 2.0, 3.0], 1).numpy()
        array([3., 1., 2.])
    """
    x = to_tensor(x, "roll")
    shifts = to_integers("roll", "shift", shift)
    if axis is None:
        return reshape(roll(ravel(x), sum(shifts), 0), x.shape)
    axes = tuple(normalize_axis("roll", one, len(x.shape)) for one in to_integers("roll", "axis", axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one for each, or one for all")
    count = max(len(shifts), len(axes))
    shifts = shifts * count if len(shifts) == 1 else shifts
    axes = axes * count if len(axes) == 1 else axes
    return bind1(ROLL, x, (shifts, axes))


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """The tensor turned by 90 degrees in the plane of two axes, from the first towards the second.

    Args:
        x: tensor or array with at least two axes.
        k: how many times.
        axes: the plane.

    Returns:
        Tensor, with the two axes' sizes exchanged if k is odd.

    Raises:
        ShapeError: an axis out of range or named twice.

    Example:
        >>> import stopgrad as sg
        >>> sg.rot90([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[2., 4.],
               [1., 3.]])
    """
    tensor = to_tensor(x, "rot90")
    plane = normalize_axes("rot90", tuple(axes), len(tensor.shape))
    if len(plane) != 2:
        raise ShapeError(f"rot90: axes must be two axes, got {axes!r}")
    first, second = plane
    turns = to_integer("rot90", "k", k) % 4
    if turns == 0:
        return tensor
    if turns == 2:
        return flip(tensor, plane)
    if turns == 1:
        return swapaxes(flip(tensor, second), first, second)
    return flip(swapaxes(tensor, first, second), second)
