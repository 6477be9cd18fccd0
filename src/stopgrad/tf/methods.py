"""TensorFlow.js's chained methods: `x.square().mul(2).mat_mul(w).print()`.

Importing this module gives `Tensor` and `Variable` the methods of one table, besides those they have. A name they have
already keeps its meaning: `x.mean()`, `x.reshape([2, 3])` or `x.transpose()` are stopgrad's own. The reductions among
these take TensorFlow.js's `x.sum(axis, keep_dims)`, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.tensor import Tensor
from stopgrad.tf import (
    convolution,
    creation,
    dtypes,
    elementwise,
    indexing,
    nn,
    printing,
    products,
    reductions,
    shaping,
    tidying,
    variables,
)
from stopgrad.tf.values import as_tensor
from stopgrad.train.variable import Variable


def _array_sync(x: Any) -> Any:
    """Return the values as nested Python lists."""
    return x.tolist()


def _data_sync(x: Any) -> np.ndarray:
    """Return the values as a flat, read-only NumPy array."""
    flat: np.ndarray = as_tensor(x, "data_sync").numpy().reshape(-1)
    return flat


def _as_scalar(x: Any) -> Tensor:
    """Return the only entry as a tensor without axes."""
    return p.reshape(x, ())


def _with_axes(count: int) -> Callable[..., Tensor]:
    def reshaped(x: Any, *shape: int) -> Tensor:
        return p.reshape(x, shape if count > 1 else (-1,))

    reshaped.__doc__ = (
        f"Return the same entries in {count} axes of given sizes." if count > 1 else "Return all in one axis."
    )
    return reshaped


def _concat(x: Any, xs: Any, axis: int = 0) -> Tensor:
    """Join this and another tensor (or several) along an axis."""
    return shaping.concat([x, *xs] if isinstance(xs, list | tuple) else [x, xs], axis)


def _stack(x: Any, xs: Any, axis: int = 0) -> Tensor:
    """Put this and another tensor (or several) together along a new axis."""
    return shaping.stack([x, *xs] if isinstance(xs, list | tuple) else [x, xs], axis)


def _gather(x: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """Return the entries with given numbers along an axis."""
    return indexing.gather(x, indices, axis=axis, batch_dims=batch_dims)


def _pad(x: Any, paddings: Any, constant_value: Any = 0) -> Tensor:
    """Add entries of one value before and after along each axis."""
    return shaping.pad(x, paddings, constant_values=constant_value)


def _prelu(x: Any, alpha: Any) -> Tensor:
    """Return x where it is positive, elsewhere alpha · x."""
    return nn.prelu(x, alpha)


def _reshape_as(x: Any, other: Any) -> Tensor:
    """Return the same entries in the shape of another tensor."""
    return p.reshape(x, as_tensor(other, "reshape_as").shape)


def _to(dtype: Any) -> Callable[[Any], Tensor]:
    def converted(x: Any) -> Tensor:
        return creation.cast(x, dtype)

    converted.__doc__ = f"Convert to {dtype}."
    return converted


def _unstack(x: Any, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis as a list."""
    return shaping.unstack(x, axis=axis)


def _where(x: Any, condition: Any, y: Any) -> Tensor:
    """Return this where the condition holds, and y elsewhere."""
    return indexing.where(condition, x, y)


