"""Linear systems, inverses and pseudoinverses of matrices and stacks of them, by LAPACK.

Formulas: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
2008; for the pseudoinverse, Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, broadcast_shapes, is_complex, namespace_of, result_dtype
from stopgrad.core.errors import ShapeError
from stopgrad.core.lazy import scipy_linalg
from stopgrad.core.operation import Operation, general
from stopgrad.core.record import bind1, bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.products import transposed
from stopgrad.primitives.shape import expand_dims, squeeze


def solve(a: Any, b: Any) -> Tensor:
    """Solution x of a x = b.

    Args:
        a: tensor of shape (…, n, n), invertible.
        b: tensor of shape (…, n, k), or (n,) for one right-hand side. Leading axes broadcast.

    Returns:
        Tensor of the shape of b, with the leading axes of both.

    Raises:
        ShapeError: a is not square, or b does not fit.
        LinearAlgebraError: a is singular.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy()
        array([1. , 0.5])
    """
    a = square("solve", a)
    return _solved("solve", a, b, lambda matrix: bind2(SOLVE, a, matrix))


def solve_triangular(
    a: Any, b: Any, *, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """Solution x of a x = b where a is triangular; what is on the other side of its diagonal is not looked at.

    Args:
        a: tensor of shape (…, n, n).
        b: tensor of shape (…, n, k), or (n,) for one right-hand side. Leading axes broadcast.
        lower: whether a is lower or upper triangular.
        transpose: solve with the transpose of a instead.
        unit_diagonal: take the diagonal to be ones without looking at it.

    Returns:
        Tensor of the shape of b, with the leading axes of both.

    Raises:
        ShapeError: a is not square, or b does not fit.
        LinearAlgebraError: there is a zero on the diagonal.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0]).numpy()
        array([1., 2.])
    """
    a = square("solve_triangular", a)
    params = (bool(lower), bool(transpose), bool(unit_diagonal))
    return _solved("solve_triangular", a, b, lambda matrix: bind2(SOLVE_TRIANGULAR, a, matrix, params))


def inv(a: Any) -> Tensor:
    """Inverse of matrices.

    Args:
        a: tensor of shape (…, n, n).

    Returns:
        Tensor of the shape of a.

    Raises:
        ShapeError: a is not square.
        LinearAlgebraError: a is singular.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    return bind1(INV, square("inv", a))


def pinv(a: Any, rtol: float | None = None) -> Tensor:
    """Pseudoinverse (Moore and Penrose) of matrices; its derivative holds where the rank does not change.

    Args:
        a: tensor of shape (…, m, n).
        rtol: singular values below this fraction of the largest count as 0; by default max(m, n) times the precision
            of the dtype.

    Returns:
        Tensor of shape (…, n, m).

    Raises:
        ShapeError: a has fewer than two axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.pinv([[2.0], [0.0]]).numpy()
        array([[0.5, 0. ]])
    """
    a = matrices("pinv", a)
    return bind1(PINV, a, (default_rtol(a) if rtol is None else float(rtol),))


def default_rtol(a: Tensor) -> float:
    """Return the fraction of the largest singular value below which one counts as 0: rounding in a matrix like this."""
    xp = namespace_of(a.value)
    return max(a.shape[-2:]) * float(xp.finfo(floating(a.dtype) if xp is np else a.dtype).eps)


def matrices(name: str, a: Any) -> Tensor:
    """Return a matrix or stack of matrices as a tensor, or raise in the name of the function."""
    a = to_tensor(a, name)
    if a.ndim < 2:
        raise ShapeError(f"{name}: takes matrices, tensors of two or more axes, got shape {a.shape}")
    return a


def square(name: str, a: Any) -> Tensor:
    """Return a square matrix or stack of them as a tensor, or raise in the name of the function."""
    a = matrices(name, a)
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, got shape {a.shape}")
    return a


