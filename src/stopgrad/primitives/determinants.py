"""Determinants of matrices and stacks of them, with derivatives that hold at singular matrices.

The gradient of a determinant is the matrix of cofactors, det(a) a⁻ᵀ where there is an inverse (M. Giles, "Collected
matrix derivative results", 2008), and a polynomial in the entries of a, hence finite, everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Spec, is_complex
from stopgrad.core.operation import ZERO, Operation, Slots, general
from stopgrad.core.record import bind1, bind_many, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import on_host
from stopgrad.primitives.linear_algebra import INV, floating, square, square_spec
from stopgrad.primitives.products import transposed


class SlogdetResult(NamedTuple):
    """Sign of a determinant and logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def det(a: Any) -> Tensor:
    """Determinant of matrices.

    The gradient, the matrix of cofactors, and its derivative are right at singular matrices too; third derivatives
    need an invertible one.

    Args:
        a: tensor of shape (…, n, n).

    Returns:
        Tensor of the leading axes.

    Raises:
        ShapeError: a is not square.

    Example:
        >>> import stopgrad as sg
        >>> sg.grad(sg.linalg.det)([[2.0, 0.0], [0.0, 0.0]]).numpy()
        array([[0., 0.],
               [0., 2.]])
    """
    return bind1(DET, square("det", a))


