"""Contrastive divergence: the gradient is vᵀh - v'ᵀh', and training makes reconstructions better."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import stopgrad as sg
from examples import rbm


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return rbm.main(epochs=10, out=tmp_path_factory.mktemp("rbm"))


def test_reconstructions_get_better(result):
    assert result.errors[-1] < 0.4 * result.errors[0]
    assert result.errors[-1] < 0.75 * np.var(load_digits().data > 7, axis=0).mean()  # what the mean image leaves
    assert result.plot.stat().st_size > 0


def test_the_gradient_is_the_closed_form(result):
    assert result.distance_to_closed_form < 1e-6


def test_with_the_gate_open_it_is_another(result):
    assert result.off_without_stop > 0.1


def test_the_closed_form_in_full(rng):
    machine = rbm.Machine(rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3))
    visible = rng.integers(2, size=(7, 5)).astype(float)
    gradient, made = sg.grad(rbm.contrast, has_aux=True)(machine, visible, sg.random.Generator(0))
    made = made.numpy()

    def hidden(states):
        return 1 / (1 + np.exp(-(states @ machine.weights + machine.hidden_bias)))

    expected = -(visible.T @ hidden(visible) - made.T @ hidden(made)) / len(visible)
    np.testing.assert_allclose(gradient.weights, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(gradient.visible_bias, -(visible - made).mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(gradient.hidden_bias, -(hidden(visible) - hidden(made)).mean(axis=0), rtol=0, atol=1e-12)
