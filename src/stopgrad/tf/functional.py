"""TensorFlow.js's derivatives of functions: `grad`, `grads`, `value_and_grad`, `value_and_grads`, `variable_grads`.

The function may return a tensor of any shape: `dy` is its cotangent, ones by default. What no ungated path joins to the
result gets zeros, where TensorFlow.js raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import stopgrad.primitives as p
from stopgrad import transforms
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError, UnconnectedError
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.tf.creation import js_numbers
from stopgrad.tf.tidying import Record
from stopgrad.tf.values import as_tensor
from stopgrad.train.gradients import evaluate
from stopgrad.transforms.common import unconnected_message


def grad(f: Callable[[Any], Any]) -> Callable[..., Tensor]:
    """Return a function `g(x, dy=None)` that computes the gradient of `f(x)` with respect to x.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.tensor1d([1, 2, 3])
        >>> tf.grad(lambda x: x.square())(x).numpy()
        array([2., 4., 6.], dtype=float32)
        >>> tf.grad(lambda x: tf.stop_gradient(x).square())(x).numpy()
        array([0., 0., 0.], dtype=float32)
    """
    _check(f, "grad")

    @functools.wraps(f)
    def gradient(x: Any, dy: Any = None) -> Tensor:
        found: Tensor = _pulled("grad", f, [x], dy)[1][0]
        return found

    return gradient


def grads(f: Callable[..., Any]) -> Callable[..., list[Tensor]]:
    """Return a function `g([a, b, …], dy=None)` that computes the gradients of `f(a, b, …)`, as a list.

    Example:
        >>> import stopgrad.tf as tf
        >>> da, db = tf.grads(lambda a, b: a.mul(b))([tf.scalar(2), tf.scalar(5)])
        >>> float(da), float(db)
        (5.0, 2.0)
    """
    _check(f, "grads")

    @functools.wraps(f)
    def gradient(args: Sequence[Any], dy: Any = None) -> list[Tensor]:
        return _pulled("grads", f, _arguments(args, "grads"), dy)[1]

    return gradient


def value_and_grad(f: Callable[[Any], Any]) -> Callable[..., Record]:
    """Return a function `g(x, dy=None)` that computes `f(x)` and its gradient, as {"value", "grad"}.

    Example:
        >>> import stopgrad.tf as tf
        >>> both = tf.value_and_grad(lambda x: x.square())(tf.scalar(3))
        >>> float(both.value), float(both["grad"])
        (9.0, 6.0)
    """
    _check(f, "value_and_grad")

    @functools.wraps(f)
    def both(x: Any, dy: Any = None) -> Record:
        value, found = _pulled("value_and_grad", f, [x], dy)
        return Record(value=value, grad=found[0])

    return both


def value_and_grads(f: Callable[..., Any]) -> Callable[..., Record]:
    """Return a function `g([a, b, …], dy=None)` that computes `f(a, b, …)` and its gradients, as {"value", "grads"}."""
    _check(f, "value_and_grads")

    @functools.wraps(f)
    def both(args: Sequence[Any], dy: Any = None) -> Record:
        value, found = _pulled("value_and_grads", f, _arguments(args, "value_and_grads"), dy)
        return Record(value=value, grads=found)

    return both


def variable_grads(f: Callable[[], Any], var_list: Sequence[Any] | None = None) -> Record:
    """Return the value of `f()`, a single number, and its gradients for variables, as {"value", "grads"}.

    Args:
        f: function without arguments.
        var_list: whom to differentiate for, trainable or not; by default the trainable variables that `f` reads.

    Returns:
        `grads` is a dict from a variable's name to its gradient. Variables that no ungated path joins to the value are
        not in it.

    Raises:
        UnconnectedError: not one variable is connected; it names the gates that were met.
        ArgumentError: two of the variables have the same name.

    Example:
        >>> import stopgrad.tf as tf
        >>> w, b = tf.variable(tf.scalar(3), name="w"), tf.variable(tf.scalar(1), name="b")
        >>> found = tf.variable_grads(lambda: w.square().add(tf.stop_gradient(b)))
        >>> float(found.value), {name: float(one) for name, one in found.grads.items()}
        (10.0, {'w': 6.0})
    """
    evaluation = evaluate(f, var_list, "variable_grads", recorded=bool(state.recording))
    if var_list is not None and not evaluation.gradients:
        raise ArgumentError("variable_grads: var_list is empty; give at least one variable")
    found: dict[str, Tensor] = {}
    for variable, one in evaluation.gradients.items():
        if one is None:
            continue
        if variable.name in found:
            raise ArgumentError(f"variable_grads: two variables are named {variable.name!r}; give them different names")
        found[variable.name] = one
    if not found:
        if not evaluation.gradients:
            raise UnconnectedError("variable_grads: the function reads no trainable variable")
        names = ", ".join(repr(variable.name) for variable in evaluation.gradients)
        raise UnconnectedError(unconnected_message(f"variable_grads: every variable ({names})", evaluation.mark))
    return Record(value=evaluation.loss, grads=found)


def _pulled(name: str, f: Callable[..., Any], args: Sequence[Any], dy: Any) -> tuple[Tensor, list[Tensor]]:
    """Return the value of `f`, and its gradients for all arguments."""
    tensors = [js_numbers(one, name) for one in args]
    value, pullback = transforms.vjp(lambda *given: _one_tensor(f(*given), name), *tensors)
    if dy is None:
        cotangent = p.ones_like(value)
    else:
        cotangent = as_tensor(dy, f"{name}: dy", value.dtype)
        if cotangent.shape != value.shape:
            raise ShapeError(f"{name}: dy has shape {cotangent.shape}, the function's result {value.shape}")
    return value, list(pullback(cotangent))


def _one_tensor(result: Any, name: str) -> Tensor:
    if isinstance(result, dict | list | tuple) or result is None:
        raise ArgumentTypeError(f"{name}: the function must return one tensor, got a {type(result).__name__}")
    return as_tensor(result, f"{name}: the function's result")


def _arguments(args: Any, name: str) -> Sequence[Any]:
    if not isinstance(args, list | tuple) or not args:
        raise ArgumentTypeError(f"{name}: call the gradient with a list of the function's arguments, g([a, b])")
    return args


def _check(f: Any, name: str) -> None:
    if not callable(f):
        raise ArgumentTypeError(f"{name}: takes a function, got a {type(f).__name__}; write tf.{name}(f)(x)")
