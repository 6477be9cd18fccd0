"""Batching: a program written for one example, run for many at once, as a sweep over its graph.

`example` traces a function of one example; `sweep` runs the graph with an axis of examples in front of whatever differs
between them; `table` says, operation by operation, how that is done.
"""

from stopgrad.batching.example import ExampleGraph
from stopgrad.batching.sweep import run_batched

__all__ = ["ExampleGraph", "run_batched"]
