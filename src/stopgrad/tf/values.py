"""How the functions of this face read their arguments, which is TensorFlow's way.

Python floats are float32 and integers int32 (int64 if they do not fit); arrays and tensors keep their dtype. Beside a
tensor, a number, list or NumPy array takes on the tensor's dtype if that can hold its kind of numbers. Where
TensorFlow would refuse to mix dtypes, the result has the dtype NumPy promotes to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import PYTHON_SCALARS
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError
from stopgrad.core.graph import Output
from stopgrad.core.record import coerce
from stopgrad.core.tensor import Disposed, Tensor
from stopgrad.tf.dtypes import as_dtype, complex128, float32, int32

_NUMBERS, _ARRAY, _TENSOR = range(3)
_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}
_INT32 = np.iinfo(np.int32)
_DISCRETE = frozenset(type(np.dtype(code)) for code in "?bBhHiIlLqQ")
# Kinds of tensors a Python number can stand beside as it is.
_BESIDE = {int: frozenset("iufcV"), float: frozenset("fcV")}


def as_tensor(x: Any, name: str, dtype: Any = None) -> Tensor:
    """Return anything tensor-like as a tensor, cast to the dtype if one is given; `name` says for which function."""
    if dtype is None and type(x) is Tensor and type(x.value) is not Disposed:
        return x
    tensor, strength = _read(x, name)
    if dtype is not None:
        return p.astype(tensor, as_dtype(dtype))
    return p.astype(tensor, _default(tensor.value)) if strength == _NUMBERS else tensor


def as_floats(x: Any, name: str) -> Tensor:
    """Return anything tensor-like as a tensor of floats (or complex numbers); integers and booleans become float32."""
    tensor = x if type(x) is Tensor else as_tensor(x, name)
    dtype = tensor.dtype
    return p.astype(tensor, float32) if type(dtype) in _DISCRETE else tensor


def operands(name: str, *xs: Any) -> list[Tensor]:
    """Return the operands of one operation as tensors, numbers and arrays in the dtype of the tensors among them."""
    if all(type(x) is Tensor and type(x.value) is not Disposed for x in xs):
        return list(xs)
    read = [_read(x, name) for x in xs]
    tensors = [tensor for tensor, _ in read]
    if not all(isinstance(tensor.dtype, np.dtype) for tensor in tensors):
        return tensors
    dtypes = [_default(tensor.value) if strength == _NUMBERS else tensor.dtype for tensor, strength in read]
    strongest = max((strength for _, strength in read), default=_NUMBERS)
    common = joined([dtype for dtype, (_, strength) in zip(dtypes, read, strict=True) if strength == strongest])
    if any(_kind(dtype) > _kind(common) for dtype in dtypes):
        common = joined(dtypes)
    elif strongest == _TENSOR:
        return [tensor if strength == _TENSOR else p.astype(tensor, common) for tensor, strength in read]
    return [p.astype(tensor, common) for tensor in tensors]


def joined(dtypes: Sequence[Any]) -> Any:
    """Return the dtype for values of all these: the widest of the highest kind, so integers never widen floats."""
    highest = max(_kind(dtype) for dtype in dtypes)
    found = np.result_type(*(dtype for dtype in dtypes if _kind(dtype) == highest))
    return np.result_type(*dtypes) if found.kind == "c" and highest != min(map(_kind, dtypes)) else found


def same_dtype(x: Tensor, dtype: Any, name: str) -> Tensor:
    """Return a tensor that must have the dtype (`None`: any): TensorFlow converts numbers but never casts tensors."""
    if dtype is not None and x.dtype != as_dtype(dtype):
        raise DTypeError(f"{name}: a {x.dtype} tensor was given where dtype={as_dtype(dtype)}; convert it with tf.cast")
    return x


def holds_tensor(x: Any) -> bool:
    """Whether this is, or a nested list or tuple of it holds, a tensor or variable."""
    pending = [x]
    while pending:
        one = pending.pop()
        if isinstance(one, Tensor) or hasattr(one, "__tensor__"):
            return True
        if isinstance(one, list | tuple):
            pending.extend(one)
    return False


def integers(x: Any, name: str) -> tuple[int, ...]:
    """Return a shape, a permutation or the like (a tensor, list or integer) as a tuple of Python integers."""
    values = np.asarray(coerce(x, name)[0]) if not isinstance(x, list | tuple) else np.asarray([int(one) for one in x])
    if values.size and values.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name}: takes integers, got {values.dtype}")
    return tuple(int(one) for one in values.reshape(-1))


def axes(axis: Any, name: str) -> Any:
    """Return an axis argument as primitives take it: an integer, a tuple of them, or `None`."""
    if axis is None or type(axis) is int:
        return axis
    found = integers(axis, f"{name}: axis")
    return found[0] if len(found) == 1 and not isinstance(axis, list | tuple) else found


def python_int(x: Any, name: str) -> int:
    """Return an integer argument, which may be given as a tensor."""
    if type(x) is int:
        return x
    found = integers(x, name)
    if len(found) != 1:
        raise ArgumentError(f"{name}: takes one integer, got {x!r:.60}")
    return found[0]


def known_values(x: Tensor) -> np.ndarray | None:
    """Return the values, `None` while a program is traced and they are not known yet."""
    return None if isinstance(x.value, Output) else x.numpy()


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a function's documentation."""
    return (function.__doc__ or "").strip().partition("\n")[0]


