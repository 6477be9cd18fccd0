"""The gradient builder: derivatives of a graph as further operations of the same graph.

`add_gradients` runs the reverse sweep with symbolic cotangents, so what the rules compute is added to the graph, under
a scope of its own; `add_tangents` does the same with the forward sweep. Nothing that is there already is touched, and
the operations added can be differentiated again. A stop's inputs count as not contributing: the path through it is
absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import carries_derivative
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from stopgrad.core.graph import Output
from stopgrad.core.marks import Mark
from stopgrad.core.operation import ABSENT, ZERO
from stopgrad.core.record import INDEX, coerce
from stopgrad.core.state import Level
from stopgrad.core.tensor import Tensor
from stopgrad.graph.building import as_output, building
from stopgrad.graph.graph import Graph
from stopgrad.sweeps.forward import forward
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import Unconnected, check_unconnected, finished, switches_of, zeros_like


def add_gradients(
    graph: Graph,
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    stop_gradients: Any = (),
    unconnected: Unconnected = "none",
    name: str = "gradients",
) -> list[Output | None]:
    """Add the gradients of the sum of `ys` with respect to `xs` to a graph.

    Args:
        graph: where everything is, and goes.
        ys: outputs (or operations of one output), or one of them.
        xs: likewise; they may lie anywhere on the way, and may depend on each other.
        grad_ys: cotangents, one for each y, outputs or arrays; `None` (also for a single one) stands for ones.
        stop_gradients: outputs to be taken as constants: nothing passes back through them, though they themselves may
            be among `xs`. Names of gates (strings) close those gates that were left `open`.
        unconnected: what stands for an unconnected x: "none", "zero" or "error".
        name: the scope the operations are added under, made unique.

    Returns:
        An output (or `None`) for each x, of its shape and dtype.

    Raises:
        UnconnectedError: with `unconnected="error"`; it names the gates that were met.
        ShapeError: a cotangent of another shape than its y.

    Example:
        >>> import stopgrad as sg
        >>> traced = sg.trace(lambda x: x * sg.stop_gradient(x))(3.0)
        >>> (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
        >>> float(traced.graph.run(dx, {traced.inputs[0]: 3.0}))
        3.0
    """
    check_unconnected(unconnected, "add_gradients")
    outputs, targets = _outputs(graph, ys, "ys"), _outputs(graph, xs, "xs")
    given = [stop_gradients] if isinstance(stop_gradients, str) else list(_listed(stop_gradients))
    level = Level(switches_of([one for one in given if isinstance(one, str)], "add_gradients"))
    stops = _outputs(graph, [one for one in given if not isinstance(one, str)], "stop_gradients")
    stopped = frozenset(one.node[INDEX] for one in stops if type(one.node) is tuple)
    nodes = [one.node for one in targets if type(one.node) is tuple]
    path = find_path([one.node for one in outputs], nodes, stopped)
    with building(graph), graph.scope(graph.unique_scope(name)):
        seeds = _seeds(outputs, grad_ys, what="grad_ys")
        found = reverse(
            path,
            [(one.node, seed) for one, seed in zip(outputs, seeds, strict=True) if seed is not None],
            {node[INDEX] for node in nodes},
            level,
            stopped,
        )
        return [_finished(graph, one, found, path.mark, unconnected, "add_gradients: x") for one in targets]


def add_tangents(
    graph: Graph,
    ys: Any,
    xs: Any,
    tangents: Any = None,
    unconnected: Unconnected = "none",
    name: str = "tangents",
) -> list[Output | None]:
    """Add the tangents of `ys` along given tangents of `xs` to a graph: `add_gradients` in forward mode.

    Args:
        graph: where everything is, and goes.
        ys: outputs, or one of them.
        xs: likewise.
        tangents: one for each x, outputs or arrays; ones by default.
        unconnected: what stands for an unconnected y: "none", "zero" or "error".
        name: the scope the operations are added under, made unique.

    Returns:
        An output (or `None`) for each y, of its shape and dtype.

    Example:
        >>> import stopgrad as sg
        >>> traced = sg.trace(lambda x: x * sg.stop_gradient(x))(3.0)
        >>> (dy,) = sg.graph.add_tangents(traced.graph, traced.outputs, traced.inputs)
        >>> float(traced.graph.run(dy, {traced.inputs[0]: 3.0}))
        3.0
    """
    check_unconnected(unconnected, "add_tangents")
    outputs, sources = _outputs(graph, ys, "ys"), _outputs(graph, xs, "xs")
    for one in sources:
        if not carries_derivative(one.dtype):
            raise DTypeError(f"add_tangents: {one.name} is {one.dtype}, which has no derivative")
    path = find_path([one.node for one in outputs], [one.node for one in sources if type(one.node) is tuple])
    with building(graph), graph.scope(graph.unique_scope(name)):
        seeds = _seeds(sources, tangents, what="tangents")
        found = forward(
            path,
            [(one.node, seed) for one, seed in zip(sources, seeds, strict=True) if type(one.node) is tuple],
            [one.node for one in outputs],
            Level(),
        )
        return [_finished(graph, one, found, path.mark, unconnected, "add_tangents: y") for one in outputs]


def _listed(given: Any) -> Sequence[Any]:
    return given if isinstance(given, tuple | list) else [given]


def _outputs(graph: Graph, given: Any, what: str) -> list[Output]:
    outputs = [as_output(one) for one in _listed(given)]
    for one in outputs:
        if one.op.graph is not graph:
            raise ArgumentError(f"{what}: {one.name} belongs to another graph than the one given")
    return outputs


def _seeds(likes: Sequence[Output], given: Any, what: str) -> list[Tensor]:
    """Return a cotangent or tangent for each output, as tensors; ones where none is given."""
    entries = [None] * len(likes) if given is None else list(_listed(given))
    if len(entries) != len(likes):
        raise ArgumentTypeError(f"{what}: {len(entries)} were given for {len(likes)} outputs")
    seeds = []
    for like, entry in zip(likes, entries, strict=True):
        if entry is None:
            seeds.append(Tensor(np.broadcast_to(np.ones((), like.dtype), like.shape)))
            continue
        value, node = coerce(entry, what)
        seed = Tensor(np.asarray(value, like.dtype) if not hasattr(value, "shape") else value, node)
        if seed.shape != like.shape:
            raise ShapeError(f"{what}: shape {seed.shape} was given for {like.name}, which has shape {like.shape}")
        seeds.append(seed if seed.dtype == like.dtype else primitives.astype(seed, like.dtype))
    return seeds


def _finished(
    graph: Graph, one: Output, found: dict[int, Any], mark: Mark | None, unconnected: Unconnected, what: str
) -> Output | None:
    derivative = found.get(one.node[INDEX], ABSENT) if type(one.node) is tuple else ABSENT
    if derivative is ZERO:
        return graph.constant(zeros_like(one))
    tensor = finished(derivative, Tensor(one), mark, unconnected, f"{what} {one.name!r}")
    if tensor is None:
        return None
    output: Output = graph.imported(tensor.value)
    return output
