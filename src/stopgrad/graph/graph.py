"""`Graph`, as users see it: operations under names, placeholders, constants, variables, and running them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stopgrad.core.graph import BaseGraph, Output
from stopgrad.core.pytree import flatten, unflatten
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import as_output
from stopgrad.graph.run import checked_feed, run_graph
from stopgrad.graph.saving import save_graph
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

    def save(self, path: str | os.PathLike[str], *, variable_values: bool = True, sources: bool = True) -> None:
        """Write the graph to a file, which `stopgrad.graph.load` reads; data only, never code.

        Everything comes back bit for bit, and the same graph gives the same bytes. The format is described in
        docs/graph_files.md. An older file is replaced as a whole or not at all.

        Args:
            path: where to.
            variable_values: whether the values of variables are written, or only their names, shapes and dtypes.
            sources: whether the files and lines that operations come from are written.

        Raises:
            ArgumentError: a graph that uses something of another; two variables of one name.
            ArgumentTypeError: a setting, or array, that the format does not hold.
            DTypeError: values of a dtype that it does not hold.

        Example:
            >>> import os, tempfile
            >>> import stopgrad as sg
            >>> traced = sg.trace(lambda x: x * sg.stop_gradient(x))(3.0)
            >>> path = os.path.join(tempfile.mkdtemp(), "square.sg")
            >>> traced.graph.save(path)
            >>> len(sg.graph.load(path))
            3
        """
        save_graph(path, self, variable_values=variable_values, sources=sources)
