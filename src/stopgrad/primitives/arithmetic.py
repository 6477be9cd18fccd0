"""Arithmetic, entry by entry: sums, products, quotients, remainders and roots.

Powers are in `powers`, whose rules need more care. Behaviour at kinks and jumps is told in each docstring.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import is_complex
from stopgrad.core.operation import ZERO
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.define import binary, unary
from stopgrad.primitives.inputs import arrays_of

_LN2 = math.log(2.0)


@binary(np.add, lambda xp, t, _a, _b, _out: t, lambda xp, t, _a, _b, _out: t)
def add(xp: Any, a: Any, b: Any) -> Any:
    """Sum, a + b.

    Example:
        >>> import stopgrad as sg
        >>> sg.add([1.0, 2.0], 3.0).numpy()
        array([4., 5.])
    """
    return a + b


@binary(np.subtract, lambda xp, t, _a, _b, _out: t, lambda xp, t, _a, _b, _out: -t)
def subtract(xp: Any, a: Any, b: Any) -> Any:
    """Difference, a - b.

    Example:
        >>> import stopgrad as sg
        >>> sg.subtract([1.0, 2.0], 3.0).numpy()
        array([-2., -1.])
    """
    return a - b


@binary(np.multiply, lambda xp, t, _a, b, _out: t * b, lambda xp, t, a, _b, _out: t * a)
def multiply(xp: Any, a: Any, b: Any) -> Any:
    """Product, a · b.

    Example:
        >>> import stopgrad as sg
        >>> sg.multiply([1.0, 2.0], 3.0).numpy()
        array([3., 6.])
    """
    return a * b


@binary(np.true_divide, lambda xp, t, _a, b, _out: t / b, lambda xp, t, _a, b, out: -t * out / b)
def divide(xp: Any, a: Any, b: Any) -> Any:
    """Quotient, a / b.

    Example:
        >>> import stopgrad as sg
        >>> sg.divide([1.0, 2.0], 4.0).numpy()
        array([0.25, 0.5 ])
    """
    return a / b


@unary(np.negative, lambda xp, t, _x, _out: -t)
def negative(xp: Any, x: Any) -> Any:
    """Negative, -x.

    Example:
        >>> import stopgrad as sg
        >>> sg.negative([1.0, -2.0]).numpy()
        array([-1.,  2.])
    """
    return -x


@unary(np.positive, lambda xp, t, _x, _out: t)
def positive(xp: Any, x: Any) -> Any:
    """X itself, a copy in a tensor of its own.

    Example:
        >>> import stopgrad as sg
        >>> sg.positive([1.0, -2.0]).numpy()
        array([ 1., -2.])
    """
    return +x


@unary(np.square, lambda xp, t, x, _out: t * (2 * x))
def square(xp: Any, x: Any) -> Any:
    """Square, x².

    Example:
        >>> import stopgrad as sg
        >>> sg.square([1.0, -3.0]).numpy()
        array([1., 9.])
    """
    return x * x


@unary(np.absolute, lambda xp, t, x, _out: _abs_scale(xp, t, x))
def absolute(xp: Any, x: Any) -> Any:
    """Absolute value; of a complex number its modulus.

    At 0 the derivative is 0, the middle of the slopes on its two sides.

    Example:
        >>> import stopgrad as sg
        >>> sg.absolute([-2.0, 3.0]).numpy()
        array([2., 3.])
        >>> float(sg.grad(sg.absolute)(0.0))
        0.0
    """
    return xp.abs(x)


def _abs_scale(xp: Any, t: Any, x: Any) -> Any:
    # One rule for both directions: the sweep takes the real part where the primal is real.
    return t * (xp.conj(xp.sign(x)) if is_complex(x.dtype) else xp.sign(x))


@unary(np.sqrt, lambda xp, t, _x, out: t / (2 * out))
def sqrt(xp: Any, x: Any) -> Any:
    """Square root; NaN for negative x.

    At 0 the derivative is infinite, and that of √(x²) NaN: write `absolute` or `hypot`, which have a derivative there.

    Example:
        >>> import stopgrad as sg
        >>> sg.sqrt([0.0, 4.0]).numpy()
        array([0., 2.])
    """
    return xp.sqrt(x)


@unary(lambda x: np.reciprocal(np.sqrt(x)), lambda xp, t, _x, out: t * (-0.5 * out * out * out))
def rsqrt(xp: Any, x: Any) -> Any:
    """One over the square root, 1/√x; infinite at 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.rsqrt([1.0, 4.0]).numpy()
        array([1. , 0.5])
    """
    return 1 / xp.sqrt(x)


@unary(np.cbrt, lambda xp, t, _x, out: t / (3 * out * out))
def cbrt(xp: Any, x: Any) -> Any:
    """Cube root, of negative numbers too. At 0 the derivative is infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.cbrt([8.0, -27.0]).numpy()
        array([ 2., -3.])
    """
    return xp.sign(x) * xp.pow(xp.abs(x), 1 / 3)


@unary(np.reciprocal, lambda xp, t, _x, out: -t * out * out)
def reciprocal(xp: Any, x: Any) -> Any:
    """One over x; of integers the integer part of it, as in NumPy.

    Example:
        >>> import stopgrad as sg
        >>> sg.reciprocal([2.0, -4.0]).numpy()
        array([ 0.5 , -0.25])
    """
    return xp.reciprocal(x) if hasattr(xp, "reciprocal") else 1 / x


@binary(
    lambda a, b: np.square(np.subtract(a, b)),
    lambda xp, t, a, b, _out: t * (2 * (a - b)),
    lambda xp, t, a, b, _out: t * (2 * (b - a)),
)
def squared_difference(xp: Any, a: Any, b: Any) -> Any:
    """Squared difference, (a - b)².

    Example:
        >>> import stopgrad as sg
        >>> sg.squared_difference([1.0, 2.0], 4.0).numpy()
        array([9., 4.])
    """
    return (a - b) * (a - b)


@binary(
    np.hypot,
    lambda xp, t, a, _b, out: xp.where(out == 0, 0, t * (a / out)),
    lambda xp, t, _a, b, out: xp.where(out == 0, 0, t * (b / out)),
)
def hypot(xp: Any, a: Any, b: Any) -> Any:
    """√(a² + b²), without overflow on the way.

    At (0, 0) both derivatives are 0, as that of `absolute` is.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.hypot(3.0, 4.0))
        5.0
    """
    return xp.hypot(a, b)


def _logaddexp_share(xp: Any, t: Any, a: Any, out: Any, log_base: float = 1.0) -> Any:
    # a - out is NaN where both are infinite: ½ each of two -inf, 1 for +inf.
    difference = xp.where(xp.isinf(out) & (a == out), xp.where(out > 0, xp.zeros_like(out), -_LN2 / log_base), a - out)
    return t * xp.exp(difference * log_base)


@binary(
    np.logaddexp,
    lambda xp, t, a, _b, out: _logaddexp_share(xp, t, a, out),
    lambda xp, t, _a, b, out: _logaddexp_share(xp, t, b, out),
)
def logaddexp(xp: Any, a: Any, b: Any) -> Any:
    """log(eᵃ + eᵇ), without overflow on the way.

    Where both are -inf each gets half of the derivative; one that is +inf gets the whole.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.logaddexp(1000.0, 1000.0))
        1000.6931471805599
    """
    return xp.logaddexp(a, b)


@binary(
    np.logaddexp2,
    lambda xp, t, a, _b, out: _logaddexp_share(xp, t, a, out, _LN2),
    lambda xp, t, _a, b, out: _logaddexp_share(xp, t, b, out, _LN2),
)
def logaddexp2(xp: Any, a: Any, b: Any) -> Any:
    """log₂(2ᵃ + 2ᵇ), without overflow on the way; infinities as in `logaddexp`.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.logaddexp2(2000.0, 2000.0))
        2001.0
    """
    return xp.logaddexp(a * _LN2, b * _LN2) / _LN2


@binary(np.floor_divide, lambda xp, t, _a, _b, _out: ZERO, lambda xp, t, _a, _b, _out: ZERO)
def floor_divide(xp: Any, a: Any, b: Any) -> Any:
    """Greatest whole number not above a / b. The derivative is zero, at the jumps too.

    Example:
        >>> import stopgrad as sg
        >>> sg.floor_divide([7.0, -7.0], 2.0).numpy()
        array([ 3., -4.])
    """
    return xp.floor_divide(a, b)


@binary(np.remainder, lambda xp, t, _a, _b, _out: t, lambda xp, t, a, b, _out: -t * xp.floor_divide(a, b))
def remainder(xp: Any, a: Any, b: Any) -> Any:
    """A - b·⌊a/b⌋, which has the sign of b. At the jumps the derivative is that beside them.

    Example:
        >>> import stopgrad as sg
        >>> sg.remainder([7.0, -7.0], 4.0).numpy()
        array([3., 1.])
    """
    return xp.remainder(a, b)


@binary(np.fmod, lambda xp, t, _a, _b, _out: t, lambda xp, t, a, b, out: -t * xp.round((a - out) / b))
def fmod(xp: Any, a: Any, b: Any) -> Any:
    """A - b·trunc(a/b), which has the sign of a. At the jumps the derivative is that beside them.

    Example:
        >>> import stopgrad as sg
        >>> sg.fmod([7.0, -7.0], 4.0).numpy()
        array([ 3., -3.])
    """
    a, b = arrays_of(xp, a, b)
    return xp.sign(a) * xp.remainder(xp.abs(a), xp.abs(b))


@binary(
    lambda a, b: _no_nan(np, np.multiply(a, b), b),
    lambda xp, t, _a, b, _out: xp.where(xp.asarray(b == 0), 0, t * b),
    lambda xp, t, a, _b, _out: t * a,
    masks=True,
)
def multiply_no_nan(xp: Any, a: Any, b: Any) -> Any:
    """Product, a · b, but 0 where b is 0 even if a is infinite or NaN.

    Example:
        >>> import stopgrad as sg
        >>> sg.multiply_no_nan([2.0, float("inf")], [3.0, 0.0]).numpy()
        array([6., 0.])
    """
    return _no_nan(xp, a * b, b)


def _divide_no_nan_numpy(a: Any, b: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(b, 0), 0.0, np.true_divide(a, b))


@binary(
    _divide_no_nan_numpy,
    lambda xp, t, _a, b, _out: xp.where(xp.asarray(b == 0), 0, t / b),
    lambda xp, t, _a, b, out: xp.where(b == 0, 0, -t * out / b),
    masks=True,
)
def divide_no_nan(xp: Any, a: Any, b: Any) -> Any:
    """Quotient, a / b, but 0 where b is 0. The derivatives there are 0 too.

    Example:
        >>> import stopgrad as sg
        >>> sg.divide_no_nan([1.0, 2.0], [0.0, 4.0]).numpy()
        array([0. , 0.5])
    """
    return xp.where(xp.asarray(b == 0), 0.0, a / b)


def _no_nan(xp: Any, product: Any, factor: Any) -> Any:
    return xp.where(xp.asarray(factor == 0), xp.zeros_like(product), product)


def _with_copied_sign(xp: Any, t: Any, a: Any, b: Any) -> Any:
    flips = xp.signbit(a) ^ xp.signbit(xp.asarray(b, dtype=a.dtype))
    return xp.where(flips, -t, t)


@binary(
    np.copysign,
    lambda xp, t, a, b, _out: _with_copied_sign(xp, t, a, b),
    lambda xp, t, _a, _b, _out: ZERO,
)
def copysign(xp: Any, a: Any, b: Any) -> Any:
    """|a| with the sign of b, that of -0.0 included. The derivative by b is zero, at the jump too.

    Example:
        >>> import stopgrad as sg
        >>> sg.copysign([1.0, 2.0], [-1.0, 0.0]).numpy()
        array([-1.,  2.])
    """
    return xp.copysign(a, b)


@binary(np.nextafter, lambda xp, t, _a, _b, _out: t, lambda xp, t, _a, _b, _out: ZERO)
def nextafter(xp: Any, a: Any, b: Any) -> Any:
    """The floating-point number next to a on the side of b. The derivative is that of a.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.nextafter(1.0, 2.0))
        1.0000000000000002
    """
    return xp.nextafter(a, b)


def divmod(a: Any, b: Any, /) -> tuple[Tensor, Tensor]:
    """Quotient and remainder, (`floor_divide`, `remainder`).

    Example:
        >>> import stopgrad as sg
        >>> quotient, rest = sg.divmod(7.0, 2.0)
        >>> float(quotient), float(rest)
        (3.0, 1.0)
    """
    return floor_divide(a, b), remainder(a, b)


abs = fabs = absolute
true_divide = divide
mod = remainder
