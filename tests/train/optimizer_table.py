"""Optimizers with all their settings, each of which must obey the same laws, and PyTorch's counterparts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from stopgrad import train


class Entry(NamedTuple):
    """An optimizer at a learning rate, and the same of PyTorch's over a list of its parameters."""

    make: Callable[[Any], train.Optimizer]
    torch: Callable[[Any, float], torch.optim.Optimizer] | None = None


_O = torch.optim
ENTRIES: dict[str, Entry] = {
    "sgd": Entry(train.SGD, lambda w, r: _O.SGD(w, r)),
    "sgd decay": Entry(lambda r: train.SGD(r, weight_decay=0.1), lambda w, r: _O.SGD(w, r, weight_decay=0.1)),
    "sgd clip norm": Entry(lambda r: train.SGD(r, clip_norm=0.5)),
    "sgd clip value": Entry(lambda r: train.SGD(r, clip_value=0.5)),
    "momentum": Entry(train.Momentum, lambda w, r: _O.SGD(w, r, momentum=0.9)),
    "momentum decay": Entry(
        lambda r: train.Momentum(r, 0.8, weight_decay=0.1), lambda w, r: _O.SGD(w, r, momentum=0.8, weight_decay=0.1)
    ),
    "nesterov": Entry(
        lambda r: train.Momentum(r, 0.9, use_nesterov=True), lambda w, r: _O.SGD(w, r, momentum=0.9, nesterov=True)
    ),
    "momentum decay clip": Entry(lambda r: train.Momentum(r, 0.9, weight_decay=0.1, clip_norm=0.5)),
    "adagrad": Entry(
        lambda r: train.Adagrad(r, epsilon=0.0),
        lambda w, r: _O.Adagrad(w, r, initial_accumulator_value=0.1, eps=0.0),
    ),
    "adagrad decay": Entry(
        lambda r: train.Adagrad(r, 0.5, epsilon=0.0, weight_decay=0.1),
        lambda w, r: _O.Adagrad(w, r, initial_accumulator_value=0.5, eps=0.0, weight_decay=0.1),
    ),
    "adadelta": Entry(lambda r: train.Adadelta(r, epsilon=1e-3), lambda w, r: _O.Adadelta(w, r, rho=0.95, eps=1e-3)),
    "adadelta decay": Entry(
        lambda r: train.Adadelta(r, 0.8, weight_decay=0.1, epsilon=1e-3),
        lambda w, r: _O.Adadelta(w, r, rho=0.8, weight_decay=0.1, eps=1e-3),
    ),
    "rmsprop": Entry(lambda r: train.RMSProp(r, epsilon=0.0), lambda w, r: _O.RMSprop(w, r, alpha=0.9, eps=0.0)),
    "rmsprop centered": Entry(
        lambda r: train.RMSProp(r, 0.8, 0.5, epsilon=0.0, centered=True, weight_decay=0.1),
        lambda w, r: _O.RMSprop(w, r, alpha=0.8, momentum=0.5, eps=0.0, centered=True, weight_decay=0.1),
    ),
    "adam": Entry(train.Adam, lambda w, r: _O.Adam(w, r, eps=1e-7)),
    "adam decay": Entry(
        lambda r: train.Adam(r, 0.8, 0.9, 1e-3, weight_decay=0.1),
        lambda w, r: _O.Adam(w, r, (0.8, 0.9), 1e-3, weight_decay=0.1),
    ),
    "adam amsgrad": Entry(
        lambda r: train.Adam(r, 0.9, 0.9, amsgrad=True), lambda w, r: _O.Adam(w, r, (0.9, 0.9), 1e-7, amsgrad=True)
    ),
    "adam clip": Entry(lambda r: train.Adam(r, clip_norm=0.5)),
    "adamw": Entry(lambda r: train.AdamW(r, weight_decay=0.1), lambda w, r: _O.AdamW(w, r, eps=1e-7, weight_decay=0.1)),
    "adamw amsgrad": Entry(
        lambda r: train.AdamW(r, beta2=0.9, amsgrad=True),
        lambda w, r: _O.AdamW(w, r, (0.9, 0.9), 1e-7, weight_decay=0.004, amsgrad=True),
    ),
    "adamax": Entry(lambda r: train.Adamax(r, epsilon=0.0), lambda w, r: _O.Adamax(w, r, eps=0.0)),
    "adamax decay": Entry(
        lambda r: train.Adamax(r, 0.8, 0.9, 0.0, weight_decay=0.1),
        lambda w, r: _O.Adamax(w, r, (0.8, 0.9), 0.0, weight_decay=0.1),
    ),
}
