"""Making tensors: TensorFlow's `constant`, `zeros`, `range` …, and TensorFlow.js's `tensor`, `tensor1d`, `scalar` ….

Python's numbers become float32 and int32 in the former; in the latter all numbers are float32 unless a dtype is given,
as JavaScript has but one kind of number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.builtin import LEAF
from stopgrad.core.errors import ArgumentError, DTypeError, ShapeError
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.tf.dtypes import as_dtype, complex128, float32, float64, int32
from stopgrad.tf.values import as_floats, as_tensor, holds_tensor, integers, joined, operands, python_int, same_dtype


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """Return a tensor of numbers, a (nested) list or an array: float32 for Python floats, int32 for integers.

    A single number is repeated to fill `shape`. A tensor is returned as it is, and must have the dtype.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.constant([1, 2]).dtype.name, tf.constant([1.0, 2.0]).dtype.name
        ('int32', 'float32')
    """
    tensor = _converted(value, dtype, "constant")
    if shape is None:
        return tensor
    wanted = integers(shape, "constant: shape")
    if tensor.size == math.prod(wanted):
        return p.reshape(tensor, wanted)
    if tensor.size != 1:
        raise ShapeError(f"constant: {tensor.size} values were given for shape {wanted}")
    return p.broadcast_to(p.reshape(tensor, ()), wanted)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """Return anything tensor-like as a tensor; `dtype_hint` is used if it can hold the values.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.convert_to_tensor([1, 2], dtype_hint=tf.float32).dtype.name
        'float32'
    """
    tensor = _converted(value, dtype, "convert_to_tensor")
    if dtype is None and dtype_hint is not None and not holds_tensor(value):
        hint = as_dtype(dtype_hint)
        if joined([tensor.dtype, hint]) == hint:
            return p.astype(tensor, hint)
    return tensor


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert to a dtype; derivatives pass between floating-point and complex dtypes.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.cast([1.7, -1.7], tf.int32).numpy()
        array([ 1, -1], dtype=int32)
    """
    return p.astype(as_tensor(x, "cast"), as_dtype(dtype))


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert to a dtype, values beyond its range to its nearest end."""
    tensor, target = as_tensor(value, "saturate_cast"), as_dtype(dtype)
    if target.kind in "iu":
        limits = np.iinfo(target)
        tensor = p.clip(tensor, max(limits.min, _lowest(tensor.dtype)), min(limits.max, _highest(tensor.dtype)))
    return p.astype(tensor, target)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Return a tensor of the same values; derivatives pass, and can be taken for it apart from its input."""
    return bind1(LEAF, as_tensor(input, "identity"))


def clone(x: Any) -> Tensor:
    """Return another tensor of the same values (they are shared): disposing of one leaves the other."""
    return identity(x)


def is_tensor(x: Any) -> bool:
    """Whether this is a tensor or variable."""
    return isinstance(x, Tensor) or hasattr(x, "__tensor__")


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Return zeros, float32 unless another dtype is given."""
    return p.zeros(integers(shape, "zeros: shape"), as_dtype(dtype))


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Return ones, float32 unless another dtype is given."""
    return p.ones(integers(shape, "ones: shape"), as_dtype(dtype))


