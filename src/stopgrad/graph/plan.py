"""`Plan`: the order in which the operations of a graph run for wanted results, worked out once and run many times.

Values live in numbered places; each is let go after its last use. Of an operation with several outputs that can leave
some out (a loop its history), only those that something uses are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stopgrad.core.arrays import NUMPY_TYPES
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, GraphOperation, Output
from stopgrad.core.order import needed
from stopgrad.core.record import compute, explain


class _Step(NamedTuple):
    """One operation: its NumPy kernel with what else it needs, and the places of its inputs and results."""

    kernel: Callable[..., Any]
    params: tuple[Any, ...]
    sources: tuple[int, ...]
    first: int
    second: int
    target: int  # of the only result that is used; -1 where there may be several
    targets: tuple[int, ...]
    released: tuple[int, ...]
    operation: GraphOperation
    wanted: tuple[bool, ...]


class Plan:
    """How to compute outputs of a graph from given ones.

    Args:
        outputs: what is wanted: outputs of one graph, or plain numbers.
        given: outputs whose values `run` is called with, in this order.

    Raises:
        ArgumentError: a placeholder is needed but not given.
    """

    __slots__ = ("_fixed", "_is_numpy", "_results", "_steps")

    def __init__(self, outputs: Sequence[Any], given: Sequence[Output]) -> None:
        places: dict[Output, int] = {one: number for number, one in enumerate(given)}
        # What the places after the given ones hold at first: constants and plain numbers, `None` for what is computed.
        self._fixed: list[Any] = []

        def new_place(value: Any) -> int:
            self._fixed.append(value)
            return len(given) + len(self._fixed) - 1

        def place_of(one: Any) -> int:
            return places[one] if type(one) is Output else new_place(one)

        order = needed(outputs, given)
        used = {one for operation in order for one in operation.inputs if type(one) is Output}
        used.update(one for one in outputs if type(one) is Output)
        last_use: dict[int, int] = {}
        steps: list[tuple[GraphOperation, tuple[int, ...], tuple[int, ...]]] = []
        for operation in order:
            if operation.operation is PLACEHOLDER:
                raise ArgumentError(f"run: {operation.outputs[0]} is needed but was not fed; name it in feed")
            if operation.operation is CONSTANT:
                places[operation.outputs[0]] = new_place(operation.params[0].value)
                continue
            sources = tuple(place_of(one) for one in operation.inputs)
            last_use.update(dict.fromkeys(sources, len(steps)))
            targets = tuple(new_place(None) if one in used and one not in places else -1 for one in operation.outputs)
            places.update((one, place) for one, place in zip(operation.outputs, targets, strict=True) if place >= 0)
            steps.append((operation, sources, targets))
        self._results = tuple(place_of(one) for one in outputs)
        released: list[list[int]] = [[] for _ in steps]
        for place, number in last_use.items():
            if place not in self._results:
                released[number].append(place)
        self._steps = [_step(*one, tuple(done)) for one, done in zip(steps, released, strict=True)]
        self._is_numpy = all(value is None or type(value) in NUMPY_TYPES for value in self._fixed)

    def run(self, given: Sequence[Any]) -> list[Any]:
        """Return the raw values of the outputs, for raw values of the given ones."""
        values = [*given, *self._fixed]
        is_numpy = self._is_numpy
        for value in given:
            if type(value) not in NUMPY_TYPES:
                is_numpy = is_numpy and value is None  # what an unused input is given
        if not is_numpy:
            return self._run_any(values)
        step = None
        try:
            for step in self._steps:
                kernel, params, sources, first, second, target, targets, released, _, _ = step
                if second >= 0:
                    result = kernel(values[first], values[second], *params)
                elif first >= 0:
                    result = kernel(values[first], *params)
                else:
                    result = kernel(*[values[place] for place in sources], *params)
                if target >= 0:
                    values[target] = result
                else:
                    _put(values, targets, result)
                for place in released:
                    values[place] = None
        except Exception as error:
            assert step is not None
            operation = step.operation.operation
            raise explain(operation, [values[place] for place in step.sources], error) from error
        return [values[place] for place in self._results]

    def _run_any(self, values: list[Any]) -> list[Any]:
        """Run with arrays of any library."""
        for step in self._steps:
            inputs = [values[place] for place in step.sources]
            operation, params = step.operation.operation, step.operation.params
            if operation.run_some is not None:
                _put(values, step.targets, operation.run_some(step.wanted, inputs, params))
            else:
                result = compute(operation, inputs, params)
                _put(values, step.targets, (result,) if step.operation.single else result)
            for place in step.released:
                values[place] = None
        return [values[place] for place in self._results]


def _step(
    operation: GraphOperation, sources: tuple[int, ...], targets: tuple[int, ...], released: tuple[int, ...]
) -> _Step:
    kernel, params = operation.operation.numpy_kernel, operation.params
    wanted = tuple(target >= 0 for target in targets)
    run_some = operation.operation.run_some
    if run_some is not None:

        def kernel(*inputs: Any) -> Any:
            return run_some(wanted, inputs, operation.params)

        params = ()
    few = 0 < len(sources) <= 2
    return _Step(
        kernel,
        params,
        sources,
        sources[0] if few else -1,
        sources[1] if len(sources) == 2 else -1,
        targets[0] if operation.single else -1,
        targets,
        released,
        operation,
        wanted,
    )


def _put(values: list[Any], places: Sequence[int], results: Sequence[Any]) -> None:
    for place, value in zip(places, results, strict=True):
        if place >= 0:
            values[place] = value
