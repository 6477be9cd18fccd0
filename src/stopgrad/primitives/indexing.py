"""Indexing as NumPy's: `getitem`, and the reading of indices that `stopgrad.primitives.updating` shares.

An index is read once into a **template**, hashable and checked against the shape, and the arrays it holds, which become
inputs of the operation: integers, slices and new axes go into the template, integer and boolean arrays stand there as
"array". A basic index (no arrays) is the operation `slice`, whose cotangents the sweep collects without writing each
out (see `stopgrad.core.placing`); any other is `index`, whose adjoint is `scatter`: duplicates add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, broadcast_shapes, is_array
from stopgrad.core.errors import ArgumentTypeError, BoundsError, ShapeError
from stopgrad.core.operation import ABSENT, EveryInput, Operation, general, linear
from stopgrad.core.placing import Placed, ascending, index_of
from stopgrad.core.record import bind, bind1, coerce, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import on_host, to_tensor

Template = tuple[Any, ...]
"""A `BasicIndex` (see `stopgrad.core.placing`) with "array" where the next array belongs, and perhaps "..."."""


def getitem(x: Any, index: Any) -> Tensor:
    """Entries of a tensor, x[index], by any index NumPy knows.

    Derivatives: an entry that was taken several times gets the sum of its cotangents, one that was not gets zero.

    Args:
        x: tensor or array.
        index: an integer, slice, `None` or `...`, an integer or boolean array, tensor or list; or a tuple of these.

    Returns:
        Tensor of the shape and dtype NumPy gives.

    Raises:
        BoundsError: an index outside its axis, or more of them than axes.
        ArgumentTypeError: an index of another type or dtype.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x[:, 1].numpy()
        array([2., 4.])
        >>> x[[0, 0, 1], [1, 0, 1]].numpy()
        array([2., 1., 4.])
    """
    x = to_tensor(x, "getitem")
    template, arrays = parse("getitem", index, x.shape)
    if arrays:
        if getattr(x.value, "is_symbolic", False):
            template, arrays = without_masks(template, arrays)
        return bind(INDEX, (x, *arrays), (template, x.shape))
    return bind1(SLICE, x, (template, x.shape))


def parse(name: str, index: Any, shape: Shape) -> tuple[Template, list[Any]]:
    """Read an index of a tensor of this shape into its template and its arrays, in the name of the function."""
    entries = index if type(index) is tuple else (index,)
    template: list[Any] = []
    arrays: list[Any] = []
    axis = 0
    for entry in entries:
        kind = type(entry)
        if kind is int:
            template.append(_within(name, entry, axis, shape))
            axis += 1
        elif kind is slice:
            template.append(_bounds(name, entry, axis, shape))
            axis += 1
        elif entry is None:
            template.append(None)
        else:
            return _parse_any(name, entries, shape)
    return tuple(template), arrays


def _parse_any(name: str, entries: Sequence[Any], shape: Shape) -> tuple[Template, list[Any]]:
    read = [_read(name, entry) for entry in entries]
    used = sum(_axes_used(entry) for entry in read)
    if used > len(shape):
        raise BoundsError(f"{name}: too many indices: {used} for a tensor with {len(shape)} axes, of shape {shape}")
    if sum(entry is Ellipsis for entry in read) > 1:
        raise ArgumentTypeError(f"{name}: an index can hold only one ellipsis (...)")
    any_arrays = any(hasattr(entry, "shape") for entry in read)
    template: list[Any] = []
    arrays: list[Any] = []
    axis = 0
    for entry in read:
        if entry is Ellipsis:
            stop = axis + len(shape) - used
            if stop == axis and any_arrays:
                template.append("...")  # to NumPy it parts the arrays on either side also where it stands for no axis
            template += [(0, shape[one], 1) for one in range(axis, stop)]
            axis = stop
        elif entry is None:
            template.append(None)
        elif type(entry) is int:
            template.append(_within(name, entry, axis, shape))
            axis += 1
        elif type(entry) is slice:
            template.append(_bounds(name, entry, axis, shape))
            axis += 1
        else:
            template.append("array")
            arrays.append(entry)
            axis += _axes_used(entry)
    return tuple(template), arrays


def _read(name: str, entry: Any) -> Any:
    """Return one entry of an index as int, slice, `None`, `...`, or an integer or boolean array or tensor."""
    if entry is None or type(entry) in (int, slice, EllipsisType):
        return entry
    if isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, bool | np.bool):
        return np.asarray(entry)
    if isinstance(entry, list | tuple):
        array, node = coerce(entry, name)
        entry = Tensor(array.astype(np.intp) if array.size == 0 and array.dtype.kind == "f" else array, node)
    elif hasattr(entry, "__tensor__"):
        entry = to_tensor(entry, name)
    elif not isinstance(entry, Tensor) and not is_array(entry):
        if hasattr(entry, "__index__"):
            return int(entry.__index__())
        raise ArgumentTypeError(
            f"{name}: cannot index with {entry!r:.60} of type {type(entry).__name__}; use integers, slices, None, ..., "
            "or integer or boolean arrays"
        )
    kind = str(entry.dtype)
    if "int" in kind or "bool" in kind:
        return int(entry) if isinstance(entry, np.ndarray) and entry.ndim == 0 and kind != "bool" else entry
    raise ArgumentTypeError(f"{name}: arrays used as an index must hold integers or booleans, got {entry.dtype}")


def _axes_used(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    if type(entry) in (int, slice):
        return 1
    return len(entry.shape) if "bool" in str(entry.dtype) else 1


def _within(name: str, entry: int, axis: int, shape: Shape) -> int:
    if axis >= len(shape):
        raise BoundsError(f"{name}: too many indices for a tensor with {len(shape)} axes, of shape {shape}")
    size = shape[axis]
    if -size <= entry < size:
        return entry if entry >= 0 else entry + size
    raise BoundsError(f"{name}: index {entry} is out of range for axis {axis} of size {size}")


def _bounds(name: str, entry: slice, axis: int, shape: Shape) -> tuple[int, int | None, int]:
    if axis >= len(shape):
        raise BoundsError(f"{name}: too many indices for a tensor with {len(shape)} axes, of shape {shape}")
    try:
        start, stop, step = entry.indices(shape[axis])
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name}: {entry} is no slice: {error}") from None
    if start < 0:  # a step back from before the first entry: nothing
        return 0, 0, 1
    return start, (None if stop < 0 else stop), step


def without_masks(template: Template, arrays: Sequence[Any]) -> tuple[Template, list[Any]]:
    """Return the index with the places of their true entries instead of known masks: so the shape is known as well."""
    following = iter(arrays)
    entries: list[Any] = []
    replaced: list[Any] = []
    for entry in template:
        if entry != "array":
            entries.append(entry)
            continue
        array = next(following)
        value = array.value if isinstance(array, Tensor) else array
        if isinstance(value, np.ndarray) and value.dtype.kind == "b" and value.ndim:
            numbers = np.nonzero(value)
            entries += ["array"] * len(numbers)
            replaced += numbers
        else:
            entries.append(entry)
            replaced.append(array)
    return tuple(entries), replaced


def python_index(template: Template, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return template and arrays as the index Python writes."""
    following = iter(arrays)
    index: list[Any] = []
    for entry in template:
        if type(entry) is tuple:
            entry = slice(*entry)
        elif entry == "array":
            entry = next(following)
        elif entry == "...":
            entry = ...
        index.append(entry)
    return tuple(index)


