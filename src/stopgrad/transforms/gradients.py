"""`gradients`: derivatives between tensors that have been recorded already, with stops said afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stopgrad.core.errors import ArgumentTypeError, ShapeError
from stopgrad.core.marks import Mark
from stopgrad.core.operation import ABSENT
from stopgrad.core.pytree import flatten, is_number_list, unflatten
from stopgrad.core.record import INDEX, Node
from stopgrad.core.state import Level
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import (
    Unconnected,
    as_seed,
    check_unconnected,
    finished,
    ones_like,
    switches_of,
)


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    stop_gradients: Any = (),
    unconnected: Unconnected = "none",
) -> Any:
    """Return the gradients of the sum of `ys` with respect to `xs`, in the structure of `xs`.

    For tensors that are recorded: call it inside a `GradientTape` block or a function under transformation (what a tape
    watched is a constant again after its block). `xs` may lie anywhere on the way, and may depend on each other.

    Args:
        ys: recorded tensor or pytree of them.
        xs: recorded tensors or variables.
        grad_ys: cotangents in the structure of `ys`; ones by default.
        stop_gradients: tensors or variables to be taken as constants: nothing passes back through them, though they
            themselves may be among `xs`. Names of gates (strings) stop at those gates that were left `open`.
        unconnected: what stands for an unconnected x: "none", "zero" or "error".

    Raises:
        UnconnectedError: with `unconnected="error"`; it names the gates that were met.

    Example:
        >>> import stopgrad as sg
        >>> with sg.GradientTape() as tape:
        ...     x = tape.watch(sg.tensor(1.0))
        ...     y = 2 * x
        ...     z = x + y
        ...     whole = sg.gradients(z, [x, y])
        ...     cut = sg.gradients(z, [x, y], stop_gradients=[y])
        >>> [float(g) for g in whole], [float(g) for g in cut]
        ([3.0, 1.0], [1.0, 1.0])
    """
    check_unconnected(unconnected, "gradients")
    outputs, _ = flatten(ys)
    sought, treedef = flatten(xs)
    output_nodes = [node_of(one) for one in outputs]
    nodes = [node_of(one) for one in sought]
    targets = [node for node in nodes if type(node) is tuple]
    given = [stop_gradients] if isinstance(stop_gradients, str) else flatten(stop_gradients)[0]
    level = Level(switches_of([one for one in given if isinstance(one, str)], "gradients"))
    stopped = stop_indices([one for one in given if not isinstance(one, str)], node_of)
    path = find_path(output_nodes, targets, stopped)
    seeds = list(zip(output_nodes, seeds_of(outputs, grad_ys, "gradients"), strict=True))
    cotangents = reverse(path, seeds, {target[INDEX] for target in targets}, level, stopped)
    found = [cotangents.get(node[INDEX], ABSENT) if type(node) is tuple else ABSENT for node in nodes]
    return unflatten(treedef, collect(found, sought, path.mark, unconnected, "gradients: x"))


def is_variable(one: Any) -> bool:
    """Whether this is a variable: it stands for a tensor and has one leaf node for life."""
    return hasattr(one, "leaf_node")


def node_of(one: Any) -> Any:
    """Return the node (or mark, or `None`) of a tensor or variable."""
    if is_variable(one):
        return one.leaf_node
    if not isinstance(one, Tensor):
        raise ArgumentTypeError(
            f"gradients: takes recorded tensors and variables, got a {type(one).__name__}; for a function of arrays "
            "use grad(f)(x)"
        )
    return one.node


def stop_indices(stops: Any, find: Callable[[Any], Node | None]) -> frozenset[int]:
    """Return the indices of the nodes of tensors at which a sweep is to stop."""
    nodes: Iterable[Any] = (find(one) for one in flatten(stops)[0])
    return frozenset(node[INDEX] for node in nodes if type(node) is tuple)


def seeds_of(outputs: Sequence[Any], cotangents: Any, where: str) -> list[Any]:
    """Return a cotangent for each output, ones by default, as tensors if the sweep is to be recorded."""
    tensors = [to_tensor(one, f"{where}: target") for one in outputs]
    if cotangents is None:
        return [as_seed(Tensor(ones_like(one.value)), one.value) for one in tensors]
    given, _ = flatten(cotangents, number_lists=True)
    several = len(tensors) > 1 or not tensors[0].shape
    if is_number_list(cotangents) and len(cotangents) == len(tensors) and several:
        given = cotangents  # one for each target, where otherwise the list would stand for one array
    if len(given) != len(tensors):
        raise ArgumentTypeError(f"{where}: {len(given)} cotangents were given for {len(tensors)} targets")
    seeds = []
    for one, like in zip(given, tensors, strict=True):
        cotangent = to_tensor(one, f"{where}: cotangent")
        if cotangent.shape != like.shape:
            raise ShapeError(f"{where}: a cotangent has shape {cotangent.shape}, its target {like.shape}")
        seeds.append(as_seed(cotangent, like.value))
    return seeds


def collect(
    found: Sequence[Any], sought: Sequence[Any], mark: Mark | None, unconnected: Unconnected, what: str
) -> list[Any]:
    """Return what the user gets for each sought tensor or variable: its derivative, or what the policy says."""
    results = []
    for number, (one, derivative) in enumerate(zip(sought, found, strict=True)):
        name = getattr(one, "name", None) if is_variable(one) else None
        label = f"{what} {number}" if name is None else f"{what} {name!r}"
        results.append(finished(derivative, to_tensor(one, what), mark, unconnected, label))
    return results
