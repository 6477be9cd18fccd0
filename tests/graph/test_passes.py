"""Passes keep values bit for bit, and derivatives, and make graphs smaller."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import stopgrad as sg
from stopgrad.graph import passes

AWKWARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -3.0])


def types(graph):
    return [operation.type for operation in graph]


def simplified(f, *args, passes=None):
    traced = sg.trace(f)(*args)
    after = sg.graph.simplify(traced.graph, traced.outputs, passes)
    feed = dict(zip([after.images[one] for one in traced.inputs], args, strict=True))
    return after, after.graph.run(after.outputs, feed), traced(*args)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x * 1.0, ["placeholder"]),
        (lambda x: 1.0 * x, ["placeholder"]),
        (lambda x: x / 1.0 - 0.0, ["placeholder"]),
        (lambda x: x + (-0.0), ["placeholder"]),
        (lambda x: x + 0.0, ["placeholder", "add"]),
        (lambda x: x - (-0.0), ["placeholder", "subtract"]),
        (lambda x: sg.negative(-x), ["placeholder"]),
        (lambda x: sg.where(x > 0, x, x), ["placeholder"]),
        (lambda x: x.astype(float), ["placeholder"]),
        (lambda x: sg.exp(x) + sg.exp(x), ["placeholder", "exp", "add"]),
        (lambda x: x + sg.sum(sg.asarray(np.ones(3)) * 2), ["placeholder", "constant", "add"]),
        (lambda x: x * 2 + x * 2.0, ["placeholder", "multiply", "multiply", "add"]),
        (lambda x: x * 0.0 + x * -0.0, ["placeholder", "multiply", "multiply", "add"]),
    ],
)
def test_identities_hold_bit_for_bit(f, expected):
    after, (value,), plain = simplified(f, AWKWARD)
    assert value.numpy().tobytes() == plain.numpy().tobytes()
    assert types(after.graph) == expected


def test_integers_are_not_made_floats():
    _, (value,), plain = simplified(lambda x: x * 1.0, np.array([1, 2]))
    assert value.dtype == plain.dtype == np.float64


def test_gates_survive_every_pass_that_keeps_derivatives():
    def f(x):
        a = sg.stop_gradient(x, name="a") * sg.stop_gradient(x, name="b")
        return sg.sum(a * x + sg.clip_gradient(x, value=1.0) * sg.clip_gradient(x, value=2.0) + sg.reverse_gradient(x))

    point = np.array([1.0, 2.0])
    traced = sg.trace(f)(point)
    (expected,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    expected = traced.graph.run(expected, {traced.inputs[0]: point})
    for chosen in ([passes.dead_code], [passes.common_subexpressions], [passes.constants], [passes.algebra], None):
        traced = sg.trace(f)(point)
        after = sg.graph.simplify(traced.graph, traced.outputs, chosen)
        x = after.images[traced.inputs[0]]
        (dx,) = sg.graph.add_gradients(after.graph, after.outputs, x)
        assert_array_equal(after.graph.run(dx, {x: point}), expected)
        assert types(after.graph).count("stop_gradient") == 2
        assert all(one.keeps_derivatives for one in chosen or [])


def test_erasing_gates_keeps_values_only():
    after, (value,), plain = simplified(
        lambda x: sg.stop_gradient(x) + sg.straight_through(sg.round)(x) + sg.reverse_gradient(x),
        np.array([1.2, 2.7]),
        passes=[passes.without_gates, passes.dead_code],
    )
    assert_array_equal(value, plain)
    assert not passes.GATES & set(types(after.graph))
    assert not passes.without_gates.keeps_derivatives


def test_what_only_a_stopped_path_needs_vanishes_from_the_derivative():
    def h(x):
        for _ in range(50):
            x = sg.sin(x)
        return x

    traced = sg.trace(lambda x: sg.sum(x * sg.stop_gradient(h(x))))(np.ones(3))
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    after = passes.dead_code(traced.graph, [dx])
    assert "cos" not in types(after.graph)
    traced = sg.trace(lambda x: sg.sum(sg.stop_gradient(h(x)) + x))(np.ones(3))
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    assert "sin" not in types(passes.dead_code(traced.graph, [dx]).graph)


def test_names_and_lines_stay():
    traced = sg.trace(lambda x: sg.exp(x) * 2)(1.0)
    after = passes.dead_code(traced.graph, traced.outputs)
    assert [(one.name, one.source) for one in after.graph] == [(one.name, one.source) for one in traced.graph]
