"""`CapturingGraph`: where a function is traced whose graph is to be run on tensors, which may be recorded.

A placeholder stands for each tensor from outside that is recorded, or belongs to the graph around. It stays connected,
because the sweep that runs the graph puts the tensor itself, with its place in the record, where the placeholder is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stopgrad.batching.application import Entry
from stopgrad.core.arrays import PYTHON_SCALARS, Spec, is_numpy, numpy_dtype
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import BaseGraph, GraphOperation, Output
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor


class CapturingGraph(BaseGraph):
    """A graph inside the one that is being traced, if one is, that captures tensors.

    Args:
        name: of the function that is traced, for errors.
        outer: the graph around.
    """

    def __init__(self, name: str, outer: BaseGraph | None) -> None:
        super().__init__(outer)
        self.is_body = self.outer is not None and self.outer.is_body
        self.name = name
        self.entries: dict[Output, Entry] = {}
        self._connected: dict[tuple[int, int], tuple[Tensor, Output]] = {}
        self._is_open = False

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Add to this graph what is computed from symbolic values in the block.

        A `no_gradient` block around does not concern the block: the sweep will run inside it.
        """
        before = state.graph, state.recording, state.block
        state.graph, state.recording, state.block = self, state.recording and state.block is None, None
        self._is_open = True
        try:
            yield
        finally:
            state.graph, state.recording, state.block = before
            self._is_open = False

    def outputs_of(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return what tensors are in this graph; to be called in the block they were computed in."""
        return [self.imported(one.value, one.node) for one in tensors]

    def release(self) -> None:
        """Let go of the tensors that placeholders stand for: a graph is freed only when Python looks for cycles."""
        self.entries.clear()
        self._connected.clear()

    @property
    def captured(self) -> list[tuple[Output, Tensor]]:
        """The placeholders of tensors from outside, and those tensors."""
        return [(inner, tensor) for tensor, inner in self._connected.values()]

    def standing_for(self, entry: Entry, name: str) -> Output:
        """Return a new placeholder for a tensor."""
        shape = tuple(entry.value.shape[entry.mapped :])
        placeholder = self.placeholder(Spec(shape, numpy_dtype(entry.value.dtype)), name)
        self.entries[placeholder] = entry
        return placeholder

    def add(self, *args: Any, **kwargs: Any) -> GraphOperation:
        """Add an operation, if the function is still being traced."""
        if not self._is_open:
            raise ArgumentError(
                f"a tensor made inside {self.name} stands for another there (under vmap, for one example), and cannot "
                "be used outside; return it from the function"
            )
        return super().add(*args, **kwargs)

    def imported(self, value: Any, node: Any = None) -> Any:
        """Return a value as an input of this graph's operations; what is recorded, or symbolic outside, is captured."""
        if type(value) is Output:
            if value.op.graph is self:
                return value
            self._check_around(value)
        elif type(value) in PYTHON_SCALARS:
            return value
        elif node is None and is_numpy(value):
            return self.constant(value)
        return self._standing_outside(value, node)

    def taken_in(self, value: Any, node: Any) -> tuple[Any, Any]:
        """Return what stands here for a tensor from outside, symbolic or recorded, for the body of a loop or branch."""
        if value.op.graph is self if type(value) is Output else type(node) is not tuple:
            return value, node
        return self._standing_outside(value, node), node

    def by_example(self, value: Any, node: Any) -> Any:
        """Return the placeholder for a recorded value, so that what is done with it is done for each example."""
        return self._standing_outside(value, node)

    def _standing_outside(self, value: Any, node: Any) -> Output:
        """Return the placeholder for a tensor from outside, the same every time."""
        if type(value) is Output and self.outer is not None and value.op.graph is not self.outer:
            value, node = self.outer.taken_in(value, node)
        key = (id(value), id(node))
        known = self._connected.get(key)
        if known is None:
            tensor = Tensor(value, node)
            known = self._connected[key] = (tensor, self.standing_for(Entry(tensor, False), "captured"))
        return known[1]

    def _check_around(self, value: Output) -> None:
        graph = self.outer
        while graph is not None and graph is not value.op.graph:
            graph = graph.outer
        if graph is None:
            raise ArgumentError(f"{value} belongs to a graph that is not being traced here")
