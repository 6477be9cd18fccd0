"""`associative_scan`: running combinations in a number of steps that grows with the logarithm of the length.

Neighbours are combined in pairs, the pairs' running combinations found in the same way, and those in between follow
with one more step (Ladner and Fischer, 1980; Blelloch, 1990). Everything is slices and calls of the user's function on
whole arrays, so derivatives need nothing of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stopgrad.primitives as primitives
from stopgrad.control.tracing import Arguments, arguments, check_same
from stopgrad.core.arrays import normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.pytree import unflatten
from stopgrad.core.tensor import Tensor


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return the running combinations of entries along an axis: e₀, fn(e₀, e₁), fn(fn(e₀, e₁), e₂), …

    Args:
        fn: associative function of two pytrees like `elems`, of any (equal) size along the axis, that combines them
            entry by entry.
        elems: a pytree of tensors of one size along the axis.
        reverse: combine from the last entry to the first.
        axis: along which axis.

    Returns:
        A pytree like `elems`.

    Raises:
        ArgumentError: no tensors, or `fn` changes the structure, a shape or a dtype.
        ShapeError: different sizes along the axis.

    Example:
        >>> import stopgrad as sg
        >>> sg.associative_scan(sg.multiply, [1.0, 2.0, 3.0, 4.0]).numpy()
        array([ 1.,  2.,  6., 24.])
        >>> step = lambda e, f: {"a": f["a"] * e["a"], "b": f["a"] * e["b"] + f["b"]}  # y = b + a·y
        >>> sg.associative_scan(step, {"a": [0.5, 0.5, 0.5], "b": [1.0, 1.0, 1.0]})["b"].numpy()
        array([1.  , 1.5 , 1.75])
    """
    given = arguments(elems, "associative_scan: elems")
    if not given.tensors:
        raise ArgumentError("associative_scan: elems holds no tensors")
    axes = [normalize_axis("associative_scan", axis, len(one.shape)) for one in given.tensors]
    sizes = {one.shape[a] for one, a in zip(given.tensors, axes, strict=True)}
    if len(sizes) > 1:
        raise ShapeError(f"associative_scan: along axis {axis} elems has the sizes {sorted(sizes)}; they must be equal")
    return _Scan(fn, given, axes).result(reverse)


class _Scan:
    """One scan; a level is a list of tensors, one for each leaf."""

    def __init__(self, fn: Callable[[Any, Any], Any], given: Arguments, axes: list[int]) -> None:
        self.fn = fn
        self.given = given
        self.axes = axes

    def result(self, reverse: bool) -> Any:
        """Return the running combinations as a pytree."""
        level = self.given.tensors
        if reverse:
            level = self.each(lambda x, axis: primitives.flip(x, axis=axis), level)
        levels = [level]
        while self.size(levels[-1]) > 1:
            last = levels[-1]
            levels.append(self.combined(self.part(last, 0, -1, 2), self.part(last, 1, None, 2)))
        running = levels.pop()
        while levels:
            running = self.between(levels.pop(), running)
        if reverse:
            running = self.each(lambda x, axis: primitives.flip(x, axis=axis), running)
        return unflatten(self.given.treedef, running)

    def between(self, level: list[Tensor], odd: list[Tensor]) -> list[Tensor]:
        """Return the running combinations of a level, given those at its odd places."""
        size = self.size(level)
        first = self.part(level, 0, 1, None)
        if size < 3:
            return self.joined([first, odd]) if size == 2 else level
        before = self.part(odd, 0, -1, None) if size % 2 == 0 else odd
        even = self.joined([first, self.combined(before, self.part(level, 2, None, 2))])
        count = size // 2
        pairs = [self.woven(e, o, axis, count) for e, o, axis in zip(even, odd, self.axes, strict=True)]
        return pairs if size % 2 == 0 else self.joined([pairs, self.part(even, count, None, None)])

    def woven(self, even: Tensor, odd: Tensor, axis: int, count: int) -> Tensor:
        """Return two tensors' entries in turns."""
        evens = even[(*(slice(None),) * axis, slice(0, count))]
        stacked = primitives.stack([evens, odd], axis=axis + 1)
        return primitives.reshape(stacked, (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :]))

    def combined(self, first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
        """Return what the user's function makes of two levels, checked."""
        before = Arguments(second, self.given.treedef)
        after = arguments(
            self.fn(unflatten(self.given.treedef, first), before.tree), "associative_scan: what fn returns"
        )
        check_same(
            "associative_scan", before, after, ("what fn takes", "what it returns"), "fn must keep structure and shapes"
        )
        return after.tensors

    def size(self, level: list[Tensor]) -> int:
        """Return the number of entries along the axis."""
        return level[0].shape[self.axes[0]]

    def part(self, level: list[Tensor], start: int, stop: int | None, step: int | None) -> list[Tensor]:
        """Return a slice along the axis."""
        return self.each(lambda x, axis: x[(*(slice(None),) * axis, slice(start, stop, step))], level)

    def joined(self, levels: list[list[Tensor]]) -> list[Tensor]:
        """Return levels one after the other along the axis."""
        return [primitives.concat(list(ones), axis=axis) for *ones, axis in zip(*levels, self.axes, strict=True)]

    def each(self, function: Callable[[Tensor, int], Tensor], level: list[Tensor]) -> list[Tensor]:
        """Return what a function of a tensor and the axis makes of each leaf."""
        return [function(one, axis) for one, axis in zip(level, self.axes, strict=True)]
