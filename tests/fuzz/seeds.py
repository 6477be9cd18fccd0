"""Programs whose files the tests of hostile files start from: small, and together with a bit of everything in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import stopgrad as sg
from stopgrad.control import cond, fori_loop, scan, while_loop
from stopgrad.graph.loading import HEAD, padding


def small(x: Any) -> Any:
    """Compute with a gate, a number, a constant and a scalar."""
    return x * sg.stop_gradient(x, name="held") + 0.5 * np.array([1.0, -0.0]) - np.float64(2.0)


def shapes(x: Any) -> Any:
    """Move entries about."""
    y = sg.reshape(x, (2, 3))
    return {"rows": [sg.sum(y[:, [0, 2]], axis=1), y.T], "both": (sg.concat([y, y], axis=0), None)}


def loops(x: Any) -> Any:
    """Loop and branch."""
    carry, rows = scan(lambda c, v: (c * v, cond(c > 1, lambda c: sg.sin(c), lambda c: -c, c)), x, np.arange(4.0))
    halved = while_loop(lambda c: c > 1, lambda c: c * 0.5, x)
    return carry + sg.sum(rows) + halved + fori_loop(0, 3, lambda i, c: sg.stop_gradient(c) * x + i, x)


def windows(x: Any) -> Any:
    """Slide windows over images, and switch dtypes."""
    y = sg.nn.conv(sg.reshape(x, (1, 4, 4, 1)), np.ones((2, 2, 1, 2)))
    return sg.astype(sg.nn.max_pool(y, 2), np.float32), sg.linalg.qr(sg.reshape(x, (4, 4)))


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "small": (small, np.array([3.0, 4.0])),
    "shapes": (shapes, np.arange(6.0)),
    "loops": (loops, 1.5),
    "gradient": (sg.grad(loops), 1.5),
    "windows": (windows, np.arange(16.0)),
}


def write_seed(name: str, path: str | os.PathLike[str]) -> None:
    """Trace one of the programs and save it."""
    program, argument = PROGRAMS[name]
    sg.trace(program)(argument).save(path)


def taken_apart(path: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Return the records of a file, and the bytes of its arrays."""
    data = Path(path).read_bytes()
    records = HEAD.unpack(data[: HEAD.size])[3]
    start = HEAD.size + records
    return data[HEAD.size : start], data[start + padding(records) :]