def fill(dims: Any, value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor of a shape that holds the same value everywhere."""
    return p.broadcast_to(as_tensor(value, "fill", dtype), integers(dims, "fill: dims"))


def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return zeros of the shape of a tensor, and its dtype unless another is given."""
    return p.zeros_like(as_tensor(input, "zeros_like"), None if dtype is None else as_dtype(dtype))


def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return ones of the shape of a tensor, and its dtype unless another is given."""
    return p.ones_like(as_tensor(input, "ones_like"), None if dtype is None else as_dtype(dtype))


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Return the identity matrix, or one for each entry of `batch_shape`."""
    rows = python_int(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else python_int(num_columns, "eye: num_columns")
    matrix = p.eye(rows, columns, dtype=as_dtype(dtype))
    if batch_shape is None:
        return matrix
    return p.broadcast_to(matrix, (*integers(batch_shape, "eye: batch_shape"), rows, columns))


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Return numbers from start (or 0) up to but without limit; int32 for integers, float32 for Python floats.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.range(1, 10, 3).numpy()
        array([1, 4, 7], dtype=int32)
    """
    first, last = (0, start) if limit is None else (start, limit)
    ends = operands("range", first, last, delta)
    found = joined([end.dtype for end in ends]) if dtype is None else as_dtype(dtype)
    if ends[2].item() == 0:
        raise ArgumentError("range: delta must not be 0")
    return Tensor(np.arange(*(end.item() for end in ends), dtype=found))


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Return `num` evenly spaced values from start to stop, both included, along a new axis; float64 for integers.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.linspace(0.0, 1.0, 5).numpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    first, last = operands("linspace", start, stop)
    if first.dtype.kind in "biu":
        first, last = p.astype(first, float64), p.astype(last, float64)
    count = python_int(num, "linspace: num")
    if count < 1:
        raise ArgumentError(f"linspace: num must be positive, got {count}")
    shape = np.broadcast_shapes(first.shape, last.shape)
    along = axis % (len(shape) + 1)
    share = np.linspace(0.0, 1.0, count).reshape([count if i == along else 1 for i, _ in enumerate((*shape, 0))])
    fraction = share.astype(first.dtype)
    first = p.expand_dims(p.broadcast_to(first, shape), along)
    last = p.expand_dims(p.broadcast_to(last, shape), along)
    # So weighted both ends come out exactly.
    return p.add(p.multiply(first, (1 - share).astype(first.dtype)), p.multiply(last, fraction))


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Return a complex tensor of a real and an imaginary part; complex64 for float32 parts."""
    return p.make_complex(*(as_floats(part, "complex") for part in operands("complex", real, imag)))


def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """Return the sizes of the axes as an int32 tensor; `x.shape` has them as a tuple."""
    return Tensor(np.array(as_tensor(input, "shape").shape, as_dtype(out_type)))


def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes as an int32 tensor."""
    return Tensor(np.array(as_tensor(input, "rank").ndim, int32))


def size(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """Return the number of entries as an int32 tensor."""
    return Tensor(np.array(as_tensor(input, "size").size, as_dtype(out_type)))


def tensor(values: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor of numbers, a nested list or a flat list and a shape; float32 unless a dtype is given.

    Arrays and tensors keep their dtype. Of TensorFlow.js.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.tensor([1, 2, 3, 4], [2, 2]).print()
        Tensor
            [[1, 2],
             [3, 4]]
    """
    return _js_tensor("tensor", values, shape, dtype, None)


def scalar(value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor without axes; float32 unless a dtype is given. Of TensorFlow.js."""
    return _js_tensor("scalar", value, None, dtype, 0)


def tensor1d(values: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of one axis; float32 unless a dtype is given. Of TensorFlow.js.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.tensor1d([1, 2, 3]).dtype.name
        'float32'
    """
    return _js_tensor("tensor1d", values, None, dtype, 1)


def tensor2d(values: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor of two axes, of a nested list, or a flat one and a shape. Of TensorFlow.js."""
    return _js_tensor("tensor2d", values, shape, dtype, 2)


def tensor3d(values: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor of three axes, of a nested list, or a flat one and a shape. Of TensorFlow.js."""
    return _js_tensor("tensor3d", values, shape, dtype, 3)


def tensor4d(values: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor of four axes, of a nested list, or a flat one and a shape. Of TensorFlow.js."""
    return _js_tensor("tensor4d", values, shape, dtype, 4)


def js_numbers(x: Any, name: str) -> Tensor:
    """Return anything tensor-like as a tensor as TensorFlow.js does: Python's numbers are float32, booleans bool."""
    numbers = as_tensor(x, name)
    if holds_tensor(x) or _has_dtype(x) or numbers.dtype.kind not in "iu":
        return numbers
    return p.astype(numbers, float32)


def _has_dtype(x: Any) -> bool:
    while isinstance(x, list | tuple) and x:
        x = x[0]
    return hasattr(x, "dtype")


def _js_tensor(name: str, values: Any, shape: Any, dtype: Any, ndim: int | None) -> Tensor:
    made = js_numbers(values, name) if dtype is None else as_tensor(values, name, dtype)
    if shape is not None:
        wanted = integers(shape, f"{name}: shape")
        if ndim is not None and len(wanted) != ndim:
            raise ShapeError(f"{name}: shape must have {ndim} sizes, got {wanted}")
        if made.shape == wanted:
            return made
        if made.ndim != 1:
            raise ShapeError(f"{name}: values of shape {made.shape} were given with shape {wanted}; pass a flat list")
        if made.size != math.prod(wanted):
            raise ShapeError(f"{name}: shape {wanted} needs {math.prod(wanted)} values, got {made.size}")
        return p.reshape(made, wanted)
    if ndim is not None and made.ndim != ndim:
        hint = "; give a shape to go with a flat list" if made.ndim == 1 and ndim > 1 else ""
        raise ShapeError(f"{name}: takes values of {ndim} axes, got shape {made.shape}{hint}")
    return made


def _converted(value: Any, dtype: Any, name: str) -> Tensor:
    """Return a value as a tensor; numbers and arrays take on a given dtype, tensors must have it."""
    made = as_tensor(value, name)
    if dtype is None:
        return made
    wanted = as_dtype(dtype)
    if holds_tensor(value):
        return same_dtype(made, wanted, name)
    if not _has_dtype(value) and made.dtype.kind in "fc" and joined([made.dtype, wanted]) != wanted:
        kind = "complex numbers" if made.dtype == complex128 else "floats"
        if made.dtype.kind != wanted.kind:
            raise DTypeError(
                f"{name}: {kind} were given for dtype={wanted}; convert them with tf.cast to lose precision"
            )
    return as_tensor(value, name, wanted)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -math.inf


def _highest(dtype: Any) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else math.inf
