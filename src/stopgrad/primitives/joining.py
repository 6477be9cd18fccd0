"""Several tensors made one, and one made several.

`concat` is the operation; `stack` is in `stopgrad.core.builtin`, and taking apart is slicing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, normalize_axis, result_dtype
from stopgrad.core.builtin import STACK
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import EveryInput, general
from stopgrad.core.placing import Placed
from stopgrad.core.record import bind
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import swapaxes
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import to_integer, to_integers, to_tensor
from stopgrad.primitives.shape import atleast_1d, atleast_2d, atleast_3d, broadcast_to, ravel, reshape

_ALL = (None, None, None)
"""A whole axis in a `BasicIndex`."""


def _part(axis: int, start: int, stop: int) -> tuple[Any, ...]:
    return (*(_ALL,) * axis, (start, stop, None))


def _concat_vjp(i: int, xp: Any, t: Any, inputs: Any, out: Any, axis: int, bounds: tuple[int, ...]) -> Any:
    return t[(*(slice(None),) * axis, slice(bounds[i], bounds[i + 1]), ...)]


def _concat_jvp(i: int, xp: Any, t: Any, inputs: Any, out: Any, axis: int, bounds: tuple[int, ...]) -> Any:
    shape = (*t.shape[:axis], bounds[-1], *t.shape[axis + 1 :])
    return Placed([t], [_part(axis, bounds[i], bounds[i + 1])], shape)


def _concat_spec(*inputs_and_params: Any) -> Spec:
    *inputs, axis, bounds = inputs_and_params
    shape = inputs[0].shape
    return Spec((*shape[:axis], bounds[-1], *shape[axis + 1 :]), result_dtype(inputs))


CONCAT = general(
    "concat",
    lambda xp, *inputs_and_params: xp.concat(list(inputs_and_params[:-2]), axis=inputs_and_params[-2]),
    numpy_kernel=lambda *inputs_and_params: np.concatenate(inputs_and_params[:-2], axis=inputs_and_params[-2]),
    vjps=EveryInput(_concat_vjp, 2, keep_inputs=False),
    jvps=EveryInput(_concat_jvp, 2, keep_inputs=False),
    spec=_concat_spec,
    passes_masks=True,
)
"""concat(*inputs; axis, where each input begins and the last ends)"""


def _tensors(name: str, tensors: Any) -> list[Tensor]:
    """Return the tensors of a sequence, or the entries along the first axis of one."""
    if isinstance(tensors, Tensor | np.ndarray):
        return list(unstack(tensors))
    given = [to_tensor(one, name) for one in tensors]
    if not given:
        raise ArgumentError(f"{name}: needs at least one tensor, got none")
    return given


def concat(tensors: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Tensors one after the other along an axis they have.

    Args:
        tensors: sequence of tensors whose shapes agree but for that axis.
        axis: along which axis; `None` flattens them first.

    Returns:
        Tensor of the dtype NumPy promotes to.

    Raises:
        ShapeError: shapes that do not fit, or no axis to join along (use stack).
        ArgumentError: no tensors.

    Example:
        >>> import stopgrad as sg
        >>> sg.concat([[1.0, 2.0], [3.0]]).numpy()
        array([1., 2., 3.])
    """
    given = _tensors("concat", tensors)
    if axis is None:
        given, axis = [ravel(one) for one in given], 0
    shapes = [one.shape for one in given]
    if not all(shapes):
        raise ShapeError("concat: a tensor without axes cannot be concatenated; use stack, or reshape it to (1,)")
    axis = normalize_axis("concat", axis, len(shapes[0]))
    bounds = [0]
    for shape in shapes:
        if len(shape) != len(shapes[0]) or (shape[:axis], shape[axis + 1 :]) != (
            shapes[0][:axis],
            shapes[0][axis + 1 :],
        ):
            raise ShapeError(
                f"concat: shapes {shapes[0]} and {shape} do not fit; all sizes but that of axis {axis} must be equal"
            )
        bounds.append(bounds[-1] + shape[axis])
    return bind(CONCAT, given, (axis, tuple(bounds)))


