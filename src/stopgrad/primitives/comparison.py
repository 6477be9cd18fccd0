"""Comparisons, logic and bits, entry by entry. None of them carries a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Spec, is_bool
from stopgrad.core.operation import nondifferentiable
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.define import binary, unary
from stopgrad.primitives.inputs import arrays_of


@binary(np.equal)
def equal(xp: Any, a: Any, b: Any) -> Any:
    """Whether a = b.

    Example:
        >>> import stopgrad as sg
        >>> sg.equal([1.0, 2.0], 2.0).numpy()
        array([False,  True])
    """
    return a == b


@binary(np.not_equal)
def not_equal(xp: Any, a: Any, b: Any) -> Any:
    """Whether a ≠ b.

    Example:
        >>> import stopgrad as sg
        >>> sg.not_equal([1.0, 2.0], 2.0).numpy()
        array([ True, False])
    """
    return a != b


@binary(np.less)
def less(xp: Any, a: Any, b: Any) -> Any:
    """Whether a < b.

    Example:
        >>> import stopgrad as sg
        >>> sg.less([1.0, 2.0], 2.0).numpy()
        array([ True, False])
    """
    return a < b


@binary(np.less_equal)
def less_equal(xp: Any, a: Any, b: Any) -> Any:
    """Whether a ≤ b.

    Example:
        >>> import stopgrad as sg
        >>> sg.less_equal([1.0, 2.0, 3.0], 2.0).numpy()
        array([ True,  True, False])
    """
    return a <= b


@binary(np.greater)
def greater(xp: Any, a: Any, b: Any) -> Any:
    """Whether a > b.

    Example:
        >>> import stopgrad as sg
        >>> sg.greater([1.0, 2.0, 3.0], 2.0).numpy()
        array([False, False,  True])
    """
    return a > b


@binary(np.greater_equal)
def greater_equal(xp: Any, a: Any, b: Any) -> Any:
    """Whether a ≥ b.

    Example:
        >>> import stopgrad as sg
        >>> sg.greater_equal([1.0, 2.0, 3.0], 2.0).numpy()
        array([False,  True,  True])
    """
    return a >= b


@binary(np.logical_and)
def logical_and(xp: Any, a: Any, b: Any) -> Any:
    """Whether a and b both hold; a number holds if it is not zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.logical_and([True, False], True).numpy()
        array([ True, False])
    """
    return xp.logical_and(_truth(xp, a), _truth(xp, b))


@binary(np.logical_or)
def logical_or(xp: Any, a: Any, b: Any) -> Any:
    """Whether a or b or both hold; a number holds if it is not zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.logical_or([True, False], False).numpy()
        array([ True, False])
    """
    return xp.logical_or(_truth(xp, a), _truth(xp, b))


@binary(np.logical_xor)
def logical_xor(xp: Any, a: Any, b: Any) -> Any:
    """Whether exactly one of a and b holds; a number holds if it is not zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.logical_xor([True, False], True).numpy()
        array([False,  True])
    """
    return xp.logical_xor(_truth(xp, a), _truth(xp, b))


@unary(np.logical_not, None)
def logical_not(xp: Any, x: Any) -> Any:
    """Whether x does not hold; a number holds if it is not zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.logical_not([True, False]).numpy()
        array([False,  True])
    """
    return xp.logical_not(_truth(xp, x))


def _truth(xp: Any, x: Any) -> Any:
    if type(x) in PYTHON_SCALARS:
        return xp.asarray(bool(x))
    return x if is_bool(x.dtype) else x != 0


@unary(np.isnan, None)
def isnan(xp: Any, x: Any) -> Any:
    """Whether x is NaN.

    Example:
        >>> import stopgrad as sg
        >>> sg.isnan([1.0, float("nan")]).numpy()
        array([False,  True])
    """
    return xp.isnan(x)


@unary(np.isinf, None)
def isinf(xp: Any, x: Any) -> Any:
    """Whether x is infinite, of either sign.

    Example:
        >>> import stopgrad as sg
        >>> sg.isinf([1.0, float("-inf")]).numpy()
        array([False,  True])
    """
    return xp.isinf(x)


@unary(np.isfinite, None)
def isfinite(xp: Any, x: Any) -> Any:
    """Whether x is neither NaN nor infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.isfinite([1.0, float("inf"), float("nan")]).numpy()
        array([ True, False, False])
    """
    return xp.isfinite(x)


@unary(np.signbit, None)
def signbit(xp: Any, x: Any) -> Any:
    """Whether the sign bit is set: x < 0, or x is -0.0.

    Example:
        >>> import stopgrad as sg
        >>> sg.signbit([1.0, -2.0, -0.0]).numpy()
        array([False,  True,  True])
    """
    return xp.signbit(x)


def isposinf(x: Any, /) -> Tensor:
    """Whether x is positive infinity.

    Example:
        >>> import stopgrad as sg
        >>> sg.isposinf([float("inf"), float("-inf")]).numpy()
        array([ True, False])
    """
    return logical_and(isinf(x), greater(x, 0))


def isneginf(x: Any, /) -> Tensor:
    """Whether x is negative infinity.

    Example:
        >>> import stopgrad as sg
        >>> sg.isneginf([float("inf"), float("-inf")]).numpy()
        array([False,  True])
    """
    return logical_and(isinf(x), less(x, 0))


@binary(np.bitwise_and)
def bitwise_and(xp: Any, a: Any, b: Any) -> Any:
    """Bits set in both of two integers; logical and of booleans.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_and([12, 10], 6).numpy()
        array([4, 2])
    """
    return a & b


@binary(np.bitwise_or)
def bitwise_or(xp: Any, a: Any, b: Any) -> Any:
    """Bits set in either of two integers; logical or of booleans.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_or([12, 10], 6).numpy()
        array([14, 14])
    """
    return a | b


@binary(np.bitwise_xor)
def bitwise_xor(xp: Any, a: Any, b: Any) -> Any:
    """Bits set in exactly one of two integers; logical xor of booleans.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_xor([12, 10], 6).numpy()
        array([10, 12])
    """
    return a ^ b


@unary(np.invert, None)
def bitwise_invert(xp: Any, x: Any) -> Any:
    """All bits of an integer flipped; logical not of booleans.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_invert([0, 5]).numpy()
        array([-1, -6])
    """
    return ~x


@binary(np.left_shift)
def bitwise_left_shift(xp: Any, a: Any, b: Any) -> Any:
    """Bits of the integer a moved up by b places.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_left_shift([1, 3], 2).numpy()
        array([ 4, 12])
    """
    return a << b


@binary(np.right_shift)
def bitwise_right_shift(xp: Any, a: Any, b: Any) -> Any:
    """Bits of the integer a moved down by b places.

    Example:
        >>> import stopgrad as sg
        >>> sg.bitwise_right_shift([4, 12], 2).numpy()
        array([1, 3])
    """
    return a >> b


bitwise_not = invert = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift


def _isclose_kernel(xp: Any, a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if xp is np:
        return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    a, b = arrays_of(xp, a, b)
    close = (a == b) | (xp.isfinite(b) & (xp.abs(a - b) <= atol + rtol * xp.abs(b)))
    return close | (xp.isnan(a) & xp.isnan(b)) if equal_nan else close


def _array_equal_kernel(xp: Any, a: Any, b: Any) -> Any:
    a, b = xp.asarray(a), xp.asarray(b)
    return xp.all(a == b) if tuple(a.shape) == tuple(b.shape) else xp.asarray(False)


ISCLOSE = nondifferentiable("isclose", _isclose_kernel)

ALLCLOSE = nondifferentiable(
    "allclose",
    lambda xp, a, b, rtol, atol, equal_nan: xp.all(_isclose_kernel(xp, a, b, rtol, atol, equal_nan)),
    spec=lambda a, b, *_: Spec((), np.dtype(bool)),
)

ARRAY_EQUAL = nondifferentiable(
    "array_equal",
    _array_equal_kernel,
    spec=lambda a, b: Spec((), np.dtype(bool)),
    numpy_kernel=lambda a, b: np.bool(np.array_equal(a, b)),
)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |a - b| ≤ atol + rtol·|b|, entry by entry; infinities are close to themselves alone.

    Args:
        a: tensor, array or number.
        b: what to compare with; the shapes broadcast together.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Boolean tensor of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).numpy()
        array([ True, False])
    """
    return bind2(ISCLOSE, a, b, (float(rtol), float(atol), bool(equal_nan)))


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all entries are close; see `isclose` for the arguments.

    Returns:
        Boolean tensor of shape (), usable in an `if`.

    Example:
        >>> import stopgrad as sg
        >>> bool(sg.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]))
        True
    """
    return bind2(ALLCLOSE, a, b, (float(rtol), float(atol), bool(equal_nan)))


def array_equal(a: Any, b: Any) -> Tensor:
    """Whether a and b have the same shape and the same entries.

    Returns:
        Boolean tensor of shape (), usable in an `if`; shapes that differ give False.

    Example:
        >>> import stopgrad as sg
        >>> bool(sg.array_equal([1.0, 2.0], [1.0, 2.0])), bool(sg.array_equal([1.0], [1.0, 1.0]))
        (True, False)
    """
    return bind2(ARRAY_EQUAL, a, b)