def indexed_spec(x: Spec, *arrays_and_params: Any) -> Spec:
    """Shape rule of indexing; a mask has none, as its entries decide the shape."""
    *arrays, template, _ = arrays_and_params
    if any(array.dtype.kind == "b" for array in arrays):
        raise ShapeError(
            "getitem: the shape of a tensor indexed by a mask depends on the mask's values, which are not known while "
            "tracing; use where(mask, x, 0) instead"
        )
    return Spec(_indexed_shape(x.shape, template, [array.shape for array in arrays]), x.dtype)


def _indexed_shape(shape: Shape, template: Template, arrays: Sequence[Shape]) -> Shape:
    """Return the shape of what an index takes, without taking anything: sizes may be those of a graph never run.

    Beside arrays an integer counts as one. Where all stand side by side their shape stands there, else in front.
    """
    sizes = iter(shape)
    result: list[int] = []
    together: list[int] = []
    first = 0
    for number, entry in enumerate(template):
        if entry is None:
            result.append(1)
        elif type(entry) is tuple:
            result.append(len(range(*slice(*entry).indices(next(sizes)))))
        elif entry != "...":
            next(sizes)
            first = first if together else len(result)
            together.append(number)
    result.extend(sizes)
    if not arrays:
        return tuple(result)
    if together[-1] - together[0] >= len(together):
        first = 0
    return (*result[:first], *broadcast_shapes("getitem", *arrays), *result[first:])


