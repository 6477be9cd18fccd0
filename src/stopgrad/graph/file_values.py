"""The closed vocabulary of graph files: settings of operations, numbers and dtypes as JSON, and back, bit for bit.

Nothing is ever looked up by a name that a file gives, except in the tables here. docs/graph_files.md says what stands
for what. Everything read is checked before it is believed: the types of JSON, ranges of integers, lengths of strings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, UNKNOWN, Shape, Spec
from stopgrad.core.errors import ArgumentTypeError, DTypeError, GraphFileError
from stopgrad.core.lazy import ml_dtypes
from stopgrad.primitives.geometry import Geometry

MAX_TEXT = 1 << 16
"""Characters in a string."""
MAX_AXES = 64
MAX_SIZE = 1 << 60
"""Of one axis."""
MAX_DEPTH = 64
"""Brackets inside one another."""
LARGEST_INTEGER, SMALLEST_INTEGER = (1 << 64) - 1, -(1 << 63)
EXACT_INTEGER = 1 << 53
"""Integers beyond are written as strings, as many readers of JSON take numbers for doubles."""

_DTYPE_NAMES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
     "complex64", "complex128")
)  # fmt: skip
_NARROW_NAMES = frozenset(("bfloat16", "float8_e4m3fn", "float8_e5m2"))
_PYTHON_TYPES: dict[str, type] = {one.__name__: one for one in PYTHON_SCALARS}


def refuse(what: str) -> NoReturn:
    """Raise the one error for files that cannot be read."""
    raise GraphFileError(what)


def shown(value: Any) -> str:
    """Return a value from a file for an error's text, cut short."""
    text = ascii(value) if type(value) is not str else ascii(value[:100])
    return text if len(text) <= 100 else f"{text[:100]}…"


def name_of_dtype(dtype: Any) -> str:
    """Return the name a dtype has in files."""
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    if name not in _DTYPE_NAMES and name not in _NARROW_NAMES:
        raise DTypeError(f"a graph file cannot hold values of dtype {dtype}; convert them with astype first")
    return name


def dtype_named(name: Any) -> np.dtype:
    """Return the dtype of this name."""
    if type(name) is str and name in _DTYPE_NAMES:
        return np.dtype(name)
    if type(name) is str and name in _NARROW_NAMES:
        ml_dtypes()  # teaches NumPy the name
        return np.dtype(name)
    refuse(f"there is no dtype {shown(name)}")


def integer(value: Any, low: int, high: int, what: str) -> int:
    """Return an integer from a file, checked to lie in `low … high`."""
    if type(value) is not int or not low <= value <= high:
        refuse(f"{what} must be an integer from {low} to {high}, got {shown(value)}")
    return value


def text(value: Any, what: str, *, least: int = 0) -> str:
    """Return a string from a file, its length checked."""
    if type(value) is not str or not least <= len(value) <= MAX_TEXT:
        refuse(f"{what} must be a string of {least} to {MAX_TEXT} characters, got {shown(value)}")
    return value


def listed(value: Any, what: str) -> list[Any]:
    """Return a list from a file."""
    if type(value) is not list:
        refuse(f"{what} must be a list, got {shown(value)}")
    return value


def shape_to_json(shape: Shape) -> list[int]:
    """Return a shape as a list; -1 stands for a size that only the run tells."""
    if len(shape) > MAX_AXES or any(size >= MAX_SIZE for size in shape):
        raise ArgumentTypeError(f"a graph file cannot hold the shape {shape}")
    return [-1 if size == UNKNOWN else int(size) for size in shape]


def shape_from_json(value: Any) -> Shape:
    """Return a shape, its sizes checked."""
    sizes = listed(value, "a shape")
    if len(sizes) > MAX_AXES:
        refuse(f"a shape has at most {MAX_AXES} axes, got {len(sizes)}")
    return tuple(UNKNOWN if integer(one, -1, MAX_SIZE - 1, "a size") == -1 else one for one in sizes)


class SettingsWriter:
    """Turns settings into JSON.

    Args:
        spec: returns the number of a spec.
        part: returns a tagged number for a setting that has records of its own (arrays, variables, bodies), or `None`.
    """

    def __init__(self, spec: Callable[[Spec], int], part: Callable[[Any], list[Any] | None]) -> None:
        self._spec = spec
        self._part = part

    def write(self, value: Any, depth: int = 0) -> Any:
        """Return what stands for a setting.

        Raises:
            ArgumentTypeError: something that is no data.
        """
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return integer_to_json(value)
        if kind is str:
            if len(value) > MAX_TEXT:
                raise ArgumentTypeError(f"a graph file cannot hold strings of more than {MAX_TEXT} characters")
            return value
        if kind is float:
            return ["float", struct.pack(">d", value).hex()]
        if kind is tuple:
            if depth > MAX_DEPTH // 2:
                raise ArgumentTypeError("a graph file cannot hold tuples nested that deep")
            return ["tuple", *[self.write(one, depth + 1) for one in value]]
        if kind is complex:
            return ["complex", struct.pack(">d", value.real).hex(), struct.pack(">d", value.imag).hex()]
        if kind is type(UNKNOWN):
            return ["unknown"]
        if kind is Spec:
            return ["spec", self._spec(value)]
        if kind is Geometry:
            return ["geometry", *[self.write(one, depth + 1) for one in value]]
        return self._write_rare(value, depth)

    def _write_rare(self, value: Any, depth: int) -> list[Any]:
        if isinstance(value, np.dtype):
            return ["dtype", name_of_dtype(value)]
        if isinstance(value, type) and value.__name__ in _PYTHON_TYPES and value is _PYTHON_TYPES[value.__name__]:
            return ["python", value.__name__]
        if isinstance(value, type) and issubclass(value, np.generic):
            return ["type", name_of_dtype(np.dtype(value))]
        if isinstance(value, np.generic):
            return ["scalar", name_of_dtype(value.dtype), little_endian(np.asarray(value)).hex()]
        if value is Ellipsis:
            return ["ellipsis"]
        if type(value) is slice:
            return ["slice", *[self.write(one, depth + 1) for one in (value.start, value.stop, value.step)]]
        found = self._part(value)
        if found is None:
            raise ArgumentTypeError(f"a graph file holds data only, not a {type(value).__name__}")
        return found


