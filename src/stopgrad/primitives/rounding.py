"""Rounding, sign and steps: flat almost everywhere, so the derivative is zero, at the jumps too.

Zero is not "unconnected": the path is there. For a derivative that passes, wrap them in `straight_through`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import is_complex
from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.operation import ZERO, elementwise
from stopgrad.core.record import bind1, coerce
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import absolute, divide
from stopgrad.primitives.comparison import equal
from stopgrad.primitives.define import binary, unary
from stopgrad.primitives.inputs import arrays_of
from stopgrad.primitives.selection import where


def _flat(xp: Any, t: Any, _x: Any, _out: Any) -> Any:
    return ZERO


@unary(np.floor, _flat)
def floor(xp: Any, x: Any) -> Any:
    """Greatest whole number not above x.

    Example:
        >>> import stopgrad as sg
        >>> sg.floor([1.7, -1.2]).numpy()
        array([ 1., -2.])
    """
    return xp.floor(x)


@unary(np.ceil, _flat)
def ceil(xp: Any, x: Any) -> Any:
    """Smallest whole number not below x.

    Example:
        >>> import stopgrad as sg
        >>> sg.ceil([1.2, -1.7]).numpy()
        array([ 2., -1.])
    """
    return xp.ceil(x)


@unary(np.trunc, _flat)
def trunc(xp: Any, x: Any) -> Any:
    """Whole number next to x on the side of zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.trunc([1.7, -1.7]).numpy()
        array([ 1., -1.])
    """
    return xp.trunc(x)


@unary(np.rint, _flat)
def rint(xp: Any, x: Any) -> Any:
    """Whole number nearest to x; halves go to the even one.

    Example:
        >>> import stopgrad as sg
        >>> sg.rint([1.2, 2.5, -1.5]).numpy()
        array([ 1.,  2., -2.])
    """
    return xp.round(x)


fix = trunc


def _round_kernel(xp: Any, x: Any, decimals: int) -> Any:
    if xp is np:
        return np.round(x, decimals)
    if decimals == 0:
        return xp.round(x)
    scale = 10.0 ** abs(decimals)
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


ROUND = elementwise("round", _round_kernel, lambda xp, t, _x, _out, _decimals: ZERO)


def round(x: Any, /, decimals: int = 0) -> Tensor:
    """Round to a number of decimals; halves go to the even digit.

    Args:
        x: tensor, array or number.
        decimals: digits to keep behind the point; negative ones round before it.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        ArgumentTypeError: decimals is no integer.

    Example:
        >>> import stopgrad as sg
        >>> sg.round([0.5, 1.5, 2.345]).numpy()
        array([0., 2., 2.])
        >>> sg.round(2.345, 2).item()
        2.35
    """
    if isinstance(decimals, bool) or not hasattr(decimals, "__index__"):
        raise ArgumentTypeError(f"round: decimals must be an integer, got {decimals!r}")
    return bind1(ROUND, x, (decimals.__index__(),))


around = round

SIGN = elementwise("sign", lambda xp, x: xp.sign(x), _flat, numpy_kernel=np.sign)


def sign(x: Any, /) -> Tensor:
    """Sign: -1, 0 or 1; of a complex number x/|x|, and 0 at 0. The derivative is zero, at the jump too.

    The sign of a complex number turns with it and has a derivative, except at 0, where it is taken to be zero.

    Args:
        x: tensor, array or number.

    Returns:
        Tensor of the shape and dtype of x.

    Example:
        >>> import stopgrad as sg
        >>> sg.sign([-3.0, 0.0, 2.0]).numpy()
        array([-1.,  0.,  1.])
    """
    if type(x) is not Tensor:
        x = Tensor(*coerce(x, "sign"))
    if type(x.value) is complex or (hasattr(x.value, "dtype") and is_complex(x.value.dtype)):
        modulus = absolute(x)
        return where(equal(modulus, 0), 0, divide(x, where(equal(modulus, 0), 1, modulus)))
    return bind1(SIGN, x)


def _heaviside_kernel(xp: Any, x: Any, at_zero: Any) -> Any:
    x, at_zero = arrays_of(xp, x, at_zero)
    return xp.where(xp.isnan(x), x, xp.where(x < 0, 0, xp.where(x > 0, 1, at_zero)))


@binary(
    np.heaviside,
    lambda xp, t, _x, _at_zero, _out: ZERO,
    lambda xp, t, x, _at_zero, _out: xp.where(xp.asarray(x == 0), t, 0),
    masks=True,
)
def heaviside(xp: Any, x: Any, at_zero: Any) -> Any:
    """Step: 0 for negative x, 1 for positive, `at_zero` at 0. The derivative by x is zero, at the jump too.

    Example:
        >>> import stopgrad as sg
        >>> sg.heaviside([-1.0, 0.0, 2.0], 0.5).numpy()
        array([0. , 0.5, 1. ])
    """
    return _heaviside_kernel(xp, x, at_zero)
