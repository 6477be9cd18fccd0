"""What a stopped branch costs beside its plain forward: law 4 in time.

The branch is 50 sines of 10 000 entries. "stopped" computes it on a recorded input behind a gate,
"plain" on a constant.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

OPERATIONS = 50
TITLE = (
    f"stopped: a stopped branch of {OPERATIONS} operations on 10 000 float64 entries, beside the same computed plainly"
)


def contestants() -> dict[str, Callable[[], np.ndarray]]:
    """Return each contestant as a call that computes the branch from NumPy to NumPy."""
    import stopgrad as sg

    x = np.linspace(0, 1, 10_000)
    constant = sg.tensor(x)
    tape = sg.GradientTape()
    tape.__enter__()
    recorded = tape.watch(sg.tensor(x))

    def branch(h):
        for _ in range(OPERATIONS):
            h = sg.sin(h)
        return h

    def by_hand() -> np.ndarray:
        h = x
        for _ in range(OPERATIONS):
            h = np.sin(h)
        return h

    return {
        "stopped": lambda: branch(sg.stop_gradient(recorded)).numpy(),
        "plain": lambda: branch(constant).numpy(),
        "NumPy by hand": by_hand,
    }
