"""Decompositions of matrices and stacks of them: Cholesky, eigenvalues, singular values, QR; by LAPACK.

Formulas: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
2008; M. Seeger et al., "Auto-differentiating linear algebra", 2017, arXiv:1710.08717.

**Equal eigenvalues or singular values.** Their vectors can be turned among themselves and have no derivative. A
function that does not depend on them gets its derivative all the same; one that does gets infinities, not a silent
number. Second derivatives need eigenvalues that differ.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Spec, is_complex
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import Slots, general
from stopgrad.core.record import bind1, bind_many, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import swapaxes
from stopgrad.primitives.casting import conj
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.joining import concat
from stopgrad.primitives.linear_algebra import SOLVE_TRIANGULAR, adjoint, matrices, square
from stopgrad.primitives.products import matmul, transposed


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


def cholesky(a: Any, *, upper: bool = False) -> Tensor:
    """Lower triangular L with L Lᴴ = a.

    Args:
        a: tensor of shape (…, n, n), positive definite. What is factored is its symmetric part, (a + aᴴ) / 2, so the
            gradient is symmetric.
        upper: return Lᴴ instead.

    Returns:
        Tensor of the shape of a.

    Raises:
        ShapeError: a is not square.
        LinearAlgebraError: a is not positive definite.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]]).numpy()
        array([[2., 0.],
               [1., 1.]])
    """
    factor = bind1(CHOLESKY, square("cholesky", a))
    if not upper:
        return factor
    return _adjoint_tensor(factor)


def eigh(a: Any) -> EighResult:
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices.

    The sign (phase) of an eigenvector is LAPACK's choice, so only functions that do not depend on it are
    differentiable. For equal eigenvalues see the module's docstring: derivatives of the eigenvalues are right if their
    sum (or the like) is taken, those of their vectors are infinite.

    Args:
        a: tensor of shape (…, n, n). What is decomposed is its symmetric part, (a + aᴴ) / 2, so the gradient is
            symmetric.

    Returns:
        Named tuple (eigenvalues, eigenvectors) of shapes (…, n) and (…, n, n); column i belongs to eigenvalue i.

    Raises:
        ShapeError: a is not square.

    Example:
        >>> import stopgrad as sg
        >>> values, vectors = sg.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
        >>> values.numpy()
        array([1., 3.])
    """
    return EighResult(*bind_many(EIGH, (square("eigh", a),)))


def eigvalsh(a: Any) -> Tensor:
    """Eigenvalues in ascending order of symmetric (Hermitian) matrices; see `eigh`.

    Args:
        a: tensor of shape (…, n, n).

    Returns:
        Tensor of shape (…, n), of a real dtype.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).numpy()
        array([1., 3.])
    """
    return eigh(a)[0]


def svd(a: Any, full_matrices: bool = False) -> SVDResult:
    """Singular value decomposition, a = U diag(s) Vᴴ, in its reduced form.

    The signs of singular vectors are LAPACK's choice, so only functions that do not depend on them are differentiable.
    For equal or zero singular values see the module's docstring.

    Args:
        a: tensor of shape (…, m, n).
        full_matrices: only `False`: the vectors a full decomposition adds have no derivative.

    Returns:
        Named tuple (U, S, Vh) of shapes (…, m, k), (…, k), (…, k, n), with k the smaller of m and n; S descends.

    Raises:
        ShapeError: a has fewer than two axes.
        ArgumentError: `full_matrices=True` for matrices that are not square.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.svd([[3.0, 0.0], [0.0, 4.0]])[1].numpy()
        array([4., 3.])
    """
    a = matrices("svd", a)
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise ArgumentError("svd: only full_matrices=False; the vectors a full decomposition adds have no derivative")
    return SVDResult(*bind_many(SVD, (a,)))


def svdvals(a: Any) -> Tensor:
    """Singular values in descending order; see `svd`.

    Args:
        a: tensor of shape (…, m, n).

    Returns:
        Tensor of shape (…, k), with k the smaller of m and n, of a real dtype.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]).numpy()
        array([4., 3.])
    """
    return svd(a)[1]


