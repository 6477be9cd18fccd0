"""From whatever users have to tensors: `tensor` (a private copy), `asarray` (no copy where none is needed)."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, is_array, is_numeric, is_numpy
from stopgrad.core.record import coerce
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.casting import astype


def tensor(data: Any, dtype: Any = None) -> Tensor:
    """Make a tensor of a number, a nested list of numbers or tensors, or an array of any array API library.

    An array the caller can still write into is copied, so the tensor never changes. A tensor, or a list that holds
    some, keeps its connection to what it was computed from.

    Args:
        data: what to take the values from.
        dtype: the dtype to convert to; by default that of the data (float64 for Python floats, int64 for ints).

    Returns:
        Tensor of the shape of the data.

    Raises:
        ArgumentTypeError: data that are no numbers.
        ShapeError: a ragged list.

    Example:
        >>> import stopgrad as sg
        >>> sg.tensor([1, 2, 3], dtype=float)
        Tensor([1., 2., 3.], shape=(3,), dtype=float64)
    """
    value, node = coerce(data, "tensor")
    return _finished(value, node, dtype)


def asarray(data: Any, dtype: Any = None) -> Tensor:
    """Make a tensor without copying an array: the caller promises not to write into it. Else as `tensor`.

    Example:
        >>> import numpy as np
        >>> import stopgrad as sg
        >>> sg.asarray(np.ones(2)).shape
        (2,)
    """
    if (type(data) is np.ndarray and is_numeric(data.dtype)) or (is_array(data) and not is_numpy(data)):
        return _finished(data, None, dtype)
    value, node = coerce(data, "asarray")
    return _finished(value, node, dtype)


array = tensor


def _finished(value: Any, node: Any, dtype: Any) -> Tensor:
    made = Tensor(np.asarray(value) if type(value) in PYTHON_SCALARS else value, node)
    return made if dtype is None else astype(made, dtype)
