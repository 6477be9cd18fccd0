"""Norms of vectors and matrices. Where a norm is 0 it has a kink, and its gradient there is 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, is_complex
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import general
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import abs
from stopgrad.primitives.axes import moveaxis
from stopgrad.primitives.casting import astype
from stopgrad.primitives.counting import count_nonzero
from stopgrad.primitives.decompositions import svdvals
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reducing import Axes, all_axes, behind_reduced, lined_up, reduced_shape, reduction_params
from stopgrad.primitives.reductions import max, min, sum
from stopgrad.primitives.shape import expand_dims

_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Norm of a vector or matrix, by the rules of `numpy.linalg.norm`.

    Args:
        x: tensor; of one or two axes where `ord` is given and `axis` is not.
        ord: `None` for the Euclidean (Frobenius) norm; for vectors any number (see `vector_norm`), for matrices also
            "fro" and "nuc" (see `matrix_norm`).
        axis: an axis for vector norms, a pair of them for matrix norms, `None` for all of x.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Tensor of a real dtype without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range, or neither one nor two are named.
        ArgumentError: an unknown `ord`.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.norm([3.0, 4.0]))
        5.0
        >>> sg.grad(sg.linalg.norm)([0.0, 0.0]).numpy()
        array([0., 0.])
    """
    x = to_tensor(x, "norm")
    if ord is None and axis is None:
        return vector_norm(x, keepdims=keepdims)
    axes, keepdims, shape = reduction_params("norm", x.shape, axis, keepdims)
    axes = all_axes(axes, shape)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: takes one axis for vectors or two for matrices, got axis {axis} of shape {shape}")
    return _matrix_norm("norm", x, axes, keepdims, "fro" if ord is None else ord)


def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Norm of the entries along axes: (Σ |xᵢ|^ord)^(1/ord).

    At x = 0 its gradient is 0. Entries equal in size share the derivative evenly where `ord` is ±inf, as in `max`.

    Args:
        x: tensor.
        axis: an axis, a tuple of them, or `None` for all; negative ones count from the end.
        keepdims: keep the reduced axes, with size 1.
        ord: 2, or any number; inf for the largest |xᵢ|, -inf for the smallest, 0 for how many are not 0 (which
            carries no derivative).

    Returns:
        Tensor of a real dtype without the reduced axes (or with them as 1).

    Raises:
        ShapeError: an axis is out of range.
        ArgumentError: `ord` is not a number.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.vector_norm([3.0, -4.0], ord=1))
        7.0
    """
    x = _floating("vector_norm", x)
    if isinstance(ord, str) or not isinstance(ord, int | float | np.integer | np.floating) or ord != ord:
        raise ArgumentError(f"vector_norm: ord must be a number, got {ord!r}")
    if ord == math.inf:
        return max(abs(x), axis, keepdims=keepdims)
    if ord == -math.inf:
        return min(abs(x), axis, keepdims=keepdims)
    if ord == 0:
        return astype(count_nonzero(x, axis, keepdims=keepdims), abs(x).dtype)
    if ord == 1:
        return sum(abs(x), axis, keepdims=keepdims)
    params = reduction_params("vector_norm", x.shape, axis, keepdims)
    return bind1(VECTOR_NORM, x, (float(ord), *params))


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norm of matrices.

    At 0 its gradient is 0, save for the norms of singular values, which have none there (see `svd`).

    Args:
        x: tensor of shape (…, m, n).
        keepdims: keep the last two axes, with size 1.
        ord: "fro" (Frobenius), "nuc" (sum of the singular values), 2 and -2 (the largest and smallest of them), 1 and
            -1 (of the columns' absolute sums), inf and -inf (of the rows').

    Returns:
        Tensor of a real dtype, of the leading axes.

    Raises:
        ShapeError: x has fewer than two axes.
        ArgumentError: an unknown `ord`.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.matrix_norm([[1.0, 2.0], [2.0, 4.0]]))
        5.0
    """
    x = to_tensor(x, "matrix_norm")
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: takes matrices, got shape {x.shape}")
    return _matrix_norm("matrix_norm", x, (x.ndim - 2, x.ndim - 1), keepdims, ord)


def _matrix_norm(name: str, x: Tensor, axes: tuple[int, ...], keepdims: bool, ord: Any) -> Tensor:
    if ord not in _MATRIX_ORDERS:
        raise ArgumentError(f"{name}: for matrices ord must be one of {_MATRIX_ORDERS}, got {ord!r}")
    x = _floating(name, x)
    rows, columns = axes
    if ord == "fro":
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        reduce = {"nuc": sum, 2: max, -2: min}[ord]
        out = reduce(values, -1)
    else:
        summed, other = (rows, columns) if ord in (1, -1) else (columns, rows)
        totals = sum(abs(x), summed)
        out = (max if ord > 0 else min)(totals, other - (other > summed))
    return expand_dims(out, tuple(sorted(axes))) if keepdims else out


def _floating(name: str, x: Any) -> Tensor:
    x = to_tensor(x, name)
    return astype(x, np.float64) if getattr(x.dtype, "kind", "f") in "biu" else x


def _vector_norm(xp: Any, x: Any, ord: float, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    if ord == 2:
        square = xp.real(x) ** 2 + xp.imag(x) ** 2 if is_complex(x.dtype) else x * x
        return xp.sqrt(xp.sum(square, axis=axis, keepdims=keepdims))
    return xp.sum(xp.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def _direction(xp: Any, x: Any, out: Any, ord: float, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    """Return the gradient: x / norm for the Euclidean one, else sign(x) (|x| / norm)^(ord - 1); 0 where the norm is."""
    out = lined_up(xp, out, axis, keepdims, shape)
    safe = xp.where(out == 0, xp.ones_like(out), out)
    x = xp.conj(x) if is_complex(x.dtype) else x
    if ord == 2:
        return x / safe
    zero = (out == 0) & (x == x)
    ratio = xp.where(zero, xp.ones_like(safe), xp.abs(x) / safe)
    return xp.where(zero, xp.zeros_like(x), xp.sign(x) * ratio ** (ord - 1))


def _vector_norm_vjp(xp: Any, t: Any, x: Any, out: Any, ord: float, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    return lined_up(xp, t, axis, keepdims, shape) * _direction(xp, x, out, ord, axis, keepdims, shape)


def _vector_norm_jvp(xp: Any, t: Any, x: Any, out: Any, ord: float, axis: Axes, keepdims: bool, shape: Shape) -> Any:
    change = t * _direction(xp, x, out, ord, axis, keepdims, shape)
    return xp.sum(xp.real(change) if is_complex(change.dtype) else change, axis=axis, keepdims=keepdims)


VECTOR_NORM = general(
    "vector_norm",
    _vector_norm,
    vjps=(_vector_norm_vjp,),
    jvps=(_vector_norm_jvp,),
    behind=lambda xp, zeros, ord, *params: behind_reduced(xp, zeros, *params),
    spec=lambda x, ord, axis, keepdims, shape: Spec(
        reduced_shape(axis, keepdims, shape), np.linalg.norm(np.ones(1, x.dtype)).dtype
    ),
)
"""vector_norm(x; ord, axis, keepdims, shape): ord is none of 0, 1, inf, -inf."""
