"""Reductions that carry no derivative: any, all, how many, and where the largest or smallest entry is."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, normalize_axis
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import Operation, nondifferentiable
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reducing import reduced_shape, reduction_params


def any(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether any entry over axes is true (not zero); False over nothing. Carries no derivative.

    Args:
        x: tensor.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of booleans without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> bool(sg.any([0.0, 2.0]))
        True
    """
    return _reduced(ANY, x, axis, keepdims)


def all(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether all entries over axes are true (not zero); True over nothing. Carries no derivative.

    Args:
        x: tensor.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of booleans without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> bool(sg.all([0.0, 2.0]))
        False
    """
    return _reduced(ALL, x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """How many entries over axes are not zero. Carries no derivative.

    Args:
        x: tensor.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of integers without the reduced axes (or with them as 1).

    Example:
        >>> import stopgrad as sg
        >>> int(sg.count_nonzero([0.0, 2.0, 3.0]))
        2
    """
    return _reduced(COUNT_NONZERO, x, axis, keepdims)


def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the largest entry along an axis (of the flattened tensor if `None`), the first of equals.

    Carries no derivative.

    Args:
        x: tensor of a real dtype.
        axis: along which; `None` for the flattened tensor.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of integers without the reduced axes (or with them as 1).

    Raises:
        ShapeError: the axis is out of range, or there is no entry to choose from.

    Example:
        >>> import stopgrad as sg
        >>> int(sg.argmax([1.0, 3.0, 3.0]))
        1
    """
    return _position(ARGMAX, x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the smallest entry along an axis (of the flattened tensor if `None`), the first of equals.

    Carries no derivative.

    Args:
        x: tensor of a real dtype.
        axis: along which; `None` for the flattened tensor.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of integers without the reduced axes (or with them as 1).

    Raises:
        ShapeError: the axis is out of range, or there is no entry to choose from.

    Example:
        >>> import stopgrad as sg
        >>> int(sg.argmin([3.0, 1.0, 1.0]))
        1
    """
    return _position(ARGMIN, x, axis, keepdims)


def _reduced(operation: Operation, x: Any, axis: Any, keepdims: bool) -> Tensor:
    x = to_tensor(x, operation.name)
    return bind1(operation, x, reduction_params(operation.name, x.value.shape, axis, keepdims))


def _position(operation: Operation, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    name = operation.name
    x = to_tensor(x, name)
    along = None if axis is None else normalize_axis(name, axis, x.ndim)
    if (0 in x.shape) if along is None else (x.shape[along] == 0):
        raise ShapeError(f"{name}: there is no entry along axis {axis} of shape {x.shape} to choose from")
    return bind1(operation, x, (along, bool(keepdims)))


def _constant_spec(dtype: Any) -> Any:
    return lambda x, axis, keepdims, shape: Spec(reduced_shape(axis, keepdims, shape), np.dtype(dtype))


ANY = nondifferentiable(
    "any",
    lambda xp, x, axis, keepdims, shape: xp.any(x, axis=axis, keepdims=keepdims),
    numpy_kernel=lambda x, axis, keepdims, shape: np.logical_or.reduce(x, axis, None, None, keepdims),
    spec=_constant_spec(np.bool),
)
ALL = nondifferentiable(
    "all",
    lambda xp, x, axis, keepdims, shape: xp.all(x, axis=axis, keepdims=keepdims),
    numpy_kernel=lambda x, axis, keepdims, shape: np.logical_and.reduce(x, axis, None, None, keepdims),
    spec=_constant_spec(np.bool),
)
COUNT_NONZERO = nondifferentiable(
    "count_nonzero",
    lambda xp, x, axis, keepdims, shape: xp.sum(xp.astype(x != 0, xp.int64), axis=axis, keepdims=keepdims),
    numpy_kernel=lambda x, axis, keepdims, shape: np.asarray(np.count_nonzero(x, axis, keepdims=keepdims)),
    spec=_constant_spec(np.int64),
)
"""any, all, count_nonzero (x; axis, keepdims, shape)"""


def _position_spec(x: Spec, axis: int | None, keepdims: bool) -> Spec:
    return Spec(reduced_shape(None if axis is None else (axis,), keepdims, x.shape), np.dtype(np.intp))


ARGMAX = nondifferentiable(
    "argmax", lambda xp, x, axis, keepdims: xp.argmax(x, axis=axis, keepdims=keepdims), spec=_position_spec
)
ARGMIN = nondifferentiable(
    "argmin", lambda xp, x, axis, keepdims: xp.argmin(x, axis=axis, keepdims=keepdims), spec=_position_spec
)
"""argmax, argmin (x; axis, keepdims)"""
