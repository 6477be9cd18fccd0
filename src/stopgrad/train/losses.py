"""Loss functions, those of TensorFlow.js's `losses` in its argument order: labels, predictions, weights … reduction.

Each computes a loss for every example (entry, or row for the two over classes), weights and reduces them. Labels are
brought to the dtype of the predictions; their shapes must be equal, since broadcasting a column against a row is a
mistake that trains. Cross entropies take logits and never form a probability whose logarithm could be infinite.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import carries_derivative, normalize_axis
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor


class Reduction(enum.IntEnum):
    """What is made of the weighted losses of all examples; numbered as in TensorFlow.js."""

    NONE = 0
    """Nothing: a loss for each."""
    MEAN = 1
    """Their sum, divided by the sum of the weights."""
    SUM = 2
    """Their sum."""
    SUM_BY_NONZERO_WEIGHTS = 3
    """Their sum, divided by the number of weights that are not zero: the default."""


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(losses: Any, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """Weight the losses of examples and reduce them.

    Args:
        losses: tensor of any shape.
        weights: what broadcasts to it; ones by default. A constant weight of zero takes its example out, whatever its
            loss is: NaN or infinity there leaks neither into the result nor into a gradient.
        reduction: a `Reduction` or its name. Where the means would divide by zero, no example counting, they are 0.

    Raises:
        ShapeError: the weights do not broadcast to the losses.
        ArgumentError: no such reduction.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.train import losses
        >>> float(losses.compute_weighted_loss([1.0, 2.0, 6.0], [1.0, 1.0, 0.0]))
        1.5
    """
    return _reduced(to_tensor(losses, "compute_weighted_loss: losses"), weights, reduction, "compute_weighted_loss")


def absolute_difference(labels: Any, predictions: Any, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """|labels - predictions|. The derivative where they are equal is 0.

    Args:
        labels: what is right.
        predictions: tensor of the same shape.
        weights: see `compute_weighted_loss`.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape.

    Example:
        >>> from stopgrad.train import losses
        >>> float(losses.absolute_difference([1.0, 2.0], [2.0, 5.0]))
        2.0
    """
    labels, predictions = _aligned(labels, predictions, "absolute_difference")
    return _reduced(p.abs(labels - predictions), weights, reduction, "absolute_difference")


def cosine_distance(labels: Any, predictions: Any, axis: int, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """1 - Σ labels · predictions along an axis, which is kept with size 1; both are taken to be of unit length.

    Args:
        labels: what is right.
        predictions: tensor of the same shape.
        axis: along which to sum.
        weights: see `compute_weighted_loss`.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape, or the axis is out of range.

    Example:
        >>> from stopgrad.train import losses
        >>> float(losses.cosine_distance([[1.0, 0.0]], [[0.5, 0.5]], axis=1))
        0.5
    """
    labels, predictions = _aligned(labels, predictions, "cosine_distance")
    axis = normalize_axis("cosine_distance", axis, len(labels.shape))
    losses = p.subtract(1, p.sum(labels * predictions, axis=axis, keepdims=True))
    return _reduced(losses, weights, reduction, "cosine_distance")


def hinge_loss(labels: Any, predictions: Any, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """max(0, 1 - y · predictions), y being -1 for a label of 0 and 1 for one of 1. At the margin the derivative is 0.

    Args:
        labels: 0 or 1.
        predictions: tensor of the same shape.
        weights: see `compute_weighted_loss`.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape.

    Example:
        >>> from stopgrad.train import losses
        >>> float(losses.hinge_loss([1, 0], [0.5, 0.5]))
        1.0
    """
    labels, predictions = _aligned(labels, predictions, "hinge_loss")
    return _reduced(p.relu(1 - (2 * labels - 1) * predictions), weights, reduction, "hinge_loss")


def huber_loss(
    labels: Any, predictions: Any, weights: Any = None, delta: float = 1.0, reduction: Any = _DEFAULT
) -> Tensor:
    """½ e² where the error e = |labels - predictions| is at most δ, beyond it δ e - ½ δ². Huber, 1964.

    Args:
        labels: what is right.
        predictions: tensor of the same shape.
        weights: see `compute_weighted_loss`.
        delta: δ, where the square turns into a line (the derivatives of the two agree there).
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape.

    Example:
        >>> from stopgrad.train import losses
        >>> losses.huber_loss([0.0, 0.0], [0.5, 3.0], reduction="none").numpy()
        array([0.125, 2.5  ])
    """
    labels, predictions = _aligned(labels, predictions, "huber_loss")
    error: Any = p.abs(predictions - labels)
    near: Any = p.minimum(error, delta)
    return _reduced(0.5 * (near * near) + delta * (error - near), weights, reduction, "huber_loss")


def log_loss(
    labels: Any, predictions: Any, weights: Any = None, epsilon: float = 1e-7, reduction: Any = _DEFAULT
) -> Tensor:
    """-labels · log(predictions + ε) - (1 - labels) · log(1 - predictions + ε), of probabilities.

    Args:
        labels: 0 or 1, or probabilities.
        predictions: probabilities, of the same shape; for logits use `sigmoid_cross_entropy`, which is exact.
        weights: see `compute_weighted_loss`.
        epsilon: ε.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape.

    Example:
        >>> from stopgrad.train import losses
        >>> round(float(losses.log_loss([1.0], [0.5], epsilon=0.0)), 6)
        0.693147
    """
    labels, predictions = _aligned(labels, predictions, "log_loss")
    losses = -labels * p.log(predictions + epsilon) - (1 - labels) * p.log(1 - predictions + epsilon)
    return _reduced(losses, weights, reduction, "log_loss")


def mean_squared_error(labels: Any, predictions: Any, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """(labels - predictions)².

    Args:
        labels: what is right.
        predictions: tensor of the same shape.
        weights: see `compute_weighted_loss`.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and predictions differ in shape.

    Example:
        >>> from stopgrad.train import losses
        >>> float(losses.mean_squared_error([1.0, 2.0], [2.0, 5.0]))
        5.0
    """
    labels, predictions = _aligned(labels, predictions, "mean_squared_error")
    return _reduced(p.square(labels - predictions), weights, reduction, "mean_squared_error")


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = None,
    label_smoothing: float = 0.0,
    reduction: Any = _DEFAULT,
) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)) for labels z and logits x: classes that do not exclude one another.

    Computed as z softplus(-x) + (1 - z) softplus(x), which neither overflows nor cancels.

    Args:
        multi_class_labels: 0 or 1, or probabilities.
        logits: tensor of the same shape.
        weights: see `compute_weighted_loss`.
        label_smoothing: s in z ← z (1 - s) + s / 2.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and logits differ in shape.
        ArgumentError: a smoothing outside [0, 1].

    Example:
        >>> from stopgrad.train import losses
        >>> losses.sigmoid_cross_entropy([1, 0], [-1000.0, 1000.0], reduction="none").numpy()
        array([1000., 1000.])
    """
    labels, logits = _aligned(multi_class_labels, logits, "sigmoid_cross_entropy", "logits")
    labels = _smoothed(labels, label_smoothing, 2, "sigmoid_cross_entropy")
    losses = labels * p.softplus(-logits) + (1 - labels) * p.softplus(logits)
    return _reduced(losses, weights, reduction, "sigmoid_cross_entropy")


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = None,
    label_smoothing: float = 0.0,
    reduction: Any = _DEFAULT,
) -> Tensor:
    """-Σ z log softmax(x) over the last axis, for labels z and logits x: a loss for each row.

    Args:
        onehot_labels: rows of probabilities, such as one-hot rows.
        logits: tensor of the same shape.
        weights: see `compute_weighted_loss`; they weight rows.
        label_smoothing: s in z ← z (1 - s) + s / number of classes.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: labels and logits differ in shape, or have no axis.
        ArgumentError: a smoothing outside [0, 1].

    Example:
        >>> from stopgrad.train import losses
        >>> round(float(losses.softmax_cross_entropy([[1.0, 0.0]], [[2.0, 2.0]])), 6)
        0.693147
    """
    labels, logits = _aligned(onehot_labels, logits, "softmax_cross_entropy", "logits")
    classes = _classes(logits, "softmax_cross_entropy")
    labels = _smoothed(labels, label_smoothing, classes, "softmax_cross_entropy")
    losses = p.negative(p.sum(labels * p.log_softmax(logits, axis=-1), axis=-1))
    return _reduced(losses, weights, reduction, "softmax_cross_entropy")


