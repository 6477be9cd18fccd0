"""The reverse sweep: cotangents of outputs become cotangents of targets, newest node first.

It runs the rules of `stopgrad.core.operation` either on raw arrays (nothing is recorded) or on tensors (recorded, for
derivatives of derivatives), and does for all of them what no rule has to: sum a cotangent to the shape of its primal,
cast it to its dtype, add up what arrives by several routes, and keep masked entries masked.

**Masked entries.** Where an operation selects (`where`, `max`, `relu`, indexing), the entries it did not select get a
cotangent of zero, and if the derivative behind them is infinite or NaN, zero times that would be NaN: the famous leak
through √x in `where(x > 0, √x, 0)`. The sweep remembers which cotangents hold such zeros and keeps them zero through
every elementwise operation whose partial depends on data. On raw arrays every zero of such a cotangent counts as one of
them, since zero times a finite partial is zero anyway. Nonlinear operations along axes (norm, softmax …) say which
entries of their input only such zeros lie behind. A recorded sweep is differentiated again, and a cotangent that
merely happens to be zero there has a derivative: it follows in `Selections` which entries were truly left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import PYTHON_SCALARS, Shape, is_complex, namespace_of
from stopgrad.core.builtin import PROJECT
from stopgrad.core.graph import Output
from stopgrad.core.operation import ABSENT, ZERO, Slots
from stopgrad.core.placing import PLACE, Placed
from stopgrad.core.record import INDEX, KEPT, OPERATION, PARAMS, PARENTS, SHAPE, Node, outputs_of, run
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.sweeps.path import Path


def reverse(
    path: Path,
    seeds: Iterable[tuple[Any, Any]],
    wanted: Iterable[int],
    level: Level | None = None,
    stops: frozenset[int] = frozenset(),
    masked: set[int] | None = None,
) -> dict[int, Any]:
    """Return the cotangents of the wanted nodes, by index; a node that is missing there is unconnected.

    Args:
        path: from `find_path`.
        seeds: (node, cotangent) of each output. If any cotangent is a `Tensor` the sweep itself is recorded.
        wanted: indices of the nodes whose cotangent to return.
        level: on whose behalf; conditional gates ask.
        stops: indices of nodes nothing passes back through.
        masked: indices of nodes whose cotangents hold masked zeros; those found on the way are added.
    """
    live = path.live
    wanted = set(wanted)
    cotangents: dict[int, Any] = {}
    recorded = False
    xp: Any = np
    for node, cotangent in seeds:
        if type(node) is tuple and node[INDEX] in live:
            index = node[INDEX]
            cotangents[index] = add(cotangents[index], cotangent) if index in cotangents else cotangent
            recorded = recorded or isinstance(cotangent, Tensor)
            xp = primitives if recorded else namespace_of(cotangent)
    results: dict[int, Any] = {}
    masked = set() if masked is None else masked
    selections = Selections()
    pop = cotangents.pop
    with np.errstate(all="ignore"), state.sweep(level, live, masked, {}):
        for node in reversed(path.nodes):
            index, operation, parents, kept, _, _, params = node
            cotangent = pop(index, ABSENT)
            if cotangent is ABSENT:
                continue
            if type(cotangent) is Placed:
                cotangent = written_out(cotangent)
            if index in wanted:
                results[index] = cotangent
            if stops and index in stops:
                continue
            if cotangent is ZERO:
                for parent in _reached_by_zero(node):
                    if type(parent) is tuple and parent[0] in live:
                        cotangents.setdefault(parent[0], ZERO)
                continue
            if recorded:
                kept = tensors_kept(node)
            rules = operation.vjps
            if not operation.fixed_arity:
                rules, kept, params = rules.bound(kept, params), (), ()
            i = -1
            for parent in parents:
                i += 1
                if type(parent) is not tuple:
                    continue
                parent_index = parent[0]
                if parent_index not in live:
                    continue
                rule = rules[i]
                if params:
                    passed = rule(xp, cotangent, *kept, *params)
                elif len(kept) == 2:
                    passed = rule(xp, cotangent, kept[0], kept[1])
                elif len(kept) == 3:
                    passed = rule(xp, cotangent, kept[0], kept[1], kept[2])
                else:
                    passed = rule(xp, cotangent, *kept)
                if passed is ABSENT:
                    continue
                if passed is not ZERO:
                    if masked and index in masked:
                        if operation.singular or operation.behind is not None:
                            if recorded:
                                left_out = selections.left_out(node, cotangent, passed)
                                passed = xp.where(left_out, xp.zeros_like(passed), passed)
                            elif xp.any(became_nan := passed != passed):
                                left_out = became_nan & _behind(node, xp, cotangent == 0)
                                passed = xp.where(left_out, xp.zeros_like(passed), passed)
                        if operation.passes_masks:
                            masked.add(parent_index)
                    if operation.masks:
                        masked.add(parent_index)
                    if recorded and masked:
                        selections.follow(node, i, cotangent, cotangents.get(parent_index, ZERO) is ZERO)
                    shape = parent[4]
                    if shape is not None:
                        if passed.shape != shape:
                            passed = sum_to_shape(xp, passed, shape)
                        dtype = parent[5]
                        if passed.dtype is not dtype and passed.dtype != dtype:
                            passed = cast_to(xp, passed, dtype)
                if parent_index in cotangents:
                    passed = add(cotangents[parent_index], passed)
                cotangents[parent_index] = passed
    return results


def _reached_by_zero(node: Node) -> Iterable[Any]:
    """Return the nodes a zero cotangent goes to; from a loop or branch those that its bodies let reach."""
    if node[OPERATION] is not PROJECT or node[PARENTS][0][OPERATION].reach is None:
        return node[PARENTS]
    base = node[PARENTS][0]
    bits = base[OPERATION].reach(*base[PARAMS])[node[PARAMS][0]]
    return [parent for i, parent in enumerate(base[PARENTS]) if bits >> i & 1]


class Selections:
    """Which entries of each cotangent some selected route contributes to; for a node that is missing, all of them."""

    def __init__(self) -> None:
        self._reached: dict[int, Any] = {}

    def follow(self, node: Node, i: int, cotangent: Any, is_first: bool) -> None:
        """Note what the cotangent of a node passes to its parent i, whose first contribution this may be."""
        index = node[PARENTS][i][INDEX]
        reached = self._passed_on(node, i, cotangent)
        if reached is not None and (is_first or index in self._reached):
            self._reached[index] = reached if is_first else self._reached[index] + reached
        else:
            self._reached.pop(index, None)

    def left_out(self, node: Node, cotangent: Tensor, passed: Tensor) -> Any:
        """Return where the cotangent passed on is to be zero: entries left out, and what became NaN from zero."""
        index, xp = node[INDEX], primitives if type(cotangent.value) is Output else namespace_of(cotangent.value)
        cotangent, passed = _unrecorded(cotangent), _unrecorded(passed)
        became_nan = _behind(node, xp, cotangent == 0) & (passed != passed)
        if index not in self._reached:
            return became_nan
        return became_nan | _behind(node, xp, self._reached[index] == 0)

    def _passed_on(self, node: Node, i: int, cotangent: Any) -> Any:
        operation, parent = node[OPERATION], node[PARENTS][i]
        reached = self._reached.get(node[INDEX])
        if isinstance(cotangent, Slots) or operation is PROJECT:
            return None
        if not (operation.masks or (operation.passes_masks and reached is not None)):
            return None
        # While tracing, what is kept may be symbolic though the cotangent is not.
        symbolic = isinstance(reached, Tensor) or any(type(one) is Output for one in (cotangent.value, *node[KEPT]))
        if reached is None:
            reached = namespace_of(cotangent.value).ones_like(cotangent.value)
        if symbolic and not isinstance(reached, Tensor):
            reached = Tensor(reached)
        xp = primitives if symbolic else namespace_of(reached)
        if operation.behind is not None:
            reached = xp.astype(~_behind(node, xp, reached == 0), reached.dtype)
        elif operation.masks or not operation.elementwise:
            kept = map(_unrecorded, node[KEPT]) if symbolic else node[KEPT]
            if operation.bilinear:  # by ones, so that nothing cancels
                kept = [None if one is None else xp.ones_like(one) for one in kept]
            moved = operation.vjps[i](xp, reached, *kept, *node[PARAMS])
            moved = written_out(moved) if type(moved) is Placed else moved
            reached = xp.astype(moved != 0, reached.dtype)
        return reached if reached.shape == parent[SHAPE] else sum_to_shape(xp, reached, parent[SHAPE])


def _behind(node: Node, xp: Any, zeros: Any) -> Any:
    """Return where all entries of the output that an entry of the input has a part in are among these."""
    behind = node[OPERATION].behind
    return zeros if behind is None else behind(xp, zeros, *node[PARAMS])


def _unrecorded(value: Any) -> Any:
    """Return the raw value of a tensor, or, if that is symbolic, a tensor that is not recorded."""
    raw = value.value if isinstance(value, Tensor) else value
    return Tensor(raw) if type(raw) is Output else raw


def add(first: Any, second: Any) -> Any:
    """Add two cotangents or tangents of the same value."""
    if first is ZERO:
        return second
    if second is ZERO:
        return first
    if type(first) is Placed:
        return first.add(second)
    return second.add(first) if type(second) is Placed else first + second


def written_out(placed: Placed) -> Any:
    """Return the sum of the pieces as one array, or as one tensor if the sweep is recorded."""
    return run(PLACE, *placed.pieces, params=(tuple(placed.indices), placed.shape))


def tensors_kept(node: Node) -> tuple[Any, ...]:
    """Return what a node keeps as tensors that know where they came from, for a sweep that is recorded."""
    *inputs, out = node[KEPT]
    tensors = [
        Tensor(value, parent) if value is not None and type(value) not in PYTHON_SCALARS else value
        for value, parent in zip(inputs, node[PARENTS], strict=True)
    ]
    if type(out) is tuple:
        out = outputs_of(node, out)
    elif out is not None:
        out = Tensor(out, node)
    return (*tensors, out)


def sum_to_shape(xp: Any, cotangent: Any, shape: Shape) -> Any:
    """Sum over the axes along which a value of `shape` was broadcast: the adjoint of broadcasting."""
    extra = len(cotangent.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, size in enumerate(shape) if size == 1 and cotangent.shape[i + extra] != 1
    )
    if axes:
        cotangent = xp.sum(cotangent, axis=axes, keepdims=True)
    return xp.reshape(cotangent, shape) if extra else cotangent


def cast_to(xp: Any, cotangent: Any, dtype: Any) -> Any:
    """Bring a cotangent to its primal's dtype; a real primal takes the real part."""
    if type(cotangent) is Placed:
        return Placed([cast_to(xp, piece, dtype) for piece in cotangent.pieces], cotangent.indices, cotangent.shape)
    if is_complex(cotangent.dtype) and not is_complex(dtype):
        cotangent = xp.real(cotangent)
    return xp.astype(cotangent, dtype)
