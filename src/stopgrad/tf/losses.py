"""`tf.losses`, TensorFlow.js's: those of `stopgrad.train.losses`, of numbers in float32."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from stopgrad.core.tensor import Tensor
from stopgrad.tf.missing import message
from stopgrad.tf.values import as_floats, as_tensor
from stopgrad.train import losses as ours

Reduction = ours.Reduction

_FLOATS = frozenset(("losses", "predictions", "logits", "weights"))
_LABELS = frozenset(("labels", "multi_class_labels", "onehot_labels"))


def _face(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a loss that reads its tensors as this face does."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def loss(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if value is not None and name in _FLOATS:
                given[name] = as_floats(value, f"{function.__name__}: {name}")
            elif name in _LABELS:
                given[name] = as_tensor(value, f"{function.__name__}: {name}")
        return function(**given)

    return loss


absolute_difference = _face(ours.absolute_difference)
compute_weighted_loss = _face(ours.compute_weighted_loss)
cosine_distance = _face(ours.cosine_distance)
hinge_loss = _face(ours.hinge_loss)
huber_loss = _face(ours.huber_loss)
log_loss = _face(ours.log_loss)
mean_squared_error = _face(ours.mean_squared_error)
sigmoid_cross_entropy = _face(ours.sigmoid_cross_entropy)
softmax_cross_entropy = _face(ours.softmax_cross_entropy)
sparse_softmax_cross_entropy = _face(ours.sparse_softmax_cross_entropy)


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.losses", name, __all__))


__all__ = [
    "Reduction",
    "absolute_difference",
    "compute_weighted_loss",
    "cosine_distance",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
