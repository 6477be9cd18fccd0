"""The forward sweep: tangents of targets become tangents of outputs, oldest node first.

The counterpart of `stopgrad.sweeps.reverse`, over the same record and the same rules; where that sums a cotangent to
its primal's shape, this broadcasts a tangent to its result's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import namespace_of
from stopgrad.core.operation import ABSENT, ZERO, Slots
from stopgrad.core.placing import Placed
from stopgrad.core.record import INDEX, PARAMS
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.sweeps.path import Path
from stopgrad.sweeps.reverse import add, cast_to, tensors_kept, written_out


def forward(
    path: Path,
    seeds: Iterable[tuple[Any, Any]],
    outputs: Iterable[Any],
    level: Level | None = None,
    masked: set[int] | None = None,
) -> dict[int, Any]:
    """Return the tangents of the given output nodes, by index; a node that is missing there is unconnected.

    Args:
        path: from `find_path`.
        seeds: (node, tangent) of each target. If any tangent is a `Tensor` the sweep itself is recorded.
        outputs: nodes whose tangent to return.
        level: on whose behalf; conditional gates ask.
        masked: indices of nodes whose tangents hold zeros that stand for "absent"; those found on the way are added.
    """
    masked = set() if masked is None else masked
    wanted = {node[INDEX] for node in outputs if type(node) is tuple}
    last_use = {}
    for node in path.nodes:
        for parent in node[2]:
            if type(parent) is tuple:
                last_use[parent[0]] = node[0]
    tangents: dict[int, Any] = {}
    recorded = False
    xp: Any = np
    for node, tangent in seeds:
        index = node[INDEX]
        tangents[index] = add(tangents[index], tangent) if index in tangents else tangent
        recorded = recorded or isinstance(tangent, Tensor)
        xp = primitives if recorded else namespace_of(tangent)
    with np.errstate(all="ignore"), state.sweep(level, path.live, masked, tangents):
        for node in path.nodes:
            index, operation, parents, kept, shape, dtype, params = node
            if recorded:
                kept = tensors_kept(node)
            rules = operation.jvps
            if not operation.fixed_arity:
                rules, kept, params = rules.bound(kept, params), (), ()
            total = tangents.get(index, ABSENT)
            for i, parent in enumerate(parents):
                if type(parent) is not tuple:
                    continue
                tangent = tangents.get(parent[0], ABSENT)
                if tangent is ABSENT:
                    continue
                if tangent is ZERO:
                    passed: Any = ZERO if operation.reach is None else _zero_outputs(operation.reach(*node[PARAMS]), i)
                else:
                    passed = rules[i](xp, tangent, *kept, *params)
                if passed is ABSENT:
                    continue
                if masked and parent[0] in masked and passed is not ZERO:
                    if operation.singular:  # zero times an infinite partial
                        became_nan = (tangent == 0) & (passed != passed)
                        passed = xp.where(became_nan, xp.zeros_like(passed), passed)
                    if operation.passes_masks:
                        masked.add(index)
                if passed is not ZERO and shape is not None:
                    if passed.shape != shape:
                        passed = xp.broadcast_to(passed, shape)
                    if passed.dtype is not dtype and passed.dtype != dtype:
                        passed = cast_to(xp, passed, dtype)
                total = passed if total is ABSENT else add(total, passed)
            if total is not ABSENT:
                tangents[index] = written_out(total) if type(total) is Placed else total
            for parent in parents:
                if type(parent) is tuple and last_use[parent[0]] == index and parent[0] not in wanted:
                    tangents.pop(parent[0], None)
    return {index: tangents[index] for index in wanted if index in tangents}


def _zero_outputs(reach: Sequence[int], i: int) -> Any:
    """Return zero tangents for the outputs of an operation with bodies that its input i reaches."""
    reached = Slots({number: ZERO for number, bits in enumerate(reach) if bits >> i & 1})
    return reached if reached else ABSENT
