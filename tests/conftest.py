"""What every test run shares: one thread a process, double precision in JAX, fixed seeds, repeatable property tests."""

from __future__ import annotations

import os
import random

import hypothesis
import numpy as np
import pytest

# Read by the libraries when they are first imported, here and in the workers, which inherit them.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Start Python's and NumPy's global generators from the same state in every test."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator seeded anew for each test."""
    return np.random.default_rng(0)
