"""The laws of the gates under `vmap`: what a gate does, it does for each example, inside and outside of derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import GradientPreventedError, UnconnectedError
from tests.gates.test_laws import AWKWARD, GATES
from tests.kept import kept_values

X = np.array([[1.0, 2.0, -3.0], [0.5, -0.25, 4.0]])
MASKS = np.array([[True, False, False], [False, True, True]])


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_gate_is_the_identity_bit_for_bit(gate, recorded):
    rows = np.stack([AWKWARD, AWKWARD[::-1]])
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(rows)) if recorded else sg.tensor(rows)
        y = sg.vmap(gate)(x)
    assert y.numpy().tobytes() == rows.tobytes()


def both_ways(f, x, *more, axes=None):
    """Return the gradient of the mapped function and the mapped gradient, which are to be equal."""
    axes = (0, *(None for _ in more)) if axes is None else axes
    around = sg.grad(lambda x: sg.sum(sg.vmap(f, in_axes=axes)(x, *more)))(x)
    inside = sg.vmap(sg.grad(f), in_axes=axes)(x, *more)
    assert_allclose(around, inside, rtol=1e-14)
    traced = sg.trace(sg.vmap(sg.grad(f), in_axes=axes))(x, *more)
    assert_allclose(traced(x, *more), inside, rtol=1e-14)
    return inside.numpy()


def test_a_stop_stops_for_each_example():
    assert_array_equal(both_ways(lambda x: sg.sum(x * sg.stop_gradient(x)), X), X)
    assert_array_equal(both_ways(lambda x: sg.sum(x + sg.stop_gradient(x * np.nan)), X), np.ones_like(X))


def test_nothing_behind_a_stop_is_connected_and_the_error_names_its_line():
    def f(x):
        return sg.sum(sg.stop_gradient(x, name="cut"))

    line = f.__code__.co_firstlineno + 1
    total = lambda x: sg.sum(sg.vmap(f)(x))
    assert sg.grad(total, unconnected="none")(X) is None
    assert sg.jvp(total, (X,), (X,), unconnected="none")[1] is None
    with pytest.raises(UnconnectedError, match=rf"stop_gradient 'cut' at .*test_vmap_gates.py:{line}"):
        sg.grad(total, unconnected="error")(X)
    with pytest.raises(UnconnectedError, match=rf"stop_gradient 'cut' at .*test_vmap_gates.py:{line}"):
        sg.vmap(sg.grad(f, unconnected="error"))(X)


def test_a_mask_may_differ_between_examples_or_the_value_or_both():
    def f(x, mask):
        return sg.sum(sg.stop_gradient(x, where=mask) ** 2)

    assert_array_equal(both_ways(f, X, MASKS, axes=(0, 0)), np.where(MASKS, 0, 2 * X))
    assert_array_equal(both_ways(f, X, MASKS[0]), np.where(MASKS[0], 0, 2 * X))
    by_shared = sg.grad(lambda x: sg.sum(sg.vmap(f, in_axes=(None, 0))(x, MASKS)))(X[0])
    assert_array_equal(by_shared, np.where(MASKS, 0, 2 * X[0]).sum(0))


def test_named_open_and_levelled_stops_answer_to_whoever_asks():
    def f(x):
        named = sg.stop_gradient(x, name="a") * 3
        return sg.sum(named + sg.stop_gradient(x, name="b", open=True) * 5)

    total = lambda x: sg.sum(sg.vmap(f)(x))
    for stop, expected in ((None, 5.0), ({"a": False}, 8.0), ("b", 0.0), ({"a": False, "b": True}, 3.0)):
        assert_array_equal(sg.grad(total, stop=stop)(X), np.full_like(X, expected))
        assert_array_equal(sg.vmap(sg.grad(f, stop=stop))(X), np.full_like(X, expected))

    def innermost(x):
        return sg.grad(lambda y: x * y * sg.stop_gradient(x * y, level="innermost"))(5.0)

    x = np.array([2.0, 3.0])
    alone = [float(sg.grad(innermost)(one)) for one in x]
    assert_array_equal(sg.vmap(sg.grad(innermost))(x), alone)
    assert_array_equal(sg.grad(lambda x: sg.sum(sg.vmap(innermost)(x)))(x), alone)


def test_blocks_stop_and_derivatives_inside_them_are_constants():
    def f(x):
        with sg.no_gradient():
            c = x * x
            slope = sg.grad(lambda y: sg.sum(y**3))(x)
        return sg.sum(x * c + x * slope)

    assert_array_equal(both_ways(f, X), 4 * X**2)
    with sg.no_gradient():
        assert_array_equal(sg.vmap(sg.grad(lambda x: sg.sum(x**2)))(X), 2 * X)

    def around(x):
        with sg.no_gradient():
            y = sg.vmap(lambda x: x * x)(x)
        return sg.sum(x * y)

    assert_array_equal(sg.grad(around)(X), X**2)


def test_frozen_variables_are_constants_that_let_pass():
    w, v = sg.Variable([1.0, 2.0, 3.0]), sg.Variable(2.0)

    def f(x):
        with sg.frozen(w):
            return sg.sum(w * x * v)

    with sg.GradientTape() as tape:
        total = sg.sum(sg.vmap(f)(X))
    assert tape.gradient(total, [w, v])[0] is None
    assert_array_equal(both_ways(f, X), [[2, 4, 6]] * 2)


def test_passing_gates_pass_what_they_say():
    assert_array_equal(both_ways(lambda x: sg.sum(sg.scale_gradient(x, 0.5) ** 2), X), X)
    factors = np.array([2.0, -1.0])
    scaled = both_ways(lambda x, k: sg.sum(sg.scale_gradient(x, k) ** 2), X, factors, axes=(0, 0))
    assert_array_equal(scaled, 2 * X * factors[:, None])
    assert_array_equal(both_ways(lambda x: sg.sum(sg.reverse_gradient(x, 0.25) * 2), X), np.full_like(X, -0.5))
    assert_array_equal(both_ways(lambda x: sg.sum(sg.clip_gradient(x, value=3.0) ** 2), X), np.clip(2 * X, -3, 3))
    straight = sg.straight_through(sg.round)
    assert_array_equal(both_ways(lambda x: sg.sum(straight(x) * 3), X), np.full_like(X, 3))
    assert_array_equal(sg.vmap(straight)(X), np.round(X))


def test_a_norm_is_clipped_for_each_example():
    def f(x):
        return sg.sum(sg.clip_gradient(x, norm=2.0) ** 2)

    expected = 2 * X * (2.0 / np.linalg.norm(2 * X, axis=1))[:, None]
    assert_allclose(both_ways(f, X), expected, rtol=1e-14)
    twice = sg.grad(lambda x: sg.sum(sg.vmap(sg.vmap(f))(x)))(np.stack([X, 3 * X]))
    assert_allclose(twice, np.stack([expected, expected]), rtol=1e-14)


@pytest.mark.parametrize("bound", [{"norm": 1.0}, {"value": 0.5}])
def test_what_all_share_is_clipped_for_each_example_before_it_is_summed(bound):
    """As one example after the other: the clipped gradients of private learning, summed."""

    def f(w, x):
        return sg.sum(sg.clip_gradient(w, **bound) * x)

    w = np.ones(3)
    each = np.stack([sg.grad(f)(w, x).numpy() for x in X])
    assert_allclose(sg.vmap(sg.grad(f), in_axes=(None, 0))(w, X), each, rtol=1e-14)
    total = lambda w: sg.sum(sg.vmap(f, in_axes=(None, 0))(w, X))
    assert_allclose(sg.grad(total)(w), each.sum(0), rtol=1e-14)
    assert_allclose(sg.trace(sg.grad(total))(w)(w), each.sum(0), rtol=1e-14)
    nested = lambda w: sg.sum(sg.vmap(lambda a: sg.vmap(lambda x: f(w, a * x))(X))(np.array([1.0, 10.0])))
    loops = sum(sg.grad(f)(w, a * x).numpy() for a in (1.0, 10.0) for x in X)
    assert_allclose(sg.grad(nested)(w), loops, rtol=1e-14)


def test_what_must_not_be_reached_is_not_reached_in_silence():
    def f(x):
        return sg.sum(sg.prevent_gradient(x, "not here") ** 2)

    sg.vmap(f)(X)
    with pytest.raises(GradientPreventedError, match="not here"):
        sg.grad(lambda x: sg.sum(sg.vmap(f)(x)))(X)
    with pytest.raises(GradientPreventedError, match="not here"):
        sg.vmap(sg.grad(f))(X)


def test_a_tape_that_is_stopped_inside_does_not_see_what_others_see():
    x = sg.tensor([1.0, 2.0, 3.0])
    with sg.GradientTape() as outer:
        outer.watch(x)
        with sg.GradientTape() as tape:
            tape.watch(x)

            def f(x):
                with tape.stop_recording():
                    y = x * x
                return x * y

            z = sg.vmap(f)(x)
        inner = tape.gradient(z, x)
    assert_array_equal(inner, [1, 4, 9])
    assert_array_equal(outer.gradient(z, x), [3, 12, 27])


def test_what_only_a_stopped_path_needs_is_not_kept():
    def deep(x):
        for _ in range(20):
            x = sg.sin(x)
        return x

    def kept(f):
        with sg.GradientTape() as tape:
            x = tape.watch(sg.tensor(np.ones((4, 50))))
            y = sg.vmap(f)(x)
        return kept_values(y)

    assert kept(lambda x: x * sg.stop_gradient(deep(x))) == 200
    assert kept(lambda x: x * deep(x)) > 20 * 200


def test_a_derivative_check_sees_through_gates_under_vmap():
    straight = sg.straight_through(sg.round)

    def f(x, w):
        y = sg.stop_gradient(sg.sin(x)) * x + sg.scale_gradient(x, 0.3) * w
        y = y + sg.stop_gradient(x, where=MASKS[0]) * sg.reverse_gradient(w) + straight(x) * w
        with sg.no_gradient():
            c = sg.exp(x)
        return sg.sum(y * c)

    check_gradients(lambda x, w: sg.vmap(f, in_axes=(0, None))(x, w), (X, np.array([0.3, 0.2, -0.4])), order=2)
