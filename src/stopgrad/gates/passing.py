"""The gates something passes: scaled, reversed, clipped or straight through; and the one that must not be reached.

Each is the identity forward, bit for bit (`straight_through` is its function, bit for bit). What passes is stated in
each docstring; it passes the same way at every order, because the gate's rule is itself recorded in a recorded sweep.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.graph import Output
from stopgrad.core.marks import calling_line, mark_here
from stopgrad.core.operation import Operation
from stopgrad.core.pytree import map_leaves
from stopgrad.core.record import bind, coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.gates.operations import CLIP_BY_NORM, CLIP_BY_VALUE, PREVENT, SCALE, STRAIGHT_THROUGH
from stopgrad.gates.stop import stop_gradient


def scale_gradient(tree: Any, factor: Any) -> Any:
    """Return the tree unchanged; cotangents and tangents pass multiplied by `factor`.

    Args:
        tree: a tensor or pytree of tensors; other leaves pass untouched.
        factor: a number, or a tensor that broadcasts to each leaf. No derivative is taken for the factor.

    Raises:
        ShapeError: the factor does not broadcast to a leaf.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.grad(lambda x: sg.scale_gradient(x, 0.5) ** 2)(3.0))
        3.0
    """
    value, _ = coerce(factor, "scale_gradient: factor")
    return map_leaves(lambda x: _scaled(x, value, "scale_gradient"), tree)


def reverse_gradient(tree: Any, scale: float = 1.0) -> Any:
    """Return the tree unchanged; cotangents and tangents pass multiplied by `-scale`.

    The gradient reversal layer of domain-adversarial training (Ganin and Lempitsky, 2015, arXiv:1409.7495).

    Args:
        tree: a tensor or pytree of tensors; other leaves pass untouched.
        scale: the λ by which what passes is multiplied besides being negated.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.grad(lambda x: sg.reverse_gradient(x, 0.25) * 2)(3.0))
        -0.5
    """
    value, _ = coerce(scale, "reverse_gradient: scale")
    return map_leaves(lambda x: _scaled(x, -value, "reverse_gradient"), tree)


def clip_gradient(tree: Any, *, value: float | None = None, norm: float | None = None) -> Any:
    """Return the tree unchanged; of cotangents and tangents no more passes than the given bound.

    Args:
        tree: a tensor or pytree of tensors; other leaves pass untouched. Each leaf is clipped by itself.
        value: entries are clipped to [-value, value].
        norm: if the Euclidean norm exceeds this, all entries are scaled down to it. Give exactly one of the two.

    Raises:
        ArgumentError: not exactly one bound, or a bound that is negative or NaN.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.grad(lambda x: sg.clip_gradient(x, value=1.0) ** 2)(3.0))
        1.0
    """
    if (value is None) == (norm is None):
        raise ArgumentError("clip_gradient: give exactly one of value= and norm=")
    operation, limit, bound = (CLIP_BY_VALUE, value, "value") if value is not None else (CLIP_BY_NORM, norm, "norm")
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.floating | np.integer):
        raise ArgumentError(f"clip_gradient: {bound} must be a number, got {limit!r}")
    if math.isnan(limit) or limit < 0:
        raise ArgumentError(f"clip_gradient: {bound} must not be negative or NaN, got {limit}")
    bounded = float(limit)
    return map_leaves(lambda x: _gated(operation, x, "clip_gradient", (bounded,)), tree)


def prevent_gradient(tree: Any, message: str = "this value must not be differentiated") -> Any:
    """Return the tree unchanged; a sweep, reverse or forward, that gets here raises.

    Args:
        tree: a tensor or pytree of tensors; other leaves pass untouched.
        message: what the error says.

    Raises:
        GradientPreventedError: later, when a derivative is taken through the value.

    Example:
        >>> import stopgrad as sg
        >>> sg.grad(lambda x: sg.prevent_gradient(x, "use target_loss instead") ** 2)(3.0)
        Traceback (most recent call last):
            ...
        stopgrad.core.errors.GradientPreventedError: use target_loss instead (a derivative reached ...
    """
    if not isinstance(message, str):
        raise ArgumentTypeError(f"prevent_gradient: message must be a string, got {message!r:.60}")
    file, line = calling_line()
    return map_leaves(lambda x: _gated(PREVENT, x, "prevent_gradient", (message, file, line)), tree)


def straight_through(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function with the values of `f` and the derivative of the identity.

    The straight-through estimator (Bengio, Léonard and Courville, 2013, arXiv:1308.3432). The value is that of `f` bit
    for bit, which x + stop_gradient(f(x) - x) is not.

    Args:
        f: a function of one tensor that keeps its shape, such as `sg.round`.

    Raises:
        ShapeError: when called, if `f` changed the shape.

    Example:
        >>> import stopgrad as sg
        >>> quantise = sg.straight_through(sg.round)
        >>> loss, gradient = sg.value_and_grad(lambda x: quantise(x) * 3)(1.7)
        >>> float(loss), float(gradient)
        (6.0, 3.0)
    """
    if not callable(f):
        raise ArgumentTypeError(f"straight_through: takes a function, got {f!r:.60}; write straight_through(f)(x)")

    if not callable(f):
        raise ArgumentTypeError(f"straight_through: takes a function, got a {type(f).__name__} ({f!r:.60})")

    @functools.wraps(f)
    def passes_straight(x: Any) -> Any:
        mark = mark_here("straight_through")
        tensor = _tensor(x, "straight_through")
        result = _tensor(f(stop_gradient(tensor, name="straight_through")), "straight_through: the result of f")
        if result.shape != tensor.shape:
            raise ShapeError(
                f"straight_through: f must keep the shape, but made {result.shape} of {tensor.shape}; there is no "
                "identity to pass derivatives through"
            )
        gated = bind(STRAIGHT_THROUGH, (tensor, Tensor(result.value, mark)))
        return observed(gated, tensor.value, "straight_through", lambda now, old: gated.value + (now - old))

    return passes_straight


def _tensor(x: Any, name: str) -> Tensor:
    if type(x) is Tensor:
        return x
    value, node = coerce(x, name)
    return Tensor(np.asarray(value) if type(value) in PYTHON_SCALARS else value, node)


def _scaled(x: Any, factor: Any, name: str) -> Any:
    if not isinstance(x, Tensor) and not hasattr(x, "__tensor__"):
        return x
    tensor = _tensor(x, name)
    shape = tuple(getattr(factor, "shape", ()))
    try:
        fits = np.broadcast_shapes(tensor.shape, shape) == tensor.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{name}: a factor of shape {shape} does not broadcast to the gated value's {tensor.shape}")
    gated = bind(SCALE, (tensor, factor))
    return observed(gated, tensor.value, name, lambda now, old: old + factor * (now - old))


def _gated(operation: Operation, x: Any, name: str, params: tuple[Any, ...]) -> Any:
    if not isinstance(x, Tensor) and not hasattr(x, "__tensor__"):
        return x
    tensor = _tensor(x, name)
    return observed(bind(operation, (by_example(tensor),), params), tensor.value, name, lambda now, old: now)


def by_example(x: Tensor) -> Tensor:
    """Return a recorded tensor such that a gate clips for each example, where a function of one of many is traced.

    The tensor may be the same for all of them, but what comes back from each is not; it is clipped before it is summed.
    """
    graph = state.graph
    if graph is None or type(x.node) is not tuple or not state.recording or type(x.value) is Output:
        return x
    return Tensor(graph.by_example(x.value, x.node), x.node)


def observed(gated: Tensor, value: Any, name: str, surrogate: Callable[[Any, Any], Any]) -> Tensor:
    """Let a derivative check that is going on replace a gate's value by its surrogate's (see `stopgrad.core.state`).

    `value` is what went into the gate. In a graph that is run later the check is asked then (`stopgrad.gates.again`).
    """
    if state.gate_observer is None or type(gated.value) is Output:
        return gated
    return Tensor(state.gate_observer(name, value, surrogate), gated.node)
