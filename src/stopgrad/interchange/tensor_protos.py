"""TensorFlow's TensorProto to arrays and back.

Values stand as bytes in `tensor_content`, or in the list of their type, where the last one repeats: a single 0.5 may
stand for an array of any shape, which is then a view of one entry.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape
from stopgrad.core.errors import InterchangeError
from stopgrad.core.lazy import ml_dtypes
from stopgrad.interchange.importing import MOST_ENTRIES
from stopgrad.interchange.protos import DATA_TYPES, message_classes

MOST_REPEATED = 1 << 26
"""Entries of the largest array that is filled up by repeating the last of several values."""

_NAMES = {number: name for name, (_, number) in DATA_TYPES.items()}
_LISTS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint8": "int_val",
    "uint16": "int_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "float16": "half_val",
    "bfloat16": "half_val",
}


def dtype_of(number: int) -> np.dtype:
    """Return the dtype of a TensorFlow data type, or raise."""
    name = _NAMES.get(number, f"number {number}")
    if name == "bfloat16":
        ml_dtypes()
    elif name not in _LISTS:
        raise InterchangeError(f"values of type {name} are not supported")
    return np.dtype(name)


def data_type_of(dtype: Any) -> int:
    """Return the number of TensorFlow's data type for a dtype, or raise."""
    name = np.dtype(dtype).name
    if name not in _LISTS:
        raise InterchangeError(f"TensorFlow has no data type for {name}")
    return DATA_TYPES[name][1]


def known_shape(shape: Any) -> tuple[int | None, ...] | None:
    """Return the sizes of a TensorShapeProto, `None` for those not known, or `None` if not even their number is."""
    if shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else int(dim.size) for dim in shape.dim)


def array_of(tensor: Any) -> np.ndarray:
    """Return the array a TensorProto holds."""
    dtype = dtype_of(tensor.dtype)
    sizes = known_shape(tensor.tensor_shape)
    if sizes is None or None in sizes or len(sizes) > 32:
        raise InterchangeError("a constant without a full shape")
    shape: Shape = tuple(size for size in sizes if size is not None)
    count = prod(shape)
    if count > MOST_ENTRIES:
        raise InterchangeError(f"a constant of shape {shape}")
    content = tensor.tensor_content
    if content:
        if len(content) != count * dtype.itemsize:
            raise InterchangeError(
                f"a constant {dtype}{shape} needs {count * dtype.itemsize} bytes, has {len(content)}"
            )
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    values = _listed(tensor, dtype)
    if len(values) > count:
        raise InterchangeError(f"a constant of shape {shape} has {len(values)} values")
    if not len(values):
        return np.broadcast_to(np.zeros((), dtype), shape)
    if len(values) == 1:
        return np.broadcast_to(values[0], shape)
    if len(values) < count:
        if count > MOST_REPEATED:
            raise InterchangeError(f"a constant of shape {shape} with only {len(values)} values")
        values = np.concatenate([values, np.full(count - len(values), values[-1], dtype)])
    return values.reshape(shape)


def _listed(tensor: Any, dtype: np.dtype) -> np.ndarray:
    listed = getattr(tensor, _LISTS[dtype.name])
    if dtype.name in ("float16", "bfloat16"):
        bits = np.asarray(listed, np.int64)
        if bits.size and (bits.min() < 0 or bits.max() > 0xFFFF):
            raise InterchangeError("a constant of 16-bit numbers with a value of more bits")
        return bits.astype(np.uint16).view(dtype)
    if dtype.kind == "c":
        parts = np.asarray(listed, dtype.type(0).real.dtype)
        if parts.size % 2:
            raise InterchangeError("a constant of complex numbers with an odd number of parts")
        return parts.view(dtype)
    return np.asarray(listed, np.int64 if dtype.kind == "i" else None).astype(dtype)


def tensor_of(value: np.ndarray) -> Any:
    """Return an array as a TensorProto; one entry repeated everywhere is written once."""
    made = message_classes()["TensorProto"](dtype=data_type_of(value.dtype))
    for size in value.shape:
        made.tensor_shape.dim.add(size=size)
    if value.size > 1 and not any(value.strides) and value.dtype.name in ("float32", "float64", "int32", "int64"):
        getattr(made, _LISTS[value.dtype.name]).append(value.flat[0].item())
    elif value.size:
        made.tensor_content = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
    return made
