"""The optimizers, each in one block: its formula and source, what it keeps for a variable, and one update.

θ is the value, g its gradient, α the learning rate. Defaults are TensorFlow.js's where it has them, else TensorFlow's.
Slots are updated in place where the array library allows it; the value never is, since tensors may hold it. Products
are taken in an order that makes few arrays.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from stopgrad.train.optimizer import Clipping, Common, Optimizer
from stopgrad.train.schedules import Schedule

Slots = tuple[Any, ...]


def _less(value: Any, step: Any) -> Any:
    """Return value - step, in the place of the step, which is ours alone."""
    return np.subtract(value, step, out=step) if type(step) is np.ndarray else value - step


def _over(step: Any, scale: Any) -> Any:
    """Return step / scale, in the place of the scale, which is ours alone."""
    return np.divide(step, scale, out=scale) if type(scale) is np.ndarray else step / scale


def _weighted_square(gradient: Any, weight: float) -> Any:
    square = gradient * gradient
    square *= weight
    return square


class SGD(Optimizer):
    """Stochastic gradient descent: θ ← θ - α g.

    Args:
        learning_rate: a number or schedule, as for all optimizers; see `Optimizer` for the keyword arguments.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.SGD(0.5).minimize(lambda: 2 * w)
        >>> float(w)
        0.0
    """

    def __init__(self, learning_rate: float | Schedule = 0.01, **common: Unpack[Common]) -> None:
        super().__init__(learning_rate, **common)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        return _less(value, rate * gradient), slots


class Momentum(Optimizer):
    """Gradient descent with momentum μ: m ← μ m + g; θ ← θ - α m, or with Nesterov's θ ← θ - α (g + μ m).

    Sutskever et al., 2013, http://proceedings.mlr.press/v28/sutskever13.html, in the form TensorFlow has.

    Args:
        learning_rate: a number or schedule.
        momentum: μ.
        use_nesterov: take Nesterov's form.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> momentum = sg.train.Momentum(0.5, momentum=0.5)
        >>> momentum.minimize(lambda: w), momentum.minimize(lambda: w), float(w)
        (None, None, -0.25)
    """

    slot_names = ("momentum",)

    def __init__(
        self,
        learning_rate: float | Schedule = 0.01,
        momentum: float = 0.9,
        use_nesterov: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.momentum = self._number("momentum", momentum, 0.0)
        self.use_nesterov = bool(use_nesterov)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        (moment,) = slots
        moment *= self.momentum
        moment += gradient
        step = gradient + self.momentum * moment if self.use_nesterov else moment
        return _less(value, rate * step), (moment,)


class Adagrad(Optimizer):
    """A rate for each entry, falling with the gradients it has seen: a ← a + g²; θ ← θ - α g / √(a + ε).

    Duchi, Hazan and Singer, 2011, https://jmlr.org/papers/v12/duchi11a.html; a and ε as in TensorFlow.js.

    Args:
        learning_rate: a number or schedule.
        initial_accumulator_value: what a starts from.
        epsilon: ε.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.Adagrad(0.1).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.9012
    """

    slot_names = ("accumulator",)

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value = self._number("initial_accumulator_value", initial_accumulator_value, 0.0)
        self.epsilon = self._number("epsilon", epsilon, 0.0)

    def start(self, xp: Any, value: Any) -> Slots:
        """Return the slots of a variable that has not been updated yet."""
        return (xp.full_like(value, self.initial_accumulator_value),)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        (accumulator,) = slots
        accumulator += gradient * gradient
        step = _over(gradient, xp.sqrt(accumulator + self.epsilon))
        step *= rate
        return _less(value, step), (accumulator,)


class Adadelta(Optimizer):
    """Adagrad with a window, and steps in the unit of the value.

    a ← ρ a + (1 - ρ) g²; s = g √(u + ε) / √(a + ε); u ← ρ u + (1 - ρ) s²; θ ← θ - α s. Zeiler, 2012, arXiv:1212.5701.

    Args:
        learning_rate: a number or schedule; 1 in the paper.
        rho: ρ.
        epsilon: ε.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.Adadelta(1.0).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.9986
    """

    slot_names = ("gradients", "updates")

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.rho = self._number("rho", rho, 0.0, 1.0)
        self.epsilon = self._number("epsilon", epsilon, 0.0)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        gradients, updates = slots
        gradients *= self.rho
        gradients += _weighted_square(gradient, 1 - self.rho)
        step = gradient * xp.sqrt((updates + self.epsilon) / (gradients + self.epsilon))
        updates *= self.rho
        updates += _weighted_square(step, 1 - self.rho)
        step *= rate
        return _less(value, step), (gradients, updates)


class RMSProp(Optimizer):
    """Gradients divided by their recent root mean square, and momentum μ.

    v ← ρ v + (1 - ρ) g²; m ← μ m + α g / √(v + ε); θ ← θ - m. Centered: a ← ρ a + (1 - ρ) g, and v - a² stands for v
    under the root. Tieleman and Hinton, 2012, lecture 6e of "Neural Networks for Machine Learning"; centered as Graves,
    2013, arXiv:1308.0850. As in TensorFlow ε is added under the root, and α stands inside the momentum.

    Args:
        learning_rate: a number or schedule.
        decay: ρ.
        momentum: μ.
        epsilon: ε.
        centered: divide by an estimate of the standard deviation.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.RMSProp(0.1).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.6838
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.decay = self._number("decay", decay, 0.0, 1.0)
        self.momentum = self._number("momentum", momentum, 0.0)
        self.epsilon = self._number("epsilon", epsilon, 0.0)
        self.centered = bool(centered)
        self.slot_names = ("mean_square", "momentum", "mean")[: 3 if self.centered else 2]

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        mean_square, moment, *means = slots
        mean_square *= self.decay
        mean_square += _weighted_square(gradient, 1 - self.decay)
        variance = mean_square + self.epsilon
        if self.centered:
            (mean,) = means
            mean *= self.decay
            mean += (1 - self.decay) * gradient
            variance -= mean * mean
            means = [mean]
        moment *= self.momentum
        step = _over(gradient, xp.sqrt(variance))
        step *= rate
        moment += step
        return value - moment, (mean_square, moment, *means)