METHODS: dict[str, Callable[..., Any]] = {
    "abs": elementwise.abs,
    "acos": elementwise.acos,
    "acosh": elementwise.acosh,
    "add": elementwise.add,
    "arg_max": reductions.arg_max,
    "arg_min": reductions.arg_min,
    "array_sync": _array_sync,
    "as1d": _with_axes(1),
    "as2d": _with_axes(2),
    "as3d": _with_axes(3),
    "as4d": _with_axes(4),
    "as5d": _with_axes(5),
    "as_scalar": _as_scalar,
    "as_type": creation.cast,
    "asin": elementwise.asin,
    "asinh": elementwise.asinh,
    "atan": elementwise.atan,
    "atan2": elementwise.atan2,
    "atanh": elementwise.atanh,
    "avg_pool": convolution.avg_pool,
    "batch_norm": nn.batch_norm,
    "broadcast_to": shaping.broadcast_to,
    "cast": creation.cast,
    "ceil": elementwise.ceil,
    "clip_by_value": elementwise.clip_by_value,
    "clone": creation.clone,
    "concat": _concat,
    "conv1d": convolution.conv1d,
    "conv2d": convolution.conv2d,
    "cos": elementwise.cos,
    "cosh": elementwise.cosh,
    "cumprod": reductions.cumprod,
    "data_sync": _data_sync,
    "depthwise_conv2d": convolution.depthwise_conv2d,
    "dispose": tidying.dispose,
    "div": elementwise.divide,
    "div_no_nan": elementwise.divide_no_nan,
    "elu": nn.elu,
    "equal": elementwise.equal,
    "erf": elementwise.erf,
    "euclidean_norm": reductions.reduce_euclidean_norm,
    "expand_dims": shaping.expand_dims,
    "expm1": elementwise.expm1,
    "floor": elementwise.floor,
    "floor_div": elementwise.floordiv,
    "gather": _gather,
    "gelu": nn.gelu,
    "greater": elementwise.greater,
    "greater_equal": elementwise.greater_equal,
    "is_finite": elementwise.is_finite,
    "is_inf": elementwise.is_inf,
    "is_nan": elementwise.is_nan,
    "leaky_relu": nn.leaky_relu,
    "less": elementwise.less,
    "less_equal": elementwise.less_equal,
    "log1p": elementwise.log1p,
    "log_sigmoid": nn.log_sigmoid,
    "log_softmax": nn.log_softmax,
    "log_sum_exp": reductions.log_sum_exp,
    "logical_and": elementwise.logical_and,
    "logical_not": elementwise.logical_not,
    "logical_or": elementwise.logical_or,
    "logical_xor": elementwise.logical_xor,
    "mat_mul": products.mat_mul,
    "max_pool": convolution.max_pool,
    "maximum": elementwise.maximum,
    "minimum": elementwise.minimum,
    "mod": elementwise.floormod,
    "mul": elementwise.multiply,
    "neg": elementwise.negative,
    "norm": products.norm,
    "not_equal": elementwise.not_equal,
    "one_hot": indexing.one_hot,
    "ones_like": creation.ones_like,
    "pad": _pad,
    "pow": elementwise.pow,
    "prelu": _prelu,
    "print": printing.print_tensor,
    "reciprocal": elementwise.reciprocal,
    "relu": nn.relu,
    "relu6": nn.relu6,
    "reshape_as": _reshape_as,
    "reverse": shaping.reverse,
    "rsqrt": elementwise.rsqrt,
    "selu": nn.selu,
    "sigmoid": nn.sigmoid,
    "sign": elementwise.sign,
    "sin": elementwise.sin,
    "sinh": elementwise.sinh,
    "slice": shaping.slice,
    "softmax": nn.softmax,
    "softplus": nn.softplus,
    "split": shaping.split,
    "squared_difference": elementwise.squared_difference,
    "stack": _stack,
    "step": elementwise.step,
    "strided_slice": shaping.strided_slice,
    "sub": elementwise.subtract,
    "tan": elementwise.tan,
    "tile": shaping.tile,
    "to_bool": _to(dtypes.bool),
    "to_float": _to(dtypes.float32),
    "to_int": _to(dtypes.int32),
    "topk": indexing.top_k,
    "unique": indexing.unique,
    "unsorted_segment_sum": indexing.unsorted_segment_sum,
    "unstack": _unstack,
    "variable": variables.variable,
    "where": _where,
    "zeros_like": creation.zeros_like,
}
"""Every method that is added, by name."""


def _with_keep_dims(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a reduction of stopgrad's that takes `keep_dims`, also by position, besides its own arguments."""

    @functools.wraps(function)
    def reduced(x: Any, axis: Any = None, keep_dims: bool | None = None, **settings: Any) -> Tensor:
        if keep_dims is not None:
            settings["keepdims"] = keep_dims
        return function(x, axis, **settings)

    return reduced


WIDENED: dict[str, Callable[..., Any]] = {
    name: _with_keep_dims(getattr(p, name)) for name in ("all", "any", "max", "mean", "min", "prod", "sum")
}
"""The methods that were there and take further arguments, by name."""


def _rank(x: Any) -> int:
    """Number of axes."""
    return len(x.shape)


PROPERTIES: dict[str, Callable[[Any], Any]] = {"rank": _rank}
"""Every property that is added, by name."""


def install(cls: type) -> None:
    """Give a class that is or stands for a tensor the methods of the tables; none replaces one that does otherwise."""
    for name, function in WIDENED.items():
        setattr(cls, name, function)
    for name, function in METHODS.items():
        if not hasattr(cls, name):
            setattr(cls, name, function)
    for name, function in PROPERTIES.items():
        if not hasattr(cls, name):
            setattr(cls, name, property(function, doc=function.__doc__))


install(Tensor)
install(Variable)
