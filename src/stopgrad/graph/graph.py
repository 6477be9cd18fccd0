"""`Graph`, as users see it: operations under names, placeholders, constants, variables, and running them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopgrad.core.graph import BaseGraph, Output
from stopgrad.core.pytree import flatten, unflatten
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import as_output
from stopgrad.graph.run import checked_feed, run_graph
from stopgrad.graph.text import text_of


class Graph(BaseGraph):
    """A program as named operations, each after those it depends on.

    Example:
        >>> import numpy as np
        >>> import stopgrad as sg
        >>> graph = sg.graph.Graph()
        >>> x = graph.placeholder(sg.Spec((2,), np.dtype("float64")), "x")
        >>> y = sg.sum(x * sg.stop_gradient(x))
        >>> float(graph.run(y, {x: [3.0, 4.0]}))
        25.0
        >>> (dx,) = sg.graph.add_gradients(graph, y, x)
        >>> graph.run(dx, {x: [3.0, 4.0]}).numpy()
        array([3., 4.])
    """

    def __str__(self) -> str:
        return text_of(self)

    def run(self, fetches: Any, feed: Mapping[Any, Any] | None = None) -> Any:
        """Return the values of fetches, as tensors in their structure.

        Args:
            fetches: operand, or a pytree of operands; a `None` among them stays `None`.
            feed: values for placeholders, or for anything on the way, by operand; arrays, tensors or numbers of the
                operand's shape and dtype.

        Raises:
            ArgumentError: a placeholder that is needed was not fed.
            ShapeError: a fed value of another shape.
            DTypeError: a fed value of another dtype.
        """
        wanted, treedef = flatten(fetches)
        given = {as_output(operand): value for operand, value in (feed or {}).items()}
        outputs: list[Output] = [as_output(one) for one in wanted]
        values = run_graph(outputs, checked_feed(given))
        return unflatten(treedef, [Tensor(value) for value in values])
