"""Long programs: no recursion, and time and memory that grow with the number of operations, not of paths."""

from __future__ import annotations

import tracemalloc

import pytest

import stopgrad as sg
from tests.kept import nodes_behind

MILLION = 1_000_000


def chain(x, length):
    for _ in range(length):
        x = x + 1.0
    return x


def test_a_million_operations_forward():
    value, tangent = sg.jvp(lambda x: chain(x, MILLION), (1.0,), (2.0,))
    assert float(value) == 1.0 + MILLION
    assert float(tangent) == 2.0


def test_a_long_chain_in_reverse_leaves_nothing():  # a million are in test_cases.py
    result = sg.grad(lambda x: chain(x, 100_000))(1.0)
    assert float(result) == 1.0
    assert not list(nodes_behind(result))


@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("outer", ["forward", "reverse"])
def test_long_chains_to_the_second_order(inner, outer):
    def f(x):
        y = x
        for _ in range(5_000):
            y = sg.sin(y) * 0.5 + y * 0.5
        return y * y * x

    modes = {
        "forward": lambda g: lambda x: sg.jvp(g, (x,), (1.0,))[1],
        "reverse": sg.grad,
    }
    shorter = sg.grad(sg.grad(f))(0.5)
    assert float(modes[outer](modes[inner](f))(0.5)) == pytest.approx(float(shorter), rel=1e-9)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_time_follows_operations_not_paths(mode):
    """With x + x at each step there are 2¹⁰⁰⁰ paths."""

    def f(x):
        for _ in range(1000):
            x = x + x
        return x

    derivative = sg.grad(f)(1.0) if mode == "reverse" else sg.jvp(f, (1.0,), (1.0,))[1]
    assert float(derivative) == 2.0**1000


def peak(f):
    f()
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_memory_is_linear_in_the_length(mode):
    def run(length):
        if mode == "reverse":
            sg.grad(lambda x: chain(x, length))(1.0)
        else:
            sg.jvp(lambda x: chain(x, length), (1.0,), (1.0,))

    short, long = peak(lambda: run(5_000)), peak(lambda: run(20_000))
    assert long < 5 * short
    assert long < 20_000 * 1000  # bytes an operation: a node, its tensor's value, and the sweep's own lists


def test_a_long_stopped_chain_leaves_nothing():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(1.0))
        y = chain(sg.stop_gradient(x), 100_000) * x
    assert len(list(nodes_behind(y))) <= 2
    assert float(tape.gradient(y, x)) == 100_001.0


def test_a_deep_record_can_be_dropped():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(1.0))
        y = chain(x, MILLION // 5)
    del tape, x
    y = sg.tensor(float(y))
    assert float(y) == 1.0 + MILLION // 5
