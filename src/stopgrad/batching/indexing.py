"""Batching rules of indexing: `index` and `scatter`, updates at an index, and entries by number along an axis.

Where indices differ from example to example, the number of the example becomes one more index array, in front. NumPy
puts the axes of index arrays where the arrays stand if they stand side by side, and in front of all others if not;
`_Layout` knows where they are, before and after.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stopgrad.batching.application import Application
from stopgrad.core.arrays import PYTHON_SCALARS, Spec
from stopgrad.core.record import bind, bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import remainder
from stopgrad.primitives.axes import moveaxis, permute_dims
from stopgrad.primitives.comparison import greater_equal, less, logical_and
from stopgrad.primitives.gathering import ADD_ALONG_AXIS, TAKE_ALONG_AXIS
from stopgrad.primitives.indexing import SCATTER, getitem, indexed_spec
from stopgrad.primitives.selection import clip, where
from stopgrad.primitives.shape import reshape


class _Layout(NamedTuple):
    """Where the axes of index arrays are in the result of an index."""

    side_by_side: bool
    before: int
    """How many axes of the result come before them."""
    ndim: int
    """How many axes they have together."""

    def from_front(self, x: Tensor) -> Tensor:
        """Put the arrays' axes where they belong, from right behind the axis of examples."""
        if not self.before:
            return x
        arrays = range(1, 1 + self.ndim)
        before = range(1 + self.ndim, 1 + self.ndim + self.before)
        return permute_dims(x, (0, *before, *arrays, *range(before.stop, x.ndim)))

    def to_front(self, x: Tensor) -> Tensor:
        """Put the arrays' axes right behind the axis of examples."""
        if not self.before:
            return x
        before = range(1, 1 + self.before)
        arrays = range(before.stop, before.stop + self.ndim)
        return permute_dims(x, (0, *arrays, *before, *range(arrays.stop, x.ndim)))


class _Index(NamedTuple):
    """An index for all examples at once, into an array with the axis of examples in front."""

    template: tuple[Any, ...]
    arrays: list[Any]
    layout: _Layout
    by_number: bool
    """Whether the number of the example is one of the arrays (else the examples are taken whole)."""

    def out_of(self, taken: Tensor) -> Tensor:
        """Return what the index took with the axis of examples in front and the others in their order."""
        if self.by_number:
            return self.layout.from_front(taken)
        return taken if self.layout.side_by_side else moveaxis(taken, self.layout.ndim, 0)

    def into(self, values: Tensor) -> Tensor:
        """Return values for the places of the index, laid out as it takes them."""
        if self.by_number:
            return self.layout.to_front(values)
        return values if self.layout.side_by_side else moveaxis(values, 0, self.layout.ndim)


def _layout(template: tuple[Any, ...], ndim: int) -> _Layout:
    places = [i for i, entry in enumerate(template) if entry == "array" or type(entry) is int]
    side_by_side = not places or places[-1] - places[0] == len(places) - 1
    return _Layout(side_by_side, places[0] if side_by_side and places else 0, ndim)


def _index(application: Application, first: int, template: tuple[Any, ...]) -> _Index:
    """Return the index whose arrays are the application's inputs from number `first` on."""
    numbers = range(first, len(application.inputs))
    ndim = max((application.rank(i) for i in numbers), default=0)
    layout = _layout(template, ndim) if numbers else _Layout(True, 0, 0)
    if not any(application.mapped[i] for i in numbers):
        return _Index(((0, application.size, 1), *template), application.inputs[first:], layout, False)
    arrays = [_examples(application.size, ndim), *(application.lined_up(i, ndim) for i in numbers)]
    return _Index(("array", *template), arrays, layout, True)


def _examples(size: int, ndim: int) -> Tensor:
    """Return the numbers of the examples, to broadcast against mapped arrays of so many axes."""
    return Tensor(np.arange(size).reshape((size,) + (1,) * ndim))


def index(application: Application) -> Any:
    """Rule of index (x, *arrays; template, shape of x)."""
    template, shape = application.params
    if not application.mapped[0]:
        numbers = range(1, len(application.inputs))
        ndim = max(map(application.rank, numbers))
        arrays = [application.lined_up(i, ndim) for i in numbers]
        return moveaxis(application.bound([application.inputs[0], *arrays]), _layout(template, ndim).before, 0)
    found = _index(application, 1, template)
    params = (found.template, (application.size, *shape))
    return found.out_of(application.bound([application.inputs[0], *found.arrays], params))


