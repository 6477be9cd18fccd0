"""Diagonals and triangles of matrices: taking a diagonal out, placing one, the trace, and the parts beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, normalize_axis
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import Operation, linear
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_integer, to_tensor
from stopgrad.primitives.reductions import sum
from stopgrad.primitives.shape import ravel


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Entries on a diagonal of two axes, along a new last axis.

    Args:
        x: tensor of two or more axes.
        offset: which diagonal: 0 the main one, above it if positive, below if negative.
        axis1: axis of the rows.
        axis2: axis of the columns.

    Returns:
        Tensor of the other axes, and last the diagonal.

    Raises:
        ShapeError: an axis is out of range, or both are the same.

    Example:
        >>> import stopgrad as sg
        >>> sg.diagonal([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([1., 4.])
    """
    x = to_tensor(x, "diagonal")
    return bind1(DIAGONAL, x, _diagonal_params("diagonal", x, offset, axis1, axis2))


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Sum along a diagonal of two axes; see `diagonal` for the arguments.

    Args:
        x: tensor of two or more axes.
        offset: which diagonal.
        axis1: axis of the rows.
        axis2: axis of the columns.

    Returns:
        Tensor of the other axes.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.trace([[1.0, 2.0], [3.0, 4.0]]))
        5.0
    """
    x = to_tensor(x, "trace")
    return sum(bind1(DIAGONAL, x, _diagonal_params("trace", x, offset, axis1, axis2)), axis=-1)


def diag(x: Any, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or the matrix with a given k-th diagonal and zeros elsewhere.

    Args:
        x: tensor of two axes, or of one.
        k: which diagonal; see `diagonal`.

    Returns:
        Tensor of one axis if x has two, of two if x has one.

    Raises:
        ShapeError: x has neither one axis nor two.

    Example:
        >>> import stopgrad as sg
        >>> sg.diag([1.0, 2.0]).numpy()
        array([[1., 0.],
               [0., 2.]])
    """
    x = to_tensor(x, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(
            f"diag: takes a matrix or a vector, got shape {x.shape}; use diagonal or diag_embed for stacks"
        )
    return diag_embed(x, k)


def diagflat(x: Any, k: int = 0) -> Tensor:
    """The matrix whose k-th diagonal holds all entries of x, in row-major order.

    Args:
        x: tensor of any shape.
        k: which diagonal; see `diagonal`.

    Returns:
        Tensor of two axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.diagflat([[1.0], [2.0]]).numpy()
        array([[1., 0.],
               [0., 2.]])
    """
    return diag_embed(ravel(x), k)


def diag_embed(x: Any, offset: int = 0) -> Tensor:
    """Matrices with the vectors along the last axis on a diagonal and zeros elsewhere.

    Args:
        x: tensor of shape (…, n).
        offset: which diagonal; see `diagonal`.

    Returns:
        Tensor of shape (…, n + |offset|, n + |offset|).

    Raises:
        ShapeError: x has no axis.

    Example:
        >>> import stopgrad as sg
        >>> sg.diag_embed([1.0, 2.0], offset=1).numpy()
        array([[0., 1., 0.],
               [0., 0., 2.],
               [0., 0., 0.]])
    """
    x = to_tensor(x, "diag_embed")
    if not x.ndim:
        raise ShapeError("diag_embed: takes vectors, got a tensor without axes")
    offset = to_integer("diag_embed", "offset", offset)
    size = x.shape[-1] + abs(offset)
    shape = (*x.shape[:-1], size, size)
    return bind1(PLACE_DIAGONAL, x, (offset, x.ndim - 1, x.ndim, shape))


def tril(x: Any, k: int = 0) -> Tensor:
    """Matrices with zeros above the k-th diagonal.

    Args:
        x: tensor of shape (…, n, m).
        k: the highest diagonal that is kept; see `diagonal`.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: x has fewer than two axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.tril([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[1., 0.],
               [3., 4.]])
    """
    return _triangle(TRIL, x, k)


def triu(x: Any, k: int = 0) -> Tensor:
    """Matrices with zeros below the k-th diagonal.

    Args:
        x: tensor of shape (…, n, m).
        k: the lowest diagonal that is kept; see `diagonal`.

    Returns:
        Tensor of the shape of x.

    Raises:
        ShapeError: x has fewer than two axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.triu([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[1., 2.],
               [0., 4.]])
    """
    return _triangle(TRIU, x, k)


def _triangle(operation: Any, x: Any, k: int) -> Tensor:
    x = to_tensor(x, operation.name)
    if x.ndim < 2:
        raise ShapeError(f"{operation.name}: takes matrices, got shape {x.shape}")
    return bind1(operation, x, (to_integer(operation.name, "k", k),))


def _diagonal_params(name: str, x: Tensor, offset: int, axis1: int, axis2: int) -> tuple[Any, ...]:
    rows, columns = normalize_axis(name, axis1, x.ndim), normalize_axis(name, axis2, x.ndim)
    if rows == columns:
        raise ShapeError(f"{name}: axis1 and axis2 are the same axis, {axis1}")
    return to_integer(name, "offset", offset), rows, columns, x.shape


def _last_two(ndim: int, axis1: int, axis2: int) -> tuple[int, ...]:
    """Return the order of axes in which the two given come last."""
    return (*(i for i in range(ndim) if i not in (axis1, axis2)), axis1, axis2)


def _diagonal(xp: Any, x: Any, offset: int, axis1: int, axis2: int, shape: Shape) -> Any:
    return xp.linalg.diagonal(xp.permute_dims(x, _last_two(x.ndim, axis1, axis2)), offset=offset)


def _diagonal_spec(x: Spec, offset: int, axis1: int, axis2: int, shape: Shape) -> Spec:
    return Spec(np.broadcast_to(np.zeros((), np.bool), shape).diagonal(offset, axis1, axis2).shape, x.dtype)


def _place(xp: Any, t: Any, offset: int, axis1: int, axis2: int, shape: Shape) -> Any:
    """Place through a mask: row r of the result holds entry r (less what the offset skips) of the diagonal, if any."""
    order = _last_two(len(shape), axis1, axis2)
    rows, columns = shape[axis1], shape[axis2]
    above, count = max(-offset, 0), t.shape[-1]
    parts = [xp.zeros((*t.shape[:-1], n), dtype=t.dtype) for n in (above, max(rows - above - count, 0))]
    entries = xp.expand_dims(xp.concat([parts[0], t, parts[1]], axis=-1), axis=-1)
    mask = xp.eye(rows, columns, k=offset, dtype=xp.bool)
    return xp.permute_dims(xp.where(mask, entries, xp.zeros_like(entries)), tuple(map(order.index, range(len(order)))))


def _place_numpy(t: Any, offset: int, axis1: int, axis2: int, shape: Shape) -> Any:
    out = np.zeros(shape, t.dtype)
    entries = np.arange(t.shape[-1])
    view = out.transpose(_last_two(len(shape), axis1, axis2))
    view[..., entries + max(-offset, 0), entries + max(offset, 0)] = t
    return out


DIAGONAL: Operation = linear(
    "diagonal",
    _diagonal,
    lambda xp, t, *params: run(PLACE_DIAGONAL, t, params=params),
    tangent=lambda xp, t, *params: run(DIAGONAL, t, params=params),
    numpy_kernel=lambda x, offset, axis1, axis2, shape: x.diagonal(offset, axis1, axis2),
    spec=_diagonal_spec,
    masks=True,
    passes_masks=True,
)
"""diagonal(x; offset, axis1, axis2, shape)"""

PLACE_DIAGONAL: Operation = linear(
    "place_diagonal",
    _place,
    lambda xp, t, *params: run(DIAGONAL, t, params=params),
    tangent=lambda xp, t, *params: run(PLACE_DIAGONAL, t, params=params),
    numpy_kernel=_place_numpy,
    spec=lambda t, offset, axis1, axis2, shape: Spec(shape, t.dtype),
    passes_masks=True,
)
"""place_diagonal(t; offset, axis1, axis2, shape): zeros of the shape with t on the diagonal."""

TRIL = linear(
    "tril",
    lambda xp, x, k: xp.tril(x, k=k),
    lambda xp, t, k: xp.tril(t, k=k),
    spec=lambda x, k: x,
    masks=True,
    passes_masks=True,
)
TRIU = linear(
    "triu",
    lambda xp, x, k: xp.triu(x, k=k),
    lambda xp, t, k: xp.triu(t, k=k),
    spec=lambda x, k: x,
    masks=True,
    passes_masks=True,
)
"""tril, triu (x; k)"""