def integer_to_json(value: int) -> Any:
    """Return an integer as a number, or a tagged string if it is a large one."""
    if -EXACT_INTEGER < value < EXACT_INTEGER:
        return value
    if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        raise ArgumentTypeError(f"a graph file cannot hold the integer {value:.3e}, which has more than 64 bits")
    return ["int", str(value)]


def little_endian(array: np.ndarray) -> bytes:
    """Return the entries of an array in order, little-endian."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and _BIG):
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()


_BIG = np.dtype("=u2").newbyteorder("<") != np.dtype("=u2")


def from_little_endian(data: Any, dtype: np.dtype) -> np.ndarray:
    """Return the array of entries whose little-endian bytes these are, read-only, without a copy where possible."""
    if not _BIG or dtype.itemsize == 1 or dtype.name in _NARROW_NAMES:
        array = np.frombuffer(data, dtype)
    else:
        array = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
    array.flags.writeable = False
    return array


class SettingsReader:
    """Turns JSON into settings.

    Args:
        spec: returns the spec of a number.
        parts: for each further tag, returns what has this number among its records.
    """

    def __init__(self, spec: Callable[[Any], Spec], parts: dict[str, Callable[[Any], Any]]) -> None:
        self._spec = spec
        self._parts = parts

    def read(self, value: Any) -> Any:
        """Return the setting that a value stands for."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return integer(value, 1 - EXACT_INTEGER, EXACT_INTEGER - 1, "an integer")
        if kind is str:
            return text(value, "a string")
        if kind is not list or not value or type(value[0]) is not str:
            refuse(f"there is no setting {shown(value)}")
        tag, rest = value[0], value[1:]
        if tag == "tuple":
            return tuple([self.read(one) for one in rest])
        if tag == "geometry":
            return self._geometry(rest)
        if tag == "slice" and len(rest) == 3:
            return slice(*(self.read(one) for one in rest))
        if tag == "unknown" and not rest:
            return UNKNOWN
        if tag == "ellipsis" and not rest:
            return ...
        if tag == "spec" and len(rest) == 1:
            return self._spec(rest[0])
        if tag in self._parts and len(rest) == 1:
            return self._parts[tag](rest[0])
        return number_from_json(tag, rest)

    def _geometry(self, rest: list[Any]) -> Geometry:
        entries = [self.read(one) for one in rest]
        if len(entries) == 6:
            size, window, strides, dilations, pads, groups = entries
            rows = [size, window, strides, dilations]
            pairs = [*pads] if type(pads) is tuple else [None]
            fits = (
                all(_is_integers(one, len(pairs)) and min(one, default=0) >= 0 for one in rows)
                and all(_is_integers(one, 2) for one in pairs)
                and min((*strides, *dilations, *window, 1)) >= 1
                and type(groups) is int
                and groups >= 1
            )
            if fits:
                return Geometry(*entries)
        refuse(f"there is no geometry {shown(rest)}")


def _is_integers(value: Any, count: int) -> bool:
    return type(value) is tuple and len(value) == count and all(type(one) is int for one in value)


def number_from_json(tag: str, rest: list[Any]) -> Any:
    """Return the number, scalar or dtype that a tag and what follows it stand for."""
    if all(type(one) is str and len(one) <= 64 for one in rest):
        try:
            if tag == "float" and len(rest) == 1:
                return _double(rest[0])
            if tag == "complex" and len(rest) == 2:
                return complex(_double(rest[0]), _double(rest[1]))
            if tag == "int" and len(rest) == 1:
                return _large_integer(rest[0])
            if tag == "scalar" and len(rest) == 2:
                dtype, data = dtype_named(rest[0]), bytes.fromhex(rest[1])
                if len(data) == dtype.itemsize:
                    return from_little_endian(data, dtype)[0]
            if tag == "dtype" and len(rest) == 1:
                return dtype_named(rest[0])
            if tag == "type" and len(rest) == 1:
                return dtype_named(rest[0]).type
            if tag == "python" and len(rest) == 1 and rest[0] in _PYTHON_TYPES:
                return _PYTHON_TYPES[rest[0]]
        except (ValueError, struct.error) as error:
            if isinstance(error, GraphFileError):
                raise
    refuse(f"there is no setting {shown([tag, *rest])}")


def _double(digits: str) -> float:
    number: float = struct.unpack(">d", bytes.fromhex(digits))[0]
    return number


def _large_integer(digits: str) -> int:
    number = int(digits)
    if str(number) != digits or -EXACT_INTEGER < number < EXACT_INTEGER:
        refuse(f"{shown(digits)} is no large integer")
    return integer(number, SMALLEST_INTEGER, LARGEST_INTEGER, "an integer")
