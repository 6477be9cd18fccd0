"""The matrix product and its kin: contractions of two tensors over shared axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, broadcast_shapes, is_complex, normalize_axis, result_dtype
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import general
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import multiply, subtract
from stopgrad.primitives.axes import roll
from stopgrad.primitives.casting import conj
from stopgrad.primitives.contraction import tensordot
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.shape import ravel, reshape


def matmul(a: Any, b: Any) -> Tensor:
    """Matrix product, a @ b, by NumPy's rules.

    Args:
        a: tensor of shape (…, n, k), or (k,) for a row.
        b: tensor of shape (…, k, m), or (k,) for a column. Leading axes broadcast.

    Returns:
        Tensor of shape (…, n, m), without n or m where a or b has one axis only.

    Raises:
        ShapeError: a number instead of a tensor with axes, or sizes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
        array([3., 7.])
    """
    if type(a) is not Tensor:
        a = to_tensor(a, "matmul")
    if type(b) is not Tensor:
        b = to_tensor(b, "matmul")
    shape_a, shape_b = a.value.shape, b.value.shape
    axes_a, axes_b = len(shape_a), len(shape_b)
    if not axes_a or not axes_b:
        raise ShapeError("matmul: both tensors need at least one axis; multiply by a number with *")
    if shape_a[-1] != shape_b[-2 if axes_b > 1 else 0]:
        raise ShapeError(
            f"matmul: shapes {tuple(shape_a)} and {tuple(shape_b)} do not fit: the last axis of the first must be as "
            "long as the last but one (or only) axis of the second"
        )
    return bind2(MATMUL, a, b, (axes_a, axes_b))


def dot(a: Any, b: Any) -> Tensor:
    """Product by the rules of `numpy.dot`: of numbers, of vectors, of matrices.

    Args:
        a: tensor.
        b: tensor.

    Returns:
        Tensor: a · b if either is a number; else the sum of products over the last axis of a and the last but one (or
        only) axis of b, with the other axes of a and then those of b.

    Raises:
        ShapeError: sizes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.dot([1.0, 2.0], [3.0, 4.0]))
        11.0
    """
    a, b = to_tensor(a, "dot"), to_tensor(b, "dot")
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if a.ndim <= 2 or b.ndim <= 2:
        if a.ndim == 2 and b.ndim > 2:
            return tensordot(a, b, (1, b.ndim - 2))
        return matmul(a, b)
    return tensordot(a, b, (a.ndim - 1, b.ndim - 2))


def vdot(a: Any, b: Any) -> Tensor:
    """Sum of conj(a) · b over all entries, both flattened.

    Args:
        a: tensor of any shape.
        b: tensor of as many entries.

    Returns:
        Tensor of shape ().

    Raises:
        ShapeError: a and b differ in size.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.vdot([[1.0, 2.0]], [[3.0, 4.0]]))
        11.0
    """
    a, b = ravel(a), ravel(b)
    return matmul(conj(a) if is_complex(a.dtype) else a, b)


def kron(a: Any, b: Any) -> Tensor:
    """Kronecker product: the blocks a[i, j, …] · b. The tensor with fewer axes gets new ones in front.

    Args:
        a: tensor.
        b: tensor.

    Returns:
        Tensor whose sizes are the products of theirs.

    Example:
        >>> import stopgrad as sg
        >>> sg.kron([1.0, 2.0], [1.0, 10.0]).numpy()
        array([ 1., 10.,  2., 20.])
    """
    a, b = to_tensor(a, "kron"), to_tensor(b, "kron")
    ndim = max(a.ndim, b.ndim)
    sizes_a, sizes_b = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    blocks = reshape(a, tuple(n for size in sizes_a for n in (size, 1)))
    inside = reshape(b, tuple(n for size in sizes_b for n in (1, size)))
    return reshape(multiply(blocks, inside), tuple(m * n for m, n in zip(sizes_a, sizes_b, strict=True)))


def cross(a: Any, b: Any, axis: int = -1) -> Tensor:
    """Vector product of vectors of three entries along an axis; the other axes broadcast.

    Args:
        a: tensor.
        b: tensor.
        axis: along which the vectors lie.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: the axis is not of size 3, or the shapes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
        array([0., 0., 1.])
    """
    a, b = to_tensor(a, "cross"), to_tensor(b, "cross")
    for x in (a, b):
        if x.shape[normalize_axis("cross", axis, x.ndim)] != 3:
            raise ShapeError(f"cross: takes vectors of three entries along axis {axis}, got shape {x.shape}")
    ahead = multiply(roll(a, -1, axis), roll(b, 1, axis))
    return subtract(ahead, multiply(roll(a, 1, axis), roll(b, -1, axis)))


def _matmul_numpy(a: Any, b: Any, axes_a: int, axes_b: int) -> Any:
    if axes_b <= 2:
        if axes_a <= 2:
            return a.dot(b)  # half the time of np.matmul on small matrices
        if a.flags.c_contiguous:  # one large product instead of many small ones
            return a.reshape(prod(a.shape[:-1]), a.shape[-1]).dot(b).reshape(a.shape[:-1] + b.shape[1:])
    return np.matmul(a, b)


def _matmul_spec(a: Spec, b: Spec, axes_a: int, axes_b: int) -> Spec:
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if axes_b > 1 else ()
    return Spec((*batch, *rows, *columns), result_dtype((a, b)))


def transposed(xp: Any, x: Any) -> Any:
    """Return matrices with their two axes exchanged."""
    if xp is np:
        return x.T if x.ndim == 2 else x.swapaxes(-1, -2)
    return xp.matrix_transpose(x)


def _matmul_vjp_a(xp: Any, t: Any, _a: Any, b: Any, _out: Any, axes_a: int, axes_b: int) -> Any:
    if axes_a == 1:
        if axes_b == 1:
            return t * b
        return xp.matmul(b, t) if axes_b == 2 else xp.squeeze(xp.matmul(b, xp.expand_dims(t, axis=-1)), axis=-1)
    if axes_b == 1:
        return xp.expand_dims(t, axis=-1) * b
    if axes_a == 2 and axes_b > 2:  # sum over the batch within the product, without making all its terms
        return xp.matmul(_columns(xp, t), transposed(xp, _columns(xp, b)))
    if axes_b == 2:
        return _matmul(xp, t, transposed(xp, b), axes_a, 2)
    return xp.matmul(t, transposed(xp, b))


def _matmul_vjp_b(xp: Any, t: Any, a: Any, _b: Any, _out: Any, axes_a: int, axes_b: int) -> Any:
    if axes_b == 1:
        if axes_a == 1:
            return t * a
        return xp.matmul(xp.reshape(t, (prod(t.shape),)), _rows(xp, a))
    if axes_a == 1:
        return xp.expand_dims(a, axis=-1) * xp.expand_dims(t, axis=-2)
    if axes_b == 2:
        if axes_a > 2:
            a, t = _rows(xp, a), _rows(xp, t)
        return _matmul(xp, transposed(xp, a), t, 2, 2)
    return xp.matmul(transposed(xp, a), t)


def _matmul(xp: Any, a: Any, b: Any, axes_a: int, axes_b: int) -> Any:
    return _matmul_numpy(a, b, axes_a, axes_b) if xp is np else xp.matmul(a, b)


def _rows(xp: Any, x: Any) -> Any:
    """Return a stack of matrices (…, n, m) as one matrix (… · n, m)."""
    return xp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def _columns(xp: Any, x: Any) -> Any:
    """Return a stack of matrices (…, n, m) as one matrix (n, … · m)."""
    rows = x.ndim - 2
    order = (rows, *range(rows), rows + 1)
    return xp.reshape(xp.permute_dims(x, order), (x.shape[-2], prod(x.shape[:-2]) * x.shape[-1]))


MATMUL = general(
    "matmul",
    lambda xp, a, b, axes_a, axes_b: xp.matmul(a, b),
    vjps=(_matmul_vjp_a, _matmul_vjp_b),
    jvps=(
        lambda xp, t, _a, b, _out, axes_a, axes_b: _matmul(xp, t, b, axes_a, axes_b),
        lambda xp, t, a, _b, _out, axes_a, axes_b: _matmul(xp, a, t, axes_a, axes_b),
    ),
    numpy_kernel=_matmul_numpy,
    spec=_matmul_spec,
    bilinear=True,
)
"""matmul(a, b; axes_a, axes_b): the last two are the numbers of axes of a and b."""