def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = None, reduction: Any = _DEFAULT) -> Tensor:
    """-log softmax(x) at the class that is right, over the last axis: a loss for each row.

    Args:
        labels: integers in [0, number of classes), one a row.
        logits: tensor with one axis more than the labels.
        weights: see `compute_weighted_loss`; they weight rows. Give rows to be ignored weight 0.
        reduction: see `compute_weighted_loss`.

    Raises:
        ShapeError: the labels' shape is not that of the logits without the last axis.
        ArgumentTypeError: labels that are not integers.
        ArgumentError: a label that is no class.

    Example:
        >>> from stopgrad.train import losses
        >>> round(float(losses.sparse_softmax_cross_entropy([0], [[2.0, 2.0]])), 6)
        0.693147
    """
    where = "sparse_softmax_cross_entropy"
    labels, logits = to_tensor(labels, f"{where}: labels"), to_tensor(logits, f"{where}: logits")
    classes = _classes(logits, where)
    if labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"{where}: labels have shape {labels.shape}, logits {logits.shape}; labels need the shape "
            f"{logits.shape[:-1]}"
        )
    numbers = labels.numpy()
    if numbers.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{where}: labels must be integers, got {labels.dtype}")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= classes):
        raise ArgumentError(
            f"{where}: labels must be in [0, {classes}), got values from {numbers.min()} to {numbers.max()}"
        )
    log_probabilities = p.log_softmax(_floating(logits), axis=-1)
    chosen = p.take_along_axis(log_probabilities, p.expand_dims(labels, axis=-1), axis=-1)
    return _reduced(p.negative(p.squeeze(chosen, axis=-1)), weights, reduction, where)


