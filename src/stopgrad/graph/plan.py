"""`Plan`: the order in which the operations of a graph run for wanted results, worked out once and run many times.

Values live in numbered places; each is let go after its last use. Of an operation with several outputs that can leave
some out (a loop its history), only those that something uses are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, GraphOperation, Output
from stopgrad.core.record import compute


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


class Plan:
    """How to compute outputs of a graph from given ones.

    Args:
        outputs: what is wanted: outputs of one graph, or plain numbers.
        given: outputs whose values `run` is called with, in this order.

    Raises:
        ArgumentError: a placeholder is needed but not given.
    """

    __slots__ = ("_fixed", "_results", "_steps")

    def __init__(self, outputs: Sequence[Any], given: Sequence[Output]) -> None:
        places: dict[Output, int] = {one: number for number, one in enumerate(given)}
        # What the places after the given ones hold at first: constants and plain numbers, `None` for what is computed.
        self._fixed: list[Any] = []
        self._steps: list[tuple[GraphOperation, tuple[int, ...], tuple[int, ...], tuple[bool, ...] | None, Any]] = []

        def new_place(value: Any) -> int:
            self._fixed.append(value)
            return len(given) + len(self._fixed) - 1

        def place_of(one: Any) -> int:
            return places[one] if type(one) is Output else new_place(one)

        order = needed(outputs, given)
        used = {one for operation in order for one in operation.inputs if type(one) is Output}
        used.update(one for one in outputs if type(one) is Output)
        last_use: dict[int, int] = {}
        for operation in order:
            if operation.operation is PLACEHOLDER:
                raise ArgumentError(f"run: {operation.outputs[0]} is needed but was not fed; name it in feed")
            if operation.operation is CONSTANT:
                places[operation.outputs[0]] = new_place(operation.params[0].value)
                continue
            sources = tuple(place_of(one) for one in operation.inputs)
            last_use.update(dict.fromkeys(sources, len(self._steps)))
            wanted = tuple(out in used and out not in places for out in operation.outputs)
            targets = tuple(new_place(None) if want else -1 for want in wanted)
            places.update((out, place) for out, place in zip(operation.outputs, targets, strict=True) if place >= 0)
            some = wanted if operation.operation.run_some is not None else None
            self._steps.append((operation, sources, targets, some, ()))
        self._results = tuple(place_of(one) for one in outputs)
        kept = {*self._results}
        released: list[list[int]] = [[] for _ in self._steps]
        for place, step in last_use.items():
            if place not in kept:
                released[step].append(place)
        self._steps = [
            (*step[:4], tuple(done)) for step, done in zip(self._steps, released, strict=True)
        ]  # fmt: skip

    def run(self, given: Sequence[Any]) -> list[Any]:
        """Return the raw values of the outputs, for raw values of the given ones."""
        values = [*given, *self._fixed]
        for operation, sources, targets, some, released in self._steps:
            inputs = [values[place] for place in sources]
            if some is not None:
                results = operation.operation.run_some(some, inputs, operation.params)  # type: ignore[misc]
            else:
                result = compute(operation.operation, inputs, operation.params)
                results = (result,) if operation.single else result
            for place, value in zip(targets, results, strict=True):
                if place >= 0:
                    values[place] = value
            for place in released:
                values[place] = None
        return [values[place] for place in self._results]