def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant, without overflow.

    Args:
        a: tensor of shape (…, n, n); invertible where a derivative is taken.

    Returns:
        Named tuple (sign, logabsdet), of the leading axes: 0 and -inf where a is singular.

    Raises:
        ShapeError: a is not square.

    Example:
        >>> import stopgrad as sg
        >>> sign, logabsdet = sg.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]])
        >>> float(sign), float(logabsdet)
        (-1.0, 0.0)
    """
    return SlogdetResult(*bind_many(SLOGDET, (square("slogdet", a),)))


def logdet(a: Any) -> Tensor:
    """Logarithm of the absolute value of the determinant; see `slogdet`.

    Args:
        a: tensor of shape (…, n, n).

    Returns:
        Tensor of the leading axes, of a real dtype.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.linalg.logdet([[1.0, 0.0], [0.0, -1.0]]))
        0.0
    """
    return slogdet(a)[1]


def _as_matrix(xp: Any, t: Any) -> Any:
    """Return one number a matrix lined up to multiply matrices."""
    return xp.reshape(t, (*t.shape, 1, 1))


def _cofactors(xp: Any, a: Any) -> Any:
    """Return det(a) a⁻ᵀ, by singular values: with a = U S Vᴴ it is det(U) det(Vᴴ) conj(U) cofactors(S) conj(V)ᴴ."""
    u, s, vh = xp.linalg.svd(a)
    count = s.shape[-1]
    before, after = [xp.ones_like(s[..., 0])], [xp.ones_like(s[..., 0])]
    for i in range(count - 1):
        before.append(before[-1] * s[..., i])
        after.append(after[-1] * s[..., count - 1 - i])
    others = xp.stack([p * q for p, q in zip(before, reversed(after), strict=True)], axis=-1)
    unit = _as_matrix(xp, xp.linalg.det(u) * xp.linalg.det(vh))
    if is_complex(a.dtype):
        u, vh = xp.conj(u), xp.conj(vh)
    return unit * ((u * xp.astype(xp.expand_dims(others, axis=-2), a.dtype)) @ vh)


def _cofactors_numpy(a: Any) -> Any:
    determinant = np.linalg.det(a)
    if not a.size:
        return a
    if np.all((determinant != 0) & np.isfinite(determinant)):
        return determinant[..., None, None] * np.linalg.inv(a).swapaxes(-1, -2)
    return _cofactors(np, a)


def _inner(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(a * b, axis=(-2, -1))


COFACTORS: Operation = general(
    "cofactors",
    _cofactors,
    vjps=(lambda xp, t, a, _out: run(COFACTORS_CHANGE, a, t),),
    jvps=(lambda xp, t, a, _out: run(COFACTORS_CHANGE, a, t),),
    numpy_kernel=_cofactors_numpy,
    spec=square_spec,
)
"""cofactors(a): the gradient of det, so their derivative, its second derivative, is symmetric."""


def _change(a: Any, e: Any) -> Any:
    """Return the derivative of the cofactors C of a along e: C tr(a⁻¹ e) - a⁻ᵀ eᵀ C, or by singular values."""
    determinant = np.linalg.det(a)
    if not a.size:
        return e
    if not np.all((determinant != 0) & np.isfinite(determinant)):
        return _change_by_singular_values(a, e)
    inverse = np.linalg.inv(a).swapaxes(-1, -2)
    scaled = inverse * np.sum(inverse * e, (-2, -1), keepdims=True) - inverse @ e.swapaxes(-1, -2) @ inverse
    return determinant[..., None, None] * scaled


def _change_by_singular_values(a: Any, e: Any) -> Any:
    """With a = U S Vᴴ and e = U E Vᴴ, cofactors of S + E to first order, turned back as in `_cofactors`.

    With pᵢⱼ the product of all singular values but i and j: -pᵢⱼ Eⱼᵢ beside the diagonal, and on it Σⱼ pᵢⱼ Eⱼⱼ.
    """
    u, s, vh = np.linalg.svd(a)
    count = s.shape[-1]
    eye = np.eye(count)
    rows = np.where(eye == 1, 1, s[..., None, :])
    before, after = np.ones_like(rows), np.ones_like(rows)
    before[..., 1:] = np.cumprod(rows, -1)[..., :-1]
    after[..., :-1] = np.cumprod(rows[..., ::-1], -1)[..., ::-1][..., 1:]
    others = before * after * (1 - eye)
    e = np.conj(u.swapaxes(-1, -2)) @ e @ np.conj(vh.swapaxes(-1, -2))
    on_diagonal = others @ np.diagonal(e, 0, -2, -1)[..., None]
    inside = on_diagonal * eye - others * e.swapaxes(-1, -2)
    return (np.linalg.det(u) * np.linalg.det(vh))[..., None, None] * (np.conj(u) @ inside @ np.conj(vh))


def _third(xp: Any, t: Any, a: Any, e: Any, _out: Any) -> Any:
    """The third derivative of det along e and t, from that of det(a) (tr(a⁻¹ e) tr(a⁻¹ t) - tr(a⁻¹ e a⁻¹ t))."""
    inverse = transposed(xp, run(INV, a))
    turned_e, turned_t = transposed(xp, e) @ inverse, transposed(xp, t) @ inverse
    of_e, of_t = (_as_matrix(xp, _inner(xp, inverse, one)) for one in (e, t))
    both = inverse @ turned_e @ turned_t
    crossed = _as_matrix(xp, _inner(xp, inverse @ turned_e, t))
    result = (of_e * of_t - crossed) * inverse - inverse @ (of_t * turned_e + of_e * turned_t)
    return _as_matrix(xp, run(DET, a)) * (result + both + inverse @ turned_t @ turned_e)


COFACTORS_CHANGE: Operation = general(
    "cofactors_change",
    lambda xp, a, e: on_host(xp, _change, a, e),
    vjps=(_third, lambda xp, t, a, _e, _out: run(COFACTORS_CHANGE, a, t)),
    jvps=(_third, lambda xp, t, a, _e, _out: run(COFACTORS_CHANGE, a, t)),
    numpy_kernel=_change,
    spec=lambda a, e: square_spec(a),
)
"""cofactors_change(a, e): the derivative of cofactors along e."""

DET = general(
    "det",
    lambda xp, a: xp.linalg.det(a),
    vjps=(lambda xp, t, a, _out: _as_matrix(xp, t) * run(COFACTORS, a),),
    jvps=(lambda xp, t, a, _out: _inner(xp, run(COFACTORS, a), t),),
    numpy_kernel=np.linalg.det,
    spec=lambda a: Spec(a.shape[:-2], floating(a.dtype)),
)
"""det(a)"""


def _imaginary(xp: Any, x: Any) -> Any:
    """Return i Im(x), what moves the phase and not the size."""
    return (x - xp.conj(x)) / 2


def _slogdet_vjp(xp: Any, t: Slots, a: Any, out: Any) -> Any:
    total = t.get(1)
    if 0 in t and is_complex(a.dtype):
        turned = _imaginary(xp, t[0] * out[0])
        total = turned if total is None else total + turned
    return ZERO if total is None else _as_matrix(xp, total) * transposed(xp, run(INV, a))


def _slogdet_jvp(xp: Any, t: Any, a: Any, out: Any) -> Slots:
    """With c = tr(a⁻¹ t): sign · i Im(c), which for real matrices is 0, and Re(c)."""
    change = _inner(xp, transposed(xp, run(INV, a)), t)
    if not is_complex(a.dtype):
        return Slots({0: ZERO, 1: change})
    return Slots({0: out[0] * _imaginary(xp, change), 1: xp.real(change)})


def _slogdet_spec(a: Spec) -> tuple[Spec, Spec]:
    dtype = floating(a.dtype)
    return Spec(a.shape[:-2], dtype), Spec(a.shape[:-2], np.zeros((), dtype).real.dtype)


SLOGDET = general(
    "slogdet",
    lambda xp, a: tuple(xp.linalg.slogdet(a)),
    vjps=(_slogdet_vjp,),
    jvps=(_slogdet_jvp,),
    spec=_slogdet_spec,
)
"""slogdet(a): two outputs."""
