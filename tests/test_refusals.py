"""Arguments that make no sense, and ways in which a gradient would be lost without a word: a clear error, one line."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stopgrad as sg
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError

X = np.array([1.0, 2.0])


def of_x(f: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a program that applies f to a recorded tensor."""
    return lambda: sg.vjp(f, X)


def deep() -> Any:
    nested: Any = 1.0
    for _ in range(100):
        nested = [nested]
    return nested


REFUSALS: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "argnums twice": (ArgumentError, "grad: argnums .* twice", lambda: sg.grad(lambda x, y: x * y, (0, -2))(1.0, 2.0)),
    "vjp of a number": (ArgumentTypeError, "vjp: takes a function", lambda: sg.vjp(3.0, 1.0)),
    "jvp of a number": (ArgumentTypeError, "jvp: takes a function", lambda: sg.jvp(3.0, (1.0,), (1.0,))),
    "jacobian of a number": (ArgumentTypeError, "jacobian: takes a function", lambda: sg.jacobian(3.0)),
    "custom_gradient of a number": (ArgumentTypeError, "custom_gradient: takes", lambda: sg.custom_gradient(3.0)),
    "custom_jvp of a number": (ArgumentTypeError, "custom_jvp: takes", lambda: sg.custom_jvp(3.0)),
    "straight_through a number": (ArgumentTypeError, "straight_through: takes", lambda: sg.straight_through(3.0)),
    "hvp without tuples": (ArgumentTypeError, "hvp: primals and", lambda: sg.hvp(lambda x: x * x, 1.0, 1.0)),
    "stop of a number": (ArgumentTypeError, "grad: stop= takes names", lambda: sg.grad(lambda x: x, stop=3)),
    "a gate's name": (ArgumentTypeError, "name must be a string", of_x(lambda x: sg.stop_gradient(x, name=["a"]))),
    "a factor's shape": (ShapeError, "scale_gradient: a factor", of_x(lambda x: sg.scale_gradient(x, np.ones(3)))),
    "complex tangent": (DTypeError, "complex128.*real part", lambda: sg.jvp(lambda x: x * 2, (X,), (X + 1j,))),
    "complex cotangent": (DTypeError, "complex128.*real part", lambda: sg.vjp(lambda x: x * 2, X)[1](X * 1j)),
    "pickle": (ArgumentTypeError, "cannot be pickled", of_x(lambda x: pickle.loads(pickle.dumps(x * 2)))),
    "numpy.emath": (ArgumentTypeError, "numpy.lib.scimath.sqrt is not", of_x(np.emath.sqrt)),
    "numpy.fft": (ArgumentTypeError, "numpy.fft.fft is not differentiated", of_x(np.fft.fft)),
    "numpy.r_": (ArgumentTypeError, "numpy.r_ and .* concat or stack", of_x(lambda x: np.r_[x, 1.0])),
    "out=": (ArgumentTypeError, "numpy.sum: out= .*lost", of_x(lambda x: np.sum(x, out=np.zeros(())))),
    "too many axes": (ShapeError, "deeper than the 64 axes", lambda: sg.tensor(deep())),
}


@pytest.mark.parametrize(("kind", "text", "program"), REFUSALS.values(), ids=REFUSALS.keys())
def test_is_refused(kind: type[Exception], text: str, program: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=text) as caught:
        program()
    assert "\n" not in str(caught.value)


def test_numpy_can_ask_for_shapes() -> None:
    def f(x: Any) -> Any:
        assert np.shape(x) == (2,)
        assert np.size(x) == np.size(x, 0) == 2
        return np.sum(x, out=None)

    assert sg.grad(f)(X).numpy().tolist() == [1, 1]


def test_constants_are_pickled_with_what_stopped_them() -> None:
    def f(x: Any) -> Any:
        stopped = pickle.loads(pickle.dumps(sg.stop_gradient(x, name="policy")))
        assert copy.deepcopy(stopped) is stopped
        return sg.sum(stopped)

    with pytest.raises(sg.errors.UnconnectedError, match="policy"):
        sg.grad(f, unconnected="error")(X)
