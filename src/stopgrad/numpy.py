"""NumPy's names: `import stopgrad.numpy as np` in a program written for NumPy, and it can be differentiated.

Every operation of the library is here, with NumPy's constants and dtypes, `linalg` and `random`. What NumPy has and
this library does not says so when asked for, instead of computing something without a gradient.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as _numpy

from stopgrad import linalg, random
from stopgrad.core.tensor import Tensor as ndarray  # noqa: N813 - NumPy's name for it
from stopgrad.primitives import *  # noqa: F403 - the list is primitives.__all__
from stopgrad.primitives import __all__ as _operations
from stopgrad.primitives.linalg import trace

e, euler_gamma, inf, nan, newaxis, pi = (
    _numpy.e,
    _numpy.euler_gamma,
    _numpy.inf,
    _numpy.nan,
    _numpy.newaxis,
    _numpy.pi,
)
bool_, int8, int16, int32, int64 = _numpy.bool_, _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64
uint8, uint16, uint32, uint64 = _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
complex64, complex128 = _numpy.complex64, _numpy.complex128
dtype, finfo, iinfo, result_type = _numpy.dtype, _numpy.finfo, _numpy.iinfo, _numpy.result_type

__all__ = [  # noqa: PLE0604
    *_operations,
    "bool_",
    "complex64",
    "complex128",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "nan",
    "ndarray",
    "newaxis",
    "pi",
    "random",
    "result_type",
    "trace",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def __getattr__(name: str) -> NoReturn:
    known = "it is NumPy's, but not differentiated here; call it on t.numpy() if no gradient is to flow through it"
    raise AttributeError(
        f"module 'stopgrad.numpy' has no attribute {name!r}" + (f": {known}" if hasattr(_numpy, name) else "")
    )
