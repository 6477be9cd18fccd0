"""The VQ autoencoder: reconstructions get better, and each gate lets each loss reach what it is to reach."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
from examples import vqvae


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return vqvae.main(epochs=8, out=tmp_path_factory.mktemp("vqvae"))


def test_reconstructions_get_better(result):
    assert result.errors[-1] < 0.2 * result.errors[0]
    assert result.codes_used > vqvae.CODES / 2
    assert result.plot.stat().st_size > 0


def test_each_loss_reaches_what_it_is_to_reach(result):
    yes = {pair for pair, how in result.reach.items() if how == "yes"}
    assert yes == {
        ("reconstruction", "encoder"),
        ("codebook", "codebook"),
        ("commitment", "encoder"),
        ("reconstruction, gate left out", "codebook"),
    }


def test_what_is_cut_is_cut_by_the_gate_that_is_named(result):
    reach = {pair: how.replace("\\", "/") for pair, how in result.reach.items()}
    assert "straight_through at examples/vqvae.py:" in reach["reconstruction", "codebook"]
    assert "stop_gradient 'vectors' at examples/vqvae.py:" in reach["codebook", "encoder"]
    assert "stop_gradient 'codes' at examples/vqvae.py:" in reach["commitment", "codebook"]
    assert "the operation argmin" in reach["reconstruction, gate left out", "encoder"]


def test_each_vector_becomes_the_nearest_code(rng):
    codebook = rng.normal(size=(6, 3))
    model = vqvae.Model([], sg.Variable(codebook), [])
    vectors = rng.normal(size=(5, 2, 3))
    codes = vqvae.quantise(model, sg.tensor(vectors)).numpy()
    for vector, code in zip(vectors.reshape(-1, 3), codes.reshape(-1, 3), strict=True):
        np.testing.assert_array_equal(code, min(codebook, key=lambda one: np.linalg.norm(one - vector)))
