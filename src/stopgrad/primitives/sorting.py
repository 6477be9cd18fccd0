"""Sorting along an axis, the k largest entries, and searching among sorted ones.

A sort moves entries, so derivatives move with them. Among equal entries it is the order of a stable sort that counts:
equal ones stay in the order they came in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import ABSENT, Operation, general, nondifferentiable
from stopgrad.core.record import bind, bind1, bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.gathering import take_along_axis
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import on_host, to_integer, to_tensor
from stopgrad.primitives.shape import ravel


def sort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Entries in ascending order along an axis; NaNs come last (first if descending).

    Ties: derivatives follow the permutation of the stable sort, which leaves equal entries in the order they came in.

    Args:
        x: tensor of a real dtype.
        axis: along which; `None` for all entries of the flattened tensor.
        descending: largest first; equal entries stay in their order then too.
        stable: taken for the array API's sake; the sort is always stable.

    Returns:
        Tensor of the shape (of one axis if `None`) and dtype of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.sort([3.0, 1.0, 2.0]).numpy()
        array([1., 2., 3.])
        >>> sg.grad(lambda x: sg.sort(x)[0])([3.0, 1.0, 1.0]).numpy()
        array([0., 1., 0.])
    """
    x, along = _along("sort", x, axis)
    return bind2(REORDER, x, _order(x, along, descending), (along,))


def argsort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Indices that sort x along an axis, equal entries in the order they come in. Carries no derivative.

    Args:
        x: tensor of a real dtype.
        axis: along which; `None` for the indices into the flattened tensor.
        descending: largest first.
        stable: taken for the array API's sake; the sort is always stable.

    Returns:
        Tensor of integers, of the shape of x.

    Raises:
        ShapeError: the axis is out of range.

    Example:
        >>> import stopgrad as sg
        >>> sg.argsort([3.0, 1.0, 2.0]).numpy()
        array([1, 2, 0])
    """
    x, along = _along("argsort", x, axis)
    return _order(x, along, descending)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The k largest entries along an axis, largest first, and where they are; of equal ones the first come first.

    Args:
        x: tensor of a real dtype.
        k: how many.
        axis: along which.

    Returns:
        (values, indices), both of the shape of x with k in place of the axis's size.

    Raises:
        ShapeError: the axis is out of range.
        ArgumentError: k is negative or larger than the axis.

    Example:
        >>> import stopgrad as sg
        >>> values, indices = sg.top_k([3.0, 1.0, 2.0], 2)
        >>> values.numpy(), indices.numpy()
        (array([3., 2.]), array([0, 2]))
    """
    x = to_tensor(x, "top_k")
    along = normalize_axis("top_k", axis, x.ndim)
    k = to_integer("top_k", "k", k)
    if not 0 <= k <= x.shape[along]:
        raise ArgumentError(f"top_k: k must be between 0 and {x.shape[along]}, the size of axis {axis}, got {k}")
    indices = getitem(_order(x, along, True), (*(slice(None),) * along, slice(0, k)))
    return take_along_axis(x, indices, along), indices


def searchsorted(a: Any, v: Any, side: str = "left") -> Tensor:
    """Where entries of v would go among the ascending entries of a to keep them in order. Carries no derivative.

    Args:
        a: tensor of one axis, ascending.
        v: tensor of any shape.
        side: "left" puts an entry before those equal to it, "right" after them.

    Returns:
        Tensor of integers of the shape of v.

    Raises:
        ShapeError: a has not exactly one axis.
        ArgumentError: side is neither.

    Example:
        >>> import stopgrad as sg
        >>> sg.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0]).numpy()
        array([0, 1])
    """
    a, v = to_tensor(a, "searchsorted"), to_tensor(v, "searchsorted")
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted entries must have one axis, got shape {a.shape}")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    return bind2(SEARCHSORTED, a, v, (side,))


