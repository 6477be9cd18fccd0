"""TensorFlow's ways to derivatives: GradientTape, gradients, hessians, custom_gradient, stop_gradient."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import stopgrad.primitives as p
from stopgrad import gates, transforms
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.pytree import map_leaves
from stopgrad.core.record import Node
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.tf.tidying import untracked
from stopgrad.tf.values import as_tensor, holds_tensor
from stopgrad.train.variable import Variable, reads
from stopgrad.transforms.common import StopNames, Unconnected, release
from stopgrad.transforms.gradients import is_variable


class UnconnectedGradients(enum.Enum):
    """What stands for the gradient of a source that no ungated path joins to the target."""

    NONE = "none"
    """`None`."""
    ZERO = "zero"
    """Zeros of the source's shape and dtype."""


class GradientTape(transforms.GradientTape):
    """Record operations in a `with` block, so that derivatives of what it computed can be asked for.

    As `stopgrad.GradientTape`, with TensorFlow's argument names. Trainable variables are watched when they are read;
    others, and tensors, have to be named with `watch`.

    Args:
        persistent: answer more than once.
        watch_accessed_variables: watch trainable variables that are read in the block.
        stop: names of gates that are to stop for this tape; see `stopgrad.grad`.

    Example:
        >>> import stopgrad.tf as tf
        >>> with tf.GradientTape() as tape:
        ...     x = tape.watch(tf.constant(3.0))
        ...     y = x * tf.stop_gradient(x)
        >>> float(tape.gradient(y, x))
        3.0
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, *, stop: StopNames = None
    ) -> None:
        super().__init__(persistent, watch_accessed_variables, stop=stop)
        self._reading = ExitStack()
        self._logs: list[dict[int, Variable]] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self._logs.append(self._reading.enter_context(reads()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reading.close()
        super().__exit__(kind, error, traceback)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        *,
        stop_gradients: Any = (),
    ) -> Any:
        """Return the gradients of the target (or the sum of several) for the sources, in the structure of these.

        Args:
            target: tensor or pytree of tensors.
            sources: watched tensors or variables, or a pytree of them.
            output_gradients: cotangents, in the structure of the target; ones by default.
            unconnected_gradients: what stands for an unconnected source; also "error", to raise and name the gates.
            stop_gradients: tensors or variables nothing passes back through in this call.
        """
        policy = _policy(unconnected_gradients, "GradientTape.gradient")
        return super().gradient(target, sources, output_gradients, policy, stop_gradients=stop_gradients)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the Jacobians of one tensor for the sources, of shape target.shape + source.shape.

        The last two arguments are not used.
        """
        return super().jacobian(target, sources, _policy(unconnected_gradients, "GradientTape.jacobian"))

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the Jacobians of the rows of the target, each for the row of the source it was computed from alone.

        That every row depends on its own only is not checked. The last two arguments are not used.

        Args:
            target: tensor of shape (batch, …).
            source: tensor of shape (batch, …).
            unconnected_gradients: as for `gradient`.
            parallel_iterations: not used.
            experimental_use_pfor: not used.

        Returns:
            Tensor of shape (batch, …, …): target.shape + source.shape[1:].
        """
        policy = _policy(unconnected_gradients, "GradientTape.batch_jacobian")
        output, x = (as_tensor(one, "GradientTape.batch_jacobian") for one in (target, source))
        if not output.ndim or not x.ndim or output.shape[0] != x.shape[0]:
            raise ShapeError(
                f"GradientTape.batch_jacobian: target {output.shape} and source {x.shape} must have the same first size"
            )
        full = super().jacobian(target, source, policy)
        if full is None:
            return None
        own = p.diagonal(full, axis1=0, axis2=output.ndim)  # the batch is the last axis now
        return p.moveaxis(own, -1, 0)

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that are watched: trainable ones that were read, and those given to `watch`."""
        found = {id(one): one for one in super().watched_variables()}
        if self._watches_variables:
            found |= {id(one): one for log in self._logs for one in log.values() if one.trainable}
        return tuple(found.values())

    def reset(self) -> None:
        """Forget what has been recorded and watched so far, and go on recording."""
        super().reset()
        for log in self._logs:
            log.clear()

    def _node_of(self, source: Any) -> Node | None:
        if is_variable(source) and not source.trainable and id(source) not in self._watched:
            return None
        return super()._node_of(source)


