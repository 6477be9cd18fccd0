"""The arrays tensors hold: NumPy's by default, any other library's that follows the Python array API standard.

`namespace_of` finds the module whose functions work on given arrays; `Spec` is an array's shape and dtype without its
values; the rest are the few questions about shapes and dtypes that several layers ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.errors import ArgumentTypeError, ShapeError

Shape = tuple[int, ...]


class _UnknownSize(int):
    def __repr__(self) -> str:
        return "?"

    __str__ = __repr__


UNKNOWN = _UnknownSize(1 << 40)
"""The size of an axis that is only known when a graph is run: that of the history of a `while_loop`."""

PYTHON_SCALARS = frozenset((bool, int, float, complex))
_NUMPY_SCALARS = {np.dtype(code).type for code in np.typecodes["All"] if code not in "SUVO"}
NUMPY_TYPES: frozenset[type] = frozenset({np.ndarray, *PYTHON_SCALARS, *_NUMPY_SCALARS})


class Spec(NamedTuple):
    """Shape and dtype of an array.

    Example:
        >>> import stopgrad as sg
        >>> print(sg.Spec((2, 3), "float64"))
        float64[2,3]
    """

    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def spec_of(value: Any) -> Spec:
    """Return shape and dtype of an array or Python scalar."""
    if type(value) in PYTHON_SCALARS:
        return Spec((), np.result_type(value))
    return Spec(tuple(value.shape), value.dtype)


def result_dtype(specs: Iterable[Spec]) -> Any:
    """Return the dtype that arrays of these specs promote to together, by NumPy's rules."""
    return np.result_type(*(spec.dtype for spec in specs))


def is_numpy(value: Any) -> bool:
    """Whether NumPy's own functions are the ones for this array or scalar."""
    return type(value) in NUMPY_TYPES or isinstance(value, np.ndarray | np.generic)


def is_array(value: Any) -> bool:
    """Whether this is an array of a library that follows the array API standard (a NumPy scalar counts)."""
    return (
        isinstance(value, np.ndarray | np.generic)
        or hasattr(value, "__array_namespace__")
        or type(value).__module__.partition(".")[0] in ("torch", "cupy", "dask", "jax", "jaxlib")
    )


def namespace_of(*values: Any) -> Any:
    """Return the array API namespace of the given arrays: `numpy` itself where all are NumPy's or Python scalars."""
    foreign = [value for value in values if not is_numpy(value)]
    if not foreign:
        return np
    import array_api_compat  # heavy and rarely needed: only arrays that are not NumPy's come here

    try:
        return array_api_compat.array_namespace(*foreign)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in foreign}))
        raise ArgumentTypeError(
            f"these values cannot be computed with together: {kinds}; pass numbers, or arrays of one library that "
            "follows the Python array API standard"
        ) from error


def carries_derivative(dtype: Any) -> bool:
    """Whether values of this dtype can carry a derivative: real and complex floating point, of any library."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fc" or dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    name = str(dtype)
    return "float" in name or "complex" in name


def is_numeric(dtype: np.dtype) -> bool:
    """Whether a NumPy dtype is one of numbers or booleans; bfloat16 and its like, to NumPy a kind of record, are."""
    return dtype.kind not in "OSUVmM" or carries_derivative(dtype)


def numpy_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype for one of any library."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rpartition(".")[2])


def is_complex(dtype: Any) -> bool:
    """Whether the dtype is complex, of any library."""
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else "complex" in str(dtype)


def is_bool(dtype: Any) -> bool:
    """Whether the dtype is boolean, of any library."""
    return dtype.kind == "b" if isinstance(dtype, np.dtype) else str(dtype).endswith("bool")


def broadcast_shapes(name: str, *shapes: Shape) -> Shape:
    """Return the shape these shapes broadcast to, or raise `ShapeError` in the name of the operation."""
    different = {*shapes}
    different.discard(())
    if len(different) <= 1:
        return different.pop() if different else ()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise ShapeError(
            f"{name}: shapes {listed} do not broadcast together; sizes must be equal or 1, counted from the last axis "
            "(use reshape or expand_dims to line them up)"
        ) from None


def normalize_axis(name: str, axis: int, ndim: int) -> int:
    """Return the axis counted from the front, or raise `ShapeError` in the name of the operation."""
    try:
        index = axis.__index__()
    except AttributeError:
        raise ArgumentTypeError(f"{name}: axis must be an integer, got {axis!r}") from None
    if not -ndim <= index < ndim:
        allowed = f"pass one from {-ndim} to {ndim - 1}" if ndim else "it has none to name"
        raise ShapeError(f"{name}: axis {axis} is out of range for a tensor with {ndim} axes; {allowed}")
    return index % ndim


def normalize_axes(name: str, axis: int | tuple[int, ...] | list[int] | None, ndim: int) -> tuple[int, ...]:
    """Return axes as a tuple counted from the front, each at most once; `None` means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (normalize_axis(name, axis, ndim),)
    axes = tuple(normalize_axis(name, one, ndim) for one in axis)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: axis {tuple(axis)} names an axis twice")
    return axes
