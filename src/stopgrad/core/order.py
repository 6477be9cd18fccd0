"""What of a graph has to run for given outputs, in which order, and how often each result is used there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stopgrad.core.graph import GraphOperation, Output


def needed(outputs: Iterable[Any], given: Iterable[Output] = ()) -> list[GraphOperation]:
    """Return the operations that outputs depend on, in order; the search ends at outputs that are given."""
    known = set(given)
    seen: set[GraphOperation] = set()
    pending = [one for one in outputs if type(one) is Output and one not in known]
    while pending:
        operation = pending.pop().op
        if operation in seen:
            continue
        seen.add(operation)
        pending.extend(one for one in operation.inputs if type(one) is Output and one not in known)
    return sorted(seen, key=lambda operation: operation.index)


def uses_of(order: Iterable[GraphOperation], outputs: Sequence[Any]) -> dict[Output, int]:
    """Return how often each output is an input of these operations or one of the wanted outputs."""
    uses: dict[Output, int] = {}
    for inputs in (*(operation.inputs for operation in order), outputs):
        for one in inputs:
            if type(one) is Output:
                uses[one] = uses.get(one, 0) + 1
    return uses
