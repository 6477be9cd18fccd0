"""Graphs as text that can be read and compared line by line.

    graph (x: float64[3]) {
      stop_gradient = stop_gradient(x; name=None)          # program.py:12
      multiply = multiply(x, stop_gradient)
      sum = sum(multiply; axis=None, keepdims=False, shape=(3,), dtype=None)
    } -> (sum)

One line an operation: its name, the primitive, its inputs (`name` for the first output, `name:1` for others, plain
numbers as they are) and after the semicolon its settings under the names the primitive gives them. The bodies of loops
and branches are printed inside, indented.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from stopgrad.core.graph import PLACEHOLDER, BaseGraph, GraphOperation, Output
from stopgrad.core.operation import EveryInput, Operation


def text_of(graph: BaseGraph, outputs: Sequence[Any] = (), *, sources: bool = True, shapes: bool = True) -> str:
    """Return a graph as text.

    Args:
        graph: what to print.
        outputs: the results to name in the last line, if any.
        sources: add the file and line each operation comes from.
        shapes: add shape and dtype of the results of each operation.
    """
    return "\n".join(_lines(graph, outputs, sources, shapes))


def _lines(graph: BaseGraph, outputs: Sequence[Any], sources: bool, shapes: bool) -> Iterable[str]:
    inputs = [one.outputs[0] for one in graph if one.operation is PLACEHOLDER]
    yield f"graph ({', '.join(f'{one.op.name}: {one.spec}' for one in inputs)}) {{"
    for operation in graph:
        if operation.operation is not PLACEHOLDER:
            yield from _operation_lines(operation, sources, shapes)
    yield f"}} -> ({', '.join(map(operand_text, outputs))})" if outputs else "}"


def _operation_lines(operation: GraphOperation, sources: bool, shapes: bool) -> Iterable[str]:
    bodies: list[tuple[str, Any]] = []
    settings = []
    for name, value in zip(param_names(operation.operation, operation), operation.params, strict=True):
        for number, one in enumerate(value if isinstance(value, tuple) else (value,)):
            if hasattr(one, "body_graphs"):
                place = f"{name}[{number}]" if isinstance(value, tuple) else name
                bodies.extend((f"{place}.{label}" if label else place, body) for label, body in one.body_graphs())
        settings.append(f"{name}={value!r}")
    arguments = ", ".join(map(operand_text, operation.inputs))
    line = f"  {operation.name} = {operation.type}({arguments}{'; ' if settings else ''}{', '.join(settings)})"
    if shapes:
        line += f" : {', '.join(str(one.spec) for one in operation.outputs)}"
    if sources and operation.source is not None:
        line += f"  # {os.path.basename(operation.source[0])}:{operation.source[1]}"
    yield line
    for label, (graph, outputs) in bodies:
        yield f"    {label}:"
        yield from (f"    {inner}" for inner in _lines(graph, outputs, sources, shapes))


def operand_text(operand: Any) -> str:
    """Return how an input or result is written: `name`, `name:1`, or a plain number."""
    if type(operand) is not Output:
        return repr(operand)
    return operand.op.name if operand.index == 0 else operand.name


def param_names(operation: Operation, added: GraphOperation) -> list[str]:
    """Return the names of an operation's settings, as its kernel calls them."""
    count = len(added.params)
    names = getattr(operation.vjps, "setting_names", ())
    if len(names) == count:
        return list(names)
    code = getattr(operation.kernel, "__code__", None)
    if code is not None and not isinstance(operation.vjps, EveryInput):
        names = code.co_varnames[1 + len(added.inputs) : code.co_argcount]
        if len(names) == count:
            return [name.lstrip("_") for name in names]
    return [f"setting{number}" for number in range(count)]
