"""`tf.linalg`: matrices and stacks of them, of stopgrad's functions in TensorFlow's argument order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import stopgrad.primitives as p
from stopgrad import linalg as ours
from stopgrad.core.errors import ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.creation import eye
from stopgrad.tf.dtypes import int32
from stopgrad.tf.elementwise import global_norm
from stopgrad.tf.missing import message
from stopgrad.tf.products import (
    adjoint,
    band_part,
    cross,
    diag,
    diag_part,
    einsum,
    l2_normalize,
    matmul,
    matrix_transpose,
    matvec,
    norm,
    normalize,
    set_diag,
    tensordot,
    trace,
)
from stopgrad.tf.values import as_floats, as_tensor, operands


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Inverse of square matrices, or of their adjoints."""
    return ours.inv(_adjoint_if(adjoint, as_floats(input, "inv")))


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Pseudoinverse of matrices; singular values below the fraction `rcond` of the largest count as 0."""
    return ours.pinv(as_floats(a, "pinv"), rcond)


def det(input: Any, name: str | None = None) -> Tensor:
    """Determinant of square matrices."""
    return ours.det(as_floats(input, "det"))


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return sign, and logarithm of the absolute value, of the determinant."""
    return ours.slogdet(as_floats(input, "slogdet"))


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Logarithm of the determinant of positive definite matrices."""
    return ours.slogdet(as_floats(matrix, "logdet"))[1]


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solution x of matrix · x = rhs, for columns rhs; with `adjoint` of the matrix's adjoint.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy()
        array([[1. ],
               [0.5]], dtype=float32)
    """
    a, b = _system("solve", matrix, rhs)
    return ours.solve(_adjoint_if(adjoint, a), b)


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solution x of matrix · x = rhs, of which only the lower (or upper) triangle of the matrix is looked at."""
    a, b = _system("triangular_solve", matrix, rhs)
    return ours.solve_triangular(_adjoint_if(adjoint, a), b, lower=lower is not adjoint)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Lower triangular L with L · Lᴴ equal to positive definite matrices."""
    return ours.cholesky(as_floats(input, "cholesky"))


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solution x of A · x = rhs for A = L · Lᴴ, given L."""
    factor, b = _system("cholesky_solve", chol, rhs)
    return triangular_solve(factor, triangular_solve(factor, b), adjoint=True)


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return eigenvalues in ascending order, and eigenvectors as columns, of symmetric (Hermitian) matrices."""
    return ours.eigh(as_floats(tensor, "eigh"))


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues, in ascending order, of symmetric (Hermitian) matrices."""
    return ours.eigvalsh(as_floats(tensor, "eigvalsh"))


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Return (s, u, v), TensorFlow's order, with tensor = u · diag(s) · vᴴ; or s alone."""
    x = as_floats(tensor, "svd")
    if not compute_uv:
        return ours.svdvals(x)
    u, s, vh = ours.svd(x, full_matrices=full_matrices)
    return s, u, _adjoint(vh)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return Q with orthonormal columns and upper triangular R with Q · R equal to matrices."""
    return ours.qr(as_floats(input, "qr"), "complete" if full_matrices else "reduced")


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """The x that makes ‖matrix · x - rhs‖² + l2_regularizer · ‖x‖² least; `fast` is not used."""
    a, b = _system("lstsq", matrix, rhs)
    if not l2_regularizer:
        return p.matmul(ours.pinv(a), b)
    turned = _adjoint(a)
    penalty = p.multiply(p.eye(a.shape[-1], dtype=a.dtype), l2_regularizer)
    return ours.solve(p.add(p.matmul(turned, a), penalty), p.matmul(turned, b))


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Number of singular values above a tolerance, a multiple of the rounding error by default."""
    x = as_floats(a, "matrix_rank")
    if tol is None:
        return p.astype(ours.matrix_rank(x), int32)
    return p.astype(p.count_nonzero(p.greater(ours.svdvals(x), tol), -1), int32)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Tensor of twice the axes with the given entries at out[i…, i…], and zeros elsewhere."""
    x = as_tensor(diagonal, "tensor_diag")
    return p.reshape(p.diag_embed(p.reshape(x, -1)), (*x.shape, *x.shape))


def gram_schmidt(xs: Any) -> Any:
    """Return orthonormal vectors that span what those given span: the rows of a matrix, or a list. Of TensorFlow.js.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.linalg.gram_schmidt([[1.0, 0.0], [1.0, 2.0]])[1].numpy()
        array([0., 1.], dtype=float32)
    """
    is_list = isinstance(xs, list | tuple)
    rows: Sequence[Tensor] = (
        [as_floats(one, "gram_schmidt") for one in xs] if is_list else list(as_floats(xs, "gram_schmidt"))
    )
    found: list[Tensor] = []
    for row in rows:
        if row.ndim != 1:
            raise ShapeError(f"gram_schmidt: takes vectors of one length, got shape {row.shape}")
        for other in found:
            row = p.subtract(row, p.multiply(p.sum(p.multiply(other, row)), other))
        found.append(p.divide(row, ours.norm(row)))
    return found if is_list else p.stack(found)


def _system(name: str, matrix: Any, rhs: Any) -> tuple[Tensor, Tensor]:
    """Return a matrix and right sides, which have to be columns, as TensorFlow has it."""
    a, b = (as_floats(one, name) for one in operands(name, matrix, rhs))
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(
            f"{name}: takes matrices, got shapes {a.shape} and {b.shape}; make a vector a column with rhs[:, None]"
        )
    return a, b


_adjoint = adjoint


def _adjoint_if(wanted: bool, matrix: Tensor) -> Tensor:
    return _adjoint(matrix) if wanted else matrix


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.linalg", name, __all__))


__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "eye",
    "global_norm",
    "gram_schmidt",
    "inv",
    "l2_normalize",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "svd",
    "tensor_diag",
    "tensordot",
    "trace",
    "triangular_solve",
]
