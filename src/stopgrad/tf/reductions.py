"""Reductions and scans: TensorFlow's `reduce_sum` …, and TensorFlow.js's `sum`, `mean`, `max` ….

Where several entries are the largest (smallest), the derivative of `reduce_max` (`reduce_min`) is shared evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.tensor import Tensor
from stopgrad.tf.dtypes import as_dtype, int32, int64
from stopgrad.tf.values import as_floats, as_tensor, axes, python_int


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Sum over axes, all of them by default; integers keep their dtype.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.reduce_sum([[1, 2], [3, 4]], axis=0).numpy()
        array([4, 6], dtype=int32)
    """
    x = as_tensor(input_tensor, "reduce_sum")
    return p.astype(p.sum(x, axis=axes(axis, "reduce_sum"), keepdims=keepdims), _accumulated(x.dtype))


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Mean over axes, all of them by default; of integers an integer, rounded towards zero, as in TensorFlow.

    Example:
        >>> import stopgrad.tf as tf
        >>> int(tf.reduce_mean([1, 2, 4])), float(tf.reduce_mean([1.0, 2.0, 4.5]))
        (2, 2.5)
    """
    x = as_tensor(input_tensor, "reduce_mean")
    mean = p.mean(x, axis=axes(axis, "reduce_mean"), keepdims=keepdims)
    return p.astype(mean, x.dtype) if _is_discrete(x.dtype) else mean


def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Product over axes, all of them by default; integers keep their dtype."""
    x = as_tensor(input_tensor, "reduce_prod")
    return p.astype(p.prod(x, axis=axes(axis, "reduce_prod"), keepdims=keepdims), _accumulated(x.dtype))


