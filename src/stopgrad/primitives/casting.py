"""Changes of dtype, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, carries_derivative, is_complex, is_numpy, namespace_of, numpy_dtype
from stopgrad.core.errors import ArgumentError
from stopgrad.core.lazy import ml_dtypes
from stopgrad.core.operation import elementwise, nondifferentiable
from stopgrad.core.record import bind1, coerce
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import multiply
from stopgrad.primitives.define import binary
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.trigonometric import arctan2

_ML_DTYPES = frozenset(("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def _astype_kernel(xp: Any, x: Any, dtype: Any) -> Any:
    if xp is not np and (isinstance(dtype, np.dtype) or type(dtype) is type):  # in a graph dtypes are NumPy's
        dtype = getattr(xp, np.dtype(dtype).name)
    return xp.asarray(x, dtype=dtype) if type(x) in PYTHON_SCALARS else xp.astype(x, dtype)


def _astype_numpy(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


ASTYPE = elementwise("astype", _astype_kernel, lambda xp, t, _x, _out, _dtype: t, numpy_kernel=_astype_numpy)
"""astype(x; dtype) to a dtype that carries a derivative: the sweep casts the cotangent back."""

ASTYPE_DISCRETE = nondifferentiable("astype_discrete", _astype_kernel, numpy_kernel=_astype_numpy)
"""astype(x; dtype) to integers or booleans: the result is a constant."""


def astype(x: Any, dtype: Any, /) -> Tensor:
    """Convert to another dtype.

    Between real and complex floating-point dtypes derivatives pass, brought back to the dtype of x; a complex number
    made real loses its imaginary part and passes the derivative of its real one. To integers and booleans no derivative
    passes: the result is a constant that remembers why.

    Args:
        x: tensor, array or number.
        dtype: a NumPy dtype or its name, a Python type, "bfloat16", or a dtype of the array library of x.

    Returns:
        Tensor of the shape of x; x itself if it is a tensor of this dtype already.

    Raises:
        ArgumentError: there is no such dtype.

    Example:
        >>> import stopgrad as sg
        >>> sg.astype([1.7, -1.7], int).numpy()
        array([ 1, -1])
        >>> str(sg.astype([1.0], "float32").dtype)
        'float32'
    """
    if type(x) is not Tensor:
        x = Tensor(*coerce(x, "astype"))
    value = x.value
    found = dtype_for(value, dtype, "astype")
    if type(value) not in PYTHON_SCALARS:
        if value.dtype == found:
            return x
        if is_complex(value.dtype) and not is_complex(found):
            x = real(x)
    return bind1(ASTYPE if carries_derivative(found) else ASTYPE_DISCRETE, x, (found,))


def dtype_for(value: Any, dtype: Any, name: str) -> Any:
    """Return a dtype, however it is spelled, as one of the array library of `value`."""
    if type(dtype) is str and dtype in _ML_DTYPES:
        ml_dtypes()
    numpy_like = type(value) in PYTHON_SCALARS or is_numpy(value)
    try:
        found = np.dtype(dtype)
    except TypeError:
        if getattr(value, "is_symbolic", False):
            return numpy_dtype(dtype)
        if not numpy_like and not isinstance(dtype, str):
            return dtype
        raise ArgumentError(
            f"{name}: {dtype!r} is not a dtype; pass one of NumPy's or its name, for instance 'float32'"
        ) from None
    if numpy_like:
        return found
    return getattr(namespace_of(value), found.name, dtype)


REAL = elementwise("real", lambda xp, x: xp.real(x), lambda xp, t, _x, _out: t)
IMAG = elementwise("imag", lambda xp, x: xp.imag(x), lambda xp, t, _x, _out: t * -1j)
CONJ = elementwise("conj", lambda xp, x: xp.conj(x), lambda xp, t, _x, _out: xp.conj(t), numpy_kernel=np.conjugate)


def real(x: Any, /) -> Tensor:
    """Real part of a complex tensor; a real one itself.

    Example:
        >>> import stopgrad as sg
        >>> sg.real([1 + 2j, 3 - 1j]).numpy()
        array([1., 3.])
    """
    tensor = to_tensor(x, "real")
    return bind1(REAL, tensor) if _is_complex(tensor) else tensor


def imag(x: Any, /) -> Tensor:
    """Imaginary part of a complex tensor; of a real one zeros.

    Example:
        >>> import stopgrad as sg
        >>> sg.imag([1 + 2j, 3 - 1j]).numpy()
        array([ 2., -1.])
    """
    tensor = to_tensor(x, "imag")
    return bind1(IMAG, tensor) if _is_complex(tensor) else multiply(tensor, 0)


def conj(x: Any, /) -> Tensor:
    """Complex conjugate; a real tensor itself.

    Example:
        >>> import stopgrad as sg
        >>> sg.conj([1 + 2j]).numpy()
        array([1.-2.j])
    """
    tensor = to_tensor(x, "conj")
    return bind1(CONJ, tensor) if _is_complex(tensor) else tensor


conjugate = conj


def angle(x: Any, /) -> Tensor:
    """Angle of a complex tensor in (-π, π]; of a real one 0 or π, without a derivative other than zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.angle([1j, -1.0]).numpy()
        array([1.57079633, 3.14159265])
    """
    tensor = to_tensor(x, "angle")
    return arctan2(imag(tensor), real(tensor))


@binary(
    lambda a, b: _complex(np, a, b),
    lambda xp, t, _a, _b, _out: t,
    lambda xp, t, _a, _b, _out: t * 1j,
)
def make_complex(xp: Any, real: Any, imag: Any) -> Any:
    """Complex tensor of a real and an imaginary part.

    Example:
        >>> import stopgrad as sg
        >>> sg.make_complex([1.0, 2.0], 3.0).numpy()
        array([1.+3.j, 2.+3.j])
    """
    return real + imag * 1j


def _complex(xp: Any, a: Any, b: Any) -> Any:
    dtype = np.result_type(a, b, np.complex64)
    out = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype)
    out.real, out.imag = a, b
    return out


def _is_complex(x: Tensor) -> bool:
    return is_complex(x.value.dtype)
