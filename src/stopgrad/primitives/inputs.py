"""How functions read their arguments: anything tensor-like, integers, shapes; and the detour over NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Shape, is_numpy
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.record import coerce
from stopgrad.core.tensor import Disposed, Tensor


def to_tensor(x: Any, name: str) -> Tensor:
    """Return anything tensor-like as a tensor; a Python number becomes a 0-d array."""
    if type(x) is Tensor and type(x.value) is not Disposed:
        return x
    value, node = coerce(x, name)
    return Tensor(np.asarray(value) if type(value) in PYTHON_SCALARS else value, node)


def taken_in(x: Any, name: str) -> Tensor:
    """Return anything tensor-like as a tensor, in the body of a loop or branch as the one it is in there."""
    tensor = to_tensor(x, name)
    value, node = coerce(tensor, name)
    return tensor if value is tensor.value and node is tensor.node else Tensor(value, node)


def to_integer(name: str, argument: str, value: Any) -> int:
    """Return an integer setting as `int`, or raise in the name of the function."""
    if isinstance(value, bool | np.bool):
        raise ArgumentTypeError(f"{name}: {argument} must be an integer, got {value!r}")
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ArgumentTypeError(f"{name}: {argument} must be an integer, got {value!r:.60}") from None


def to_integers(name: str, argument: str, value: Any) -> tuple[int, ...]:
    """Return an integer or a sequence of them as a tuple."""
    if isinstance(value, tuple | list) or (hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1):
        return tuple(to_integer(name, argument, one) for one in value)
    return (to_integer(name, argument, value),)


def to_shape(name: str, shape: Any) -> Shape:
    """Return a shape given as an integer or a sequence of them, checked to have no negative size."""
    sizes = to_integers(name, "shape", shape)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{name}: shape {sizes} has a negative size")
    return sizes


def only_row_major(name: str, order: str) -> None:
    """Refuse any memory order but NumPy's default."""
    if order not in ("C", "K", "A"):
        raise ArgumentError(f"{name}: only order='C' (row-major) is supported, got {order!r}; transpose first instead")


def arrays_of(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return two operands, at least one an array, as two arrays; a Python number takes on the dtype of the other."""
    if type(a) in PYTHON_SCALARS:
        a = xp.zeros_like(b) + a
    if type(b) in PYTHON_SCALARS:
        b = xp.zeros_like(a) + b
    return a, b


def to_host(value: Any) -> Any:
    """Return an array of any library as a NumPy array, without a copy where that is possible."""
    return value if is_numpy(value) else Tensor(value).numpy()


def on_host(xp: Any, function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function of NumPy arrays to arrays of another library, by way of the host: for what that one lacks."""
    out = function(*(to_host(array) for array in arrays))
    for array in arrays:
        if not is_numpy(array) and hasattr(array, "device"):
            return xp.asarray(np.array(out), device=array.device)
    return xp.asarray(np.array(out))
