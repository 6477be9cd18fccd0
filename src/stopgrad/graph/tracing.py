"""`trace`: from a Python function to a graph, by calling it once with symbolic tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec, spec_of
from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.graph import Output
from stopgrad.core.pytree import TreeDef, flatten, flatten_like, unflatten
from stopgrad.core.record import coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import building
from stopgrad.graph.graph import Graph
from stopgrad.graph.run import checked_feed, replay, run_graph
from stopgrad.graph.saving import save_graph
from stopgrad.graph.text import text_of
from stopgrad.primitives.inputs import to_tensor


class Traced:
    """A function as a graph: call it with arrays to run the graph.

    Attributes:
        graph: the operations.
        inputs: placeholders, one for each array among the arguments, in the order of the flattened arguments.
        outputs: outputs of the graph (or plain numbers), one for each leaf of the result.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Output],
        outputs: Sequence[Any],
        in_tree: TreeDef,
        out_tree: TreeDef,
        name: str,
    ) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.name = name

    def __call__(self, *args: Any) -> Any:
        """Run the graph on arguments of the structure, shapes and dtypes it was traced with.

        Derivatives can be taken through the call, and it can be traced itself.
        """
        leaves = flatten_like(self.in_tree, args, f"{self.name}: the arguments", number_lists=True)
        given = [coerce(leaf, self.name) for leaf in leaves]
        feed = checked_feed({one: value for one, (value, _) in zip(self.inputs, given, strict=True)})
        if any(type(value) is Output or node is not None for value, node in given):
            nodes = (node for _, node in given)
            tensors = {one: Tensor(value, node) for (one, value), node in zip(feed.items(), nodes, strict=True)}
            return unflatten(self.out_tree, [to_tensor(one, self.name) for one in replay(self.outputs, tensors)])
        return unflatten(self.out_tree, [Tensor(value) for value in run_graph(self.outputs, feed)])

    def save(self, path: str | os.PathLike[str], *, variable_values: bool = True, sources: bool = True) -> None:
        """Write the function to a file, which `stopgrad.graph.load_traced` reads; see `Graph.save`.

        Raises:
            ArgumentTypeError: also arguments or results in containers other than tuples, lists, dicts and named tuples.
        """
        save_graph(path, self.graph, variable_values=variable_values, sources=sources, traced=self)

    def __str__(self) -> str:
        return text_of(self.graph, self.outputs)

    def __repr__(self) -> str:
        return f"<traced {self.name}: {len(self.graph)} operations>"


def trace(f: Callable[..., Any]) -> Callable[..., Traced]:
    """Return a function that traces `f` for given arguments.

    Args:
        f: function of pytrees of tensors that returns a pytree of tensors. It is called once, with symbolic tensors of
            known shape and dtype. Arrays it gets hold of otherwise become constants of the graph.

    Returns:
        A function of the arguments of `f`; for an array a `Spec(shape, dtype)` will do. It returns a `Traced`.

    Raises:
        TracedValueError: when tracing, if the function asks for a value (with `if`, `float()`, …).

    Example:
        >>> import stopgrad as sg
        >>> traced = sg.trace(lambda x: x * sg.stop_gradient(x))(3.0)
        >>> [operation.type for operation in traced.graph]
        ['placeholder', 'stop_gradient', 'multiply']
        >>> float(traced(5.0))
        25.0
    """
    if not callable(f):
        raise ArgumentTypeError(f"trace: takes a function, got a {type(f).__name__}; write trace(f)(x)")

    def tracing(*args: Any) -> Traced:
        leaves, in_tree = flatten(args, number_lists=True, is_leaf=lambda one: isinstance(one, Spec))
        return trace_leaves(f, leaves, in_tree, Graph(outer=state.graph), getattr(f, "__name__", "f"))

    return tracing


def trace_leaves(f: Callable[..., Any], leaves: Sequence[Any], in_tree: TreeDef, graph: Graph, name: str) -> Traced:
    """Trace a function into a graph, for arguments given as leaves and structure."""
    specs = [one if isinstance(one, Spec) else _spec(one, name) for one in leaves]
    with building(graph):
        placeholders = [graph.placeholder(Spec(tuple(s.shape), np.dtype(s.dtype)), "input") for s in specs]
        result = f(*unflatten(in_tree, [Tensor(one) for one in placeholders]))
        results, out_tree = flatten(result, number_lists=True)
        outputs = []
        for one in results:
            value, _ = coerce(one, f"{name}: the result")
            outputs.append(graph.imported(np.asarray(value) if not hasattr(value, "shape") else value))
    return Traced(graph, placeholders, outputs, in_tree, out_tree, name)


def _spec(one: Any, name: str) -> Spec:
    value, _ = coerce(one, f"trace of {name}")
    return spec_of(value)