def unique(x: Any, *, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The different entries of x in ascending order. Carries no derivative.

    Args:
        x: tensor, flattened first.
        return_inverse: also return, in the shape of x, which of them each entry is.
        return_counts: also return how often each occurs.

    Returns:
        Tensor of one axis, or a tuple of it and what was asked for.

    Example:
        >>> import stopgrad as sg
        >>> values, counts = sg.unique([2.0, 1.0, 2.0], return_counts=True)
        >>> values.numpy(), counts.numpy()
        (array([1., 2.]), array([1, 2]))
    """
    x = to_tensor(x, "unique")
    values = bind1(UNIQUE, x)
    inverse = bind2(SEARCHSORTED, values, x, ("left",)) if return_inverse or return_counts else None
    results: list[Any] = [values]
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(bind(COUNT_EACH, (inverse, values)))
    return tuple(results) if len(results) > 1 else values


def _along(name: str, x: Any, axis: int | None) -> tuple[Tensor, int]:
    if axis is None:
        return ravel(x), 0
    x = to_tensor(x, name)
    return x, normalize_axis(name, axis, x.ndim)


def _order(x: Tensor, axis: int, descending: bool) -> Tensor:
    return bind1(ARGSORT, x, (axis, bool(descending)))


def _argsort_numpy(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Sorted ascending from the back, read backwards: the order is descending, and equal ones stay in theirs.
    back = (*(slice(None),) * axis, slice(None, None, -1))
    return x.shape[axis] - 1 - np.argsort(x[back], axis=axis, kind="stable")[back]


def _index_spec(x: Spec, *_: Any) -> Spec:
    return Spec(x.shape, np.dtype(np.intp))


ARGSORT = nondifferentiable(
    "argsort",
    lambda xp, x, axis, descending: xp.argsort(x, axis=axis, descending=descending, stable=True),
    numpy_kernel=_argsort_numpy,
    spec=_index_spec,
)
"""argsort(x; axis, descending)"""


def _inverse(permutation: Any, axis: int) -> Any:
    return run(ARGSORT, permutation, params=(axis, False))


def _no_path(xp: Any, t: Any, _x: Any, _permutation: Any, _out: Any, axis: int) -> Any:
    return ABSENT


REORDER: Operation = general(
    "reorder",
    lambda xp, x, permutation, axis: xp.take_along_axis(x, permutation, axis=axis),
    vjps=(
        lambda xp, t, _x, permutation, _out, axis: run(REORDER, t, _inverse(permutation, axis), params=(axis,)),
        _no_path,
    ),
    jvps=(lambda xp, t, _x, permutation, _out, axis: run(REORDER, t, permutation, params=(axis,)), _no_path),
    spec=lambda x, permutation, axis: x,
    passes_masks=True,
)
"""reorder(x, permutation; axis): entries along the axis in the order of a permutation of all of them."""

SEARCHSORTED = nondifferentiable(
    "searchsorted",
    lambda xp, a, v, side: xp.searchsorted(a, v, side=side),
    spec=lambda a, v, side: Spec(v.shape, np.dtype(np.intp)),
)
"""searchsorted(a, v; side)"""


def _unknown_spec(*_: Any) -> Spec:
    raise ShapeError("unique: how many different entries there are depends on values that are not known while tracing")


UNIQUE = nondifferentiable("unique", lambda xp, x: xp.unique_values(x), numpy_kernel=np.unique, spec=_unknown_spec)
"""unique(x)"""


def _count_each(numbers: Any, values: Any) -> Any:
    return np.bincount(np.ravel(numbers), minlength=values.shape[0])


COUNT_EACH = nondifferentiable(
    "count_each",
    lambda xp, numbers, values: on_host(xp, _count_each, numbers, values),
    numpy_kernel=_count_each,
    spec=lambda numbers, values: Spec(values.shape, np.dtype(np.intp)),
)
"""count_each(numbers, values): how many of the integers are 0, 1, … up to the number of values."""