def _aligned(labels: Any, predictions: Any, where: str, what: str = "predictions") -> tuple[Any, Any]:
    labels = to_tensor(labels, f"{where}: labels")
    predictions = _floating(to_tensor(predictions, f"{where}: {what}"))
    if labels.shape != predictions.shape:
        raise ShapeError(
            f"{where}: labels have shape {labels.shape}, {what} {predictions.shape}; they must be equal (reshape one)"
        )
    return p.astype(labels, predictions.dtype), predictions


def _floating(x: Tensor) -> Tensor:
    return x if carries_derivative(x.dtype) else p.astype(x, np.float64)


def _classes(logits: Tensor, where: str) -> int:
    if not logits.shape:
        raise ShapeError(f"{where}: logits must have at least one axis, that of the classes")
    return logits.shape[-1]


def _smoothed(labels: Any, smoothing: float, classes: int, where: str) -> Any:
    if not 0 <= smoothing <= 1:
        raise ArgumentError(f"{where}: label_smoothing must be in [0, 1], got {smoothing!r}")
    return labels * (1 - smoothing) + smoothing / classes if smoothing else labels


def _reduced(losses: Any, weights: Any, reduction: Any, where: str) -> Tensor:
    reduction = _reduction(reduction, where)
    factor: Any = 1
    if weights is not None:
        factor = _floating(to_tensor(weights, f"{where}: weights"))
        factor = p.astype(factor, losses.dtype)
        _check_weights(factor, losses, where)
        if type(factor.node) is not tuple:
            losses = p.where(factor == 0, 0.0, losses)
        losses = losses * factor
    if reduction is Reduction.NONE:
        each: Tensor = losses
        return each
    if reduction is Reduction.SUM:
        return p.sum(losses)
    if weights is None:
        return p.mean(losses)
    repeats = math.prod(losses.shape) / max(math.prod(factor.shape), 1)
    counted = factor if reduction is Reduction.MEAN else p.astype(factor != 0, losses.dtype)
    return p.divide_no_nan(p.sum(losses), p.multiply(p.sum(counted), repeats))


def _check_weights(weights: Tensor, losses: Tensor, where: str) -> None:
    try:
        fits = np.broadcast_shapes(weights.shape, losses.shape) == losses.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{where}: weights of shape {weights.shape} do not broadcast to the losses' shape {losses.shape}"
        )


def _reduction(reduction: Any, where: str) -> Reduction:
    try:
        return Reduction[reduction.upper()] if isinstance(reduction, str) else Reduction(reduction)
    except (KeyError, ValueError):
        names = ", ".join(repr(one.name.lower()) for one in Reduction)
        raise ArgumentError(f"{where}: reduction must be a Reduction or one of {names}, got {reduction!r}") from None