def qr(a: Any, mode: str = "reduced") -> QRResult:
    """QR decomposition, a = Q R, in its reduced form; differentiable where the first columns are independent.

    Args:
        a: tensor of shape (…, m, n).
        mode: only "reduced".

    Returns:
        Named tuple (Q, R) of shapes (…, m, k) and (…, k, n), with k the smaller of m and n.

    Raises:
        ShapeError: a has fewer than two axes.
        ArgumentError: another mode.

    Example:
        >>> import stopgrad as sg
        >>> q, r = sg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
        >>> (q @ r).numpy().round(12)
        array([[3., 1.],
               [4., 2.]])
    """
    a = matrices("qr", a)
    if mode != "reduced":
        raise ArgumentError(f"qr: only mode='reduced' is available, got {mode!r}")
    rows, columns = a.shape[-2:]
    if rows >= columns:
        return QRResult(*bind_many(QR, (a,)))
    # Q comes from the first columns alone; the rest of R are the other columns as Q sees them.
    q, r = bind_many(QR, (getitem(a, (..., slice(0, rows))),))
    others = matmul(_adjoint_tensor(q), getitem(a, (..., slice(rows, None))))
    return QRResult(q, concat([r, others], axis=-1))


def _adjoint_tensor(x: Tensor) -> Tensor:
    return swapaxes(conj(x) if is_complex(x.dtype) else x, -1, -2)


def _symmetric(xp: Any, x: Any) -> Any:
    return (x + adjoint(xp, x)) / 2


def _conj(xp: Any, x: Any) -> Any:
    """Return the conjugate; formulas below are for cotangents that pair with conj(tangent), rules get the others."""
    return xp.conj(x) if is_complex(x.dtype) else x


def _skew(xp: Any, x: Any) -> Any:
    """Return x - xᴴ with zeros on the diagonal."""
    return (x - adjoint(xp, x)) * _off_diagonal(xp, x)


def _over(xp: Any, x: Any, gaps: Any) -> Any:
    """Return x / gaps, 0 where both are 0: no gap, but nothing depends on it."""
    nothing = (gaps == 0) & (x == 0)
    return xp.where(nothing, xp.zeros_like(x), x / xp.where(nothing, xp.ones_like(gaps), gaps))


def _diagonal_mask(xp: Any, x: Any) -> Any:
    return xp.eye(x.shape[-1], dtype=x.dtype)


def _off_diagonal(xp: Any, x: Any) -> Any:
    return 1 - xp.eye(x.shape[-1], dtype=x.dtype)


def _row(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=-2)


def _column(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=-1)


def _factor_dtype(dtype: Any) -> Any:
    return np.linalg.cholesky(np.ones((1, 1), dtype)).dtype


def _real_dtype(dtype: Any) -> Any:
    return np.zeros((), _factor_dtype(dtype)).real.dtype


def _lower_half(xp: Any, x: Any) -> Any:
    """Return the lower triangle with half of the diagonal."""
    return (xp.tril(x) + xp.tril(x, k=-1)) / 2


def _divided_left(factor: Any, x: Any) -> Any:
    """Return L⁻¹ x."""
    return run(SOLVE_TRIANGULAR, factor, x, params=(True, False, False))


def _cholesky_vjp(xp: Any, t: Any, _a: Any, out: Any) -> Any:
    """L⁻ᴴ Φ(Lᴴ t) L⁻¹, made symmetric; Φ as in `_lower_half`."""
    t = _conj(xp, t)
    half = _lower_half(xp, adjoint(xp, out) @ t)
    # Divided by Lᴴ on the left: solving with the transpose of conj(L).
    left = run(SOLVE_TRIANGULAR, _conj(xp, out), half, params=(True, True, False))
    both = adjoint(xp, run(SOLVE_TRIANGULAR, _conj(xp, out), adjoint(xp, left), params=(True, True, False)))
    return _conj(xp, _symmetric(xp, both))


def _cholesky_jvp(xp: Any, t: Any, _a: Any, out: Any) -> Any:
    """L Φ(L⁻¹ t L⁻ᴴ)."""
    left = _divided_left(out, _symmetric(xp, t))
    return out @ _lower_half(xp, adjoint(xp, _divided_left(out, adjoint(xp, left))))


CHOLESKY = general(
    "cholesky",
    lambda xp, a: xp.linalg.cholesky(_symmetric(xp, a)),
    vjps=(_cholesky_vjp,),
    jvps=(_cholesky_jvp,),
    spec=lambda a: Spec(a.shape, _factor_dtype(a.dtype)),
)
"""cholesky(a)"""


