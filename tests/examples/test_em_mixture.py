"""EM: the log-likelihood rises at every step, and the fit is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from examples import em_mixture


@pytest.fixture(scope="module", params=[1, 4])
def result(request, tmp_path_factory):
    return em_mixture.main(seed=request.param, out=tmp_path_factory.mktemp("em"))


def test_the_log_likelihood_rises_at_every_step(result):
    assert len(result.log_likelihoods) > 20
    assert result.smallest_rise > 0
    assert result.plot.stat().st_size > 0


def test_the_fit_is_scikit_learns(result):
    assert set(result.differences) == {"weights", "means", "covariances", "log-likelihood"}
    assert max(result.differences.values()) < 1e-6


def test_each_m_step_solves_its_equations(result):
    assert result.gradient_after_m_step < 1e-8


def test_the_stopped_gradient_is_that_of_the_log_likelihood_and_the_open_one_is_not(result):
    assert result.off_with_gate < 1e-12
    assert result.off_without_gate > 0.1


def test_an_m_step_is_the_closed_form(rng):
    data = load_iris().data
    start = em_mixture.Moments(np.full(3, 1 / 3), rng.choice(data, 3), np.repeat(np.cov(data.T)[None], 3, axis=0))
    joint = em_mixture.log_joint(em_mixture.natural(start), data).numpy()
    responsibilities = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
    counts = responsibilities.sum(axis=1)
    means = responsibilities @ data / counts[:, None]
    offsets = data - means[:, None, :]
    covariances = np.einsum("kn,kni,knj->kij", responsibilities, offsets, offsets) / counts[:, None, None]
    after = em_mixture.m_step(start, data)
    np.testing.assert_allclose(after.weights, counts / len(data), rtol=1e-12)
    np.testing.assert_allclose(after.means, means, rtol=1e-12)
    np.testing.assert_allclose(after.covariances, covariances, rtol=1e-10)
