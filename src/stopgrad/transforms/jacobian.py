"""`jacobian` and `hessian`: all derivatives of every output, one sweep for each output (reverse) or input (forward)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import stopgrad.primitives as primitives
from stopgrad.core.arrays import namespace_of
from stopgrad.core.errors import ArgumentError
from stopgrad.core.operation import ABSENT
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
    rows: list[list[Any]] = [[] for _ in nodes]
    basis = _basis(output)
    for seed in basis:
        found = reverse(path, [(output.node, seed)], wanted, level)
        for row, node in zip(rows, nodes, strict=True):
            row.append(ABSENT if node is None else found.get(node[INDEX], ABSENT))
    blocks = []
    for row, like in zip(rows, likes, strict=True):
        if all(entry is ABSENT for entry in row) and (basis or unconnected != "zero"):
            empty = finished(ABSENT, like, path.mark, unconnected, what)
            blocks.append(None if empty is None else _zero_block(output, like))
        else:
            blocks.append(_assembled(row, like, (*output.shape, *like.shape)))
    return blocks


def _columns_of(
    outputs: Sequence[Tensor], path: Path, inputs: Sequence[Tensor], level: Level, unconnected: Unconnected
) -> list[list[Any]]:
    """Return for each output the Jacobian for each input, by one forward sweep an entry of the inputs."""
    blocks: list[list[Any]] = [[] for _ in outputs]
    for x in inputs:
        columns: list[list[Any]] = [[] for _ in outputs]
        for seed in _basis(x):
            found = forward(path, [(x.node, seed)], [output.node for output in outputs], level)
            for column, output in zip(columns, outputs, strict=True):
                recorded = type(output.node) is tuple
                column.append(found.get(output.node[INDEX], ABSENT) if recorded else ABSENT)
        for block, column, output in zip(blocks, columns, outputs, strict=True):
            if all(entry is ABSENT for entry in column):
                empty = finished(ABSENT, x, path.mark, unconnected, "jacobian: the argument")
                block.append(None if empty is None else _zero_block(output, x))
                continue
            stacked = _assembled(column, output, (*x.shape, *output.shape))
            axes = (*range(x.ndim, x.ndim + output.ndim), *range(x.ndim))
            block.append(primitives.permute_dims(stacked, axes))
    return blocks


def _basis(x: Tensor) -> list[Any]:
    """Return the unit vectors of the space of x, as tensors if the sweep is to be recorded."""
    xp = namespace_of(x.value)
    size = math.prod(x.shape)
    unit = xp.eye(size, dtype=x.dtype)
    return [as_seed(Tensor(xp.reshape(unit[i, :], x.shape)), x.value) for i in range(size)]


def _assembled(entries: Sequence[Any], like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the derivatives of all entries as one tensor of the given shape."""
    if not entries:
        return Tensor(namespace_of(like.value).zeros(shape, dtype=like.dtype))
    parts = [finished(entry, like, None, "zero", "jacobian") for entry in entries]
    return primitives.reshape(primitives.stack(parts, 0), shape)


def _zero_block(output: Tensor, x: Tensor) -> Tensor:
    return Tensor(namespace_of(x.value).zeros((*output.shape, *x.shape), dtype=x.dtype))


def _by_argument(block: list[Any], leaves: Sequence[Leaves], several: bool) -> Any:
    """Arrange one output's blocks in the structure of the arguments."""
    remaining = iter(block)
    trees = tuple(
        unflatten(leaf.treedef, [next(remaining) if is_fresh else None for is_fresh in leaf.fresh]) for leaf in leaves
    )
    return trees if several else trees[0]