def reduce_max(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Largest entry over axes; equal ones share the derivative evenly. Over nothing the lowest number there is.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.grad(tf.reduce_max)([1.0, 1.0, 0.0]).numpy()
        array([0.5, 0.5, 0. ], dtype=float32)
    """
    return _extreme(p.max, "reduce_max", input_tensor, axis, keepdims)


def reduce_min(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Smallest entry over axes; equal ones share the derivative evenly. Over nothing the highest number there is."""
    return _extreme(p.min, "reduce_min", input_tensor, axis, keepdims)


def reduce_any(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Whether any entry over axes is true."""
    return p.any(as_tensor(input_tensor, "reduce_any"), axis=axes(axis, "reduce_any"), keepdims=keepdims)


def reduce_all(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Whether all entries over axes are true."""
    return p.all(as_tensor(input_tensor, "reduce_all"), axis=axes(axis, "reduce_all"), keepdims=keepdims)


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Logarithm of the sum of exponentials over axes, without overflow."""
    x = as_floats(input_tensor, "reduce_logsumexp")
    return p.logsumexp(x, axis=axes(axis, "reduce_logsumexp"), keepdims=keepdims)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Variance over axes: the mean squared distance from the mean."""
    x = as_floats(input_tensor, "reduce_variance")
    return p.var(x, axis=axes(axis, "reduce_variance"), keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Standard deviation over axes: the square root of `reduce_variance`."""
    return p.std(as_floats(input_tensor, "reduce_std"), axis=axes(axis, "reduce_std"), keepdims=keepdims)


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Square root of the sum of squares over axes."""
    x = as_floats(input_tensor, "reduce_euclidean_norm")
    return p.sqrt(p.sum(p.square(p.abs(x)), axis=axes(axis, "reduce_euclidean_norm"), keepdims=keepdims))


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool = False, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Number of entries over axes that are not zero."""
    counts = p.count_nonzero(as_tensor(input, "count_nonzero"), axis=axes(axis, "count_nonzero"), keepdims=keepdims)
    return p.astype(counts, as_dtype(dtype))


def argmax(input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None) -> Tensor:
    """Position of the largest entry along an axis, the first axis if none is given; the first of equals.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.argmax([[1, 2], [3, 0]]).numpy()
        array([1, 0])
    """
    return _position(p.argmax, "argmax", input, axis, output_type)


def argmin(input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None) -> Tensor:
    """Position of the smallest entry along an axis, the first axis if none is given; the first of equals."""
    return _position(p.argmin, "argmin", input, axis, output_type)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Sums of the entries so far along an axis; `exclusive` leaves the entry itself out, `reverse` starts at the end.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.cumsum([1, 2, 3], exclusive=True, reverse=True).numpy()
        array([5, 3, 0], dtype=int32)
    """
    tensor = as_tensor(x, "cumsum")
    along = python_int(axis, "cumsum: axis")
    return p.astype(p.cumulative_sum(tensor, along, exclusive=exclusive, reverse=reverse), _accumulated(tensor.dtype))


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Products of the entries so far along an axis; see `cumsum`."""
    tensor = as_tensor(x, "cumprod")
    along = python_int(axis, "cumprod: axis")
    return p.astype(p.cumulative_prod(tensor, along, exclusive=exclusive, reverse=reverse), _accumulated(tensor.dtype))


def cumulative_logsumexp(x: Any, axis: Any = 0, reverse: bool = False, name: str | None = None) -> Tensor:
    """Logarithms of the sums of exponentials so far along an axis."""
    tensor = as_floats(x, "cumulative_logsumexp")
    return p.logcumsumexp(tensor, python_int(axis, "cumulative_logsumexp: axis"), reverse=reverse)


def sum(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Sum over axes; booleans are counted. Of TensorFlow.js; see `reduce_sum`."""
    return reduce_sum(_counted(x, "sum"), axis, keep_dims)


def mean(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Mean over axes, of integers in float32. Of TensorFlow.js; see `reduce_mean`."""
    return reduce_mean(as_floats(x, "mean"), axis, keep_dims)


def prod(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Product over axes. Of TensorFlow.js; see `reduce_prod`."""
    return reduce_prod(_counted(x, "prod"), axis, keep_dims)


def max(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Largest entry over axes. Of TensorFlow.js; see `reduce_max`."""
    return reduce_max(x, axis, keep_dims)


def min(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Smallest entry over axes. Of TensorFlow.js; see `reduce_min`."""
    return reduce_min(x, axis, keep_dims)


def all(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether all entries over axes are true. Of TensorFlow.js; see `reduce_all`."""
    return reduce_all(x, axis, keep_dims)


def any(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether any entry over axes is true. Of TensorFlow.js; see `reduce_any`."""
    return reduce_any(x, axis, keep_dims)


def log_sum_exp(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials. Of TensorFlow.js; see `reduce_logsumexp`."""
    return reduce_logsumexp(x, axis, keep_dims)


def arg_max(x: Any, axis: int = 0) -> Tensor:
    """Position of the largest entry along an axis, as int32. Of TensorFlow.js; see `argmax`."""
    return _position(p.argmax, "arg_max", x, axis, int32)


def arg_min(x: Any, axis: int = 0) -> Tensor:
    """Position of the smallest entry along an axis, as int32. Of TensorFlow.js; see `argmin`."""
    return _position(p.argmin, "arg_min", x, axis, int32)


def _extreme(function: Callable[..., Tensor], name: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    tensor, along = as_tensor(x, name), axes(axis, name)
    if tensor.size or not isinstance(tensor.dtype, np.dtype):
        return function(tensor, axis=along, keepdims=keepdims)
    # Of nothing: what leaves the largest (smallest) of the rest as it is.
    limits = None if tensor.dtype.kind == "f" else np.iinfo(tensor.dtype)
    reduce: Any = np.maximum.reduce if name == "reduce_max" else np.minimum.reduce
    lowest, highest = (-np.inf, np.inf) if limits is None else (limits.min, limits.max)
    start = lowest if name == "reduce_max" else highest
    return Tensor(np.asarray(reduce(tensor.numpy(), along, keepdims=keepdims, initial=start)))


def _position(function: Callable[..., Tensor], name: str, x: Any, axis: Any, dtype: Any) -> Tensor:
    along = 0 if axis is None else python_int(axis, f"{name}: axis")
    return p.astype(function(as_tensor(x, name), along), as_dtype(dtype))


def _accumulated(dtype: Any) -> Any:
    """Return the dtype of a sum or product: TensorFlow keeps that of integers, where NumPy widens it."""
    return int32 if isinstance(dtype, np.dtype) and dtype.kind == "b" else dtype


def _counted(x: Any, name: str) -> Tensor:
    tensor = as_tensor(x, name)
    return p.astype(tensor, int32) if isinstance(tensor.dtype, np.dtype) and tensor.dtype.kind == "b" else tensor


def _is_discrete(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biu"
