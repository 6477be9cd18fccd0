"""Eager cost per operation: the gradient of Σ hₙ, h ← tanh(h·w + b), chained 100 times, x of 10 entries.

At this size arithmetic costs next to nothing: what is timed is the machinery around it, forward and backward. 300
operations are recorded and differentiated in each call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LINKS = 100
OPERATIONS = 3 * LINKS
TITLE = f"tape: gradient of a chain of {OPERATIONS} operations on 10 float64 entries"


def contestants() -> dict[str, Callable[[], np.ndarray]]:
    """Return each contestant as a call that computes the gradient from NumPy to NumPy."""
    x, w, b = np.linspace(-1, 1, 10), np.linspace(0.5, 1.5, 10), np.linspace(-0.1, 0.1, 10)
    return {
        "stopgrad": _stopgrad(x, w, b),
        "NumPy by hand": _by_hand(x, w, b),
        "autograd": _autograd(x, w, b),
        "torch": _torch(x, w, b),
    }


def _stopgrad(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    import stopgrad as sg

    w_t, b_t = sg.tensor(w), sg.tensor(b)

    def chain(h):
        for _ in range(LINKS):
            h = sg.tanh(h * w_t + b_t)
        return sg.sum(h)

    gradient = sg.grad(chain)
    return lambda: gradient(x).numpy()


def _by_hand(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    def gradient() -> np.ndarray:
        h, values = x, []
        for _ in range(LINKS):
            h = np.tanh(h * w + b)
            values.append(h)
        np.add.reduce(h)
        cotangent = np.ones_like(h)
        for value in reversed(values):
            cotangent = cotangent * (1 - value * value) * w
        return cotangent

    return gradient


def _autograd(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    import autograd
    import autograd.numpy as anp

    def chain(h):
        for _ in range(LINKS):
            h = anp.tanh(h * w + b)
        return anp.sum(h)

    gradient = autograd.grad(chain)
    return lambda: gradient(x)


def _torch(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    import torch

    w_t, b_t = torch.tensor(w), torch.tensor(b)

    def gradient() -> np.ndarray:
        leaf = torch.tensor(x, requires_grad=True)
        h = leaf
        for _ in range(LINKS):
            h = torch.tanh(h * w_t + b_t)
        return torch.autograd.grad(h.sum(), leaf)[0].numpy()

    return gradient
