"""`tf.nn`: activations, cross entropies from logits, normalisation, dropout and lookups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, BoundsError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.convolution import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    depthwise_conv2d,
    max_pool,
    max_pool1d,
    max_pool2d,
    separable_conv2d,
)
from stopgrad.tf.dtypes import float32
from stopgrad.tf.elementwise import tanh
from stopgrad.tf.indexing import gather, in_top_k, top_k
from stopgrad.tf.missing import message
from stopgrad.tf.products import l2_normalize
from stopgrad.tf.random import dropout_mask
from stopgrad.tf.values import as_floats, as_tensor, axes, known_values, operands, unary

sigmoid = unary(p.sigmoid, "sigmoid", floats=True)
log_sigmoid = unary(p.log_sigmoid, "log_sigmoid", floats=True)


def relu(features: Any, name: str | None = None) -> Tensor:
    """Positive part, max(x, 0). At 0 the derivative is 0, as in TensorFlow."""
    return p.relu(as_tensor(features, "relu"))


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6). At 0 and at 6 the derivative is 0, as in TensorFlow."""
    return p.relu6(as_tensor(features, "relu6"))


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Return x where it is positive, elsewhere alpha · x; alpha is 0.2 by default, as in TensorFlow."""
    return p.leaky_relu(as_floats(features, "leaky_relu"), alpha)


def elu(features: Any, name: str | None = None) -> Tensor:
    """Return x where it is positive, elsewhere eˣ - 1."""
    return p.elu(as_floats(features, "elu"))


def selu(features: Any, name: str | None = None) -> Tensor:
    """Scaled exponential linear unit (Klambauer et al., 2017)."""
    return p.selu(as_floats(features, "selu"))


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x · Φ(x), Φ the normal distribution function, or its approximation by a hyperbolic tangent.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nn.gelu([-1.0, 1.0]).numpy().round(4)
        array([-0.1587,  0.8413], dtype=float32)
    """
    return p.gelu(as_floats(features, "gelu"), approximate=approximate)