def scatter(application: Application) -> Any:
    """Rule of scatter (t, *arrays; template, shape)."""
    template, shape = application.params
    found = _index(application, 1, template)
    params = (found.template, (application.size, *shape))
    return application.bound([found.into(application.full(0)), *found.arrays], params)


def update(application: Application) -> Any:
    """Rule of at_set and at_add (x, value, *arrays; template, shape of x)."""
    template, shape = application.params
    found = _index(application, 2, template)
    value = application.inputs[1]
    if type(value) not in PYTHON_SCALARS:
        dtype = np.dtype(np.intp)
        arrays = [Spec(application.shape(i), dtype) for i in range(2, len(application.inputs))]
        rank = len(indexed_spec(Spec(shape, dtype), *arrays, template, shape).shape)
        sizes = application.shape(1)[max(application.rank(1) - rank, 0) :]
        examples = application.size if application.mapped[1] else 1
        value = found.into(reshape(value, (examples, *(1,) * (rank - len(sizes)), *sizes)))
    params = (found.template, (application.size, *shape))
    return application.bound([application.full(0), value, *found.arrays], params)


def winners(application: Application) -> Any:
    """Rule of winners (*arrays; template, shape)."""
    template, shape = application.params
    found = _index(application, 0, template)
    return found.out_of(application.bound(found.arrays, (found.template, (application.size, *shape))))


def take(application: Application) -> Any:
    """Rule of take (x, indices; axis, mode, size)."""
    axis, mode, size = application.params
    x, indices = application.inputs
    x_mapped, indices_mapped = application.mapped
    if not indices_mapped:
        return application.bound([x, indices], (axis + 1, mode, size))
    if not x_mapped:
        return moveaxis(application.bound([x, indices]), axis, 0)
    if size == 0:
        return _nothing(application)
    numbers, inside = _within(indices, mode, size)
    taken = getitem(moveaxis(x, axis + 1, 1), (_examples(application.size, numbers.ndim - 1), numbers))
    if inside is not None:
        taken = where(reshape(inside, (*inside.shape, *(1,) * (taken.ndim - inside.ndim))), taken, 0)
    return _Layout(True, axis, numbers.ndim - 1).from_front(taken)


def sum_segments(application: Application) -> Any:
    """Rule of sum_segments (t, indices; axis, mode, size)."""
    axis, mode, size = application.params
    if not application.mapped[1]:
        return application.bound(application.inputs, (axis + 1, mode, size))
    if size == 0:
        return _nothing(application)
    numbers, inside = _within(application.inputs[1], mode, size)
    t = _Layout(True, axis, numbers.ndim - 1).to_front(application.full(0))
    if inside is not None:
        t = where(reshape(inside, (*inside.shape, *(1,) * (t.ndim - inside.ndim))), t, 0)
    shape = (application.size, size, *t.shape[numbers.ndim :])
    total = bind(
        SCATTER,
        (t, _examples(application.size, numbers.ndim - 1), numbers),
        (("array", "array", *((0, length, 1) for length in shape[2:])), shape),
    )
    return moveaxis(total, 1, axis + 1)


def _within(indices: Tensor, mode: str, size: int) -> tuple[Tensor, Tensor | None]:
    """Return indices as indexing takes them, and where they are inside if those outside count for nothing."""
    if mode == "wrap":
        return remainder(indices, size), None
    if mode == "clip":
        return clip(indices, 0, size - 1), None
    if mode == "drop":
        inside = logical_and(greater_equal(indices, 0), less(indices, size))
        return where(inside, indices, 0), inside
    return indices, None


def _nothing(application: Application) -> Tensor:
    """Return zeros: entries of an axis that has none, which only mode "drop" allows to be asked for."""
    (spec,) = application.outputs
    return Tensor(np.zeros((application.size, *spec.shape), spec.dtype))


def take_along_axis(application: Application) -> Any:
    """Rule of take_along_axis (x, indices; axis, shape of x): the axes beside the one broadcast anyway."""
    axis, shape = application.params
    x, indices = map(_with_examples, application.inputs, application.mapped)
    return bind2(TAKE_ALONG_AXIS, x, indices, (axis + 1, (x.shape[0], *shape)))


def add_along_axis(application: Application) -> Any:
    """Rule of add_along_axis (t, indices; axis, shape)."""
    axis, shape = application.params
    indices = _with_examples(application.inputs[1], application.mapped[1])
    return bind2(ADD_ALONG_AXIS, application.full(0), indices, (axis + 1, (application.size, *shape)))


def _with_examples(x: Tensor, mapped: bool) -> Tensor:
    return x if mapped else reshape(x, (1, *x.shape))
