"""`jacobian` and `hessian`: all derivatives of every output, one sweep for each output (reverse) or input (forward).

Where they are many the sweep is traced once and run for many at a time, as `vmap` runs a function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import stopgrad.primitives as primitives
from stopgrad.batching.application import Entry, in_front
from stopgrad.batching.example import ExampleGraph
from stopgrad.batching.sweep import run_batched
from stopgrad.batching.table import RULES
from stopgrad.core.arrays import namespace_of
from stopgrad.core.errors import ArgumentError, TracedValueError
from stopgrad.core.operation import ABSENT, ZERO
from stopgrad.core.pytree import unflatten
from stopgrad.core.record import INDEX, Node
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.sweeps.forward import forward
from stopgrad.sweeps.path import Path, find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import (
    Leaves,
    StopNames,
    Unconnected,
    as_seed,
    check_function,
    check_unconnected,
    finished,
    output_tensors,
    positions,
    release,
    split_aux,
    switches_of,
)
from stopgrad.transforms.grad import grad

Mode = Literal["auto", "reverse", "forward"]
# Takes a cotangent or tangent, gives those it leads to, `ABSENT` where there is no path.
Sweep = Callable[[Any], list[Any]]

MANY = 20
"""From how many unit vectors on it pays to trace a sweep and run it for many at a time."""
AT_ONCE = 128
"""For how many."""


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: Mode = "auto",
    has_aux: bool = False,
    unconnected: Unconnected = "zero",
    stop: StopNames = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `f`.

    Args:
        f: function of pytrees that returns a pytree of tensors.
        argnums: which positional arguments to differentiate, an int or a tuple.
        mode: "reverse" takes one sweep for each entry of the result, "forward" one for each entry of the arguments,
            "auto" whichever needs fewer.
        has_aux: `f` returns `(result, aux)`, and the function made returns `(jacobian, aux)`.
        unconnected: see `grad`.
        stop: see `grad`.

    Returns:
        A function with the arguments of `f`. Its result has the structure of the result of `f`, with at each leaf the
        structure of the argument, and there an array of shape output.shape + input.shape.

    Example:
        >>> import stopgrad as sg
        >>> sg.jacobian(lambda x: x**2)([1.0, 2.0]).numpy()
        array([[2., 0.],
               [0., 4.]])
    """
    if mode not in ("auto", "reverse", "forward"):
        raise ArgumentError(f"jacobian: mode must be 'auto', 'reverse' or 'forward', got {mode!r}")
    check_function(f, "jacobian")
    check_unconnected(unconnected, "jacobian")
    switches = switches_of(stop, "jacobian")

    @functools.wraps(f)
    def jacobian_function(*args: Any, **kwargs: Any) -> Any:
        chosen = positions(argnums, len(args), "jacobian")
        leaves = [Leaves(args[number], "jacobian", f"argument {number}") for number in chosen]
        arguments = list(args)
        for number, leaf in zip(chosen, leaves, strict=True):
            arguments[number] = leaf.tree
        level = Level(switches)
        with state.differentiate(level):
            result = f(*arguments, **kwargs)
        result, aux = split_aux(result, has_aux, "jacobian")
        outputs, treedef = output_tensors(result, "jacobian")
        tensors = [tensor for leaf in leaves for tensor in leaf.tensors]
        path = find_path([output.node for output in outputs], [tensor.node for tensor in tensors])
        outward = sum(output.size for output in outputs)
        inward = sum(tensor.size for tensor in tensors)
        if mode == "reverse" or (mode == "auto" and outward <= inward):
            blocks = [
                rows_of(output, path, [t.node for t in tensors], tensors, level, unconnected, "jacobian: the argument")
                for output in outputs
            ]
        else:
            blocks = _columns_of(outputs, path, tensors, level, unconnected)
        by_output = [_by_argument(block, leaves, isinstance(argnums, tuple | list)) for block in blocks]
        jacobians = unflatten(treedef, by_output)
        return (jacobians, release(aux)) if has_aux else jacobians

    return jacobian_function


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, stop: StopNames = None) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `f`, by forward mode over reverse mode.

    Args:
        f: function that returns one number.
        argnums: which positional arguments to differentiate.
        stop: see `grad`.

    Returns:
        A function with the arguments of `f`; for one array argument the result has shape x.shape + x.shape.

    Example:
        >>> import stopgrad as sg
        >>> sg.hessian(lambda x: x[0] ** 2 * x[1])([1.0, 3.0]).numpy()
        array([[6., 2.],
               [2., 0.]])
    """
    return jacobian(grad(f, argnums, stop=stop), argnums, mode="forward", stop=stop)


def rows_of(
    output: Tensor,
    path: Path,
    nodes: Sequence[Node | None],
    likes: Sequence[Tensor],
    level: Level,
    unconnected: Unconnected,
    what: str,
) -> list[Any]:
    """Return the Jacobian of one output for each node, by one reverse sweep an entry of the output."""
    wanted = {node[INDEX] for node in nodes if node is not None}

    def pull(seed: Any) -> list[Any]:
        found = reverse(path, [(output.node, seed)], wanted, level)
        return [ABSENT if node is None else found.get(node[INDEX], ABSENT) for node in nodes]

    blocks = []
    for rows, like in zip(_for_unit_vectors(output, pull, likes), likes, strict=True):
        if rows is ABSENT and (output.size or unconnected != "zero"):
            empty = finished(ABSENT, like, path.mark, unconnected, what)
            blocks.append(None if empty is None else _zero_block(output, like))
        else:
            blocks.append(_zero_block(output, like) if rows is ABSENT else _shaped(rows, output, like))
    return blocks


def _columns_of(
    outputs: Sequence[Tensor], path: Path, inputs: Sequence[Tensor], level: Level, unconnected: Unconnected
) -> list[list[Any]]:
    """Return for each output the Jacobian for each input, by one forward sweep an entry of the inputs."""
    blocks: list[list[Any]] = [[] for _ in outputs]
    nodes = [output.node for output in outputs]
    for x in inputs:

        def push(seed: Any, x: Tensor = x) -> list[Any]:
            found = forward(path, [(x.node, seed)], nodes, level)
            return [found.get(node[INDEX], ABSENT) if type(node) is tuple else ABSENT for node in nodes]

        for block, columns, output in zip(blocks, _for_unit_vectors(x, push, outputs), outputs, strict=True):
            if columns is ABSENT:
                empty = finished(ABSENT, x, path.mark, unconnected, "jacobian: the argument")
                block.append(None if empty is None else _zero_block(output, x))
                continue
            axes = (*range(x.ndim, x.ndim + output.ndim), *range(x.ndim))
            block.append(primitives.permute_dims(_shaped(columns, x, output), axes))
    return blocks


def _for_unit_vectors(x: Tensor, sweep: Sweep, likes: Sequence[Tensor]) -> list[Any]:
    """Return for each result of a sweep all that it gives for the unit vectors of the space of x, along a first axis.

    `ABSENT` stands for a result that is absent for all of them.
    """
    xp = namespace_of(x.value)
    size = math.prod(x.shape)
    units = xp.reshape(xp.eye(size, dtype=x.dtype), (size, *x.shape))
    if size >= MANY:
        try:
            return _at_once(units, sweep, likes)
        except TracedValueError:  # a derivative given by hand looks at the values that it gets
            pass
    entries = [sweep(as_seed(Tensor(units[i, ...]), x.value)) for i in range(size)]
    results: list[Any] = []
    for column, like in zip(zip(*entries, strict=True) if entries else [()] * len(likes), likes, strict=True):
        if all(one is ABSENT for one in column):
            results.append(ABSENT)
        else:
            results.append(primitives.stack([finished(one, like, None, "zero", "jacobian") for one in column], 0))
    return results


def _at_once(units: Any, sweep: Sweep, likes: Sequence[Tensor]) -> list[Any]:
    """Trace the sweep for one unit vector, and run that for many at a time."""
    size = units.shape[0]
    graph = ExampleGraph("the derivative", size, RULES)
    with graph.tracing():
        seed = graph.example_of(Tensor(units))
        found = sweep(seed)
        outputs = graph.outputs_of([one for one in found if one is not ABSENT and one is not ZERO])
    parts = []
    for start in range(0, size, AT_ONCE):
        end = min(start + AT_ONCE, size)
        given = {**graph.entries, seed.value: Entry(Tensor(units[start:end, ...]), True)}
        parts.append([in_front(one, True, end - start) for one in run_batched(outputs, given, end - start, RULES)])
    graph.release()
    joined = iter(
        [ones[0] if len(ones) == 1 else primitives.concat(list(ones), axis=0) for ones in zip(*parts, strict=True)]
    )
    results: list[Any] = []
    for one, like in zip(found, likes, strict=True):
        if one is ZERO:
            results.append(Tensor(namespace_of(like.value).zeros((size, *like.shape), dtype=like.dtype)))
        else:
            results.append(ABSENT if one is ABSENT else finished(next(joined), like, None, "zero", "jacobian"))
    return results


def _shaped(rows: Tensor, x: Tensor, like: Tensor) -> Tensor:
    return primitives.reshape(rows, (*x.shape, *like.shape))


def _zero_block(output: Tensor, x: Tensor) -> Tensor:
    return Tensor(namespace_of(x.value).zeros((*output.shape, *x.shape), dtype=x.dtype))


def _by_argument(block: list[Any], leaves: Sequence[Leaves], several: bool) -> Any:
    """Arrange one output's blocks in the structure of the arguments."""
    remaining = iter(block)
    trees = tuple(
        unflatten(leaf.treedef, [next(remaining) if is_fresh else None for is_fresh in leaf.fresh]) for leaf in leaves
    )
    return trees if several else trees[0]
