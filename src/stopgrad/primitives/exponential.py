"""Exponentials and logarithms, entry by entry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.primitives.define import unary

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)


@unary(np.exp, lambda xp, t, _x, out: t * out)
def exp(xp: Any, x: Any) -> Any:
    """Exponential, eˣ.

    Example:
        >>> import stopgrad as sg
        >>> sg.exp([0.0, 1.0]).numpy()
        array([1.        , 2.71828183])
    """
    return xp.exp(x)


@unary(np.exp2, lambda xp, t, _x, out: t * out * _LN2)
def exp2(xp: Any, x: Any) -> Any:
    """Power of two, 2ˣ.

    Example:
        >>> import stopgrad as sg
        >>> sg.exp2([0.0, 3.0]).numpy()
        array([1., 8.])
    """
    return xp.pow(2.0, x)


@unary(np.expm1, lambda xp, t, _x, out: t * (out + 1))
def expm1(xp: Any, x: Any) -> Any:
    """eˣ - 1, exact also near zero.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.expm1(1e-20))
        1e-20
    """
    return xp.expm1(x)


@unary(np.log, lambda xp, t, x, _out: t / x)
def log(xp: Any, x: Any) -> Any:
    """Natural logarithm; -inf at 0, NaN below.

    Example:
        >>> import stopgrad as sg
        >>> sg.log([1.0, 10.0]).numpy()
        array([0.        , 2.30258509])
    """
    return xp.log(x)


@unary(np.log1p, lambda xp, t, x, _out: t / (1 + x))
def log1p(xp: Any, x: Any) -> Any:
    """log(1 + x), exact also near zero.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.log1p(1e-20))
        1e-20
    """
    return xp.log1p(x)


@unary(np.log2, lambda xp, t, x, _out: t / (x * _LN2))
def log2(xp: Any, x: Any) -> Any:
    """Logarithm to base 2; -inf at 0, NaN below.

    Example:
        >>> import stopgrad as sg
        >>> sg.log2([1.0, 8.0]).numpy()
        array([0., 3.])
    """
    return xp.log2(x)


@unary(np.log10, lambda xp, t, x, _out: t / (x * _LN10))
def log10(xp: Any, x: Any) -> Any:
    """Logarithm to base 10; -inf at 0, NaN below.

    Example:
        >>> import stopgrad as sg
        >>> sg.log10([1.0, 1000.0]).numpy()
        array([0., 3.])
    """
    return xp.log10(x)
