"""Arithmetic, entry by entry: sums, products, quotients, powers and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.primitives.define import binary, unary


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


@unary(np.tanh, lambda xp, t, _x, out: t * (1 - out * out))
def tanh(xp: Any, x: Any) -> Any:
    """Hyperbolic tangent.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.tanh(0.0))
        0.0
    """
    return xp.tanh(x)
