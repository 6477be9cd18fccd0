"""`grad`, `value_and_grad`, `grads`: derivatives of a function with one number for a result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.record import Node
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import (
    Leaves,
    StopNames,
    Unconnected,
    as_seed,
    check_unconnected,
    one_number,
    ones_like,
    positions,
    release,
    split_aux,
    switches_of,
)


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    unconnected: Unconnected = "zero",
    stop: StopNames = None,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `f`.

    Args:
        f: function of any arguments that returns a single number (a tensor of shape ()).
        argnums: which positional arguments to differentiate; each may be a pytree. An int gives one gradient, a tuple
            a tuple of them.
        has_aux: `f` returns `(number, aux)`; the result is then `(gradient, aux)`.
        unconnected: what stands for the gradient of a leaf that no ungated path joins to the result: "zero" for zeros
            of its shape and dtype, "none" for `None`, "error" to raise, naming the gates that were met.
        stop: names of gates that are to stop in this call, or a dict from name to `True` (stop) or `False` (let
            pass); see `stop_gradient(name=...)`.

    Returns:
        A function with the arguments of `f`. The gradient has the structure, shapes and dtypes of the argument. Leaves
        that carry no derivative (integers, strings) get `None`.

    Raises:
        ShapeError: `f` returned something that is not one number.
        DTypeError: the argument or the result is of a dtype without derivative.
        UnconnectedError: with `unconnected="error"`.
        ArgumentError: `stop` names a gate that the function did not pass.

    Example:
        >>> import stopgrad as sg
        >>> sg.grad(lambda x: sg.sum(x**2))([1.0, 2.0, 3.0]).numpy()
        array([2., 4., 6.])
    """
    both = _value_and_grad(f, argnums, has_aux, unconnected, stop, "grad")

    @functools.wraps(f)
    def gradient_function(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient_function


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    unconnected: Unconnected = "zero",
    stop: StopNames = None,
) -> Callable[..., Any]:
    """Return a function that computes `(f(...), gradient)` in one go; see `grad` for the arguments.

    With `has_aux` the result is `((value, aux), gradient)`.

    Example:
        >>> import stopgrad as sg
        >>> value, gradient = sg.value_and_grad(lambda x: x**3)(2.0)
        >>> float(value), float(gradient)
        (8.0, 12.0)
    """
    return _value_and_grad(f, argnums, has_aux, unconnected, stop, "value_and_grad")


def grads(
    f: Callable[..., Any], *, unconnected: Unconnected = "zero", stop: StopNames = None
) -> Callable[..., tuple[Any, ...]]:
    """Return a function that computes the gradients of `f` with respect to all its positional arguments, as a tuple.

    See `grad` for the other arguments.

    Example:
        >>> import stopgrad as sg
        >>> dx, dy = sg.grads(lambda x, y: x * y)(2.0, 5.0)
        >>> float(dx), float(dy)
        (5.0, 2.0)
    """

    @functools.wraps(f)
    def gradients_function(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if not args:
            raise ArgumentError("grads: call it with at least one positional argument")
        argnums = tuple(range(len(args)))
        both = _value_and_grad(f, argnums, False, unconnected, stop, "grads")
        gradients: tuple[Any, ...] = both(*args, **kwargs)[1]
        return gradients

    return gradients_function


def _value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    unconnected: Unconnected,
    stop: StopNames,
    where: str,
) -> Callable[..., Any]:
    if not callable(f):
        raise ArgumentTypeError(
            f"{where}: takes a function, got a {type(f).__name__}; write {where}(f)(x), or record with GradientTape"
        )
    check_unconnected(unconnected, where)
    switches = switches_of(stop, where)

    @functools.wraps(f)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = positions(argnums, len(args), where)
        leaves = [Leaves(args[number], where, f"argument {number}") for number in chosen]
        arguments = list(args)
        for number, leaf in zip(chosen, leaves, strict=True):
            arguments[number] = leaf.tree
        level = Level(switches)
        with state.differentiate(level):
            result = f(*arguments, **kwargs)
        result, aux = split_aux(result, has_aux, where)
        loss = one_number(result, where)
        targets: list[Node] = [node for leaf in leaves for node in leaf.nodes]
        path = find_path([loss.node], targets)
        seed = as_seed(Tensor(ones_like(loss.value)), loss.value)
        cotangents = reverse(
            path,
            [(loss.node, seed)],
            {target[0] for target in targets},
            level,
        )
        gradients = tuple(leaf.collect(cotangents, path.mark, unconnected, where) for leaf in leaves)
        value = release((loss, aux) if has_aux else loss)
        return value, (gradients if isinstance(argnums, tuple | list) else gradients[0])

    return value_and_gradient
