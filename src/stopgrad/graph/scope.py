"""`Scope`: where in a graph operations are added, and under which names; immutable, nested at will."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import BaseGraph, GraphOperation
from stopgrad.graph.building import building
from stopgrad.graph.graph import Graph

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-]*")


class Scope:
    """A graph with a prefix for names, and perhaps a name for the next operation.

    Op classes (`stopgrad.graph.ops`) take one as their first argument. Used as a context manager it lets plain
    functions of the library add to the graph under its prefix.

    Args:
        graph: the graph to add to.

    Example:
        >>> import stopgrad as sg
        >>> graph = sg.graph.Graph()
        >>> scope = sg.graph.Scope(graph)
        >>> x = graph.placeholder(sg.Spec((), float), "x")
        >>> with scope.with_sub_scope("layer") as layer:
        ...     y = sg.exp(x)
        >>> sg.graph.as_output(y).name
        'layer/exp:0'
        >>> sg.graph.ops.StopGradient.create(layer.with_name("target"), y).op().name
        'layer/target'
    """

    def __init__(self, graph: Graph, *, _prefix: str = "", _name: str | None = None) -> None:
        self._graph = graph
        self._prefix = _prefix
        self._name = _name
        self._entered: list[AbstractContextManager[None]] = []

    @property
    def graph(self) -> Graph:
        """The graph this scope adds to."""
        return self._graph

    @property
    def prefix(self) -> str:
        """What names start with, without the last slash; empty at the top."""
        return self._prefix

    def with_sub_scope(self, name: str) -> Scope:
        """Return a scope inside this one, its name made unique in the graph.

        Raises:
            ArgumentError: a name with other characters than letters, digits, `_`, `.` and `-`.
        """
        _check_name(name)
        with self._graph.scope(self._prefix):
            return Scope(self._graph, _prefix=self._graph.unique_scope(name))

    def with_name(self, name: str) -> Scope:
        """Return this scope with a name for the operation that is created with it."""
        _check_name(name)
        return Scope(self._graph, _prefix=self._prefix, _name=name)

    def make_op_name(self, default: str) -> str:
        """Return the full, unique name an operation created now would get."""
        with self._graph.scope(self._prefix):
            return self._graph.unique_name(default if self._name is None else self._name)

    def name_last(self, default: str, added: GraphOperation) -> None:
        """Give an operation that was just added the name of this scope."""
        self._graph.rename(added, self.make_op_name(default))

    @contextmanager
    def adding(self) -> Iterator[BaseGraph]:
        """Add what is computed from symbolic values in the block to the graph, under the prefix."""
        with building(self._graph), self._graph.scope(self._prefix):
            yield self._graph

    def __enter__(self) -> Scope:
        context = self.adding()
        context.__enter__()
        self._entered.append(context)  # type: ignore[arg-type]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<scope {self._prefix or 'at the top'}>"


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(
            f"a name in a graph starts with a letter, digit or '.' and goes on with those, '_' and '-'; got {name!r}"
        )
