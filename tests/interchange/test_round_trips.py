"""What is exported and read back computes the same values and derivatives, through the same stops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.core.pytree import flatten
from stopgrad.interchange import from_graphdef, from_onnx, to_graphdef, to_onnx
from tests.interchange.programs import PROGRAMS

FORMATS = {"graphdef": (to_graphdef, from_graphdef), "onnx": (to_onnx, from_onnx)}


def total(function):
    """Return a function to a number that all floating outputs take part in."""

    def summed(*arguments):
        leaves, _ = flatten(function(*arguments))
        tensors = [sg.astype(one, "float64") for one in leaves if np.dtype(sg.tensor(one).dtype).kind == "f"]
        return sum((sg.sum(one * (1.0 + sg.cos(one))) for one in tensors), sg.tensor(0.0))

    return summed


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("format_", FORMATS)
def test_round_trip(format_, name):
    function, arguments = PROGRAMS[name]
    write, read = FORMATS[format_]
    traced = sg.trace(function)(*arguments)
    back = read(write(traced))
    assert [one.spec for one in back.inputs] == [one.spec for one in traced.inputs]
    expected, _ = flatten(function(*map(sg.tensor, arguments)))
    found, _ = flatten(back(*arguments))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        other = np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert_allclose(one.numpy(), other, rtol=1e-11, atol=1e-13)
    places = tuple(range(len(arguments)))
    for one, other in zip(
        sg.grad(total(back), argnums=places)(*arguments),
        sg.grad(total(function), argnums=places)(*arguments),
        strict=True,
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-10)