class Adam(Optimizer):
    """Moments of the gradient, corrected for their start at zero.

    m ← β₁ m + (1 - β₁) g; v ← β₂ v + (1 - β₂) g²; θ ← θ - α m̂ / (√v̂ + ε) with m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ),
    t counting the variable's own updates. Kingma and Ba, 2014, arXiv:1412.6980. With `amsgrad` the largest v so far
    stands for v: Reddi, Kale and Kumar, 2018, arXiv:1904.09237.

    Args:
        learning_rate: a number or schedule.
        beta1: β₁.
        beta2: β₂.
        epsilon: ε.
        amsgrad: divide by the largest second moment so far.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.Adam(0.1).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.9
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta1 = self._number("beta1", beta1, 0.0, 1.0)
        self.beta2 = self._number("beta2", beta2, 0.0, 1.0)
        self.epsilon = self._number("epsilon", epsilon, 0.0)
        self.amsgrad = bool(amsgrad)
        self.slot_names = ("first_moment", "second_moment", "largest")[: 3 if self.amsgrad else 2]

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        first, second, *largest = slots
        first *= self.beta1
        first += (1 - self.beta1) * gradient
        second *= self.beta2
        second += _weighted_square(gradient, 1 - self.beta2)
        if self.amsgrad:
            largest = [xp.maximum(largest[0], second)]
        scale = xp.sqrt(largest[0] if self.amsgrad else second)
        scale /= math.sqrt(1 - self.beta2**count)
        scale += self.epsilon
        step = _over(first, scale)
        step *= rate / (1 - self.beta1**count)
        return _less(value, step), (first, second, *largest)


class AdamW(Adam):
    """Adam with decoupled weight decay λ: θ ← θ - α λ θ before Adam's step, whatever the gradient.

    Loshchilov and Hutter, 2017, arXiv:1711.05101.

    Args:
        learning_rate: a number or schedule.
        beta1: as for `Adam`.
        beta2: as for `Adam`.
        epsilon: as for `Adam`.
        amsgrad: as for `Adam`.
        weight_decay: λ.
        **common: `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.AdamW(0.1, weight_decay=0.5).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.85
    """

    decoupled = True

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *,
        weight_decay: float = 0.004,
        **common: Unpack[Clipping],
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, amsgrad, weight_decay=weight_decay, **common)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        return super().update(xp, value * (1 - rate * self.weight_decay), gradient, slots, rate, count)


class Adamax(Optimizer):
    """Adam with the largest recent gradient in place of the second moment.

    m ← β₁ m + (1 - β₁) g; u ← max(β₂ u, |g|); θ ← θ - α / (1 - β₁ᵗ) · m / (u + ε), t counting the variable's own
    updates. Kingma and Ba, 2014, arXiv:1412.6980, section 7.1. For TensorFlow.js's `decay` pass the schedule
    `inverse_time_decay(rate, 1, decay)`.

    Args:
        learning_rate: a number or schedule.
        beta1: β₁.
        beta2: β₂.
        epsilon: ε.
        **common: `weight_decay` (added to the gradient), `clip_norm`, `clip_value`; see `Optimizer`.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable(1.0)
        >>> sg.train.Adamax(0.1).minimize(lambda: 2 * w)
        >>> round(float(w), 4)
        0.9
    """

    slot_names = ("first_moment", "largest")

    def __init__(
        self,
        learning_rate: float | Schedule = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta1 = self._number("beta1", beta1, 0.0, 1.0)
        self.beta2 = self._number("beta2", beta2, 0.0, 1.0)
        self.epsilon = self._number("epsilon", epsilon, 0.0)

    def update(self, xp: Any, value: Any, gradient: Any, slots: Slots, rate: float, count: int) -> tuple[Any, Slots]:
        """Return (new value, new slots)."""
        first, largest = slots
        first *= self.beta1
        first += (1 - self.beta1) * gradient
        largest *= self.beta2
        largest = xp.maximum(largest, xp.abs(gradient))
        step = _over(first, largest + self.epsilon)
        step *= rate / (1 - self.beta1**count)
        return _less(value, step), (first, largest)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "momentum": Momentum,
    "adagrad": Adagrad,
    "adadelta": Adadelta,
    "rmsprop": RMSProp,
    "adam": Adam,
    "adamw": AdamW,
    "adamax": Adamax,
}
"""Every optimizer, by the name TensorFlow.js calls it by."""
