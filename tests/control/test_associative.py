"""`associative_scan`: running combinations of any length along any axis, and in few steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.control.modes import agree

X = np.random.default_rng(0).normal(size=(3, 17, 2))


@pytest.mark.parametrize("length", range(18))
def test_running_sums_of_every_length(length):
    x = X[:, :length]
    running = sg.associative_scan(sg.add, x, axis=1)
    assert running.shape == x.shape
    assert_allclose(running, np.cumsum(x, axis=1), atol=1e-12)
    backwards = sg.associative_scan(sg.add, x, reverse=True, axis=-2)
    assert_allclose(backwards, np.cumsum(x[:, ::-1], axis=1)[:, ::-1], atol=1e-12)


def test_a_product_that_does_not_commute():
    matrices = X[:, :4].reshape(6, 2, 2)
    running = sg.associative_scan(sg.matmul, matrices)
    product = np.eye(2)
    for one, found in zip(matrices, running, strict=True):
        product = product @ one
        assert_allclose(found, product, rtol=1e-12)


def test_trees_and_derivatives():
    def f(x):
        def step(e, f):
            return {"a": f["a"] * e["a"], "b": f["a"] * e["b"] + f["b"]}

        return sg.sum(sg.associative_scan(step, {"a": sg.tanh(x), "b": sg.stop_gradient(x) * x}, axis=1)["b"] ** 2)

    agree(f, X)


def test_it_takes_few_steps():
    calls = []

    def combine(a, b):
        calls.append(a.shape[0])
        return a + b

    sg.associative_scan(combine, np.ones(1 << 12))
    assert len(calls) <= 2 * 12
    assert sum(calls) < 2 << 12


def test_errors():
    with pytest.raises(sg.errors.ShapeError, match=r"sizes \[2, 3\]"):
        sg.associative_scan(sg.add, {"a": np.ones(2), "b": np.ones(3)})
    with pytest.raises(sg.errors.ArgumentError, match="no tensors"):
        sg.associative_scan(sg.add, {})
    with pytest.raises(sg.errors.ArgumentError, match=r"float64\[2\], but .*float64\[\]"):
        sg.associative_scan(lambda a, b: sg.sum(a + b), np.ones(4))
    with pytest.raises(sg.errors.ShapeError, match="out of range"):
        sg.associative_scan(sg.add, np.ones(4), axis=1)
