"""What neural networks are made of: activations, normalisation, convolution, pooling, lookups, dropout."""

from __future__ import annotations

from typing import Any

from stopgrad.core.tensor import Tensor
from stopgrad.primitives import (
    avg_pool,
    celu,
    conv,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv_transpose,
    depthwise_conv2d,
    elu,
    gelu,
    global_avg_pool,
    global_max_pool,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    max_pool,
    mish,
    one_hot,
    relu,
    relu6,
    resize_nearest,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    standardize,
    tanh,
)
from stopgrad.random import dropout

swish = silu

__all__ = [
    "avg_pool",
    "celu",
    "conv",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv_transpose",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "gelu",
    "global_avg_pool",
    "global_max_pool",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "resize_nearest",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "standardize",
    "swish",
    "tanh",
]


def layer_norm(x: Any, scale: Any = 1.0, offset: Any = 0.0, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """Normalise to mean 0 and variance 1 over an axis, then scale and shift (Ba, Kiros and Hinton, 2016).

    Args:
        x: tensor.
        scale: factor that broadcasts to x.
        offset: summand that broadcasts to x.
        axis: the axis to normalise over.
        epsilon: added to the variance.

    Example:
        >>> import stopgrad as sg
        >>> sg.nn.layer_norm([1.0, 3.0], epsilon=0.0).numpy()
        array([-1.,  1.])
    """
    return standardize(x, axis=axis, epsilon=epsilon) * scale + offset
