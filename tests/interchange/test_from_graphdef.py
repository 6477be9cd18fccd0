"""Reading TensorFlow's graphs: values and gradients as TensorFlow computes them, stops kept, damaged files refused.

The files in data/ are made by make_graphdefs.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.core.errors import InterchangeError
from stopgrad.interchange import from_graphdef
from stopgrad.interchange.protos import message_classes

DATA = Path(__file__).parent / "data"
GRAPHS = sorted(path.stem for path in DATA.glob("*.npz"))


def read(name):
    with np.load(DATA / f"{name}.npz") as file:
        facts = dict(file)
    traced = from_graphdef(DATA / f"{name}.pb")
    return traced, [facts[f"in{i}"] for i in range(len(traced.inputs))], facts


def listed(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_those_of_tensorflow(name):
    traced, inputs, facts = read(name)
    results = listed(traced(*inputs))
    assert len(results) == sum(key.startswith("out") for key in facts)
    for i, one in enumerate(results):
        expected = facts[f"out{i}"]
        assert one.dtype == expected.dtype
        assert_allclose(one.numpy(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "prevent"])
def test_gradients_are_those_of_tensorflow(name):
    traced, inputs, facts = read(name)

    def total(*arrays):
        floating = [one for one in listed(traced(*arrays)) if one.dtype.kind == "f"]
        return sum(sg.sum(sg.astype(one, "float64")) for one in floating)

    places = tuple(i for i in range(len(inputs)) if f"grad{i}" in facts)
    found = sg.grad(total, argnums=places)(*inputs)
    for i, one in zip(places, found, strict=True):
        assert_allclose(one, facts[f"grad{i}"], rtol=1e-4, atol=1e-4)
