"""The derivative of a customised function as a program: traced where the function stood, run for all examples.

Such a derivative is a Python function, linear in the cotangents (or tangents) it is given, that holds tensors of the
function's own run. A sweep that runs a graph anew must run it anew as well, with what those tensors have become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stopgrad.batching.application import Entry
from stopgrad.batching.capturing import CapturingGraph
from stopgrad.core.graph import BaseGraph, GraphOperation, Output
from stopgrad.core.tensor import Tensor

# Takes entries, one for each cotangent (or tangent); gives one or `None` for each input (or output).
BatchedMap = Callable[[Sequence[Entry]], list[Entry | None]]


class LinearProgram(NamedTuple):
    """A linear map as a graph inside another.

    Attributes:
        graph: where it is.
        seeds: what it takes.
        outputs: what it gives; `None` where nothing passes.
        captured: placeholders of what it uses besides, and the tensors from outside they stand for.
    """

    graph: BaseGraph
    seeds: list[Output]
    outputs: list[Any]
    captured: list[tuple[Output, Tensor]]

    @property
    def used(self) -> list[Output]:
        """The values it uses of the graph around."""
        return [tensor.value for _, tensor in self.captured if self._is_around(tensor)]

    def given(self, entries: Mapping[Output, Entry]) -> dict[Output, Entry]:
        """Return the entries of its placeholders, for those of the graph around."""
        return {
            inner: entries[tensor.value] if self._is_around(tensor) else Entry(tensor, False)
            for inner, tensor in self.captured
        }

    def _is_around(self, tensor: Tensor) -> bool:
        return type(tensor.value) is Output and tensor.value.op.graph is self.graph.outer


def traced_derivative(operation: GraphOperation) -> LinearProgram:
    """Return the derivative of a customised function that is an operation of a graph, as a program inside that."""
    custom = operation.operation.customised
    graph = CapturingGraph(operation.type, operation.graph)
    likes = operation.outputs if custom.pulls else operation.inputs[: custom.count]
    with graph.tracing():
        seeds = [graph.placeholder(one.spec, "seed") for one in likes]
        found = custom.map([Tensor(seed) for seed in seeds])
        outputs = [None if one is None else graph.imported(one.value, one.node) for one in found]
    return LinearProgram(graph, seeds, outputs, graph.captured)