def stop_gradient(
    input: Any, name: str | None = None, *, where: Any = None, level: Any = "all", open: bool = False
) -> Any:
    """Return the input unchanged; no derivative passes, in any mode, at any order.

    It takes a tensor, or a list, tuple or dict of them as a tree of its leaves, also where TensorFlow would stack a
    list into one tensor; a list of numbers becomes a tensor. See `stopgrad.stop_gradient` for the further arguments.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.grad(lambda x: tf.stop_gradient(x) * x)(tf.scalar(3.0)).numpy()
        array(3., dtype=float32)
    """
    is_tree = isinstance(input, dict) or holds_tensor(input) or input is None or isinstance(input, str)
    tree = input if is_tree else as_tensor(input, "stop_gradient")
    return gates.stop_gradient(tree, where=where, name=name, level=level, open=open)


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """Return the gradients of the sum of `ys` for each of `xs`, as a list.

    For tensors that are recorded: computed in a tape's block or in a function under transformation. TensorFlow has it
    for graphs only. `name`, `gate_gradients` and `aggregation_method` are not used; see `stopgrad.gradients`.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.Variable(1.0)
        >>> with tf.GradientTape() as tape:
        ...     y = 2.0 * x
        ...     z = x + y
        >>> [float(g) for g in tf.gradients(z, [x, y])]
        [3.0, 1.0]
        >>> [float(g) for g in tf.gradients(z, [x, y], stop_gradients=[y])]
        [1.0, 1.0]
    """
    sought = list(xs) if isinstance(xs, list | tuple) else [xs]
    stops = () if stop_gradients is None else stop_gradients
    policy = _policy(unconnected_gradients, "gradients")
    found: list[Any] = transforms.gradients(ys, sought, grad_ys, stops, policy)
    return found


def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None, name: str = "hessians"
) -> list[Tensor]:
    """Return, for each of `xs`, the Hessian of the sum of `ys`, of shape x.shape + x.shape.

    For recorded tensors, as `gradients`. The last three arguments are not used.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(x**3)
        >>> tf.hessians(y, x)[0].numpy()
        array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    sought = list(xs) if isinstance(xs, list | tuple) else [xs]
    results = []
    with state.differentiate(Level()):
        firsts = transforms.gradients(ys, sought, unconnected="zero")
        for x, first in zip(sought, firsts, strict=True):
            shape = as_tensor(x, "hessians").shape
            entries = p.reshape(first, -1)
            rows = [transforms.gradients(p.getitem(entries, i), x, unconnected="zero") for i in range(entries.shape[0])]
            results.append(
                p.reshape(p.stack(rows), (*shape, *shape)) if rows else p.zeros((*shape, *shape), first.dtype)
            )
    released: list[Tensor] = release(results)
    return released


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a derivative of your own: `f` returns its result and a function from cotangents to cotangents.

    See `stopgrad.custom_gradient`. Variables that `f` reads, otherwise than by argument, count as stopped.

    Example:
        >>> import stopgrad.tf as tf
        >>> @tf.custom_gradient
        ... def log1pexp(x):
        ...     e = tf.exp(x)
        ...     return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
        >>> float(tf.grad(log1pexp)(100.0))
        1.0
    """
    customised = transforms.custom_gradient(f)

    @functools.wraps(f)
    def with_own_gradient(*args: Any, **kwargs: Any) -> Any:
        # The pullback holds tensors of the forward pass, which a surrounding tidy must not dispose of.
        with untracked() as scope:
            return scope.adopt(customised(*(map_leaves(scope.alias, one) for one in args), **kwargs))

    return with_own_gradient


def custom_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a derivative of your own, in TensorFlow.js's form.

    Args:
        f: function of tensors and, last, `save(list_of_tensors)`; it returns a dict (or an object) with "value", a
            tensor, and "grad_func", a function `(dy, saved) -> cotangent or list of cotangents`, one for each tensor.

    Returns:
        A function of the tensors.

    Example:
        >>> import stopgrad.tf as tf
        >>> @tf.custom_grad
        ... def cube(x, save):
        ...     save([x])
        ...     return {"value": x.pow(3), "grad_func": lambda dy, saved: dy.mul(saved[0].square()).mul(3)}
        >>> float(tf.grad(cube)(2.0))
        12.0
    """

    def with_pullback(*tensors: Any) -> Any:
        saved: list[Tensor] = []

        def save(kept: Sequence[Any]) -> None:
            saved.extend(as_tensor(one, "custom_grad: save") for one in kept)

        returned = f(*tensors, save)
        value, grad_func = (_entry(returned, name) for name in ("value", "grad_func"))
        if not callable(grad_func):
            raise ArgumentTypeError('custom_grad: "grad_func" must be a function (dy, saved) -> cotangents')
        return as_tensor(value, "custom_grad: value"), lambda dy: grad_func(dy, saved)

    customised = custom_gradient(functools.wraps(f)(with_pullback))

    @functools.wraps(f)
    def of_tensors(*tensors: Any) -> Any:
        return customised(*(as_tensor(one, "custom_grad") for one in tensors))

    return of_tensors


def _entry(returned: Any, name: str) -> Any:
    found = returned.get(name) if isinstance(returned, dict) else getattr(returned, name, None)
    if found is None:
        raise ArgumentTypeError('custom_grad: the function must return {"value": tensor, "grad_func": function}')
    return found


def _policy(given: UnconnectedGradients | str, where: str) -> Unconnected:
    if isinstance(given, UnconnectedGradients):
        policy: Unconnected = given.value
        return policy
    if given in ("none", "zero", "error"):
        return given  # type: ignore[return-value]  # narrowed by the line above
    raise ArgumentError(f"{where}: unconnected_gradients must be UnconnectedGradients.NONE or ZERO, got {given!r}")
