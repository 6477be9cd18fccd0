"""`tf.train`: TensorFlow.js's optimizers, as functions (`sgd`) and as classes (`SGDOptimizer`, or `SGD` for short).

They are those of `stopgrad.train`, with TensorFlow.js's way to call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Unpack

from stopgrad import train as ours
from stopgrad.core.tensor import Tensor
from stopgrad.tf.functional import variable_grads
from stopgrad.tf.missing import message
from stopgrad.tf.tidying import Record
from stopgrad.tf.variables import variable_named
from stopgrad.train.optimizer import Clipping, Common
from stopgrad.train.schedules import Schedule, inverse_time_decay
from stopgrad.transforms.common import StopNames

_EPSILON = 1e-7  # what `epsilon=None` stands for


class Optimizer(ours.Optimizer):
    """Base of this face's optimizers; see `stopgrad.train.Optimizer`."""

    def minimize(  # type: ignore[override]
        self,
        f: Callable[[], Any],
        return_cost: Any = False,
        var_list: Any = None,
        *,
        stop: StopNames = None,
    ) -> Tensor | None:
        """Run `f`, a function that returns a single number, and make one step that lessens it.

        Args:
            f: function without arguments.
            return_cost: return the number, computed before the step. Variables in its place are taken for `var_list`.
            var_list: the variables to update; by default the trainable ones that `f` reads.
            stop: names of gates to switch for this call; see `stopgrad.grad`.

        Warns:
            UnconnectedWarning: no variable was changed; it names the gates that stand in the way.

        Example:
            >>> import stopgrad.tf as tf
            >>> w = tf.variable(tf.scalar(3))
            >>> cost = tf.train.sgd(0.25).minimize(lambda: w.square(), return_cost=True)
            >>> float(cost), float(w)
            (9.0, 1.5)
        """
        if not isinstance(return_cost, bool):
            return_cost, var_list = False, return_cost if var_list is None else var_list
        return super().minimize(f, var_list, return_cost, stop=stop)

    def compute_gradients(  # type: ignore[override]
        self, f: Callable[[], Any], var_list: Sequence[Any] | None = None
    ) -> Record:
        """Return {"value", "grads"} of `f` and change nothing; see `stopgrad.tf.variable_grads`."""
        return variable_grads(f, var_list)

    def apply_gradients(self, variable_gradients: Any) -> None:
        """Make one step with given gradients.

        Args:
            variable_gradients: a dict from a variable or its name to a gradient, pairs (gradient, variable), or dicts
                with the entries "name" and "tensor". `None` for a gradient leaves the variable alone.
        """
        super().apply_gradients(_pairs(variable_gradients))


class SGDOptimizer(Optimizer, ours.SGD):
    """Gradient descent; see `stopgrad.train.SGD`."""


class MomentumOptimizer(Optimizer, ours.Momentum):
    """Gradient descent with momentum; see `stopgrad.train.Momentum`."""


class AdagradOptimizer(Optimizer, ours.Adagrad):
    """Adagrad; see `stopgrad.train.Adagrad`."""


class AdadeltaOptimizer(Optimizer, ours.Adadelta):
    """Adadelta; see `stopgrad.train.Adadelta`."""


class RMSPropOptimizer(Optimizer, ours.RMSProp):
    """RMSProp; see `stopgrad.train.RMSProp`."""


class AdamOptimizer(Optimizer, ours.Adam):
    """Adam; see `stopgrad.train.Adam`."""


class AdamWOptimizer(Optimizer, ours.AdamW):
    """Adam with decoupled weight decay; see `stopgrad.train.AdamW`. TensorFlow.js does not have it."""


class AdamaxOptimizer(Optimizer, ours.Adamax):
    """Adamax; see `stopgrad.train.Adamax`."""


SGD = SGDOptimizer
Momentum = MomentumOptimizer
Adagrad = AdagradOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Adam = AdamOptimizer
AdamW = AdamWOptimizer
Adamax = AdamaxOptimizer


def sgd(learning_rate: float | Schedule, **common: Unpack[Common]) -> SGDOptimizer:
    """Return gradient descent. All optimizers take `weight_decay`, `clip_norm` and `clip_value`, too."""
    return SGDOptimizer(learning_rate, **common)


def momentum(
    learning_rate: float | Schedule, momentum: float = 0.9, use_nesterov: bool = False, **common: Unpack[Common]
) -> MomentumOptimizer:
    """Return gradient descent with momentum."""
    return MomentumOptimizer(learning_rate, momentum, use_nesterov, **common)


def adagrad(
    learning_rate: float | Schedule, initial_accumulator_value: float = 0.1, **common: Unpack[Common]
) -> AdagradOptimizer:
    """Return Adagrad."""
    return AdagradOptimizer(learning_rate, initial_accumulator_value, **common)


def adadelta(
    learning_rate: float | Schedule = 0.001,
    rho: float = 0.95,
    epsilon: float | None = None,
    **common: Unpack[Common],
) -> AdadeltaOptimizer:
    """Return Adadelta."""
    return AdadeltaOptimizer(learning_rate, rho, _epsilon(epsilon), **common)


def rmsprop(
    learning_rate: float | Schedule,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
    **common: Unpack[Common],
) -> RMSPropOptimizer:
    """Return RMSProp."""
    return RMSPropOptimizer(learning_rate, decay, momentum, _epsilon(epsilon), centered, **common)


def adam(
    learning_rate: float | Schedule = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    **common: Unpack[Common],
) -> AdamOptimizer:
    """Return Adam."""
    return AdamOptimizer(learning_rate, beta1, beta2, _epsilon(epsilon), **common)


def adamw(
    learning_rate: float | Schedule = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    *,
    weight_decay: float = 0.004,
    **common: Unpack[Clipping],
) -> AdamWOptimizer:
    """Return Adam with decoupled weight decay, which TensorFlow.js does not have."""
    return AdamWOptimizer(learning_rate, beta1, beta2, _epsilon(epsilon), weight_decay=weight_decay, **common)


def adamax(
    learning_rate: float = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
    **common: Unpack[Common],
) -> AdamaxOptimizer:
    """Return Adamax; with `decay` the rate falls as learning_rate / (1 + decay · steps)."""
    rate: float | Schedule = inverse_time_decay(learning_rate, 1, decay) if decay else learning_rate
    return AdamaxOptimizer(rate, beta1, beta2, _epsilon(epsilon), **common)


def _epsilon(given: float | None) -> float:
    return _EPSILON if given is None else given


def _pairs(given: Any) -> Any:
    """Return gradients as pairs (gradient, variable)."""
    if isinstance(given, Mapping):
        return [(gradient, _variable(key)) for key, gradient in given.items()]
    listed = list(given) if isinstance(given, Iterable) else given
    if isinstance(listed, list) and listed and all(isinstance(one, Mapping) for one in listed):
        return [(one["tensor"], _variable(one["name"])) for one in listed]
    return listed


def _variable(key: Any) -> Any:
    return variable_named(key, "apply_gradients") if isinstance(key, str) else key


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.train", name, __all__))


__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "AdamW",
    "AdamWOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "Momentum",
    "MomentumOptimizer",
    "Optimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "SGDOptimizer",
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "momentum",
    "rmsprop",
    "sgd",
]