def _gaps(xp: Any, values: Any) -> Any:
    """Return the matrix of values[j] - values[i]."""
    return _row(xp, values) - _column(xp, values)


def _eigh_vjp(xp: Any, t: Slots, _a: Any, out: Any) -> Any:
    """V (diag(t₀) + F ∘ skew(Vᴴ t₁)) Vᴴ, made symmetric, with F one over the gaps."""
    values, vectors = out
    inside: Any = None
    if 1 in t:
        skew = _skew(xp, adjoint(xp, vectors) @ _conj(xp, t[1])) / 2
        inside = vectors @ _over(xp, skew, _gaps(xp, values))
    if 0 in t:
        scaled = vectors * _row(xp, t[0])
        inside = scaled if inside is None else inside + scaled
    return _conj(xp, _symmetric(xp, inside @ adjoint(xp, vectors)))


def _eigh_jvp(xp: Any, t: Any, _a: Any, out: Any) -> Slots:
    """With M = Vᴴ t V: diag(M) for the values, V (F ∘ M) for the vectors."""
    values, vectors = out
    change = adjoint(xp, vectors) @ _symmetric(xp, t) @ vectors
    diagonal = xp.sum(change * _diagonal_mask(xp, change), axis=-2)
    diagonal = xp.real(diagonal) if is_complex(diagonal.dtype) else diagonal
    turn = _over(xp, change * _off_diagonal(xp, change), _gaps(xp, values))
    return Slots({0: diagonal, 1: vectors @ turn})


EIGH = general(
    "eigh",
    lambda xp, a: tuple(xp.linalg.eigh(_symmetric(xp, a))),
    vjps=(_eigh_vjp,),
    jvps=(_eigh_jvp,),
    spec=lambda a: (Spec(a.shape[:-1], _real_dtype(a.dtype)), Spec(a.shape, _factor_dtype(a.dtype))),
)
"""eigh(a): two outputs."""


def _svd_kernel(xp: Any, a: Any) -> tuple[Any, ...]:
    return tuple(xp.linalg.svd(a, full_matrices=False))


def _svd_spec(a: Spec) -> tuple[Spec, Spec, Spec]:
    *batch, rows, columns = a.shape
    count, dtype = min(rows, columns), _factor_dtype(a.dtype)
    return (
        Spec((*batch, rows, count), dtype),
        Spec((*batch, count), _real_dtype(a.dtype)),
        Spec((*batch, count, columns), dtype),
    )


def _square_gaps(xp: Any, s: Any) -> Any:
    """Return the matrix of s[j]² - s[i]²."""
    return _gaps(xp, s) * (_row(xp, s) + _column(xp, s))


def _phase(xp: Any, x: Any, s: Any) -> Any:
    """Return i Im(diag(x)) / s, what turning the phases of complex singular vectors does, as a diagonal matrix."""
    return _over(xp, (x - adjoint(xp, x)) / 2 * _diagonal_mask(xp, x), _row(xp, s))


def _svd_vjp(xp: Any, t: Slots, _a: Any, out: Any) -> Any:
    """U (diag(t₁) + (F ∘ skew(Uᴴ t₀)) S + S (F ∘ skew(Vᴴ t₂ᵀ))) Vᴴ, and what lies outside of U's and V's columns.

    F is one over the gaps of s². For complex matrices also U i Im(diag(Uᴴ t₀)) S⁻¹ Vᴴ: the phase is counted to U.
    """
    u, s, vh = out
    v = adjoint(xp, vh)
    parts = []
    if 1 in t:
        parts.append((u * _row(xp, t[1])) @ vh)
    if 0 in t:
        t_u = _conj(xp, t[0])
        product = adjoint(xp, u) @ t_u
        inside = _over(xp, _skew(xp, product), _square_gaps(xp, s)) * _row(xp, s)
        if is_complex(u.dtype):
            inside = inside + _phase(xp, product, s)
        parts.append(u @ inside @ vh)
        if u.shape[-2] > u.shape[-1]:
            parts.append(_over(xp, t_u - u @ product, _row(xp, s)) @ vh)
    if 2 in t:
        t_v = transposed(xp, t[2])
        product = vh @ t_v
        parts.append(u @ (_column(xp, s) * _over(xp, _skew(xp, product), _square_gaps(xp, s))) @ vh)
        if v.shape[-2] > v.shape[-1]:
            parts.append(u @ adjoint(xp, _over(xp, t_v - v @ product, _row(xp, s))))
    return _conj(xp, functools.reduce(operator.add, parts))


