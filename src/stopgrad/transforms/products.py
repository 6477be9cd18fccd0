"""`vjp` and `jvp`: products with the Jacobian, from the left and from the right; and `hvp`, with the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.operation import ABSENT
from stopgrad.core.pytree import flatten_like, unflatten
from stopgrad.core.record import INDEX
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.sweeps.forward import forward
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import (
    Leaves,
    StopNames,
    Unconnected,
    as_seed,
    check_function,
    check_unconnected,
    finished,
    is_leaf,
    output_tensors,
    release,
    split_aux,
    switches_of,
)
from stopgrad.transforms.grad import grad


def vjp(
    f: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    unconnected: Unconnected = "zero",
    stop: StopNames = None,
) -> tuple[Any, ...]:
    """Return `f(*primals)` and the function that pulls cotangents of the result back to the primals.

    Args:
        f: function of pytrees that returns a pytree of tensors.
        *primals: where to differentiate; pytrees.
        has_aux: `f` returns `(result, aux)`; a third value, aux, is then returned.
        unconnected: see `grad`; applied on every pull back.
        stop: see `grad`.

    Returns:
        `(result, pullback)`. `pullback(cotangents)` takes a tree like the result and returns a tuple, one entry a
        primal, with its structure, shapes and dtypes. It can be called any number of times and differentiated.

    Raises:
        ShapeError: when pulling back, a cotangent's shape is not that of its output.

    Example:
        >>> import stopgrad as sg
        >>> y, pullback = sg.vjp(lambda x: x**2, [1.0, 2.0])
        >>> pullback([1.0, 10.0])[0].numpy()
        array([ 2., 40.])
    """
    check_function(f, "vjp")
    check_unconnected(unconnected, "vjp")
    leaves = [Leaves(primal, "vjp", f"primal {i}") for i, primal in enumerate(primals)]
    level = Level(switches_of(stop, "vjp"))
    with state.differentiate(level):
        result = f(*(leaf.tree for leaf in leaves))
    result, aux = split_aux(result, has_aux, "vjp")
    outputs, treedef = output_tensors(result, "vjp")
    targets = [node for leaf in leaves for node in leaf.nodes]
    path = find_path([output.node for output in outputs], targets)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        given = flatten_like(treedef, cotangents, "pullback: the cotangents", number_lists=True)
        seeds = seeds_for(outputs, given, "pullback: cotangent")
        found = reverse(path, seeds, {target[INDEX] for target in targets}, level)
        return tuple(leaf.collect(found, path.mark, unconnected, "vjp") for leaf in leaves)

    value = release(result)
    return (value, pullback, release(aux)) if has_aux else (value, pullback)


def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: bool = False,
    unconnected: Unconnected = "zero",
    stop: StopNames = None,
) -> tuple[Any, ...]:
    """Return `f(*primals)` and the tangent of the result: the derivative along the given tangents.

    Args:
        f: function of pytrees that returns a pytree of tensors.
        primals: tuple or list of its arguments.
        tangents: one for each primal, with its structure and shapes.
        has_aux: `f` returns `(result, aux)`; a third value, aux, is then returned.
        unconnected: what stands for the tangent of an output that no ungated path joins to the primals; see `grad`.
        stop: see `grad`.

    Returns:
        `(result, tangent)`, the tangent with the structure, shapes and dtypes of the result.

    Raises:
        ArgumentError: primals and tangents differ in number or structure.
        ShapeError: a tangent's shape is not that of its primal.

    Example:
        >>> import stopgrad as sg
        >>> y, dy = sg.jvp(lambda x: x**2, (3.0,), (1.0,))
        >>> float(y), float(dy)
        (9.0, 6.0)
    """
    check_function(f, "jvp")
    check_unconnected(unconnected, "jvp")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentTypeError("jvp: primals and tangents are tuples, one entry an argument: jvp(f, (x,), (dx,))")
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: {len(primals)} primals but {len(tangents)} tangents; give one for each")
    leaves = [Leaves(primal, "jvp", f"primal {i}") for i, primal in enumerate(primals)]
    level = Level(switches_of(stop, "jvp"))
    seeds = [
        seed
        for i, (leaf, tangent) in enumerate(zip(leaves, tangents, strict=True))
        for seed in _tangent_seeds(leaf, tangent, i)
    ]
    with state.differentiate(level):
        result = f(*(leaf.tree for leaf in leaves))
    result, aux = split_aux(result, has_aux, "jvp")
    outputs, treedef = output_tensors(result, "jvp")
    path = find_path([output.node for output in outputs], [node for leaf in leaves for node in leaf.nodes])
    found = forward(path, seeds, [output.node for output in outputs], level)
    derivatives = [
        finished(
            found.get(output.node[INDEX], ABSENT) if type(output.node) is tuple else ABSENT,
            output,
            path.mark,
            unconnected,
            "jvp: the result",
        )
        for output in outputs
    ]
    value, tangent_out = release(result), unflatten(treedef, derivatives)
    return (value, tangent_out, release(aux)) if has_aux else (value, tangent_out)


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the Hessian of `f` times the tangents, by forward mode over reverse mode, without forming the Hessian.

    Args:
        f: function that returns one number.
        primals: tuple of its arguments.
        tangents: tuple of the same structures and shapes.

    Returns:
        For one primal a tree like it; for several a tuple of such trees.

    Example:
        >>> import stopgrad as sg
        >>> sg.hvp(lambda x: sg.sum(x**3), ([1.0, 2.0],), ([1.0, 1.0],)).numpy()
        array([ 6., 12.])
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentTypeError("hvp: primals and tangents are tuples, one entry an argument: hvp(f, (x,), (dx,))")
    argnums: int | tuple[int, ...] = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


def seeds_for(outputs: Sequence[Tensor], cotangents: Sequence[Any], what: str) -> list[tuple[Any, Any]]:
    """Return (node, cotangent) for each output, the cotangents checked; tensors if the sweep is to be recorded."""
    seeds = []
    for output, given in zip(outputs, cotangents, strict=True):
        if given is None:
            raise ArgumentTypeError(f"{what} is None; pass zeros for an output that does not count")
        cotangent = to_tensor(given, what)
        if cotangent.shape != output.shape:
            raise ShapeError(f"{what} has shape {cotangent.shape}, the output it belongs to {output.shape}")
        seeds.append((output.node, as_seed(cotangent, output.value)))
    return seeds


def _tangent_seeds(leaves: Leaves, tangent: Any, number: int) -> list[tuple[Any, Any]]:
    given = flatten_like(leaves.treedef, tangent, f"jvp: tangent {number}", number_lists=True)
    seeds = []
    for entry, name, one in zip(leaves.entries, leaves.names, given, strict=True):
        if not is_leaf(entry):
            continue
        tensor = to_tensor(one, f"jvp: the tangent of {name}")
        if tensor.shape != entry.shape:
            raise ShapeError(f"jvp: the tangent of {name} has shape {tensor.shape}, the primal {entry.shape}")
        seeds.append((entry.node, as_seed(tensor, entry.value)))
    return seeds
