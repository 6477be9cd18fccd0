"""Every test starts from the same random state, and property tests try the same examples on every run."""

from __future__ import annotations

import random

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Seed Python's and NumPy's global generators; torch's and JAX's take explicit seeds where they are used."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded anew for each test."""
    return np.random.default_rng(0)
