"""What bodies use from outside keeps its place in the record: arguments of derivatives, variables, tapes, own rules."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.control.modes import agree

RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(3, 3)) * 0.5
X = RANDOM.normal(size=(4, 3))


def loop(step, x):
    return sg.sum(sg.scan(lambda h, row: (step(h, row), None), np.ones(3), x)[0])


def of_a_known_argument(x):
    return sg.grad(lambda w: loop(lambda h, row: sg.tanh(h @ sg.exp(w) + row), x))(W)


def of_known_arguments_inside_and_out(x):
    def f(w):
        def step(h, row):
            inner = sg.grad(lambda u: sg.sum(sg.sin(h @ (w * u)) * row))(W)
            return sg.tanh(h @ inner + row)

        return loop(step, x)

    return sg.grad(f)(W)


def of_one_argument_twice(x):
    def f(w):
        return loop(lambda h, row: sg.tanh(h @ sg.grad(lambda u: sg.sum(sg.sin(w * u) * h))(w) + row), x)

    return sg.grad(f)(W)


def of_the_same_value_at_two_levels(x):
    def inner(y):
        return sg.sum(sg.scan(lambda c, z: (sg.sin(c) * y + x * z, None), y, np.ones((3, 1)))[0])

    return sg.grad(inner)(x) * x


def with_a_tape_inside(x):
    def step(h, row):
        with sg.GradientTape() as tape:
            tape.watch(h)
            y = sg.sum(sg.sin(h @ W) * row)
        return h + 0.1 * tape.gradient(y, h)

    return loop(step, x)


def with_a_tape_on_what_is_outside(x):
    outside = sg.sin(x[0])

    def step(h, row):
        with sg.GradientTape() as tape:
            tape.watch(outside)
            y = sg.sum(sg.sin(outside * h) * row)
        return h + 0.1 * tape.gradient(y, outside)

    return loop(step, x)


def with_a_pullback_from_outside(x):
    y, pullback = sg.vjp(lambda x: sg.scan(lambda c, row: (sg.sin(c) * row, c), x[0], x)[1], x)
    return sg.fori_loop(0, 3, lambda i, c: sg.sin(pullback(c)[0]), y)


PROGRAMS = [
    of_a_known_argument, of_known_arguments_inside_and_out, of_one_argument_twice, of_the_same_value_at_two_levels,
    with_a_tape_inside, with_a_tape_on_what_is_outside, with_a_pullback_from_outside,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    agree(lambda x: sg.sum(f(x) ** 2), X, rtol=1e-9)


def test_variables_and_a_tape_around_a_loop():
    w = sg.Variable(W, name="w")

    def step(x):
        with sg.GradientTape() as tape:
            loss = loop(lambda h, row: sg.tanh(h @ sg.exp(w) + row), x) ** 2
        return tape.gradient(loss, w)

    assert_allclose(sg.trace(step)(X)(X), step(sg.tensor(X)), rtol=1e-12)


def test_derivatives_of_what_is_known_by_now():
    """The derivative of the loop has known operands only, but they are recorded."""

    def f(s):
        def inner(w):
            return sg.sum(sg.grad(lambda s: loop(lambda h, row: h + s * sg.exp(row @ w), X))(s))

        return sg.grad(inner)(W), sg.jvp(inner, (W,), (W,))[1]

    for found, expected in zip(sg.trace(f)(1.0)(1.0), f(sg.tensor(1.0)), strict=True):
        assert_allclose(found, expected, rtol=1e-12)


@sg.custom_gradient
def sevenfold(x):
    e = sg.exp(x)
    return e, lambda cotangent: cotangent * e * 7


@sg.custom_jvp
def threefold(x):
    return sg.sin(x)


@threefold.defjvp
def threefold_jvp(primals, tangents):
    return sg.sin(primals[0]), 3 * tangents[0] * sg.cos(primals[0])


@pytest.mark.parametrize("own", [sevenfold, threefold])
def test_own_derivatives_in_bodies(own):
    agree(lambda x: loop(lambda h, row: own(h * 0.1) * row, x), X, rtol=1e-9)
    with pytest.raises(AssertionError):  # the rule is not that of the function
        sg.check.check_gradients(lambda x: loop(lambda h, row: own(h * 0.1) * row, x), (X,))