def adjoint(xp: Any, x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return transposed(xp, xp.conj(x) if is_complex(x.dtype) else x)


def _solved(name: str, a: Tensor, b: Any, solver: Any) -> Tensor:
    b = to_tensor(b, name)
    if not b.ndim or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ShapeError(f"{name}: right-hand sides of shape {b.shape} do not fit matrices of shape {a.shape}")
    if b.ndim == 1:
        return squeeze(solver(expand_dims(b, -1)), -1)
    solution: Tensor = solver(b)
    return solution


def floating(dtype: Any) -> Any:
    """Return the dtype in which LAPACK computes with matrices of this one."""
    return np.linalg.inv(np.ones((1, 1), dtype)).dtype


def _solve_spec(a: Spec, b: Spec, *_: Any) -> Spec:
    batch = broadcast_shapes("solve", a.shape[:-2], b.shape[:-2])
    return Spec((*batch, *b.shape[-2:]), floating(result_dtype((a, b))))


def square_spec(a: Spec, *_: Any) -> Spec:
    """Shape rule of an operation that makes square matrices of square matrices."""
    return Spec(a.shape, floating(a.dtype))


SOLVE: Operation = general(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    vjps=(
        lambda xp, t, a, _b, out: -(run(SOLVE, transposed(xp, a), t) @ transposed(xp, out)),
        lambda xp, t, a, _b, _out: run(SOLVE, transposed(xp, a), t),
    ),
    jvps=(
        lambda xp, t, a, _b, out: -run(SOLVE, a, t @ out),
        lambda xp, t, a, _b, _out: run(SOLVE, a, t),
    ),
    numpy_kernel=np.linalg.solve,
    spec=_solve_spec,
)
"""solve(a, b): b of two or more axes."""


def _triangle(xp: Any, a: Any, lower: bool, unit: bool) -> Any:
    """Return the part of a that counts."""
    return xp.tril(a, k=-1 if unit else 0) if lower else xp.triu(a, k=1 if unit else 0)


def _solve_triangular(xp: Any, a: Any, b: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    triangle = _triangle(xp, a, lower, unit)
    if unit:
        triangle = triangle + xp.eye(a.shape[-1], dtype=a.dtype)
    return xp.linalg.solve(xp.matrix_transpose(triangle) if transpose else triangle, b)


def _solve_triangular_numpy(a: Any, b: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    solver = scipy_linalg().solve_triangular
    settings = {"lower": lower, "trans": int(transpose), "unit_diagonal": unit, "check_finite": False}
    dtype = floating(np.result_type(a, b))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, *b.shape[-2:]), dtype)
    if not out.size:
        return out
    if not batch:
        return solver(a, b, **settings).astype(dtype, copy=False)
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    for one in np.ndindex(batch):
        out[one] = solver(a[one], b[one], **settings)
    return out


def _solve_triangular_vjp_a(
    xp: Any, t: Any, a: Any, _b: Any, out: Any, lower: bool, transpose: bool, unit: bool
) -> Any:
    pulled = run(SOLVE_TRIANGULAR, a, t, params=(lower, not transpose, unit))
    product = out @ transposed(xp, pulled) if transpose else pulled @ transposed(xp, out)
    return -_triangle(xp, product, lower, unit)


def _solve_triangular_jvp_a(
    xp: Any, t: Any, a: Any, _b: Any, out: Any, lower: bool, transpose: bool, unit: bool
) -> Any:
    change = _triangle(xp, t, lower, unit)
    change = transposed(xp, change) if transpose else change
    return -run(SOLVE_TRIANGULAR, a, change @ out, params=(lower, transpose, unit))


SOLVE_TRIANGULAR: Operation = general(
    "solve_triangular",
    _solve_triangular,
    vjps=(
        _solve_triangular_vjp_a,
        lambda xp, t, a, _b, _out, lower, transpose, unit: run(
            SOLVE_TRIANGULAR, a, t, params=(lower, not transpose, unit)
        ),
    ),
    jvps=(
        _solve_triangular_jvp_a,
        lambda xp, t, a, _b, _out, lower, transpose, unit: run(SOLVE_TRIANGULAR, a, t, params=(lower, transpose, unit)),
    ),
    numpy_kernel=_solve_triangular_numpy,
    spec=_solve_spec,
)
"""solve_triangular(a, b; lower, transpose, unit_diagonal): b of two or more axes."""

INV = general(
    "inv",
    lambda xp, a: xp.linalg.inv(a),
    vjps=(lambda xp, t, _a, out: -(transposed(xp, out) @ t @ transposed(xp, out)),),
    jvps=(lambda xp, t, _a, out: -(out @ t @ out),),
    numpy_kernel=np.linalg.inv,
    spec=square_spec,
)
"""inv(a)"""


def _rest(xp: Any, a: Any, out: Any, x: Any) -> Any:
    """Return (I - a out) x."""
    return x - a @ (out @ x)


def _conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if is_complex(x.dtype) else x


def _pinv_vjp(xp: Any, t: Any, a: Any, out: Any, rtol: float) -> Any:
    """The transpose of `_pinv_jvp`; the conjugates are those of daᴴ."""
    out_t, out_c, a_c, t_h = transposed(xp, out), _conj(xp, out), _conj(xp, a), adjoint(xp, t)
    second = _rest(xp, a_c, out_c, t_h @ out_c @ out_t)
    third = out_t @ out_c @ t_h
    return second + third - third @ out_c @ a_c - out_t @ t @ out_t


def _pinv_jvp(xp: Any, t: Any, a: Any, out: Any, rtol: float) -> Any:
    """With P the pseudoinverse: dP = -P da P + P Pᴴ daᴴ (I - a P) + (I - P a) daᴴ Pᴴ P."""
    t_h, out_h = adjoint(xp, t), adjoint(xp, out)
    outside = out @ out_h @ t_h
    return outside - outside @ a @ out + _rest(xp, out, a, t_h @ out_h @ out) - out @ t @ out


PINV = general(
    "pinv",
    lambda xp, a, rtol: xp.linalg.pinv(a, rtol=rtol),
    vjps=(_pinv_vjp,),
    jvps=(_pinv_jvp,),
    spec=lambda a, rtol: Spec((*a.shape[:-2], a.shape[-1], a.shape[-2]), floating(a.dtype)),
)
"""pinv(a; rtol)"""
