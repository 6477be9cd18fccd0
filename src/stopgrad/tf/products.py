"""Products of vectors and matrices, norms, and what is built on diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad import linalg
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.values import as_floats, as_tensor, axes, operands, python_int


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Product of matrices (of at least two axes; leading ones broadcast), either transposed or adjoint before.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
        array([[11.]], dtype=float32)
    """
    return _product("matmul", a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)


def mat_mul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Product of matrices, either transposed before. Of TensorFlow.js; see `matmul`."""
    return _product("mat_mul", a, b, transpose_a, transpose_b, False, False)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    name: str | None = None,
) -> Tensor:
    """Product of a matrix and a vector; leading axes broadcast."""
    matrix, vector = operands("matvec", a, b)
    found = _product("matvec", matrix, p.expand_dims(vector, -1), transpose_a, False, adjoint_a, False)
    return p.squeeze(found, -1)


def dot(t1: Any, t2: Any) -> Tensor:
    """Product of two tensors of one or two axes each, as `numpy.dot` has it. Of TensorFlow.js."""
    a, b = operands("dot", t1, t2)
    if a.ndim not in (1, 2) or b.ndim not in (1, 2):
        raise ShapeError(f"dot: takes tensors of one or two axes, got shapes {a.shape} and {b.shape}")
    return p.dot(a, b)


def outer_product(v1: Any, v2: Any) -> Tensor:
    """Matrix of the products of the entries of two vectors. Of TensorFlow.js."""
    a, b = operands("outer_product", v1, v2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer_product: takes two vectors, got shapes {a.shape} and {b.shape}")
    return p.outer(a, b)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Sum of products over pairs of axes: the last n of a with the first n of b, or the lists [of a, of b].

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.tensordot([[1.0, 2.0]], [[3.0], [4.0]], 1).numpy()
        array([[11.]], dtype=float32)
    """
    first, second = operands("tensordot", a, b)
    pairs = np.asarray(axes.numpy() if isinstance(axes, Tensor) else axes)
    return p.tensordot(first, second, int(pairs) if pairs.ndim == 0 else tuple(map(_as_tuple, pairs.tolist())))


def einsum(equation: str, *inputs: Any, optimize: Any = None, name: str | None = None) -> Tensor:
    """Multiply tensors and sum, as subscripts say: Einstein's notation.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
        array([3., 7.], dtype=float32)
    """
    return p.einsum(equation, *operands("einsum", *inputs))


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Norm of vectors (over all entries, or along one axis) or matrices (over a pair of axes).

    Args:
        tensor: real or complex.
        ord: of vectors any number or infinity; "euclidean" is 2. Of matrices 1, 2 or infinity, or "euclidean" or "fro"
            for the root of the sum of squares. Where a norm is 0 its gradient is 0.
        axis: an integer for vectors, a pair for matrices, `None` for all entries as one vector.
        keepdims: keep the axes, with size 1.
        name: not used.

    Example:
        >>> import stopgrad.tf as tf
        >>> float(tf.norm([3.0, 4.0])), float(tf.norm([3.0, -4.0], ord=1))
        (5.0, 7.0)
    """
    x, along = as_floats(tensor, "norm"), axes(axis, "norm")
    if isinstance(along, tuple) and len(along) == 2:
        return linalg.norm(x, "fro" if ord == "euclidean" else ord, along, keepdims)
    if isinstance(ord, str) and ord != "euclidean":
        raise ArgumentError(f"norm: ord={ord!r} is a norm of matrices; give the pair of axes, axis=[-2, -1]")
    return linalg.vector_norm(x, axis=along, keepdims=keepdims, ord=2 if ord == "euclidean" else ord)


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return a tensor divided by its norm, and the norm with its axes kept."""
    x = as_floats(tensor, "normalize")
    size = norm(x, ord, axis, keepdims=True)
    return p.divide(x, size), size


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Conjugate of matrices, the last two axes exchanged."""
    return p.conj(p.matrix_transpose(as_tensor(matrix, "adjoint")))


def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Tensor:
    """Exchange the last two axes."""
    return adjoint(a) if conjugate else p.matrix_transpose(as_tensor(a, "matrix_transpose"))


def trace(x: Any, name: str | None = None) -> Tensor:
    """Sum of the diagonal of the last two axes."""
    tensor = as_tensor(x, "trace")
    return p.astype(linalg.trace(tensor, axis1=-2, axis2=-1), tensor.dtype)


def diag(diagonal: Any, name: str = "diag", k: Any = 0) -> Tensor:
    """Matrices with vectors on the k-th diagonal and zeros elsewhere."""
    return p.diag_embed(as_tensor(diagonal, "diag"), python_int(k, "diag: k"))


def diag_part(input: Any, name: str = "diag_part", k: Any = 0) -> Tensor:
    """The k-th diagonal of matrices."""
    return p.diagonal(as_tensor(input, "diag_part"), python_int(k, "diag_part: k"), axis1=-2, axis2=-1)


def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """Matrices with the k-th diagonal replaced."""
    x, values = operands("set_diag", input, diagonal)
    offset = python_int(k, "set_diag: k")
    length = p.diagonal(x, offset, axis1=-2, axis2=-1).shape[-1]
    numbers = np.arange(length)
    return p.at_set(x, (..., numbers + max(-offset, 0), numbers + max(offset, 0)), values)


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band of so many diagonals below and above the main one, -1 meaning all.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.linalg.band_part([[1, 2], [3, 4]], 0, -1).numpy()
        array([[1, 2],
               [0, 4]], dtype=int32)
    """
    x = as_tensor(input, "band_part")
    lower, upper = python_int(num_lower, "band_part: num_lower"), python_int(num_upper, "band_part: num_upper")
    if lower >= 0:
        x = p.triu(x, -lower)
    return p.tril(x, upper) if upper >= 0 else x


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Vector product of vectors of three entries along the last axis."""
    first, second = operands("cross", a, b)
    return p.cross(first, second)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Return x / √max(Σ x², ε), the sum over axes.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nn.l2_normalize([3.0, 4.0]).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    tensor = as_floats(x, "l2_normalize")
    squares = p.sum(p.square(p.abs(tensor)), axis=axes(axis, "l2_normalize"), keepdims=True)
    return p.multiply(tensor, p.rsqrt(p.maximum(squares, as_tensor(epsilon, "l2_normalize", squares.dtype))))


def _product(
    name: str, a: Any, b: Any, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool
) -> Tensor:
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ArgumentError(f"{name}: give at most one of transpose and adjoint for a matrix")
    first, second = operands(name, a, b)
    if first.ndim < 2 or second.ndim < 2:
        raise ShapeError(
            f"{name}: takes matrices (at least two axes), got shapes {first.shape} and {second.shape}; use "
            "tf.linalg.matvec, tf.tensordot or expand_dims for vectors"
        )
    if transpose_a or adjoint_a:
        first = adjoint(first) if adjoint_a else p.matrix_transpose(first)
    if transpose_b or adjoint_b:
        second = adjoint(second) if adjoint_b else p.matrix_transpose(second)
    return p.matmul(first, second)


def _as_tuple(one: Any) -> tuple[int, ...]:
    return tuple(one) if isinstance(one, list) else (one,)
