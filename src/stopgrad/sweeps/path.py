"""Which nodes lie between wanted inputs and an output: the sweep of booleans every derivative starts with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stopgrad.core.marks import Mark, merge_all
from stopgrad.core.record import INDEX, Node

Intervals = Sequence[tuple[int, int]]


class Path(NamedTuple):
    """The nodes that lie on a route from a target to an output.

    `nodes` are ordered oldest first. `live` holds their indices. `mark` merges the marks of all constants that were met
    on the way, on routes to targets or not: what to name when a target proves unconnected.
    """

    nodes: list[Node]
    live: set[int]
    mark: Mark | None


def find_path(
    outputs: Iterable[Any],
    targets: Sequence[Node],
    stops: frozenset[int] = frozenset(),
    visible: Intervals | None = None,
) -> Path:
    """Return what lies between `targets` and `outputs`, in time linear in what was recorded since the oldest target.

    Args:
        outputs: nodes to start from; a `Mark` or `None` among them is a constant.
        targets: nodes derivatives are wanted for.
        stops: indices of nodes nothing passes back through (they may be targets themselves).
        visible: if given, only nodes created in one of these half-open index intervals count as recorded.
    """
    live = {target[INDEX] for target in targets}
    oldest = min(live, default=0)
    found: dict[int, Node] = {}
    marks: dict[Mark, None] = {}
    pending = list(outputs)
    pop, extend = pending.pop, pending.extend
    while pending:
        node = pop()
        if type(node) is not tuple:
            if node is not None:
                marks[node] = None
            continue
        index = node[0]
        if index < oldest or index in found:
            continue
        if visible is not None and index not in live and not any(a <= index < b for a, b in visible):
            continue
        found[index] = node
        if not stops or index not in stops:
            extend(node[2])
    nodes: list[Node] = []
    append, mark_live = nodes.append, live.add
    for index in sorted(found):
        node = found[index]
        if index in live:
            append(node)
            continue
        if stops and index in stops:
            continue
        for parent in node[2]:
            if type(parent) is tuple and parent[0] in live:
                mark_live(index)
                append(node)
                break
    live.intersection_update(found)
    return Path(nodes, live, merge_all(marks))