def _slice_any(xp: Any, x: Any, template: Template, shape: Shape) -> Any:
    index, flipped = ascending(template, shape)
    return xp.flip(x[index], axis=flipped) if flipped else x[index]


SLICE: Operation = linear(
    "slice",
    _slice_any,
    lambda xp, t, template, shape: Placed([t], [template], shape),
    spec=indexed_spec,
    numpy_kernel=lambda x, template, _shape: x[index_of(template)],
    tangent=lambda xp, t, template, shape: run(SLICE, t, params=(template, shape)),
    masks=True,
    passes_masks=True,
)
"""slice(x; template, shape of x): a basic index."""


def _take_at(xp: Any, x: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, _shape = arrays_and_params
    try:
        return x[python_index(template, arrays)]
    except (IndexError, TypeError, ValueError, NotImplementedError):  # a library that knows fewer kinds of index
        return on_host(xp, lambda host, *hosts: host[python_index(template, hosts)], x, *arrays)


def _take_at_numpy(x: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, _shape = arrays_and_params
    return np.asarray(x)[python_index(template, arrays)]


def _rule_scatter(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    return run(SCATTER, t, *inputs[1:], params=(template, shape)) if i == 0 else ABSENT


def _rule_index(i: int, xp: Any, t: Any, inputs: Any, _out: Any, template: Template, shape: Shape) -> Any:
    return run(INDEX, t, *inputs[1:], params=(template, shape)) if i == 0 else ABSENT


def _is_array_input(i: int) -> bool:
    return i >= 1


INDEX = general(
    "index",
    _take_at,
    numpy_kernel=_take_at_numpy,
    vjps=EveryInput(_rule_scatter, 2, keep_inputs=_is_array_input),
    jvps=EveryInput(_rule_index, 2, keep_inputs=_is_array_input),
    spec=indexed_spec,
    masks=True,
    passes_masks=True,
)
"""index(x, *arrays; template, shape of x): an index that holds arrays."""


def _scatter(xp: Any, t: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    out = xp.zeros(shape, dtype=t.dtype, device=getattr(t, "device", None))
    if hasattr(out, "at"):
        return out.at[python_index(template, arrays)].add(t)
    return on_host(xp, lambda *hosts: _scatter_numpy(*hosts, template, shape), t, *arrays)


def _scatter_numpy(t: Any, *arrays_and_params: Any) -> Any:
    *arrays, template, shape = arrays_and_params
    out = np.zeros(shape, t.dtype)
    add_into(out, python_index(template, arrays), t)
    return out


SCATTER = general(
    "scatter",
    _scatter,
    numpy_kernel=_scatter_numpy,
    vjps=EveryInput(_rule_index, 2, keep_inputs=_is_array_input),
    jvps=EveryInput(_rule_scatter, 2, keep_inputs=_is_array_input),
    spec=lambda t, *arrays_and_params: Spec(arrays_and_params[-1], t.dtype),
    passes_masks=True,
)
"""scatter(t, *arrays; template, shape): zeros of the shape with t added at the index."""


def add_into(out: np.ndarray, index: tuple[Any, ...], values: Any) -> None:
    """Add values into an array of our own at any index, duplicates adding up."""
    if not any(isinstance(entry, np.ndarray) and entry.dtype.kind != "b" for entry in index):
        out[index] += values  # nothing is named twice
        return
    selected = out[index].shape
    if np.shape(values) != selected:  # NumPy's add.at does not always broadcast right (seen in 2.4)
        values = np.broadcast_to(values, selected)
    if values.size < 1024:
        np.add.at(out, index, values)
    else:  # over flat positions it is many times faster
        positions = _positions(out.shape, index).reshape(-1)
        np.add.at(out.reshape(-1), positions, values.reshape(-1).astype(out.dtype, copy=False))


def _positions(shape: Shape, index: tuple[Any, ...]) -> np.ndarray:
    """Return where in the flattened array the index points, without an array of the full shape."""
    total: Any = 0
    stride = 1
    for axis in reversed(range(len(shape))):
        steps = np.arange(0, shape[axis] * stride, stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        total = total + np.broadcast_to(steps, shape)[index]
        stride *= shape[axis]
    return np.asarray(total)
