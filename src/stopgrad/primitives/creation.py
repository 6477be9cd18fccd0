"""Constants: tensors made from shapes and numbers. None of them carries a derivative.

They are NumPy arrays, except that `zeros_like` and its kin follow the array library of the tensor they are like.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, namespace_of
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.casting import dtype_for
from stopgrad.primitives.inputs import to_shape, to_tensor


def zeros_like(x: Any, /, dtype: Any = None) -> Tensor:
    """Return zeros of the shape and, unless another is given, the dtype of x.

    Example:
        >>> import stopgrad as sg
        >>> sg.zeros_like([1.0, 2.0]).numpy()
        array([0., 0.])
    """
    value = _value(x, "zeros_like")
    return Tensor(namespace_of(value).zeros_like(value, dtype=_dtype_like(value, dtype, "zeros_like")))


def ones_like(x: Any, /, dtype: Any = None) -> Tensor:
    """Return ones of the shape and, unless another is given, the dtype of x.

    Example:
        >>> import stopgrad as sg
        >>> sg.ones_like([3.0, 2.0]).numpy()
        array([1., 1.])
    """
    value = _value(x, "ones_like")
    return Tensor(namespace_of(value).ones_like(value, dtype=_dtype_like(value, dtype, "ones_like")))


def full_like(x: Any, /, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of the shape and dtype of x with every entry the same number.

    Example:
        >>> import stopgrad as sg
        >>> sg.full_like([3.0, 2.0], 7).numpy()
        array([7., 7.])
    """
    value = _value(x, "full_like")
    number = _number(fill_value, "full_like")
    return Tensor(namespace_of(value).full_like(value, number, dtype=_dtype_like(value, dtype, "full_like")))


def empty_like(x: Any, /, dtype: Any = None) -> Tensor:
    """Return zeros like x: a tensor cannot be written into, so there is no use for one without values.

    Example:
        >>> import stopgrad as sg
        >>> sg.empty_like([3.0]).numpy()
        array([0.])
    """
    return zeros_like(x, dtype)


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros of a shape, an integer or a tuple of them; of dtype float64 unless another is given.

    Example:
        >>> import stopgrad as sg
        >>> sg.zeros((2, 2)).numpy()
        array([[0., 0.],
               [0., 0.]])
    """
    return Tensor(np.zeros(to_shape("zeros", shape), _dtype(dtype, "zeros", np.float64)))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return ones of a shape, an integer or a tuple of them; of dtype float64 unless another is given.

    Example:
        >>> import stopgrad as sg
        >>> sg.ones(3).numpy()
        array([1., 1., 1.])
    """
    return Tensor(np.ones(to_shape("ones", shape), _dtype(dtype, "ones", np.float64)))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of a shape with every entry the same number, whose dtype it has unless another is given.

    Example:
        >>> import stopgrad as sg
        >>> sg.full(3, 2.5).numpy()
        array([2.5, 2.5, 2.5])
    """
    return Tensor(np.full(to_shape("full", shape), _number(fill_value, "full"), _dtype(dtype, "full", None)))


def empty(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros of a shape: a tensor cannot be written into, so there is no use for one without values.

    Example:
        >>> import stopgrad as sg
        >>> sg.empty(2).numpy()
        array([0., 0.])
    """
    return zeros(shape, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return evenly spaced numbers from start up to but without stop; `arange(n)` counts from 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.arange(2, 8, 2).numpy()
        array([2, 4, 6])
    """
    first, last = (0, start) if stop is None else (start, stop)
    by = _number(step, "arange")
    if by == 0:
        raise ArgumentError("arange: step must not be 0")
    return Tensor(np.arange(_number(first, "arange"), _number(last, "arange"), by, _dtype(dtype, "arange", None)))


def linspace(start: Any, stop: Any, num: int = 50, *, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """Return `num` evenly spaced numbers from start to stop, both included unless `endpoint` is false.

    Example:
        >>> import stopgrad as sg
        >>> sg.linspace(0.0, 1.0, 5).numpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if num < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {num}")
    first, last = _number(start, "linspace"), _number(stop, "linspace")
    return Tensor(np.linspace(first, last, num, endpoint, dtype=_dtype(dtype, "linspace", None)))


def eye(rows: int, columns: int | None = None, /, k: int = 0, dtype: Any = None) -> Tensor:
    """Return ones on the k-th diagonal (0 the main one, positive above it) and zeros elsewhere.

    Example:
        >>> import stopgrad as sg
        >>> sg.eye(2).numpy()
        array([[1., 0.],
               [0., 1.]])
    """
    if rows < 0 or (columns or 0) < 0:
        raise ShapeError(f"eye: sizes must not be negative, got {rows} and {columns}")
    return Tensor(np.eye(rows, columns, k, dtype=_dtype(dtype, "eye", np.float64)))


def identity(n: int, dtype: Any = None) -> Tensor:
    """Return the n by n identity matrix.

    Example:
        >>> import stopgrad as sg
        >>> sg.identity(2).numpy()
        array([[1., 0.],
               [0., 1.]])
    """
    return eye(n, dtype=dtype)


def tri(rows: int, columns: int | None = None, /, k: int = 0, dtype: Any = None) -> Tensor:
    """Return ones on and below the k-th diagonal and zeros above it.

    Example:
        >>> import stopgrad as sg
        >>> sg.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]])
    """
    if rows < 0 or (columns or 0) < 0:
        raise ShapeError(f"tri: sizes must not be negative, got {rows} and {columns}")
    return Tensor(np.tri(rows, columns, k, dtype=_dtype(dtype, "tri", np.float64)))


def _value(x: Any, name: str) -> Any:
    return to_tensor(x, name).value


def _number(x: Any, name: str) -> Any:
    value = _value(x, name)
    if type(x) in PYTHON_SCALARS:
        return x
    if tuple(value.shape) != ():
        raise ShapeError(f"{name}: takes numbers, got a tensor of shape {tuple(value.shape)}")
    return value[()] if isinstance(value, np.ndarray) else value


def _dtype(dtype: Any, name: str, default: Any) -> Any:
    return default if dtype is None else dtype_for(0, dtype, name)


def _dtype_like(value: Any, dtype: Any, name: str) -> Any:
    return None if dtype is None else dtype_for(value, dtype, name)
