"""Arrays the caller writes into after a tensor was made of them: no value, no derivative changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stopgrad as sg
from stopgrad.core.errors import ArgumentTypeError


def numpy_array() -> tuple[Any, Callable[[], Any]]:
    array = np.array([1.0, 2.0])
    return array, lambda: array.fill(0.0)


def read_only_view() -> tuple[Any, Callable[[], Any]]:
    array = np.array([1.0, 2.0])
    view = array[:]
    view.flags.writeable = False
    return view, lambda: array.fill(0.0)


def broadcast_view() -> tuple[Any, Callable[[], Any]]:
    array = np.array([1.0, 2.0])
    return np.broadcast_to(array, (1, 2))[0], lambda: array.fill(0.0)


def torch_array() -> tuple[Any, Callable[[], Any]]:
    array = torch.tensor([1.0, 2.0], dtype=torch.float64)
    return array, lambda: array.zero_()


SOURCES = [numpy_array, read_only_view, broadcast_view, torch_array]


def values(tensor: Any) -> list[float]:
    return np.asarray(tensor).tolist()


@pytest.mark.parametrize("source", SOURCES)
def test_an_argument_written_into_before_the_pullback(source: Any) -> None:
    array, write = source()
    _, pullback = sg.vjp(lambda x: sg.sum(x * x), array)
    write()
    assert values(pullback(1.0)[0]) == [2, 4]


@pytest.mark.parametrize("source", SOURCES)
def test_an_argument_written_into_by_the_function(source: Any) -> None:
    array, write = source()

    def f(x: Any) -> Any:
        y = x * x
        write()
        return sg.sum(y)

    assert values(sg.grad(f)(array)) == [2, 4]


@pytest.mark.parametrize("source", SOURCES)
def test_a_constant_written_into_before_the_gradient(source: Any) -> None:
    array, write = source()
    x = sg.tensor(array) * 0 + 1
    with sg.GradientTape() as tape:
        tape.watch(x)
        y = sg.sum(x * array)
    write()
    assert values(tape.gradient(y, x)) == [1, 2]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "view",
    [
        sg.tensor,
        sg.ravel,
        lambda x: sg.reshape(x, (2,)),
        lambda x: sg.expand_dims(x, 0)[0],
        lambda x: sg.astype(x, "float64"),
        lambda x: sg.transpose(x),
        lambda x: sg.stop_gradient(sg.squeeze(x)),
    ],
)
def test_a_tensor_made_by_an_operation_that_takes_views(source: Any, view: Any) -> None:
    array, write = source()
    tensor = view(array)
    write()
    assert values(tensor) == [1, 2]


def test_asarray_still_takes_the_array_itself() -> None:
    array = np.array([1.0, 2.0])
    assert sg.asarray(array).value is array
    other = torch.tensor([1.0, 2.0])
    assert sg.asarray(other).value is other


def test_a_masked_array_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"sum: a masked array has no derivative; pass array\.filled"):
        sg.sum(np.ma.masked_array([1.0, 2.0], [True, False]))


@pytest.mark.parametrize("source", SOURCES[:3])
def test_a_traced_program_holds_an_array_once_and_as_it_was(source: Any) -> None:
    array, write = source()
    traced = sg.trace(lambda x: x * array + array)(np.ones(2))
    write()
    assert len([one for one in traced.graph if one.type == "constant"]) == 1
    assert values(traced(np.ones(2))) == [2, 4]


def test_a_traced_program_that_writes_into_an_array_in_between() -> None:
    array = np.array([1.0, 2.0])

    def f(x: Any) -> Any:
        y = x * array
        array[:] = 10.0
        return y + array

    assert values(sg.trace(f)(np.ones(2))(np.ones(2))) == [11, 12]