def silu(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """x · sigmoid(beta · x)."""
    x, factor = operands("silu", as_floats(features, "silu"), beta)
    return p.silu(x) if type(beta) in (int, float) and beta == 1 else p.multiply(x, p.sigmoid(p.multiply(factor, x)))


swish = silu


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(1 + eˣ), without overflow."""
    return p.softplus(as_floats(features, "softplus"))


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (1 + |x|)."""
    return p.softsign(as_floats(features, "softsign"))


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Positive part of x and of -x, one after the other along an axis."""
    x = as_tensor(features, "crelu")
    return p.relu(p.concat([x, p.negative(x)], axis))


def prelu(x: Any, alpha: Any) -> Tensor:
    """Return x where it is positive, elsewhere alpha · x, for a tensor alpha that is learnt. Of TensorFlow.js."""
    tensor, slope = operands("prelu", as_floats(x, "prelu"), alpha)
    return p.where(p.greater(tensor, 0), tensor, p.multiply(slope, tensor))


def softmax(logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """Exponentials divided by their sum along an axis, without overflow.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nn.softmax([1000.0, 1001.0]).numpy().round(4)
        array([0.2689, 0.7311], dtype=float32)
    """
    return p.softmax(as_floats(logits, "softmax"), -1 if axis is None else axes(axis, "softmax"))


def log_softmax(logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """Logarithm of softmax, without overflow or cancellation."""
    return p.log_softmax(as_floats(logits, "log_softmax"), -1 if axis is None else axes(axis, "log_softmax"))


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)) for labels z and logits x, entry by entry, without overflow.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, 100.0]).numpy()
        array([  0.6931472, 100.       ], dtype=float32)
    """
    z, x = _labels_and_logits(labels, logits, "sigmoid_cross_entropy_with_logits")
    return p.subtract(p.softplus(x), p.multiply(x, z))


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` in which the term of positive labels counts `pos_weight` times."""
    z, x = _labels_and_logits(labels, logits, "weighted_cross_entropy_with_logits")
    weight = as_tensor(pos_weight, "weighted_cross_entropy_with_logits", x.dtype)
    positive = p.multiply(p.multiply(weight, z), p.softplus(p.negative(x)))
    return p.add(positive, p.multiply(p.subtract(1, z), p.softplus(x)))


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """-Σ z log softmax(x) along an axis, for labels z that are probabilities and logits x.

    Derivatives go to the labels, too, if they are computed from something; stop them if they are not to.
    """
    x = as_floats(logits, "softmax_cross_entropy_with_logits")
    z = as_tensor(labels, "softmax_cross_entropy_with_logits", x.dtype)
    return p.negative(p.sum(p.multiply(z, p.log_softmax(x, axis)), axis))


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """-log softmax(x) at the class that is right, for labels that are numbers of classes and logits x.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=[[2.0, 2.0]]).numpy()
        array([0.6931472], dtype=float32)
    """
    where = "sparse_softmax_cross_entropy_with_logits"
    numbers, x = as_tensor(labels, where), as_floats(logits, where)
    if not x.ndim or numbers.shape != x.shape[:-1]:
        raise ShapeError(f"{where}: labels of shape {numbers.shape} do not go with logits of shape {x.shape}")
    host = known_values(numbers)
    if host is not None and host.size and not (host.min() >= 0 and host.max() < x.shape[-1]):
        raise BoundsError(f"{where}: labels must be in [0, {x.shape[-1]}), got {host.min()} to {host.max()}")
    chosen = p.take_along_axis(p.log_softmax(x, -1), p.expand_dims(numbers, -1), -1)
    return p.negative(p.squeeze(chosen, -1))


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """eᶜ - c · z for targets z and logarithms c of their rates; the full loss adds Stirling's log z! where z > 1."""
    c = as_floats(log_input, "log_poisson_loss")
    z = as_tensor(targets, "log_poisson_loss", c.dtype)
    loss = p.subtract(p.exp(c), p.multiply(c, z))
    if not compute_full_loss:
        return loss
    stirling = z * p.log(z) - z + 0.5 * p.log(2 * 3.141592653589793 * z)
    return p.add(loss, p.where(p.greater(z, 1), stirling, 0.0))


def moments(
    x: Any, axes: Any = None, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return mean and variance over axes, all of them by default.

    `True` in the third place keeps the axes, as in TensorFlow.js; TensorFlow's `shift` is not used.

    Example:
        >>> import stopgrad.tf as tf
        >>> mean, variance = tf.nn.moments([[1.0, 2.0], [3.0, 4.0]], axes=[0])
        >>> mean.numpy(), variance.numpy()
        (array([2., 3.], dtype=float32), array([1., 1.], dtype=float32))
    """
    tensor, along = as_floats(x, "moments"), _axes(axes, "moments")
    keepdims = keepdims or shift is True
    return p.mean(tensor, axis=along, keepdims=keepdims), p.var(tensor, axis=along, keepdims=keepdims)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """Return scale · (x - mean) / √(variance + ε) + offset; `None` for scale or offset leaves it out."""
    tensor = as_floats(x, "batch_normalization")
    centre, spread, epsilon = (
        as_tensor(one, "batch_normalization", tensor.dtype) for one in (mean, variance, variance_epsilon)
    )
    inverse = p.rsqrt(p.add(spread, epsilon))
    if scale is not None:
        inverse = p.multiply(inverse, as_tensor(scale, "batch_normalization", tensor.dtype))
    normal = p.multiply(p.subtract(tensor, centre), inverse)
    return normal if offset is None else p.add(normal, as_tensor(offset, "batch_normalization", tensor.dtype))


def batch_norm(
    x: Any, mean: Any, variance: Any, offset: Any = None, scale: Any = None, variance_epsilon: Any = 0.001
) -> Tensor:
    """Return scale · (x - mean) / √(variance + ε) + offset. Of TensorFlow.js; see `batch_normalization`."""
    return batch_normalization(x, mean, variance, offset, scale, variance_epsilon)


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Tensor:
    """Set entries to 0 with probability `rate` and divide the others by 1 - rate.

    Args:
        x: tensor of floats.
        rate: in [0, 1).
        noise_shape: shape of the decisions, which broadcasts to that of x; its own by default.
        seed: see `stopgrad.tf.random`.
        name: not used.
    """
    tensor, share = as_floats(x, "dropout"), float(rate)
    if not 0 <= share < 1:
        raise ArgumentError(f"dropout: rate must be in [0, 1), got {rate}")
    if share == 0:
        return tensor
    shape = tensor.shape
    if noise_shape is not None:
        shape = tuple(own if want is None else int(want) for want, own in zip(noise_shape, tensor.shape, strict=True))
    kept = dropout_mask(shape, share, seed)
    return p.where(kept, p.multiply(tensor, 1 / (1 - share)), 0.0)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares of all entries."""
    return p.multiply(p.sum(p.square(as_floats(t, "l2_loss"))), 0.5)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a vector along the last axis, or along the second for data_format="NCHW"."""
    x, vector = operands("bias_add", value, bias)
    if vector.ndim != 1:
        raise ShapeError(f"bias_add: bias must be a vector, got shape {vector.shape}")
    if data_format is not None and data_format.startswith("NC"):
        vector = p.reshape(vector, (-1, *(1,) * (x.ndim - 2)))
    return p.add(x, vector)


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Tensor:
    """Return the rows of a table with given numbers, scaled down to a norm of at most `max_norm` if that is given."""
    rows = gather(params, ids)
    if max_norm is None:
        return rows
    over = tuple(range(as_tensor(ids, "embedding_lookup").ndim, rows.ndim))
    size = p.sqrt(p.sum(p.square(rows), axis=over, keepdims=True))
    return p.divide(p.multiply(rows, max_norm), p.maximum(size, max_norm))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Return the share of entries that are zero, as float32."""
    return p.astype(p.mean(p.astype(p.equal(as_tensor(value, "zero_fraction"), 0), float32)), float32)


def _axes(axis: Any, name: str) -> Any:
    return axes(axis, name)


def _labels_and_logits(labels: Any, logits: Any, name: str) -> Sequence[Tensor]:
    if labels is None or logits is None:
        raise ArgumentError(f"{name}: give both labels= and logits=")
    x = as_floats(logits, name)
    z = as_tensor(labels, name, x.dtype)
    if z.shape != x.shape:
        raise ShapeError(f"{name}: labels have shape {z.shape}, logits {x.shape}; they must be equal (reshape one)")
    return z, x


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.nn", name, __all__))


__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "batch_normalization",
    "bias_add",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "crelu",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "moments",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "zero_fraction",
]
