"""What tensors and variables can do by themselves: operators, methods, and NumPy's functions called on them.

Operations stand above `Tensor` in the order of imports, so its operators are attached here, by `install`, once for
`Tensor` and once for whatever else stands for one (variables). Nothing here computes: each entry is a function of
`stopgrad.primitives` under the name Python or NumPy calls it by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentTypeError, ReadOnlyError
from stopgrad.core.graph import Output
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives import linalg

_ADD, _SUBTRACT = p.add.operation, p.subtract.operation
_MULTIPLY, _DIVIDE = p.multiply.operation, p.divide.operation


def _add(a: Any, b: Any) -> Tensor:
    return bind2(_ADD, a, b)


def _subtract(a: Any, b: Any) -> Tensor:
    return bind2(_SUBTRACT, a, b)


def _multiply(a: Any, b: Any) -> Tensor:
    return bind2(_MULTIPLY, a, b)


def _divide(a: Any, b: Any) -> Tensor:
    return bind2(_DIVIDE, a, b)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


def _iterate(x: Any) -> Any:
    tensor = x if isinstance(x, Tensor) else x.__tensor__()
    if not tensor.shape:
        raise ArgumentTypeError("a tensor without axes cannot be iterated over; use .item() for its value")
    return iter([p.getitem(tensor, i) for i in range(tensor.shape[0])])


def _transposed(x: Any, *axes: Any) -> Tensor:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        return p.transpose(x, None if axes[0] is None else tuple(axes[0]))
    return p.transpose(x, axes or None)


def _reshaped(x: Any, *shape: Any) -> Tensor:
    return p.reshape(x, shape[0] if len(shape) == 1 else shape)


OPERATORS: dict[str, Callable[..., Any]] = {
    "__add__": _add,
    "__radd__": _swapped(_add),
    "__sub__": _subtract,
    "__rsub__": _swapped(_subtract),
    "__mul__": _multiply,
    "__rmul__": _swapped(_multiply),
    "__truediv__": _divide,
    "__rtruediv__": _swapped(_divide),
    "__floordiv__": p.floor_divide,
    "__rfloordiv__": _swapped(p.floor_divide),
    "__mod__": p.remainder,
    "__rmod__": _swapped(p.remainder),
    "__pow__": p.power,
    "__rpow__": _swapped(p.power),
    "__matmul__": p.matmul,
    "__rmatmul__": _swapped(p.matmul),
    "__neg__": p.negative,
    "__pos__": p.positive,
    "__abs__": p.abs,
    "__eq__": p.equal,
    "__ne__": p.not_equal,
    "__lt__": p.less,
    "__le__": p.less_equal,
    "__gt__": p.greater,
    "__ge__": p.greater_equal,
    "__and__": p.bitwise_and,
    "__rand__": _swapped(p.bitwise_and),
    "__or__": p.bitwise_or,
    "__ror__": _swapped(p.bitwise_or),
    "__xor__": p.bitwise_xor,
    "__rxor__": _swapped(p.bitwise_xor),
    "__invert__": p.bitwise_not,
    "__getitem__": p.getitem,
    "__iter__": _iterate,
    "__round__": p.round,
}

METHODS: dict[str, Callable[..., Any]] = {
    "all": p.all,
    "any": p.any,
    "argmax": p.argmax,
    "argmin": p.argmin,
    "argsort": p.argsort,
    "astype": p.astype,
    "at_add": p.at_add,
    "at_set": p.at_set,
    "clip": p.clip,
    "conj": p.conj,
    "cumsum": p.cumsum,
    "diagonal": p.diagonal,
    "dot": p.dot,
    "exp": p.exp,
    "flatten": p.ravel,
    "log": p.log,
    "max": p.max,
    "mean": p.mean,
    "min": p.min,
    "prod": p.prod,
    "ravel": p.ravel,
    "repeat": p.repeat,
    "reshape": _reshaped,
    "round": p.round,
    "sort": p.sort,
    "sqrt": p.sqrt,
    "square": p.square,
    "squeeze": p.squeeze,
    "std": p.std,
    "sum": p.sum,
    "swapaxes": p.swapaxes,
    "take": p.take,
    "tanh": p.tanh,
    "trace": linalg.trace,
    "transpose": _transposed,
    "var": p.var,
}

PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": p.transpose,
    "mT": p.matrix_transpose,
    "real": p.real,
    "imag": p.imag,
}


def _ndim(a: Any) -> int:
    if sys._getframe(2).f_globals.get("__name__") == "numpy.lib._index_tricks_impl":  # which then takes the values only
        raise ArgumentTypeError("numpy.r_ and numpy.c_ would lose the gradient of a tensor; use concat or stack")
    return len(a.shape)


# NumPy's functions that tell something about an array and compute nothing.
_TELLING: dict[str, Callable[..., Any]] = {
    "iscomplexobj": lambda x: np.dtype(x.dtype).kind == "c",
    "isrealobj": lambda x: np.dtype(x.dtype).kind != "c",
    "ndim": _ndim,
    "result_type": lambda *ones: np.result_type(
        *(one if isinstance(one, type) else getattr(one, "dtype", one) for one in ones)
    ),
    "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
}

# NumPy's functions whose name here differs from theirs there.
_RENAMED = {"amax": "max", "amin": "min", "true_divide": "divide", "fabs": "abs"}


def numpy_function(name: str, module: str = "numpy") -> Callable[..., Any]:
    """Return our function for a function of NumPy's, by its name and module there, or raise."""
    ours_name = _RENAMED.get(name, name)
    if module == "numpy" and name in _TELLING:
        return _TELLING[name]
    # Other modules have functions of the same names that do other things, such as numpy.lib.scimath.sqrt.
    places = {"numpy": (p, linalg), "numpy.linalg": (linalg,)}.get(module, ())
    for place in places:
        if ours_name in place.__all__:
            function: Callable[..., Any] = getattr(place, ours_name)
            return function
    raise ArgumentTypeError(
        f"{module}.{name} is not differentiated here; apply it to t.numpy() if no gradient is to flow through it"
    )


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    out = kwargs.pop("out", None)
    if out is not None and any(isinstance(one, Tensor) for one in out):
        raise ReadOnlyError(f"numpy.{ufunc.__name__}: tensors are immutable, out= cannot be one")
    if out is not None:
        raise ArgumentTypeError(
            f"numpy.{ufunc.__name__}: out= (or an in-place operator on an array) cannot take a tensor's values, as the "
            "gradient would be lost; write a = a + t"
        )
    if method == "__call__":
        if kwargs:
            raise ArgumentTypeError(f"numpy.{ufunc.__name__}: {', '.join(kwargs)} cannot be used with tensors")
        return numpy_function(ufunc.__name__)(*inputs)
    reductions = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
    if method == "reduce" and ufunc.__name__ in reductions:
        kwargs.setdefault("axis", 0)
        return numpy_function(reductions[ufunc.__name__])(*inputs, **kwargs)
    raise ArgumentTypeError(f"numpy.{ufunc.__name__}.{method} is not available on tensors; use a function of stopgrad")


def _array_function(self: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if kwargs.get("out") is not None:
        raise ArgumentTypeError(
            f"{function.__module__}.{function.__name__}: out= cannot take a tensor's values, as the gradient would be "
            "lost; use what is returned"
        )
    kwargs.pop("out", None)
    return numpy_function(function.__name__, function.__module__)(*args, **kwargs)


def install(cls: type) -> None:
    """Give a class that is or stands for a tensor all operators, methods and NumPy protocols."""
    for name, function in {**OPERATORS, **METHODS}.items():
        setattr(cls, name, _as_method(name, function))
    for name, function in PROPERTIES.items():
        setattr(cls, name, property(function, doc=function.__doc__))
    cls.__hash__ = object.__hash__  # type: ignore[method-assign,assignment]
    cls.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    cls.__array_function__ = _array_function  # type: ignore[attr-defined]


def _as_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself if Python binds it as a method, else a wrapper that it does bind."""
    return (
        function
        if hasattr(type(function), "__get__")
        else lambda self, *args, **kwargs: function(self, *args, **kwargs)
    )


install(Tensor)
install(Output)
