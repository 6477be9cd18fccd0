"""Graph mode: programs as graphs, from a function (`trace`) or by hand, and derivatives added to them."""

from stopgrad.core.graph import GraphOperation as Operation
from stopgrad.core.graph import Output
from stopgrad.graph.derivatives import add_gradients, add_tangents
from stopgrad.graph.graph import Graph
from stopgrad.graph.trace import Traced, trace

__all__ = ["Graph", "Operation", "Output", "Traced", "add_gradients", "add_tangents", "trace"]
