"""Trigonometric and hyperbolic functions and their inverses, entry by entry; angles in radians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.primitives.define import binary, unary


@unary(np.sin, lambda xp, t, x, _out: t * xp.cos(x))
def sin(xp: Any, x: Any) -> Any:
    """Sine.

    Example:
        >>> import stopgrad as sg
        >>> sg.sin([0.0, 1.0]).numpy()
        array([0.        , 0.84147098])
    """
    return xp.sin(x)


@unary(np.cos, lambda xp, t, x, _out: -t * xp.sin(x))
def cos(xp: Any, x: Any) -> Any:
    """Cosine.

    Example:
        >>> import stopgrad as sg
        >>> sg.cos([0.0, 1.0]).numpy()
        array([1.        , 0.54030231])
    """
    return xp.cos(x)


@unary(np.tan, lambda xp, t, _x, out: t * (1 + out * out))
def tan(xp: Any, x: Any) -> Any:
    """Tangent.

    Example:
        >>> import stopgrad as sg
        >>> sg.tan([0.0, 1.0]).numpy()
        array([0.        , 1.55740772])
    """
    return xp.tan(x)


@unary(np.arcsin, lambda xp, t, x, _out: t / xp.sqrt((1 - x) * (1 + x)))
def arcsin(xp: Any, x: Any) -> Any:
    """Inverse sine, in [-π/2, π/2]; NaN outside [-1, 1]. At ±1 the derivative is infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.arcsin([0.0, 1.0]).numpy()
        array([0.        , 1.57079633])
    """
    return xp.asin(x)


@unary(np.arccos, lambda xp, t, x, _out: -t / xp.sqrt((1 - x) * (1 + x)))
def arccos(xp: Any, x: Any) -> Any:
    """Inverse cosine, in [0, π]; NaN outside [-1, 1]. At ±1 the derivative is infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.arccos([0.0, 1.0]).numpy()
        array([1.57079633, 0.        ])
    """
    return xp.acos(x)


@unary(np.arctan, lambda xp, t, x, _out: t / (1 + x * x))
def arctan(xp: Any, x: Any) -> Any:
    """Inverse tangent, in [-π/2, π/2].

    Example:
        >>> import stopgrad as sg
        >>> sg.arctan([0.0, 1.0]).numpy()
        array([0.        , 0.78539816])
    """
    return xp.atan(x)


@binary(
    np.arctan2,
    lambda xp, t, y, x, _out: t * (x / (x * x + y * y)),
    lambda xp, t, y, x, _out: t * (-y / (x * x + y * y)),
)
def arctan2(xp: Any, y: Any, x: Any) -> Any:
    """Angle of the point (x, y), in [-π, π]. At (0, 0), where an angle has no derivative, both are NaN.

    Example:
        >>> import stopgrad as sg
        >>> sg.arctan2([1.0, -1.0], [1.0, -1.0]).numpy()
        array([ 0.78539816, -2.35619449])
    """
    return xp.atan2(y, x)


@unary(np.sinh, lambda xp, t, x, _out: t * xp.cosh(x))
def sinh(xp: Any, x: Any) -> Any:
    """Hyperbolic sine.

    Example:
        >>> import stopgrad as sg
        >>> sg.sinh([0.0, 1.0]).numpy()
        array([0.        , 1.17520119])
    """
    return xp.sinh(x)


@unary(np.cosh, lambda xp, t, x, _out: t * xp.sinh(x))
def cosh(xp: Any, x: Any) -> Any:
    """Hyperbolic cosine.

    Example:
        >>> import stopgrad as sg
        >>> sg.cosh([0.0, 1.0]).numpy()
        array([1.        , 1.54308063])
    """
    return xp.cosh(x)


@unary(np.tanh, lambda xp, t, _x, out: t * (1 - out * out))
def tanh(xp: Any, x: Any) -> Any:
    """Hyperbolic tangent.

    Example:
        >>> import stopgrad as sg
        >>> sg.tanh([0.0, 1.0]).numpy()
        array([0.        , 0.76159416])
    """
    return xp.tanh(x)


@unary(np.arcsinh, lambda xp, t, x, _out: t / xp.sqrt(x * x + 1))
def arcsinh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic sine.

    Example:
        >>> import stopgrad as sg
        >>> sg.arcsinh([0.0, 1.0]).numpy()
        array([0.        , 0.88137359])
    """
    return xp.asinh(x)


@unary(np.arccosh, lambda xp, t, x, _out: t / xp.sqrt((x - 1) * (x + 1)))
def arccosh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1. At 1 the derivative is infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.arccosh([1.0, 2.0]).numpy()
        array([0.        , 1.3169579])
    """
    return xp.acosh(x)


@unary(np.arctanh, lambda xp, t, x, _out: t / ((1 - x) * (1 + x)))
def arctanh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic tangent; infinite at ±1, NaN outside.

    Example:
        >>> import stopgrad as sg
        >>> sg.arctanh([0.0, 0.5]).numpy()
        array([0.        , 0.54930614])
    """
    return xp.atanh(x)


def _sinc_slope(xp: Any, t: Any, x: Any, _out: Any) -> Any:
    # (cos πx - sinc x)/x cancels near 0: there the power series, Σ (-1)ᵏ 2k (πx)²ᵏ⁻¹ π / (2k+1)!, up to k = 12.
    angle = math.pi * x
    squared = angle * angle
    series = 0.0
    for k in range(12, 0, -1):
        series = series * squared + (-1) ** k * 2 * k / math.factorial(2 * k + 1)
    near = xp.abs(angle) < 1
    far = xp.where(near, 1.0, x)
    beyond = (xp.cos(math.pi * far) - xp.sin(math.pi * far) / (math.pi * far)) / far
    return t * xp.where(near, series * angle * math.pi, beyond)


@unary(np.sinc, _sinc_slope)
def sinc(xp: Any, x: Any) -> Any:
    """sin(πx) / (πx), and 1 at 0, where it is smooth: the derivative is 0 and the second -π²/3.

    Example:
        >>> import stopgrad as sg
        >>> sg.sinc([0.0, 0.5]).numpy()
        array([1.        , 0.63661977])
    """
    angle = math.pi * xp.where(x == 0, 1e-20, x)
    return xp.sin(angle) / angle


@unary(np.deg2rad, lambda xp, t, _x, _out: t * (math.pi / 180))
def deg2rad(xp: Any, x: Any) -> Any:
    """Degrees to radians.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.deg2rad(180.0))
        3.141592653589793
    """
    return x * (math.pi / 180)


@unary(np.rad2deg, lambda xp, t, _x, _out: t * (180 / math.pi))
def rad2deg(xp: Any, x: Any) -> Any:
    """Radians to degrees.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.rad2deg(3.141592653589793))
        180.0
    """
    return x * (180 / math.pi)


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh
radians, degrees = deg2rad, rad2deg
