"""Batching rules of operations that only count axes: every axis they name is one further back.

`shifting` makes such a rule from what the settings mean, one word a setting; inputs that are not mapped are repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stopgrad.batching.application import Application, Rule, one_by_one
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.comparison import ISCLOSE, equal
from stopgrad.primitives.counting import all
from stopgrad.primitives.shape import reshape

# How a setting changes: (setting, number of examples, axes of the first input for one example) -> setting.
_MEANINGS: dict[str, Callable[[Any, int, int], Any]] = {
    "as it is": lambda setting, size, rank: setting,
    "axis": lambda axis, size, rank: axis + 1,
    "axes": lambda axes, size, rank: tuple(axis + 1 for axis in axes),
    # Those a reduction is over: `None` for all, but not over the examples.
    "reduced": lambda axes, size, rank: tuple(range(1, rank + 1)) if axes is None else tuple(a + 1 for a in axes),
    "order": lambda order, size, rank: (0, *(axis + 1 for axis in order)),
    "shape": lambda shape, size, rank: (size, *shape),
    "basic index": lambda index, size, rank: ((0, size, 1), *index),
    "basic indices": lambda indices, size, rank: tuple(((0, size, 1), *index) for index in indices),
    "pairs": lambda pairs, size, rank: None if pairs is None else ((0, 0), *pairs),
}


def shifting(*meanings: str) -> Rule:
    """Return the rule of an operation whose settings have these meanings."""
    changes = [_MEANINGS[meaning] for meaning in meanings]

    def rule(application: Application) -> Any:
        rank = application.rank(0)
        params = tuple(
            change(setting, application.size, rank) for change, setting in zip(changes, application.params, strict=True)
        )
        return application.bound([application.full(i) for i in range(len(application.inputs))], params)

    return rule


def stacked_matrices(application: Application) -> Any:
    """Apply an operation on matrices that takes stacks of them; several inputs broadcast."""
    rank = max(map(application.rank, range(len(application.inputs))))
    return application.bound([application.lined_up(i, rank) for i in range(len(application.inputs))])


def broadcast_to(application: Application) -> Any:
    """Rule of broadcast_to (x; shape)."""
    (shape,) = application.params
    return application.bound([application.lined_up(0, len(shape))], ((application.size, *shape),))


def compared(application: Application) -> Any:
    """Rule of allclose (a, b; rtol, atol, equal_nan) and array_equal (a, b): entry by entry, then all of an example."""
    same_shape = application.shape(0) == application.shape(1)
    if application.operation.name == "array_equal" and not same_shape:
        return Tensor(np.zeros(application.size, np.bool))
    rank = max(application.rank(0), application.rank(1))
    a, b = application.lined_up(0, rank), application.lined_up(1, rank)
    entries = bind2(ISCLOSE, a, b, application.params) if application.params else equal(a, b)
    return all(entries, axis=tuple(range(1, rank + 1)))


def searchsorted(application: Application) -> Any:
    """Rule of searchsorted (a, v; side): takes any v, but one a."""
    return one_by_one(application) if application.mapped[0] else application.bound(application.inputs)


def position_of_extreme(application: Application) -> Any:
    """Rule of argmax and argmin (x; axis, keepdims): without an axis the entries of one example are laid in a row."""
    axis, keepdims = application.params
    (x,) = application.inputs
    if axis is not None:
        return application.bound([x], (axis + 1, keepdims))
    row = reshape(x, (application.size, math.prod(application.shape(0))))
    found = application.bound([row], (1, False))
    return reshape(found, (application.size, *(1,) * application.rank(0))) if keepdims else found
