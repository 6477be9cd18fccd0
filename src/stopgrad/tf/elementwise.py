"""Functions that work entry by entry: arithmetic, powers, trigonometry, comparisons, clipping.

Two tables give stopgrad's functions TensorFlow's names; what TensorFlow has in a form of its own is defined below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.values import as_floats, as_tensor, axes, binary, operands, unary

# Names in both families; those with `floats` compute with integers in float32, where TensorFlow refuses them.
abs = unary(p.abs, "abs")
angle = unary(p.angle, "angle", floats=True)
conj = unary(p.conj, "conj")
imag = unary(p.imag, "imag")
real = unary(p.real, "real")
negative = unary(p.negative, "negative")
sign = unary(p.sign, "sign")
square = unary(p.square, "square")

acos = unary(p.acos, "acos", floats=True)
acosh = unary(p.acosh, "acosh", floats=True)
asin = unary(p.asin, "asin", floats=True)
asinh = unary(p.asinh, "asinh", floats=True)
atan = unary(p.atan, "atan", floats=True)
atanh = unary(p.atanh, "atanh", floats=True)
ceil = unary(p.ceil, "ceil", floats=True)
cos = unary(p.cos, "cos", floats=True)
cosh = unary(p.cosh, "cosh", floats=True)
digamma = unary(p.digamma, "digamma", floats=True)
erf = unary(p.erf, "erf", floats=True)
erfc = unary(p.erfc, "erfc", floats=True)
erfinv = unary(p.erfinv, "erfinv", floats=True)
exp = unary(p.exp, "exp", floats=True)
expm1 = unary(p.expm1, "expm1", floats=True)
floor = unary(p.floor, "floor", floats=True)
lgamma = unary(p.lgamma, "lgamma", floats=True)
log = unary(p.log, "log", floats=True)
log1p = unary(p.log1p, "log1p", floats=True)
reciprocal = unary(p.reciprocal, "reciprocal", floats=True)
rint = unary(p.rint, "rint", floats=True)
rsqrt = unary(p.rsqrt, "rsqrt", floats=True)
sin = unary(p.sin, "sin", floats=True)
sinh = unary(p.sinh, "sinh", floats=True)
sqrt = unary(p.sqrt, "sqrt", floats=True)
tan = unary(p.tan, "tan", floats=True)
tanh = unary(p.tanh, "tanh", floats=True)

is_finite = unary(p.isfinite, "is_finite")
is_inf = unary(p.isinf, "is_inf")
is_nan = unary(p.isnan, "is_nan")
logical_not = unary(p.logical_not, "logical_not")

add = binary(p.add, "add")
divide = binary(p.divide, "divide")
divide_no_nan = binary(p.divide_no_nan, "divide_no_nan", floats=True)
floordiv = binary(p.floor_divide, "floordiv")
floormod = binary(p.remainder, "floormod")
maximum = binary(p.maximum, "maximum")
minimum = binary(p.minimum, "minimum")
multiply = binary(p.multiply, "multiply")
multiply_no_nan = binary(p.multiply_no_nan, "multiply_no_nan", floats=True)
pow = binary(p.power, "pow")
squared_difference = binary(p.squared_difference, "squared_difference")
subtract = binary(p.subtract, "subtract")
truncatemod = binary(p.fmod, "truncatemod")
xlog1py = binary(p.xlog1py, "xlog1py", floats=True)
xlogy = binary(p.xlogy, "xlogy", floats=True)
atan2 = binary(p.atan2, "atan2", floats=True)

equal = binary(p.equal, "equal")
greater = binary(p.greater, "greater")
greater_equal = binary(p.greater_equal, "greater_equal")
less = binary(p.less, "less")
less_equal = binary(p.less_equal, "less_equal")
logical_and = binary(p.logical_and, "logical_and")
logical_or = binary(p.logical_or, "logical_or")
logical_xor = binary(p.logical_xor, "logical_xor")
not_equal = binary(p.not_equal, "not_equal")

# The same under further names, the first three TensorFlow's, the rest TensorFlow.js's.
mod = floormod
truediv = divide
truncatediv = binary(lambda x, y: p.astype(p.trunc(p.divide(x, y)), x.dtype), "truncatediv")
truncatediv.__doc__ = "Quotient of integers, rounded towards zero."
div = divide
div_no_nan = divide_no_nan
floor_div = floordiv
mul = multiply
neg = negative
sub = subtract


def round(x: Any, name: str | None = None) -> Tensor:
    """Nearest whole number; halves go to the even one. Integers stay as they are."""
    return p.round(as_tensor(x, "round"))


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient, x / y, but 0 where x is 0, whatever y is."""
    x, y = (as_floats(one, "xdivy") for one in operands("xdivy", x, y))
    return p.multiply_no_nan(p.reciprocal(y), x)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """One over x, but 0 where x is 0."""
    tensor = as_floats(x, "reciprocal_no_nan")
    return p.divide_no_nan(p.ones_like(tensor), tensor)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """Product of a number and a tensor."""
    factor, tensor = operands("scalar_mul", scalar, x)
    if factor.ndim:
        raise ShapeError(f"scalar_mul: scalar must be a single number, got shape {factor.shape}")
    return p.multiply(factor, tensor)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """Sum of a list of tensors of one shape.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.add_n([[1, 2], [3, 4]]).numpy()
        array([4, 6], dtype=int32)
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ArgumentError("add_n: takes a list of at least one tensor")
    tensors = operands("add_n", *inputs)
    if len({tensor.shape for tensor in tensors}) != 1:
        raise ShapeError(f"add_n: shapes {[tensor.shape for tensor in tensors]} differ; add broadcasts")
    total = tensors[0]
    for tensor in tensors[1:]:
        total = p.add(total, tensor)
    return total


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """Value of a polynomial at x, its coefficients given from the highest power down."""
    *parts, tensor = operands("polyval", *coeffs, x)
    total = p.zeros_like(tensor)
    for coefficient in parts:
        total = p.add(p.multiply(total, tensor), coefficient)
    return total


def clip_by_value(t: Any, clip_value_min: Any = None, clip_value_max: Any = None, name: str | None = None) -> Tensor:
    """Bring entries to the nearest end of an interval; at and between its ends the derivative passes whole.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.clip_by_value([1.0, 5.0], 2, 3).numpy()
        array([2., 3.], dtype=float32)
    """
    tensor, low, high = operands("clip_by_value", t, clip_value_min, clip_value_max)
    return p.clip(tensor, low, high)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Scale a tensor down so that its Euclidean norm (over `axes`) is at most `clip_norm`.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.clip_by_norm([3.0, 4.0], 1.0).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    tensor, limit = operands("clip_by_norm", as_floats(t, "clip_by_norm"), clip_norm)
    squares = p.sum(p.square(p.abs(tensor)), axis=_axes(axes, "clip_by_norm"), keepdims=True)
    # The root is taken of ones where the norm is zero: there its derivative is infinite.
    is_positive = p.greater(squares, 0)
    norm = p.where(is_positive, p.sqrt(p.where(is_positive, squares, p.ones_like(squares))), squares)
    return p.divide(p.multiply(tensor, limit), p.maximum(norm, limit))


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """Scale tensors down so that their Euclidean norm together is at most `clip_norm`; returns them and the norm.

    `None` stays `None` and has no share in the norm. Where the norm is not finite, the results are NaN.

    Example:
        >>> import stopgrad.tf as tf
        >>> clipped, norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0]), None], 1.0)
        >>> clipped[0].numpy(), clipped[1], float(norm)
        (array([0.6, 0.8], dtype=float32), None, 5.0)
    """
    tensors = [None if one is None else as_floats(one, "clip_by_global_norm") for one in t_list]
    norm = global_norm(tensors) if use_norm is None else as_floats(use_norm, "clip_by_global_norm")
    limit = as_tensor(clip_norm, "clip_by_global_norm", norm.dtype)
    inverse = p.where(p.isfinite(norm), p.divide(1.0, p.maximum(norm, limit)), p.full_like(norm, np.nan))
    scale = p.multiply(limit, inverse)
    return [None if one is None else p.astype(p.multiply(one, scale), one.dtype) for one in tensors], norm


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Square root of the sum of the squares of all entries of several tensors; `None` among them does not count."""
    tensors = [as_floats(one, "global_norm") for one in t_list if one is not None]
    if not tensors:
        raise ArgumentError("global_norm: takes a list of at least one tensor that is not None")
    total = p.sum(p.square(p.abs(tensors[0])))
    for tensor in tensors[1:]:
        total = p.add(total, p.sum(p.square(p.abs(tensor))))
    return p.sqrt(total)


def step(x: Any, alpha: float = 0.0) -> Tensor:
    """Return 1 where x is positive, `alpha` elsewhere and NaN at NaN; no derivative passes. Of TensorFlow.js."""
    tensor = as_floats(x, "step")
    return p.where(p.isnan(tensor), tensor, p.where(p.greater(tensor, 0), 1.0, p.full_like(tensor, alpha)))


_axes = axes
