"""From conditions and numbers to tensors: one-hot rows, masks, the places where something holds, choices of several.

Where a result is a constant (one-hot rows, places) it carries no derivative; the rest is built of `where`, `getitem`
and `take_along_axis`, with their derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, normalize_axis
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.operation import nondifferentiable
from stopgrad.core.record import bind1
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import remainder
from stopgrad.primitives.casting import astype
from stopgrad.primitives.gathering import take_along_axis, to_indices
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import on_host, to_integer, to_tensor
from stopgrad.primitives.joining import stack
from stopgrad.primitives.selection import clip, where
from stopgrad.primitives.shape import broadcast_arrays, expand_dims, ravel


def _one_hot(xp: Any, indices: Any, depth: int, axis: int) -> Any:
    numbers = xp.arange(depth, dtype=indices.dtype, device=getattr(indices, "device", None))
    ndim = len(indices.shape)
    return xp.expand_dims(indices, axis=axis) == xp.reshape(numbers, (-1,) + (1,) * (ndim - axis))


ONE_HOT = nondifferentiable(
    "one_hot",
    _one_hot,
    numpy_kernel=lambda indices, depth, axis: (
        np.expand_dims(indices, axis) == np.arange(depth).reshape((-1,) + (1,) * (np.ndim(indices) - axis))
    ),
    spec=lambda indices, depth, axis: Spec((*indices.shape[:axis], depth, *indices.shape[axis:]), np.dtype(bool)),
)
"""one_hot(indices; depth, axis): booleans."""


def one_hot(
    indices: Any, depth: int, on_value: Any = 1.0, off_value: Any = 0.0, axis: int = -1, dtype: Any = None
) -> Tensor:
    """Rows that are on at the given numbers and off elsewhere. A number outside [0, depth) gives a row that is off.

    Args:
        indices: integers, of any shape.
        depth: length of a row.
        on_value: what stands where it is on; a tensor gets its gradient.
        off_value: what stands elsewhere; likewise.
        axis: where the new axis is in the result.
        dtype: of the result; by default what the two values promote to.

    Returns:
        Tensor with one axis more than the indices.

    Raises:
        ArgumentTypeError: indices that are not integers.
        ShapeError: an axis out of range or a negative depth.

    Example:
        >>> import stopgrad as sg
        >>> sg.one_hot([0, 2], 3).numpy()
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    numbers = to_indices("one_hot", "indices", indices)
    length = to_integer("one_hot", "depth", depth)
    if length < 0:
        raise ShapeError(f"one_hot: depth must not be negative, got {depth}")
    is_on = bind1(ONE_HOT, numbers, (length, normalize_axis("one_hot", axis, len(numbers.shape) + 1)))
    rows = where(is_on, on_value, off_value)
    return rows if dtype is None else astype(rows, dtype)


def boolean_mask(x: Any, mask: Any, axis: int = 0) -> Tensor:
    """The entries of x at which a mask holds, along one axis in place of those the mask covers.

    Args:
        x: tensor or array.
        mask: booleans whose shape is that of the axes of x from `axis` on.
        axis: the first axis the mask covers.

    Returns:
        Tensor whose size along that axis is the number of true entries.

    Raises:
        ShapeError: the shapes do not fit.
        ArgumentTypeError: a mask that is not boolean.

    Example:
        >>> import stopgrad as sg
        >>> sg.boolean_mask([1.0, 2.0, 3.0], [True, False, True]).numpy()
        array([1., 3.])
    """
    x, chosen = to_tensor(x, "boolean_mask"), to_tensor(mask, "boolean_mask")
    first = normalize_axis("boolean_mask", axis, len(x.shape))
    if "bool" not in str(chosen.dtype):
        raise ArgumentTypeError(f"boolean_mask: the mask must be boolean, got {chosen.dtype}; compare to make one")
    if not chosen.shape or chosen.shape != x.shape[first : first + len(chosen.shape)]:
        raise ShapeError(
            f"boolean_mask: a mask of shape {chosen.shape} does not cover x, of shape {x.shape}, from axis {first}"
        )
    return getitem(x, (*(slice(None),) * first, chosen))


def _places_spec(x: Spec) -> Spec:
    raise ShapeError(
        "argwhere: how many places there are depends on values that are not known while tracing; use where(mask, x, 0)"
    )


ARGWHERE = nondifferentiable(
    "argwhere",
    lambda xp, x: on_host(xp, np.argwhere, x),
    numpy_kernel=np.argwhere,
    spec=_places_spec,
)
"""argwhere(x)"""


def argwhere(x: Any) -> Tensor:
    """The places of the entries that are true or not zero, a row of coordinates each. Carries no derivative.

    Example:
        >>> import stopgrad as sg
        >>> sg.argwhere([[0.0, 1.0], [2.0, 0.0]]).numpy()
        array([[0, 1],
               [1, 0]])
    """
    return bind1(ARGWHERE, to_tensor(x, "argwhere"))


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """The places of the entries that are true or not zero, as an index: x[nonzero(x)]. Carries no derivative.

    Example:
        >>> import stopgrad as sg
        >>> [axis.tolist() for axis in sg.nonzero([[0.0, 1.0], [2.0, 0.0]])]
        [[0, 1], [1, 0]]
    """
    places = argwhere(x)
    return tuple(getitem(places, (..., axis)) for axis in range(places.shape[1]))


def flatnonzero(x: Any) -> Tensor:
    """The places of the entries that are true or not zero, in the flattened tensor. Carries no derivative.

    Example:
        >>> import stopgrad as sg
        >>> sg.flatnonzero([[0.0, 1.0], [2.0, 0.0]]).numpy()
        array([1, 2])
    """
    return getitem(argwhere(ravel(x)), (..., 0))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Of several choices, entry by entry, the first whose condition holds.

    Args:
        condlist: boolean tensors.
        choicelist: a tensor for each condition.
        default: what to take where no condition holds.

    Returns:
        Tensor of the shape all broadcast to.

    Raises:
        ArgumentError: not as many choices as conditions, or none at all.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.tensor([-2.0, 0.5, 3.0])
        >>> sg.select([x < 0, x < 1], [-x, x * 10], 1.0).numpy()
        array([2., 5., 1.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select: {len(condlist)} conditions and {len(choicelist)} choices; give one of each, at least"
        )
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return to_tensor(result, "select")


def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    """Entry by entry, the entry of the choice with that number: out[i] = choices[a[i]][i].

    Args:
        a: integers that say which choice to take.
        choices: sequence of tensors, or one whose first axis numbers them; all broadcast with a.
        mode: what to do with a number there is no choice for: "raise", "wrap" around, or "clip".

    Returns:
        Tensor of the shape all broadcast to.

    Raises:
        BoundsError: a number out of range, with mode "raise".
        ShapeError: the shapes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.choose([0, 1, 0], [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]).numpy()
        array([ 1., 20.,  3.])
    """
    numbers = to_indices("choose", "a", a)
    given = list(choices)
    if not given:
        raise ArgumentError("choose: needs at least one choice, got none")
    if mode == "wrap":
        numbers = remainder(numbers, len(given))
    elif mode == "clip":
        numbers = clip(numbers, 0, len(given) - 1)
    elif mode != "raise":
        raise ArgumentError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    which, *spread = broadcast_arrays(numbers, *given)
    return getitem(take_along_axis(stack(spread), expand_dims(which, 0), axis=0), 0)
