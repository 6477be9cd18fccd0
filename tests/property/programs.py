"""Random programs: smooth operations, gates and broadcasting, over arrays whose shapes all broadcast to (2, 3).

A program is a tuple of instructions, each of which makes one value of two before it, so hypothesis shrinks a failing
one to few. Values stay of size one, and away from ties and kinks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import stopgrad as sg

SHAPES = ((2, 3), (3,), (2, 1), ())
MASK = np.array([[True, False, True], [False, False, True]])

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - 0.5 * b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (1.5 + b * b),
    "tanh": lambda a, b: sg.tanh(a),
    "sine": lambda a, b: sg.sin(a + 0.3) * b,
    "exponential": lambda a, b: sg.exp(-a * a) + b,
    "logarithm": lambda a, b: sg.log(1.2 + b * b) * a,
    "square root": lambda a, b: sg.sqrt(a * a + 0.7),
    "power": lambda a, b: (a * a + 0.5) ** (0.3 * sg.tanh(b)),
    "cube": lambda a, b: a**3,
    "where": lambda a, b: sg.where(MASK, a, b),
    "maximum": lambda a, b: sg.maximum(a, 0.83 * sg.tanh(b) + 0.0517),
    "softmax": lambda a, b: sg.softmax(a + 0 * MASK, axis=-1) + b,
    "sum": lambda a, b: sg.sum(a) * 0.3 + b,
    "mean of columns": lambda a, b: sg.mean(a + 0 * MASK, axis=0) * b,
    "sum of rows": lambda a, b: sg.sum(a * b + 0 * MASK, axis=1, keepdims=True) * 0.3,
    "product": lambda a, b: sg.prod(1 + 0.2 * a) - b,
    "matrix product": lambda a, b: sg.tanh((a + 0 * MASK) @ sg.transpose(b + 0 * MASK))[:, :1],
    "transposed": lambda a, b: sg.transpose(sg.reshape(sg.flip(a + 0 * MASK, axis=1), (3, 2))) * b,
    "indexed": lambda a, b: (a + 0 * MASK)[:, [2, 0, 2]] - b,
    "slice": lambda a, b: sg.concat([(a + 0 * MASK)[:1, ::-1], (b + 0 * MASK)[1:]], axis=0),
}


def _blocked(a: Any, b: Any) -> Any:
    with sg.no_gradient():
        c = sg.tanh(a) * 0.9 + 0.1
    return c * b


GATES: dict[str, Callable[[Any, Any], Any]] = {
    "stop": lambda a, b: sg.stop_gradient(a) * b,
    "stop some": lambda a, b: sg.stop_gradient(a + 0 * MASK, where=MASK) - b,
    "stop named": lambda a, b: sg.stop_gradient(a, name="named") * b,
    "open named": lambda a, b: sg.stop_gradient(a, name="other", open=True) * b,
    "stop innermost": lambda a, b: sg.stop_gradient(a, level="innermost") * b,
    "scale": lambda a, b: sg.scale_gradient(a, 0.3) * b,
    "reverse": lambda a, b: sg.reverse_gradient(a, 0.7) + b,
    "clip": lambda a, b: sg.clip_gradient(a, value=1e6) * b,
    "straight through": lambda a, b: sg.straight_through(lambda x: sg.round(2 * x) / 2)(a) * b,
    "no gradient": _blocked,
}


def _row(x: Any) -> Any:
    """Return a value of shape (3,), whatever the shape of x."""
    return sg.mean(x + 0 * MASK, axis=0)


def _counted(a: Any, b: Any) -> Any:
    return sg.while_loop(
        lambda carry: carry[0] < 3,
        lambda carry: (carry[0] + 1, sg.tanh(carry[1]) * _row(b) + 0.1 * sg.stop_gradient(carry[1])),
        (0, _row(a)),
    )[1]


# Loops and branches, with gates inside, on the carry, and around.
CONTROL: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda a, b: sg.cond(sg.sum(a) > 0.01, lambda x, y: x * y, lambda x, y: sg.tanh(x) - y, a, b),
    "cond with a stop": lambda a, b: sg.cond(
        sg.sum(b) > 0.01, lambda x: sg.stop_gradient(x) * _row(b), lambda x: sg.sin(x), _row(a)
    ),
    "switch": lambda a, b: sg.switch(
        1, [lambda x, y: x - y, lambda x, y: sg.scale_gradient(x, 0.5) * y, lambda x, y: x + y], a, b
    ),
    "scan": lambda a, b: sg.scan(lambda c, x: (sg.tanh(c + 0.3 * x), c * x), _row(a), b + 0 * MASK)[1],
    "scan with a stop": lambda a, b: sg.scan(
        lambda c, x: (sg.stop_gradient(0.5 * c + x) + 0.2 * c, sg.reverse_gradient(c) * x), _row(a), b + 0 * MASK
    )[0],
    "loop": lambda a, b: sg.fori_loop(0, 3, lambda i, x: sg.sin(x) * _row(b) + 0.1 * i, _row(a)),
    "counted loop": _counted,
    "checkpoint": lambda a, b: sg.checkpoint(lambda x, y: sg.tanh(x * y) + sg.stop_gradient(sg.sin(x)))(a, b),
}

# What the gates give, written without them.
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(GATES, lambda a, b: a * b),
    "stop some": lambda a, b: (a + 0 * MASK) - b,
    "reverse": lambda a, b: a + b,
    "straight through": lambda a, b: sg.round(2 * a) / 2 * b,
    "no gradient": lambda a, b: (sg.tanh(a) * 0.9 + 0.1) * b,
}


class Instruction(NamedTuple):
    """What to apply to which of the values so far, counted from the last."""

    name: str
    first: int
    second: int


class Program(NamedTuple):
    """Instructions, and the shapes of the inputs they start from."""

    instructions: tuple[Instruction, ...]
    shapes: tuple[tuple[int, ...], ...]
    seed: int

    def inputs(self) -> tuple[np.ndarray, ...]:
        """Return inputs of size one, the same every time."""
        random = np.random.default_rng(self.seed)
        return tuple(random.uniform(-1.2, 1.2, shape) for shape in self.shapes)

    def directions(self, number: int) -> tuple[np.ndarray, ...]:
        """Return tangents for the inputs, other ones for each number."""
        random = np.random.default_rng(1000 * self.seed + number)
        return tuple(random.uniform(-1.0, 1.0, shape) for shape in self.shapes)

    def run(self, *inputs: Any, gates: dict[str, Callable[[Any, Any], Any]] = GATES) -> Any:
        """Return the last value, of any of the shapes."""
        values = [sg.tensor(one) for one in inputs]
        for name, first, second in self.instructions:
            function = OPERATIONS.get(name) or CONTROL.get(name) or gates[name]
            values.append(function(values[-1 - first % len(values)], values[-1 - second % len(values)]))
        return values[-1]

    def loss(self, *inputs: Any) -> Any:
        """Return one number in which each entry of the last value counts differently."""
        weights = np.linspace(0.5, 1.5, 6).reshape(2, 3)
        return sg.sum(sg.tanh(self.run(*inputs)) * weights)


def programs(*kinds: dict[str, Any], length: int = 8) -> st.SearchStrategy[Program]:
    """Return a strategy for programs of instructions of these kinds."""
    names = [name for kind in kinds for name in kind]
    instruction = st.builds(Instruction, st.sampled_from(names), st.integers(0, 5), st.integers(0, 5))
    return st.builds(
        Program,
        st.lists(instruction, min_size=1, max_size=length).map(tuple),
        st.lists(st.sampled_from(SHAPES), min_size=2, max_size=3).map(tuple),
        st.integers(0, 50),
    )
