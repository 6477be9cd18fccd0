"""`cond` and `switch`: one of several functions, chosen by a value.

Where the value is known they simply call the function. While a program is traced they add one operation that holds all
branches, and the run chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopgrad.control.branching import SWITCH
from stopgrad.control.joint import add_to_graph
from stopgrad.control.tracing import (
    Arguments,
    arguments,
    check_same,
    result_of,
    spec_of,
    to_predicate,
    traced,
    tracing_graph,
)
from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.graph import Output
from stopgrad.core.pytree import unflatten
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import closed
from stopgrad.primitives.inputs import to_tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Return `true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

    Only the branch that is chosen runs, and only its derivative. What it stops is absent, and so is all of the other.
    While tracing both branches are traced, whatever they use from outside included, unless `pred` is known.

    Args:
        pred: one boolean.
        true_fn: function of the operands that returns a pytree of tensors.
        false_fn: likewise; traced, the structure, shapes and dtypes of both results must be the same.
        *operands: pytrees of tensors.

    Returns:
        The result of the branch, as tensors.

    Raises:
        ArgumentTypeError: `pred` is not one boolean.
        ArgumentError: while tracing, the branches return different structures, shapes or dtypes.

    Example:
        >>> import stopgrad as sg
        >>> f = lambda x: sg.cond(x > 0, lambda x: x**2, lambda x: -x, x)
        >>> float(sg.grad(f)(3.0)), float(sg.grad(f)(-3.0))
        (6.0, -1.0)
        >>> float(sg.trace(sg.grad(f))(3.0)(-3.0))
        -1.0
    """
    predicate = to_predicate(pred, "cond: pred")
    given = [arguments(one, "cond: an operand") for one in operands]
    if type(predicate.value) is not Output:
        return _called(true_fn if predicate.value else false_fn, given, "cond")
    return _traced(predicate, (false_fn, true_fn), given, "cond", ("what false_fn returns", "what true_fn returns"))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; an index out of range counts as the nearest that there is. See `cond`.

    Args:
        index: one integer.
        branches: functions of the operands.
        *operands: pytrees of tensors.

    Raises:
        ArgumentTypeError: the index is not one integer.
        ArgumentError: no branches; or, while tracing, branches that return different structures, shapes or dtypes.

    Example:
        >>> import stopgrad as sg
        >>> f = lambda i, x: sg.switch(i, [sg.sin, sg.cos, sg.exp], x)
        >>> float(f(1, 0.0)), float(f(7, 0.0)), float(sg.trace(f)(0, 0.0)(2, 0.0))
        (1.0, 1.0, 1.0)
    """
    number = to_tensor(index, "switch: index")
    if number.shape != () or not str(number.dtype).removeprefix("torch.").startswith(("int", "uint")):
        raise ArgumentTypeError(f"switch: index must be one integer, got {spec_of(number)}")
    if not branches:
        raise ArgumentError("switch: give at least one branch")
    given = [arguments(one, "switch: an operand") for one in operands]
    if type(number.value) is not Output:
        return _called(branches[min(max(int(number.value), 0), len(branches) - 1)], given, "switch")
    return _traced(number, branches, given, "switch", ("what branch 0 returns", "what branch {} returns"))


def _called(branch: Callable[..., Any], given: Sequence[Arguments], where: str) -> Any:
    return result_of(branch(*(one.tree for one in given)), f"{where}: what a branch returns")


def _traced(
    selector: Tensor,
    branches: Sequence[Callable[..., Any]],
    given: Sequence[Arguments],
    where: str,
    names: tuple[str, str],
) -> Any:
    operands = [tensor for one in given for tensor in one.tensors]
    outer = tracing_graph([selector])
    assert outer is not None
    args = [(one.specs, one.treedef, f"operand{number}") for number, one in enumerate(given)]
    made = [traced(branch, outer, args, f"{where}: what a branch returns") for branch in branches]
    for number, one in enumerate(made[1:], 1):
        check_same(where, made[0], one, (names[0], names[1].format(number)), "all branches must return the same")
    bodies, taken = closed([(one.graph, [out for ones in one.inputs for out in ones], one.outputs) for one in made])
    outs = add_to_graph(SWITCH, (selector, *taken, *operands), (tuple(bodies),), bodies[0])
    return unflatten(made[0].treedef, list(outs))
