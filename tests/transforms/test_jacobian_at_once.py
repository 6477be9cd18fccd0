"""Jacobians whose sweep is traced once and run for many unit vectors: the same as one sweep after the other."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from stopgrad.core.errors import UnconnectedError

module = sys.modules["stopgrad.transforms.jacobian"]
SIZE = module.MANY + 5
X = np.sin(np.arange(1.0, SIZE + 1))
MASK = np.arange(SIZE) % 3 == 0


@sg.custom_gradient
def tenfold(x):
    e = sg.exp(x)
    return e, lambda u: 10 * u * e


@sg.custom_gradient
def sees_values(x):
    return x * 2, lambda u: u * (5.0 if float(sg.max(u)) > 0.5 else 3.0)


def blocked(x):
    with sg.no_gradient():
        c = sg.exp(x)
    return c * x


FUNCTIONS = {
    "dense": lambda x: sg.tanh(sg.outer(x, x) @ sg.cos(x)),
    "masked": lambda x: sg.where(MASK, sg.sqrt(sg.abs(x) - 0.0), x) * sg.max(x),
    "indexed": lambda x: sg.cumulative_sum(x[::-1]) * sg.softmax(x)[np.arange(SIZE)[::-1]],
    "stopped": lambda x: x * sg.stop_gradient(x) + sg.stop_gradient(sg.exp(x), where=MASK) * sg.sum(x),
    "clipped": lambda x: sg.clip_gradient(sg.sin(x) * sg.sum(x), norm=0.5) * x,
    "blocked": blocked,
    "customised": lambda x: tenfold(x) * sg.sum(x),
    "looking": lambda x: sees_values(x) * x,
    "linear algebra": lambda x: sg.linalg.solve(sg.diag(x * x + 1) + sg.outer(x, x), x),
    "checkpointed": sg.checkpoint(lambda x: sg.sin(x) * sg.sum(x)),
}


@pytest.fixture
def one_by_one(monkeypatch):
    """Return a function that calls another with every sweep by itself."""

    def call(f, *args):
        with monkeypatch.context() as patch:
            patch.setattr(module, "MANY", 10**9)
            return f(*args)

    return call


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_is_that_of_one_sweep_after_the_other(f, mode, one_by_one):
    of = sg.jacobian(f, mode=mode)
    assert_allclose(of(X), one_by_one(of, X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_can_be_differentiated_traced_and_mapped(f, one_by_one):
    def second(x):
        return sg.grad(lambda x: sg.sum(sg.jacobian(f, mode="reverse")(x) ** 2))(x)

    if f is not FUNCTIONS["looking"]:
        of = sg.jacobian(f, mode="reverse")
        assert_allclose(sg.trace(of)(X)(X), of(X), rtol=1e-11, atol=1e-13)
        assert_allclose(sg.vmap(of)(np.stack([X, X / 2])), [of(X).numpy(), of(X / 2).numpy()], rtol=1e-11, atol=1e-13)
    assert_allclose(second(X), one_by_one(second, X), rtol=1e-10, atol=1e-12)


def test_hessians_and_tapes(one_by_one):
    def loss(x):
        return sg.sum(sg.tanh(x) * x[::-1] ** 2)

    assert_allclose(sg.hessian(loss)(X), one_by_one(sg.hessian(loss), X), rtol=1e-12, atol=1e-14)

    def taped(x):
        x = sg.tensor(x)
        with sg.GradientTape() as tape:
            tape.watch(x)
            y = sg.sin(x) * sg.sum(x)
        return tape.jacobian(y, x)

    assert_allclose(taped(X), one_by_one(taped, X), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_what_is_unconnected_or_zero_is_as_ever(mode):
    def f(x, y):
        return {"stopped": sg.stop_gradient(x) * y, "flat": sg.sign(x) * 1.0, "whole": sg.sum(y)}

    nones = sg.jacobian(f, (0, 1), mode=mode, unconnected="none")(X, X)
    assert nones["stopped"][0] is None
    assert nones["flat"][1] is None
    assert_array_equal(nones["flat"][0], np.zeros((SIZE, SIZE)))
    assert_allclose(nones["stopped"][1], np.diag(X))
    assert_array_equal(nones["whole"][1], np.ones(SIZE))
    with pytest.raises(UnconnectedError, match="stop_gradient"):
        sg.jacobian(lambda x: sg.stop_gradient(x) * 1, mode=mode, unconnected="error")(X)


def test_arrays_of_another_library_stay_theirs():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X)
    found = sg.jacobian(FUNCTIONS["dense"])(x)
    assert isinstance(found.value, torch.Tensor)
    assert_allclose(found.numpy(), sg.jacobian(FUNCTIONS["dense"])(X).numpy(), rtol=1e-12, atol=1e-14)
