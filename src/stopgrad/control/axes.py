"""Trees of axes for `vmap`: one axis, or `None`, for each leaf of a tree, given for whole parts of it at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.pytree import children, flatten


def axes_for(axes: Any, tree: Any, argument: str, what: str) -> list[int | None]:
    """Return an axis (or `None`) for each leaf of a tree.

    Args:
        axes: an axis, or a tree of them that is like the upper part of the tree.
        tree: number lists are leaves.
        argument: what to call the axes in errors: "in_axes" or "out_axes".
        what: what to call the tree.
    """
    found: list[int | None] = []
    pending = [(axes, tree, what)]
    while pending:
        one, part, where = pending.pop()
        if one is None or (isinstance(one, int | np.integer) and not isinstance(one, bool)):
            found += [None if one is None else int(one)] * len(flatten(part, number_lists=True)[0])
            continue
        parts, wanted = children(part, number_lists=True), children(one)
        if wanted is None:
            raise ArgumentTypeError(f"vmap: {argument} holds {one!r:.60}; an axis is an integer, or None for no axis")
        if parts is None or [key for key, _ in parts] != [key for key, _ in wanted] or type(part) is not type(one):
            raise ArgumentError(
                f"vmap: {argument} does not fit {where}: there is {one!r:.80} for a {type(part).__name__}; give one "
                "axis for it, or a tree of its structure"
            )
        pending += [
            (axis, child, f"{where}[{key!r}]")
            for (key, child), (_, axis) in reversed(list(zip(parts, wanted, strict=True)))
        ]
    return found
