"""TensorFlow's dtypes: NumPy's, under TensorFlow's names. `tf.float32 == x.dtype` and `tf.float32.name` work.

`bfloat16` is there too, loaded on first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.errors import ArgumentError
from stopgrad.core.lazy import ml_dtypes

float16 = half = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)
bool = np.dtype(np.bool_)

_OF_PYTHON_TYPES = {float: float32, int: int32, complex: complex128, np.bool_: bool}
_OF_NAMES = {"half": float16, "double": float64}


def as_dtype(type_value: Any) -> Any:
    """Return a dtype given as one, as a name, or as a Python or NumPy type; `float` is float32 here, `int` int32.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.as_dtype("float32") == tf.as_dtype(float) == tf.float32
        True
    """
    if isinstance(type_value, np.dtype):
        return type_value
    if isinstance(type_value, str):
        if type_value == "bfloat16":
            return np.dtype(ml_dtypes().bfloat16)
        if type_value in _OF_NAMES:
            return _OF_NAMES[type_value]
    elif isinstance(type_value, type) and type_value in _OF_PYTHON_TYPES:
        return _OF_PYTHON_TYPES[type_value]
    try:
        found = np.dtype(type_value)
    except TypeError:
        found = None
    if type_value is None or found is None or found.kind not in "biufcV":
        raise ArgumentError(f"as_dtype: {type_value!r} is not a dtype; write tf.float32, 'float32' or the like")
    return found


def __getattr__(name: str) -> Any:
    """Load `bfloat16` when it is asked for."""
    if name == "bfloat16":
        return as_dtype(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
