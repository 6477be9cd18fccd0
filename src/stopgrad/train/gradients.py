"""Gradients of a loss function for the variables it reads: what optimizers minimize with.

Unlike `grad`, which differentiates for a function's arguments, this takes a function without arguments and finds the
variables by what it reads. Which of them are unconnected, and what cut them off, is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stopgrad.core.errors import ArgumentTypeError, DTypeError
from stopgrad.core.marks import Mark
from stopgrad.core.operation import ABSENT
from stopgrad.core.pytree import flatten
from stopgrad.core.record import INDEX
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.train.variable import Variable, reads
from stopgrad.transforms.common import (
    StopNames,
    Unconnected,
    check_unconnected,
    finished,
    one_number,
    ones_like,
    release,
    switches_of,
)


class Evaluation(NamedTuple):
    """A loss and its gradients.

    `gradients` holds a tensor for each variable, or `None` where it is unconnected; `mark` merges what was met on the
    way back (see `stopgrad.core.marks`); `read` are all variables the loss function read, trainable or not.
    """

    loss: Tensor
    gradients: dict[Variable, Tensor | None]
    mark: Mark | None
    read: list[Variable]


def variable_gradients(
    loss_function: Callable[[], Any],
    variables: Any = None,
    *,
    unconnected: Unconnected = "none",
    stop: StopNames = None,
) -> tuple[Tensor, dict[Variable, Tensor | None]]:
    """Return the loss and its gradients for variables.

    Args:
        loss_function: function without arguments that returns a single number.
        variables: whom to differentiate for: a variable or a pytree of them, trainable or not. By default the trainable
            variables that the function reads, also those it reads only behind a stop.
        unconnected: what stands for the gradient of a variable that no ungated path joins to the loss: "none",
            "zero", or "error" to raise, naming the gates that were met.
        stop: names of gates to switch for this call; see `grad`.

    Returns:
        `(loss, gradients)`, the gradients as a dict from variable to tensor. Inside another differentiation that
        records, they are recorded.

    Raises:
        ShapeError: the function returned something that is not one number.
        DTypeError: a given variable, or the loss, is of a dtype without derivative.
        UnconnectedError: with `unconnected="error"`.

    Example:
        >>> import stopgrad as sg
        >>> w, b = sg.Variable(3.0), sg.Variable(1.0)
        >>> loss, gradients = sg.train.variable_gradients(lambda: w * w + sg.stop_gradient(b))
        >>> float(loss), float(gradients[w]), gradients[b]
        (10.0, 6.0, None)
    """
    check_unconnected(unconnected, "variable_gradients")
    evaluation = evaluate(
        loss_function, variables, "variable_gradients", unconnected, stop, recorded=bool(state.recording)
    )
    return evaluation.loss, evaluation.gradients


def evaluate(
    loss_function: Callable[[], Any],
    variables: Any,
    where: str,
    unconnected: Unconnected = "none",
    stop: StopNames = None,
    *,
    recorded: bool,
) -> Evaluation:
    """Run a loss function and the reverse sweep. As `variable_gradients`; `where` names the caller in errors.

    With `recorded` the sweep is itself recorded, for whoever is recording outside.
    """
    if not callable(loss_function):
        raise ArgumentTypeError(
            f"{where}: takes a function without arguments that computes the loss, got a "
            f"{type(loss_function).__name__}; write lambda: ... so that the loss is computed where it is recorded"
        )
    chosen = None if variables is None else listed(variables, where)
    level = Level(switches_of(stop, where))
    with reads() as log, state.differentiate(level):
        loss = one_number(loss_function(), where)
    read = list(log.values())
    if chosen is None:
        chosen = [one for one in read if one.trainable and one.leaf_node is not None]
    indices = [variable.leaf_node[INDEX] for variable in chosen]
    path = find_path([loss.node], [variable.leaf_node for variable in chosen])
    seed = ones_like(loss.value)
    found = reverse(path, [(loss.node, Tensor(seed) if recorded else seed)], indices, level)
    gradients = {
        variable: finished(
            found.get(index, ABSENT),
            Tensor(variable.raw),
            path.mark,
            unconnected,
            f"{where}: variable {variable.name!r}",
        )
        for variable, index in zip(chosen, indices, strict=True)
    }
    return Evaluation(release(loss), gradients, path.mark, read)


def listed(variables: Any, where: str) -> list[Variable]:
    """Return a pytree of variables as a list without repetitions, checked to be differentiable."""
    is_tree = isinstance(variables, Variable | Mapping | list | tuple) or not isinstance(variables, Iterable)
    leaves, _ = flatten(variables if is_tree else list(variables))
    unique: dict[int, Variable] = {}
    for one in leaves:
        if not isinstance(one, Variable):
            raise ArgumentTypeError(
                f"{where}: variables holds a {type(one).__name__}; pass Variable objects, or use grad for the "
                "arguments of a function"
            )
        if one.leaf_node is None:
            raise DTypeError(
                f"{where}: variable {one.name!r} is {one.dtype}, which has no derivative; make it with "
                "dtype='float64' or another float"
            )
        unique[id(one)] = one
    return list(unique.values())
