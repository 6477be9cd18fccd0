"""Composites of linear algebra: powers of matrices, least squares, rank and condition."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, namespace_of
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import nondifferentiable
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import abs, divide, multiply, subtract
from stopgrad.primitives.arithmetic import square as squared
from stopgrad.primitives.decompositions import svdvals
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import to_integer, to_tensor
from stopgrad.primitives.linear_algebra import default_rtol, inv, matrices, pinv, square
from stopgrad.primitives.norms import matrix_norm
from stopgrad.primitives.products import matmul
from stopgrad.primitives.reductions import sum


def matrix_power(a: Any, n: int) -> Tensor:
    """The n-th power of square matrices; a negative n takes powers of the inverse.

    Args:
        a: tensor of shape (…, m, m).
        n: an integer; 0 gives identity matrices.

    Returns:
        Tensor of the shape of a.

    Raises:
        ShapeError: a is not square.
        LinearAlgebraError: n is negative and a singular.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.matrix_power([[1.0, 1.0], [0.0, 1.0]], 5).numpy()
        array([[1., 5.],
               [0., 1.]])
    """
    a = square("matrix_power", a)
    n = to_integer("matrix_power", "n", n)
    if n == 0:
        xp = namespace_of(a.value)
        return Tensor(xp.broadcast_to(xp.eye(a.shape[-1], dtype=a.dtype), a.shape))
    power = inv(a) if n < 0 else a
    remaining, result = builtins.abs(n), None
    while True:  # powers a, a², a⁴, … as the binary digits of n ask for
        if remaining % 2:
            result = power if result is None else matmul(result, power)
        remaining //= 2
        if not remaining:
            break
        power = matmul(power, power)
    assert result is not None
    return result


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Least squares: the x of smallest norm that makes |a x - b|² least, as pinv(a) b.

    Args:
        a: tensor of shape (m, n).
        b: tensor of shape (m,) or (m, k).
        rcond: singular values below this fraction of the largest count as 0; by default as in `pinv`.

    Returns:
        (x, residuals, rank, singular values), as `numpy.linalg.lstsq` has them. The residuals, |a x - b|², are empty
        where a has no full column rank or no more rows than columns. The rank carries no derivative.

    Raises:
        ShapeError: a is not a matrix, or b does not fit.

    Example:
        >>> import stopgrad as sg
        >>> x, residuals, rank, _ = sg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
        >>> x.numpy(), residuals.numpy(), int(rank)
        (array([2.]), array([2.]), 1)
    """
    a, b = matrices("lstsq", a), to_tensor(b, "lstsq")
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"lstsq: right-hand sides of shape {b.shape} do not fit a matrix of shape {a.shape}")
    x = matmul(pinv(a, rcond), b)
    rank = matrix_rank(a, rcond)
    if a.shape[0] > a.shape[1] and int(rank) == a.shape[1]:
        residuals = sum(squared(abs(subtract(matmul(a, x), b))), 0, keepdims=b.ndim == 1)
    else:
        residuals = Tensor(np.empty(0, np.real(np.empty(0, x.dtype)).dtype))
    return x, residuals, rank, svdvals(a)


def matrix_rank(a: Any, rtol: float | None = None) -> Tensor:
    """How many singular values exceed the fraction rtol of the largest. Carries no derivative.

    Args:
        a: tensor of shape (…, m, n).
        rtol: the fraction; by default as in `pinv`.

    Returns:
        Tensor of integers, of the leading axes.

    Example:
        >>> import stopgrad as sg
        >>> int(sg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
        1
    """
    a = matrices("matrix_rank", a)
    return bind1(MATRIX_RANK, a, (float(default_rtol(a) if rtol is None else rtol),))


def cond(a: Any, p: Any = None) -> Tensor:
    """Condition number of matrices: norm(a) · norm(a⁻¹), for p `None` the ratio of largest and smallest singular value.

    Args:
        a: tensor of shape (…, m, n); square unless p is `None`, 2 or -2.
        p: which norm; see `matrix_norm`.

    Returns:
        Tensor of the leading axes.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.cond([[2.0, 0.0], [0.0, 4.0]]))
        2.0
    """
    a = matrices("cond", a)
    if p is None or p in (2, -2):
        values = svdvals(a)
        first, last = getitem(values, (..., 0)), getitem(values, (..., -1))
        return divide(last, first) if p == -2 else divide(first, last)
    return multiply(matrix_norm(a, ord=p), matrix_norm(inv(a), ord=p))


MATRIX_RANK = nondifferentiable(
    "matrix_rank",
    lambda xp, a, rtol: xp.linalg.matrix_rank(a, rtol=rtol),
    numpy_kernel=lambda a, rtol: np.asarray(np.linalg.matrix_rank(a, rtol=rtol)),
    spec=lambda a, rtol: Spec(a.shape[:-2], np.dtype(np.intp)),
)
"""matrix_rank(a; rtol)"""
