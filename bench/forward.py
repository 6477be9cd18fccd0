"""Eager cost of the forward pass alone: the chain of `bench.tape`, recorded for a gradient that is not taken.

Beside `tape`, which times forward and backward together, it tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.tape import LINKS, OPERATIONS

TITLE = f"forward: recording a chain of {OPERATIONS} operations on 10 float64 entries"


def contestants() -> dict[str, Callable[[], np.ndarray]]:
    """Return each contestant as a call that records the chain from NumPy to NumPy."""
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

    def chain() -> np.ndarray:
        with sg.GradientTape() as tape:
            h = tape.watch(sg.tensor(x))
            for _ in range(LINKS):
                h = sg.tanh(h * w_t + b_t)
            return sg.sum(h).numpy()

    return chain


def _by_hand(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    def chain() -> np.ndarray:
        h, values = x, []
        for _ in range(LINKS):
            h = np.tanh(h * w + b)
            values.append(h)
        return np.add.reduce(h)

    return chain


def _autograd(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    import autograd
    import autograd.numpy as anp

    def chain(h):
        for _ in range(LINKS):
            h = anp.tanh(h * w + b)
        return anp.sum(h)

    return lambda: autograd.make_vjp(chain)(x)[1]


def _torch(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    import torch

    w_t, b_t = torch.tensor(w), torch.tensor(b)

    def chain() -> np.ndarray:
        h = torch.tensor(x, requires_grad=True)
        for _ in range(LINKS):
            h = torch.tanh(h * w_t + b_t)
        return h.sum().detach().numpy()

    return chain
