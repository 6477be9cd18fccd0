"""Activations of neural networks, entry by entry. What they do at their kinks is told in each docstring.

Those that networks spend their time in are operations of their own, which keep one array each; the others are written
with these and with the elementary functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stopgrad.core.errors import ArgumentError
from stopgrad.core.lazy import scipy_special
from stopgrad.core.operation import elementwise
from stopgrad.core.record import bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import absolute, add, divide, multiply
from stopgrad.primitives.define import unary
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.selection import clip
from stopgrad.primitives.special import ndtr, sigmoid, softplus
from stopgrad.primitives.trigonometric import tanh

_1_OVER_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)

# Klambauer et al. 2017, "Self-Normalizing Neural Networks": the fixed point of mean 0 and variance 1.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@unary(
    lambda x: np.maximum(x, 0),
    lambda xp, t, _x, out: xp.where(out > 0, t, 0),
    masks=True,
)
def relu(xp: Any, x: Any) -> Any:
    """Positive part, max(x, 0). At 0 the derivative is 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.relu([-1.0, 0.0, 2.0]).numpy()
        array([0., 0., 2.])
        >>> float(sg.grad(sg.relu)(0.0))
        0.0
    """
    return xp.maximum(x, xp.zeros_like(x))


@unary(
    lambda x: np.minimum(np.maximum(x, 0), 6),
    lambda xp, t, _x, out: xp.where((out > 0) & (out < 6), t, 0),
    masks=True,
)
def relu6(xp: Any, x: Any) -> Any:
    """min(max(x, 0), 6). At 0 and at 6 the derivative is 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.relu6([-1.0, 2.0, 9.0]).numpy()
        array([0., 2., 6.])
    """
    return xp.clip(x, 0, 6)


LEAKY_RELU = elementwise(
    "leaky_relu",
    lambda xp, x, slope: xp.where(x > 0, x, slope * x),
    lambda xp, t, x, slope, _out: xp.where(x > 0, t, slope * t),
    lambda xp, t, x, _slope, _out: xp.where(xp.asarray(x > 0), 0, t * x),
)
"""leaky_relu(x, slope)."""


def leaky_relu(x: Any, /, negative_slope: Any = 0.01) -> Tensor:
    """X where it is positive, elsewhere `negative_slope` times x. At 0 the derivative is the slope.

    Args:
        x: tensor, array or number.
        negative_slope: number, or a tensor that broadcasts with x and may be trained.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> import stopgrad as sg
        >>> sg.leaky_relu([-1.0, 2.0], 0.1).numpy()
        array([-0.1,  2. ])
    """
    return bind2(LEAKY_RELU, x, negative_slope)


ELU = elementwise(
    "elu",
    lambda xp, x, alpha: xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, xp.zeros_like(x)))),
    lambda xp, t, x, alpha, _out: xp.where(x > 0, t, t * (alpha * xp.exp(x))),
    lambda xp, t, x, _alpha, _out: xp.where(xp.asarray(x > 0), 0, t * xp.expm1(xp.asarray(x))),
    numpy_kernel=lambda x, alpha: np.where(np.greater(x, 0), x, alpha * np.expm1(np.minimum(x, 0))),
)
"""elu(x, alpha)."""


def elu(x: Any, /, alpha: Any = 1.0) -> Tensor:
    """X where it is positive, elsewhere alpha·(eˣ - 1). At 0 the derivative is alpha.

    Args:
        x: tensor, array or number.
        alpha: number, or a tensor that broadcasts with x and may be trained.

    Returns:
        Tensor of the shape of x.

    Example:
        >>> import stopgrad as sg
        >>> sg.elu([-1.0, 2.0]).numpy()
        array([-0.63212056,  2.        ])
    """
    return bind2(ELU, x, alpha)


def selu(x: Any, /) -> Tensor:
    """Self-normalising unit: `elu` with the scales that keep mean 0 and variance 1. At 0 the left derivative, 1.758.

    Klambauer et al. 2017, "Self-Normalizing Neural Networks", arXiv:1706.02515.

    Example:
        >>> import stopgrad as sg
        >>> sg.selu([-1.0, 2.0]).numpy()
        array([-1.11133074,  2.10140197])
    """
    return multiply(elu(x, _SELU_ALPHA), _SELU_SCALE)


def celu(x: Any, /, alpha: Any = 1.0) -> Tensor:
    """X where it is positive, elsewhere alpha·(exp(x/alpha) - 1), whose derivative has no jump.

    Example:
        >>> import stopgrad as sg
        >>> sg.celu([-1.0, 2.0], 2.0).numpy()
        array([-0.78693868,  2.        ])
    """
    return multiply(elu(divide(x, alpha)), alpha)


@unary(
    lambda x: x * scipy_special().ndtr(x),
    lambda xp, t, x, _out: t * (run(ndtr.operation, x) + x * (_1_OVER_SQRT_2PI * xp.exp(-0.5 * x * x))),
)
def gelu_exact(xp: Any, x: Any) -> Any:
    """x·Φ(x), Φ the distribution function of the standard normal distribution."""
    return x * run(ndtr.operation, x)


def _tanh_gate(xp: Any, x: Any) -> Any:
    return 0.5 * (1 + xp.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))


def _gelu_tanh_scale(xp: Any, t: Any, x: Any, _out: Any) -> Any:
    gate = _tanh_gate(xp, x)
    return t * (gate + x * gate * (1 - gate) * (2 * _SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x)))


@unary(None, _gelu_tanh_scale)
def gelu_tanh(xp: Any, x: Any) -> Any:
    """The approximation of x·Φ(x) by a hyperbolic tangent."""
    return x * _tanh_gate(xp, x)


def gelu(x: Any, /, approximate: bool | str = False) -> Tensor:
    """Gaussian error linear unit, x·Φ(x), Φ the distribution function of the standard normal distribution.

    Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", arXiv:1606.08415.

    Args:
        x: tensor, array or number.
        approximate: `False` or "none" for Φ itself; `True` or "tanh" for x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).

    Returns:
        Tensor of the shape of x.

    Raises:
        ArgumentError: another value of `approximate`.

    Example:
        >>> import stopgrad as sg
        >>> sg.gelu([-1.0, 2.0]).numpy()
        array([-0.15865525,  1.95449974])
        >>> sg.gelu([-1.0, 2.0], approximate="tanh").numpy()
        array([-0.15880801,  1.95459769])
    """
    if approximate is False or approximate == "none":
        return gelu_exact(x)
    if approximate is True or approximate == "tanh":
        return gelu_tanh(x)
    raise ArgumentError(f"gelu: approximate must be False, True, 'none' or 'tanh', got {approximate!r}")


def _silu_scale(xp: Any, t: Any, x: Any, _out: Any) -> Any:
    gate = run(sigmoid.operation, x)
    return t * (gate * (1 + x * (1 - gate)))


@unary(lambda x: x * scipy_special().expit(x), _silu_scale)
def silu(xp: Any, x: Any) -> Any:
    """X times its logistic function, also called swish.

    Example:
        >>> import stopgrad as sg
        >>> sg.silu([-1.0, 2.0]).numpy()
        array([-0.26894142,  1.76159416])
    """
    return x * run(sigmoid.operation, x)


swish = silu


def mish(x: Any, /) -> Tensor:
    """x·tanh(softplus(x)).

    Misra 2019, "Mish: A Self Regularized Non-Monotonic Activation Function", arXiv:1908.08681.

    Example:
        >>> import stopgrad as sg
        >>> sg.mish([-1.0, 2.0]).numpy()
        array([-0.30340146,  1.94395896])
    """
    tensor = to_tensor(x, "mish")
    return multiply(tensor, tanh(softplus(tensor)))


def hard_sigmoid(x: Any, /) -> Tensor:
    """The logistic function in three straight pieces, relu6(x + 3) / 6. At ±3 the derivative is 0.

    Example:
        >>> import stopgrad as sg
        >>> sg.hard_sigmoid([-4.0, 0.0, 1.5]).numpy()
        array([0.  , 0.5 , 0.75])
    """
    return divide(relu6(add(x, 3.0)), 6.0)


def hard_tanh(x: Any, /) -> Tensor:
    """The hyperbolic tangent in three straight pieces, clip(x, -1, 1). At ±1 the derivative is 1, as that of `clip`.

    Example:
        >>> import stopgrad as sg
        >>> sg.hard_tanh([-4.0, 0.5, 2.0]).numpy()
        array([-1. ,  0.5,  1. ])
    """
    return clip(x, -1.0, 1.0)


def hard_silu(x: Any, /) -> Tensor:
    """x·hard_sigmoid(x), also called hard swish.

    Example:
        >>> import stopgrad as sg
        >>> sg.hard_silu([-4.0, 1.5]).numpy()
        array([-0.   ,  1.125])
    """
    tensor = to_tensor(x, "hard_silu")
    return multiply(tensor, hard_sigmoid(tensor))


hard_swish = hard_silu


def softsign(x: Any, /) -> Tensor:
    """X / (1 + |x|).

    Example:
        >>> import stopgrad as sg
        >>> sg.softsign([-1.0, 3.0]).numpy()
        array([-0.5 ,  0.75])
    """
    tensor = to_tensor(x, "softsign")
    return divide(tensor, add(absolute(tensor), 1.0))