def unary(function: Callable[..., Tensor], name: str, *, floats: bool = False) -> Callable[..., Tensor]:
    """Return a function of stopgrad's under TensorFlow's name for it; with `floats` integers are made float32 first."""
    read = as_floats if floats else as_tensor

    def elementwise(x: Any, name: str | None = None) -> Tensor:
        return function(read(x, label))

    label = name
    return _named(elementwise, function, name)


def binary(function: Callable[..., Tensor], name: str, *, floats: bool = False) -> Callable[..., Tensor]:
    """Return a function of two tensors of stopgrad's under TensorFlow's name for it."""

    def elementwise(x: Any, y: Any, name: str | None = None) -> Tensor:
        if type(x) is Tensor and not floats and (type(y) is Tensor or _takes(x, y)):
            return function(x, y)
        a, b = operands(label, x, y)
        return function(as_floats(a, label), as_floats(b, label)) if floats else function(a, b)

    label = name
    return _named(elementwise, function, name)


def _named(made: Any, function: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    made.__name__ = made.__qualname__ = name
    made.__doc__ = (
        f"{summary_of(function)}\n\nPython floats are float32 here; otherwise see `stopgrad.{_ours(function)}`."
    )
    result: Callable[..., Tensor] = made
    return result


def _ours(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "primitives")


def _read(x: Any, name: str) -> tuple[Tensor, int]:
    """Return a tensor and how much its dtype counts: that of Python's numbers least, that of tensors most."""
    if x is None:
        raise ArgumentTypeError(f"{name}: got None where a tensor was expected")
    if isinstance(x, Tensor) or hasattr(x, "__tensor__"):
        return Tensor(*coerce(x, name)) if type(x) is not Tensor or type(x.value) is Disposed else x, _TENSOR
    if isinstance(x, list | tuple) and holds_tensor(x):
        return _stacked(x, name), _TENSOR
    value, node = coerce(x, name)
    if _is_numbers(x):
        return Tensor(np.asarray(value)), _NUMBERS
    return Tensor(value, node), _ARRAY


def _takes(x: Tensor, number: Any) -> bool:
    """Whether a Python number beside this tensor takes on its dtype by itself, as it does in NumPy."""
    kinds = _BESIDE.get(type(number))
    return kinds is not None and getattr(x.dtype, "kind", None) in kinds


def _stacked(x: list[Any] | tuple[Any, ...], name: str) -> Tensor:
    """Return a nested list that holds tensors as one tensor."""
    return p.stack(operands(name, *x), 0)


def _is_numbers(x: Any) -> bool:
    """Whether this is a Python number or a nested list of them: what has no dtype of its own."""
    pending = [x]
    while pending:
        one = pending.pop()
        if isinstance(one, list | tuple):
            pending.extend(one)
        elif type(one) not in PYTHON_SCALARS:
            return False
    return True


def _default(numbers: np.ndarray) -> Any:
    """Return the dtype TensorFlow gives Python's numbers."""
    if numbers.dtype.kind == "f":
        return float32
    if numbers.dtype.kind == "c":
        return complex128
    if numbers.dtype.kind == "i" and (not numbers.size or _fits(numbers)):
        return int32
    return numbers.dtype


def _fits(numbers: np.ndarray) -> bool:
    return bool(numbers.min() >= _INT32.min and numbers.max() <= _INT32.max)


def _kind(dtype: Any) -> int:
    return _KINDS.get(dtype.kind, 2) if isinstance(dtype, np.dtype) else 2
