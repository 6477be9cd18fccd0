"""What is exported and read back computes the same values and derivatives, through the same stops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.core.errors import InterchangeError
from stopgrad.core.pytree import flatten
from stopgrad.interchange import from_graphdef, from_onnx, to_graphdef, to_onnx
from tests.interchange.programs import PROGRAMS

DATA = Path(__file__).parent / "data"
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


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", ["stop", "prevent", "elementwise", "reductions", "layers", "frozen"])
def test_what_tensorflow_made_is_written_again(format_, name):
    write, read = FORMATS[format_]
    original = from_graphdef(DATA / f"{name}.pb")
    with np.load(DATA / f"{name}.npz") as file:
        arguments = [file[f"in{i}"] for i in range(len(original.inputs))]
    back = read(write(original))
    expected, _ = flatten(original(*arguments))
    for one, other in zip(flatten(back(*arguments))[0], expected, strict=True):
        assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    assert stops(back) == stops(original)


def stops(traced):
    return [operation.params[0] for operation in traced.graph if operation.type == "stop_gradient"]


@pytest.mark.parametrize("format_", FORMATS)
def test_stops_keep_their_names_and_can_be_opened(format_):
    write, read = FORMATS[format_]
    f = lambda x: sg.stop_gradient(sg.sin(x), name="a b/c") * sg.stop_gradient(x, name="é") * sg.stop_gradient(x)
    back = read(write(sg.trace(f)(2.0)))
    assert stops(back)[:2] == ["a b/c", "é"]
    assert float(sg.grad(back)(2.0)) == 0.0
    assert_allclose(sg.grad(back, stop={"é": False})(2.0), 2 * np.sin(2.0), rtol=1e-14)


@pytest.mark.parametrize("format_", FORMATS)
def test_variables_are_written_as_they_are(format_):
    write, read = FORMATS[format_]
    w = sg.Variable([1.0, 2.0], name="w")
    data = write(sg.trace(lambda x: x * w)(3.0))
    w.assign([5.0, 6.0])
    assert_allclose(read(data)(3.0), [3.0, 6.0])


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: sg.sort(sg.reverse_gradient(x)), r"argsort \(argsort\), reorder \(reorder\), scale_gradient"),
        (lambda x: sg.fori_loop(0, 3, lambda i, y: y * x, x), "no counterpart there: (scan|while)"),
        (lambda x: x[[0, 1], [1, 0]], "'index' .*more than one array"),
    ],
)
def test_what_cannot_be_written_is_named(format_, function, text):
    with pytest.raises(InterchangeError, match=text):
        FORMATS[format_][0](sg.trace(function)(np.ones((2, 2))))


@pytest.mark.parametrize("format_", FORMATS)
def test_only_what_was_traced_is_written(format_):
    with pytest.raises(InterchangeError, match=r"trace\(f\)\(\*args\) returned, got a function"):
        FORMATS[format_][0](lambda x: x)
