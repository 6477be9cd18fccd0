"""Updates at an index that leave their input as it is: `at_set` and `at_add`, the functional x[index] = value.

Their index is any that `getitem` takes (see `stopgrad.primitives.indexing` for how it is read).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, spec_of
from stopgrad.core.errors import DTypeError
from stopgrad.core.operation import ABSENT, EveryInput, Operation, general, nondifferentiable
from stopgrad.core.record import bind, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.indexing import INDEX, SCATTER, SLICE, Template, add_into, indexed_spec, parse, python_index
from stopgrad.primitives.inputs import on_host, to_tensor


def at_set(x: Any, index: Any, value: Any) -> Tensor:
    """A copy of x with x[index] = value.

    Derivatives: x gets the cotangent with zeros where it was replaced, the value that at its entries; where the index
    names an entry twice, the last value is the one that counts, as in NumPy.

    Args:
        x: tensor or array.
        index: as in `getitem`.
        value: broadcasts to the shape of x[index]; converted to the dtype of x.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        BoundsError: as in `getitem`.
        ShapeError: the value does not broadcast to x[index].
        DTypeError: the value is of a higher kind than x, such as a fraction set among integers.

    Example:
        >>> import stopgrad as sg
        >>> sg.at_set([1.0, 2.0, 3.0], slice(1, None), 0.0).numpy()
        array([1., 0., 0.])
    """
    return _update(AT_SET, "at_set", x, index, value)


def at_add(x: Any, index: Any, value: Any) -> Tensor:
    """A copy of x with the value added at x[index]; where the index names an entry twice, both are added.

    Args:
        x: tensor or array.
        index: as in `getitem`.
        value: broadcasts to the shape of x[index]; converted to the dtype of x.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        BoundsError: as in `getitem`.
        ShapeError: the value does not broadcast to x[index].
        DTypeError: the value is of a higher kind than x, such as a fraction added to integers.

    Example:
        >>> import stopgrad as sg
        >>> sg.at_add([1.0, 2.0, 3.0], [0, 0, 2], 10.0).numpy()
        array([21.,  2., 13.])
    """
    return _update(AT_ADD, "at_add", x, index, value)


def scatter_add(x: Any, index: Any, updates: Any) -> Tensor:
    """Same as `at_add`: a copy of x with the updates added at x[index], duplicates adding up.

    Example:
        >>> import stopgrad as sg
        >>> sg.scatter_add([1.0, 2.0, 3.0], [0, 0], [10.0, 20.0]).numpy()
        array([31.,  2.,  3.])
    """
    return _update(AT_ADD, "scatter_add", x, index, updates)


def _update(operation: Operation, name: str, x: Any, index: Any, value: Any) -> Tensor:
    x, value = to_tensor(x, name), to_tensor(value, name)
    if _kind(value.dtype) > _kind(x.dtype):
        raise DTypeError(
            f"{name}: a value of dtype {value.dtype} does not fit into a tensor of dtype {x.dtype}; convert the tensor "
            "with astype first"
        )
    template, arrays = parse(name, index, x.shape)
    return bind(operation, (x, value, *arrays), (template, x.shape))


def _kind(dtype: Any) -> int:
    """Return how general a kind of number a dtype of any library has: booleans, integers, real, complex numbers."""
    name = str(dtype)
    return 3 if "complex" in name else 2 if "float" in name else 1 if "int" in name else 0


def _winners(xp: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    return on_host(xp, lambda *hosts: _winners_numpy(*hosts, template, shape), *arrays)


def _winners_numpy(*arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    index = python_index(template, arrays)
    owner = np.zeros(shape, np.intp)
    selected = owner[index].shape
    order = np.arange(np.prod(selected, dtype=np.intp)).reshape(selected)
    owner[index] = order
    return owner[index] == order


WINNERS = nondifferentiable(
    "winners",
    _winners,
    numpy_kernel=_winners_numpy,
    spec=lambda *arrays_and_params: indexed_spec(Spec(arrays_and_params[-1], np.dtype(bool)), *arrays_and_params),
)
"""winners(*arrays; template, shape): which of the values set at this index are still there afterwards."""


def _those_that_count(xp: Any, t: Any, arrays: Sequence[Any], template: Template, shape: Shape) -> Any:
    """Return t with zeros for values that a later one overwrote; only integer arrays can name an entry twice."""
    if not any("int" in str(spec_of(array).dtype) for array in arrays):
        return t
    counts = xp.asarray(run(WINNERS, *arrays, params=(template, shape)))
    return xp.where(counts, t, xp.zeros_like(t))


def _at_set_vjp(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    arrays = inputs[2:]
    if i == 0:
        return run(AT_SET, t, 0, *arrays, params=(template, shape))
    return _those_that_count(xp, _taken(t, arrays, template, shape), arrays, template, shape) if i == 1 else ABSENT


def _at_set_jvp(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    arrays = inputs[2:]
    if i == 0:
        return run(AT_SET, t, 0, *arrays, params=(template, shape))
    counted = _those_that_count(xp, t, arrays, template, shape)
    return run(SCATTER, counted, *arrays, params=(template, shape)) if i == 1 else ABSENT


def _at_add_vjp(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    return (t, _taken(t, inputs[2:], template, shape))[i] if i < 2 else ABSENT


def _at_add_jvp(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    if i == 0:
        return t
    return run(SCATTER, t, *inputs[2:], params=(template, shape)) if i == 1 else ABSENT


def _taken(t: Any, arrays: Sequence[Any], template: Template, shape: Shape) -> Any:
    return run(INDEX, t, *arrays, params=(template, shape)) if arrays else run(SLICE, t, params=(template, shape))


def _set(xp: Any, x: Any, value: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    if hasattr(x, "at"):
        return x.at[python_index(template, arrays)].set(value)
    return on_host(xp, lambda *hosts: _set_numpy(*hosts, template, shape), x, value, *arrays)


def _set_numpy(x: Any, value: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, _shape = arrays_and_params
    out = np.array(x)
    out[python_index(template, arrays)] = value
    return out


def _add(xp: Any, x: Any, value: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    if hasattr(x, "at"):
        return x.at[python_index(template, arrays)].add(value)
    return on_host(xp, lambda *hosts: _add_numpy(*hosts, template, shape), x, value, *arrays)


def _add_numpy(x: Any, value: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, _shape = arrays_and_params
    out = np.array(x)
    add_into(out, python_index(template, arrays), value)
    return out


AT_SET = general(
    "at_set",
    _set,
    numpy_kernel=_set_numpy,
    vjps=EveryInput(_at_set_vjp, 2, keep_inputs=lambda i: i >= 2),
    jvps=EveryInput(_at_set_jvp, 2, keep_inputs=lambda i: i >= 2),
    spec=lambda x, *_: x,
    masks=True,
    passes_masks=True,
)
"""at_set(x, value, *arrays; template, shape of x)"""

AT_ADD = general(
    "at_add",
    _add,
    numpy_kernel=_add_numpy,
    vjps=EveryInput(_at_add_vjp, 2, keep_inputs=lambda i: i >= 2),
    jvps=EveryInput(_at_add_jvp, 2, keep_inputs=lambda i: i >= 2),
    spec=lambda x, *_: x,
    passes_masks=True,
)
"""at_add(x, value, *arrays; template, shape of x)"""
