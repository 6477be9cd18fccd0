"""Adding to a graph: which graph what is computed from symbolic values goes to, and what counts as an operand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.graph import BaseGraph, Output
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor


@contextmanager
def building(graph: BaseGraph) -> Iterator[None]:
    """Add to this graph what is computed from symbolic values in the block."""
    before = state.graph
    state.graph = graph
    try:
        yield
    finally:
        state.graph = before


def as_output(operand: Any) -> Output:
    """Return the output an operand stands for: an output, a symbolic tensor, or what has `as_output()`."""
    if type(operand) is Output:
        return operand
    if isinstance(operand, Tensor) and type(operand.value) is Output:
        return operand.value
    if hasattr(operand, "as_output"):
        output: Output = operand.as_output()
        return output
    raise ArgumentTypeError(
        f"expected an output of a graph, got a {type(operand).__name__}; for an array use graph.constant(array)"
    )