def concatenate(tensors: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Same as `concat`, by NumPy's name.

    Example:
        >>> import stopgrad as sg
        >>> sg.concatenate([[1.0, 2.0], [3.0]]).numpy()
        array([1., 2., 3.])
    """
    return concat(tensors, axis)


def stack(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis.

    Args:
        tensors: sequence of tensors of the same shape.
        axis: where the new axis is in the result.

    Returns:
        Tensor of the dtype NumPy promotes to.

    Raises:
        ShapeError: shapes that differ, or an axis out of range.
        ArgumentError: no tensors.

    Example:
        >>> import stopgrad as sg
        >>> sg.stack([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
        array([[1., 3.],
               [2., 4.]])
    """
    given = _tensors("stack", tensors)
    for one in given:
        if one.shape != given[0].shape:
            raise ShapeError(f"stack: shapes {given[0].shape} and {one.shape} differ; all must be the same")
    return bind(STACK, given, (normalize_axis("stack", axis, len(given[0].shape) + 1),))


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors below each other, along axis 0; a vector counts as one row.

    Example:
        >>> import stopgrad as sg
        >>> sg.vstack([[1.0, 2.0], [3.0, 4.0]]).shape
        (2, 2)
    """
    return concat([atleast_2d(one) for one in _tensors("vstack", tensors)], 0)


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors beside each other: along axis 1, vectors along axis 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.hstack([[1.0, 2.0], [3.0]]).numpy()
        array([1., 2., 3.])
    """
    given = [atleast_1d(one) for one in _tensors("hstack", tensors)]
    return concat(given, 0 if len(given[0].shape) == 1 else 1)


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors behind each other, along axis 2; see `atleast_3d` for those with fewer axes.

    Example:
        >>> import stopgrad as sg
        >>> sg.dstack([[1.0, 2.0], [3.0, 4.0]]).shape
        (1, 2, 2)
    """
    return concat([atleast_3d(one) for one in _tensors("dstack", tensors)], 2)


def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Vectors as the columns of a matrix; matrices are put beside them as they are.

    Example:
        >>> import stopgrad as sg
        >>> sg.column_stack([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[1., 3.],
               [2., 4.]])
    """
    given = _tensors("column_stack", tensors)
    return concat([one if len(one.shape) >= 2 else swapaxes(atleast_2d(one), 0, 1) for one in given], 1)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """The values after the entries of x, along an axis; both flattened by default.

    Example:
        >>> import stopgrad as sg
        >>> sg.append([1.0, 2.0], 3.0).numpy()
        array([1., 2., 3.])
    """
    return concat([to_tensor(x, "append"), to_tensor(values, "append")], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which is gone in them: what `stack` puts together.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> [t.tolist() for t in sg.unstack([[1.0, 2.0], [3.0, 4.0]], axis=1)]
        [[1.0, 3.0], [2.0, 4.0]]
    """
    x = to_tensor(x, "unstack")
    whole = (slice(None),) * normalize_axis("unstack", axis, len(x.shape))
    return tuple(getitem(x, (*whole, number)) for number in range(x.shape[len(whole)]))


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """A tensor cut into pieces along an axis, as NumPy's.

    Args:
        x: tensor or array.
        indices_or_sections: an integer gives as many equal pieces; a sequence says before which entries to cut.
        axis: along which axis.

    Returns:
        Tuple of tensors.

    Raises:
        ShapeError: the axis is out of range, or does not divide into equal pieces (use array_split).

    Example:
        >>> import stopgrad as sg
        >>> [t.tolist() for t in sg.split([1.0, 2.0, 3.0], [1])]
        [[1.0], [2.0, 3.0]]
    """
    x = to_tensor(x, "split")
    axis = normalize_axis("split", axis, len(x.shape))
    if not isinstance(indices_or_sections, Sequence | np.ndarray):
        sections = to_integer("split", "indices_or_sections", indices_or_sections)
        if sections < 1 or x.shape[axis] % sections:
            raise ShapeError(
                f"split: axis {axis} of size {x.shape[axis]} does not divide into {sections} equal pieces; use "
                "array_split, or say where to cut"
            )
    return array_split(x, indices_or_sections, axis)


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Like `split`, but an integer may give pieces that differ by one in size, the larger ones first.

    Raises:
        ShapeError: the axis is out of range, or fewer than one piece.

    Example:
        >>> import stopgrad as sg
        >>> [t.tolist() for t in sg.array_split([1.0, 2.0, 3.0], 2)]
        [[1.0, 2.0], [3.0]]
    """
    x = to_tensor(x, "array_split")
    axis = normalize_axis("array_split", axis, len(x.shape))
    size = x.shape[axis]
    if isinstance(indices_or_sections, Sequence | np.ndarray):
        bounds = [0, *to_integers("array_split", "indices_or_sections", indices_or_sections), size]
    else:
        sections = to_integer("array_split", "indices_or_sections", indices_or_sections)
        if sections < 1:
            raise ShapeError(f"array_split: the number of pieces must be at least 1, got {sections}")
        short, longer = divmod(size, sections)
        bounds = [number * short + min(number, longer) for number in range(sections + 1)]
    whole = (slice(None),) * axis
    return tuple(getitem(x, (*whole, slice(start, stop))) for start, stop in pairwise(bounds))


def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along the second axis, that of columns; along the only axis of a vector.

    Example:
        >>> import stopgrad as sg
        >>> [t.tolist() for t in sg.hsplit([[1.0, 2.0], [3.0, 4.0]], 2)]
        [[[1.0], [3.0]], [[2.0], [4.0]]]
    """
    x = to_tensor(x, "hsplit")
    return split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along the first axis, that of rows; the tensor must have two axes or more.

    Example:
        >>> import stopgrad as sg
        >>> [t.tolist() for t in sg.vsplit([[1.0, 2.0], [3.0, 4.0]], 2)]
        [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    x = to_tensor(x, "vsplit")
    if len(x.shape) < 2:
        raise ShapeError(f"vsplit: takes a tensor with two axes or more, got shape {x.shape}; use split")
    return split(x, indices_or_sections, 0)


def meshgrid(*tensors: Any, indexing: str = "xy", sparse: bool = False) -> tuple[Tensor, ...]:
    """Coordinates of a grid from the coordinates along its axes.

    Args:
        *tensors: vectors (or numbers), one for each axis.
        indexing: "xy" exchanges the first two axes, as for plots; "ij" keeps the order.
        sparse: leave the axes along which a coordinate does not change at size 1.

    Returns:
        One tensor for each given, with as many axes as there are vectors.

    Raises:
        ArgumentError: another `indexing`.

    Example:
        >>> import stopgrad as sg
        >>> x, y = sg.meshgrid([1.0, 2.0, 3.0], [4.0, 5.0])
        >>> x.shape, y[:, 0].tolist()
        ((2, 3), [4.0, 5.0])
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    given = [ravel(one) for one in tensors]
    places = list(range(len(given)))
    if indexing == "xy" and len(given) >= 2:
        places[0], places[1] = 1, 0
    shape = [0] * len(given)
    for place, one in zip(places, given, strict=True):
        shape[place] = one.shape[0]
    spread = [
        reshape(one, tuple(-1 if axis == place else 1 for axis in range(len(given))))
        if one.size
        else reshape(one, tuple(0 if axis == place else 1 for axis in range(len(given))))
        for place, one in zip(places, given, strict=True)
    ]
    return tuple(spread) if sparse else tuple(broadcast_to(one, tuple(shape)) for one in spread)
