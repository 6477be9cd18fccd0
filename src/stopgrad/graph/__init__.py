"""Graph mode: programs as graphs, from a function (`trace`) or by hand, and derivatives added to them."""

from stopgrad.core.graph import GraphOperation as Operation
from stopgrad.core.graph import Output
from stopgrad.graph import ops, passes
from stopgrad.graph.building import as_output
from stopgrad.graph.derivatives import add_gradients, add_tangents
from stopgrad.graph.graph import Graph
from stopgrad.graph.loading import load, load_traced
from stopgrad.graph.ops import PrimitiveOp
from stopgrad.graph.passes import simplify
from stopgrad.graph.scope import Scope
from stopgrad.graph.tracing import Traced, trace

__all__ = [
    "Graph",
    "Operation",
    "Output",
    "PrimitiveOp",
    "Scope",
    "Traced",
    "add_gradients",
    "add_tangents",
    "as_output",
    "load",
    "load_traced",
    "ops",
    "passes",
    "simplify",
    "trace",
]
