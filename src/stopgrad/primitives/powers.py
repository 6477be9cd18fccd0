"""Powers. Their derivatives are finite wherever the mathematics is, where the textbook formulas give NaN.

For f(x, y) = xʸ: ∂f/∂x = y·xʸ⁻¹, which at (0, 0) would be 0·∞ but is 0 (x⁰ is 1 everywhere); ∂f/∂y = f·log x, which at
(0, y), y > 0, would be 0·∞ but is 0 (0ʸ is 0 all around). At (0, 0), where f jumps along y, ∂f/∂y is 0 by convention.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, carries_derivative, is_complex, spec_of
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import ZERO, elementwise
from stopgrad.core.record import bind2, coerce, compute
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import multiply, reciprocal, sqrt, square
from stopgrad.primitives.casting import astype
from stopgrad.primitives.inputs import to_tensor

_LARGEST_MULTIPLIED = 8
"""Up to this whole number a power is computed by multiplying."""


def _by_base(xp: Any, t: Any, a: Any, b: Any, _out: Any) -> Any:
    if type(b) in PYTHON_SCALARS:
        if b == 0:
            return ZERO
        lowered = power(a, b - 1) if isinstance(a, Tensor) else compute(POWER, (a, b - 1), ())
        return t * (b * lowered)
    # Only the point (0, 0) is singled out, not b = 0: the derivative by b of this (at order 2) is 1/a there, not 0.
    return xp.where((a == 0) & (b == 0), 0, t * (b * a ** (b - 1)))


def _by_exponent(xp: Any, t: Any, a: Any, b: Any, out: Any) -> Any:
    if type(a) in PYTHON_SCALARS and type(a) is not complex and a > 0:
        return t * (out * math.log(a))
    if type(a) in PYTHON_SCALARS:
        a = a + xp.zeros_like(b)
    sign_of = xp.real(b) if is_complex(b.dtype) else b
    return xp.where((a == 0) & (sign_of >= 0), 0, t * (out * xp.log(a)))


def _power_numpy(a: Any, b: Any) -> Any:
    if type(b) is int and 1 < b <= _LARGEST_MULTIPLIED and type(a) not in PYTHON_SCALARS and a.dtype.char in "fdFD":
        return _multiplied(a, b)
    return np.power(a, b)


def _multiplied(a: Any, n: int) -> Any:
    """Return aⁿ by repeated squaring: exact where the result is, a few ulp elsewhere, and 100 times as fast as pow."""
    out = None
    while True:
        if n & 1:
            out = a if out is None else out * a
        n >>= 1
        if not n:
            return out
        a = a * a


POWER = elementwise("power", lambda xp, a, b: a**b, _by_base, _by_exponent, numpy_kernel=_power_numpy)
"""power(a, b). A Python number for an exponent is not made an array and takes the short rule."""


def power(a: Any, b: Any, /) -> Tensor:
    """Power, aᵇ.

    ∂/∂a is b·aᵇ⁻¹, and 0 at (0, 0). ∂/∂b is aᵇ·log a, and 0 where a = 0 and b ≥ 0; for negative a it is NaN, since no
    real power is defined beside b. A Python number for b is cheaper than a tensor: there is no derivative by b to take,
    small whole powers are products, `a**2` is `square(a)` and `a**0.5` is `sqrt(a)`.

    Args:
        a: base; tensor, array or number.
        b: exponent; likewise. The shapes broadcast together.

    Returns:
        Tensor of the broadcast shape, in the dtype NumPy promotes to.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: integers to a negative integer power.

    Example:
        >>> import stopgrad as sg
        >>> sg.power([1.0, 2.0, 3.0], 2).numpy()
        array([1., 4., 9.])
        >>> dx, dy = sg.grads(sg.power)(0.0, 0.0)
        >>> float(dx), float(dy)
        (0.0, 0.0)
    """
    if type(b) is int:
        if b == 2:
            return square(a)
        if b < 0:
            dtype = _dtype_of(a)
            if isinstance(dtype, np.dtype) and dtype.kind in "iu":
                raise ArgumentError(
                    f"power: {dtype} to the power {b} is no integer; convert the base to floats, x.astype(float)"
                )
            if b == -1:
                return reciprocal(a)
    elif type(b) is float:
        if b == 0.5:
            return sqrt(a)
        if b.is_integer() and -1 <= b <= _LARGEST_MULTIPLIED and carries_derivative(_dtype_of(a)):
            return power(a, int(b))
    return bind2(POWER, a, b)


def float_power(a: Any, b: Any, /) -> Tensor:
    """Power, aᵇ, computed in at least double precision; integers may have negative powers. See `power` for the rest.

    Example:
        >>> import stopgrad as sg
        >>> sg.float_power([1, 2, 4], -1).numpy()
        array([1.  , 0.5 , 0.25])
    """
    return power(_double(a), b if type(b) in (int, float) else _double(b))


def ldexp(x: Any, exponent: Any, /) -> Tensor:
    """x · 2ᵉ.

    Example:
        >>> import stopgrad as sg
        >>> sg.ldexp([1.0, 3.0], [4, -1]).numpy()
        array([16. ,  1.5])
    """
    tensor = to_tensor(x, "ldexp")
    scale = power(2.0, exponent)
    return multiply(tensor, astype(scale, tensor.dtype) if carries_derivative(tensor.dtype) else scale)


def _dtype_of(x: Any) -> Any:
    return x.dtype if type(x) is Tensor else spec_of(coerce(x, "power")[0]).dtype


def _double(x: Any) -> Any:
    dtype = _dtype_of(x)
    double = np.result_type(dtype, np.float64) if isinstance(dtype, np.dtype) else "float64"
    return astype(x, "complex128" if is_complex(dtype) and double == "float64" else double)


pow = power