def _svd_jvp(xp: Any, t: Any, _a: Any, out: Any) -> Slots:
    """With M = Uᴴ t V: diag(M); U (F ∘ (M S + S Mᴴ)); V (F ∘ (S M + Mᴴ S)); and what lies outside."""
    u, s, vh = out
    v = adjoint(xp, vh)
    change = adjoint(xp, u) @ t @ v
    ds = xp.sum(change * _diagonal_mask(xp, change), axis=-2)
    right, left = change * _row(xp, s), _column(xp, s) * change
    off, gaps = _off_diagonal(xp, change), _square_gaps(xp, s)
    turn = _over(xp, (right + adjoint(xp, right)) * off, gaps)
    if is_complex(u.dtype):
        ds, turn = xp.real(ds), turn + _phase(xp, change, s)
    du, dv = u @ turn, v @ _over(xp, (left + adjoint(xp, left)) * off, gaps)
    if u.shape[-2] > u.shape[-1]:
        du = du + _over(xp, t @ v - u @ change, _row(xp, s))
    if v.shape[-2] > v.shape[-1]:
        dv = dv + _over(xp, adjoint(xp, t) @ u - v @ adjoint(xp, change), _row(xp, s))
    return Slots({0: du, 1: ds, 2: adjoint(xp, dv)})


SVD = general("svd", _svd_kernel, vjps=(_svd_vjp,), jvps=(_svd_jvp,), spec=_svd_spec)
"""svd(a): three outputs."""


def _divided_right(xp: Any, x: Any, r: Any) -> Any:
    """Return x R⁻¹."""
    return transposed(xp, run(SOLVE_TRIANGULAR, r, transposed(xp, x), params=(False, True, False)))


def _qr_vjp(xp: Any, t: Slots, _a: Any, out: Any) -> Any:
    """(t₀ + Q copyltu(R t₁ᴴ - t₀ᴴ Q)) R⁻ᴴ, where copyltu mirrors the lower triangle upwards."""
    q, r = out
    t_q = _conj(xp, t[0]) if 0 in t else None
    mirrored: Any = None
    if 1 in t:
        mirrored = r @ adjoint(xp, xp.triu(_conj(xp, t[1])))
    if t_q is not None:
        turned = adjoint(xp, t_q) @ q
        mirrored = -turned if mirrored is None else mirrored - turned
    lower = xp.tril(mirrored, k=-1)
    diagonal = mirrored * _diagonal_mask(xp, mirrored)
    inside = q @ (lower + adjoint(xp, lower) + (diagonal + _conj(xp, diagonal)) / 2)
    inside = inside if t_q is None else inside + t_q
    return _conj(xp, adjoint(xp, run(SOLVE_TRIANGULAR, r, adjoint(xp, inside), params=(False, False, False))))


def _qr_jvp(xp: Any, t: Any, _a: Any, out: Any) -> Slots:
    """With W = t R⁻¹, M = Qᴴ W, and Ω the skew matrix with the lower triangle of M: Q (Ω - M) + W and (M - Ω) R."""
    q, r = out
    scaled = _divided_right(xp, t, r)
    change = adjoint(xp, q) @ scaled
    lower = xp.tril(change, k=-1)
    turn = lower - adjoint(xp, lower)
    if is_complex(q.dtype):
        turn = turn + (change - adjoint(xp, change)) / 2 * _diagonal_mask(xp, change)
    return Slots({0: q @ (turn - change) + scaled, 1: (change - turn) @ r})


def _qr_spec(a: Spec) -> tuple[Spec, Spec]:
    *batch, rows, columns = a.shape
    dtype = _factor_dtype(a.dtype)
    return Spec((*batch, rows, columns), dtype), Spec((*batch, columns, columns), dtype)


QR = general("qr", lambda xp, a: tuple(xp.linalg.qr(a)), vjps=(_qr_vjp,), jvps=(_qr_jvp,), spec=_qr_spec)
"""qr(a): two outputs; a has no more columns than rows."""
