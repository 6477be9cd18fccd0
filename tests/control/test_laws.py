"""The laws of the stop inside loops and branches: nothing leaks, nothing is kept, and what cut a path is named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.control import scanning

stop = sg.stop_gradient
X = np.random.default_rng(0).normal(size=(50, 4))
W = np.random.default_rng(1).normal(size=(4, 4)) * 0.4


# Law 2: no NaN or inf behind a stop


def stopped_carry(w):
    return sg.scan(lambda c, x: (sg.sqrt(stop(c) * w) + x, None), 0.0, [0.0, 1.0, 1.0])[0]


def stopped_part(w):
    def step(c, x):
        return (stop(c[0]) * w, c[1] * x), None

    (a, b), _ = sg.scan(step, (w, w), [1.0, np.inf, 2.0])
    return a + stop(b)


def loop_that_does_not_run(w):
    root = sg.sqrt(w - 1.0)  # its derivative is infinite
    return sg.while_loop(lambda c: c < 0, lambda c: c * root, 1.0) + w


def stopped_in_the_branch(w):
    root = sg.sqrt(w - 1.0)
    return sg.cond(w > 1.0, lambda: root, lambda: stop(root)) + w


def stopped_forward(w):
    inside = sg.cond(w > 2.0, lambda v: v, lambda v: stop(v), w - 1.0)
    return sg.sqrt(inside) + w


def masked_from_outside(w):
    return sg.where(w > 5.0, sg.fori_loop(0, 2, lambda i, c: sg.sqrt(c), w - 1.0), 0.0) + w


def masked_inside(w):
    def step(c, _):
        return sg.where(c > 5.0, sg.sqrt(c - 1.0), 0.0) + w, None

    return sg.scan(step, w, length=3)[0]


def last_root_unused(w):
    def step(c, x):
        return (sg.sqrt(c[0] - x), c[1] + c[0]), None

    return sg.scan(step, (w, 0.0), [0.0, 0.0, 1.0])[0][1]


LEAKS = [
    stopped_carry, stopped_part, loop_that_does_not_run, stopped_in_the_branch, stopped_forward, masked_from_outside,
    masked_inside, last_root_unused,
]  # fmt: skip


@pytest.mark.parametrize("f", LEAKS, ids=lambda f: f.__name__)
def test_nothing_leaks(f):
    for derivative in (sg.grad(f), lambda w: sg.jvp(f, (w,), (1.0,))[1]):
        expected = float(derivative(sg.tensor(1.0)))
        assert np.isfinite(expected)
        assert float(sg.trace(derivative)(1.0)(1.0)) == pytest.approx(expected, rel=1e-12)


# Law 4: what only a stopped path needs is not kept


LOOPS = {
    "all": (lambda w: sg.scan(lambda c, x: (sg.tanh(c @ w) + x, None), np.zeros(4), X)[0], 1),
    "stopped": (lambda w: sg.scan(lambda c, x: (sg.tanh(stop(c) @ w) + x, None), np.zeros(4), X)[0], 0),
    "linear": (lambda w: sg.scan(lambda c, x: (c * 2.0 + x @ w, None), np.zeros(4), X)[0], 0),
    "one of two": (
        lambda w: sg.scan(
            lambda c, x: ((sg.tanh(c[0] @ w) + x, stop(c[0]) * c[1]), None), (np.zeros(4), np.ones(4)), X
        )[0][0],
        1,
    ),
    "while": (
        lambda w: sg.while_loop(lambda c: c[1] < 50, lambda c: (sg.tanh(c[0] @ w) + 1, c[1] + 1), (np.zeros(4), 0))[0],
        1,
    ),
    "while, stopped": (
        lambda w: sg.while_loop(lambda c: c[1] < 50, lambda c: (sg.tanh(stop(c[0]) @ w), c[1] + 1), (X[0], 0))[0],
        0,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_histories_are_kept_where_a_live_path_needs_them(name, monkeypatch):
    f, histories = LOOPS[name]
    kept = []

    class Counted(scanning.Stack):
        __slots__ = ()

        def array(self):
            kept.append(super().array())
            return kept[-1]

    monkeypatch.setattr(scanning, "Stack", Counted)

    def total(w):
        return sg.sum(f(w))

    for function, count in (
        (total, 0),
        (sg.grad(total), histories),
        (lambda w: sg.jvp(total, (w,), (W,))[1], 0),
        (lambda w: sg.jvp(sg.grad(total), (w,), (W,))[1], 2 * histories),
    ):
        traced = sg.trace(function)(W)
        kept.clear()
        traced(W)
        assert len(kept) == count
        assert all(one.shape == (50, 4) for one in kept)


def test_a_stopped_loop_is_not_in_the_derivative():
    def f(w):
        return sg.sum(w * stop(sg.scan(lambda c, x: (sg.tanh(c @ w) + x, None), np.zeros(4), X)[0]))

    traced = sg.trace(f)(W)
    (gradient,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    added = [one.type for one in traced.graph if one.name.startswith("gradients")]
    assert "scan" not in added
    assert_allclose(traced.graph.run(gradient, {traced.inputs[0]: W}), sg.grad(f)(W), rtol=1e-13)


# Law 6: unconnected is said, and why


CUT = {
    "scan": lambda x: sg.scan(lambda c, _: (stop(c, name="target") * 2 + 1, None), x, length=3)[0],
    "fori": lambda x: sg.fori_loop(0, 3, lambda i, c: stop(c, name="target") * 2, x),
    "cond": lambda x: sg.cond(x > 0, lambda: stop(x, name="target"), lambda: 1.0),
    "nested": lambda x: sg.cond(x > 0, lambda: CUT["scan"](x), lambda: stop(x) * 2),
    "checkpoint": lambda x: sg.checkpoint(lambda x: stop(x, name="target") * 2)(x),
}


@pytest.mark.parametrize("name", CUT)
def test_unconnected_names_the_gate_inside(name):
    f = CUT[name]
    gradient = sg.grad(f, unconnected="error")
    for run in (lambda: gradient(2.0), lambda: sg.trace(gradient)(2.0)):
        with pytest.raises(sg.errors.UnconnectedError, match=r"stop_gradient 'target' at .*test_laws\.py:\d+"):
            run()
    traced = sg.trace(f)(2.0)
    assert sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs) == [None]
    assert sg.graph.add_tangents(traced.graph, traced.outputs, traced.inputs) == [None]
    assert sg.grad(f, unconnected="none")(2.0) is None


@pytest.mark.parametrize(
    ("f", "connected"),
    [
        (lambda x: sg.sign(sg.scan(lambda c, _: (stop(c) * 2, None), x, length=3)[0]), False),
        (lambda x: sg.sign(sg.scan(lambda c, _: (c * 2, None), x, length=3)[0]), True),
        (lambda x: sg.scan(lambda c, _: (c * 2, None), sg.sign(x), length=3)[0], True),
        (lambda x: sg.scan(lambda c, _: (stop(c) * 2, None), sg.sign(x), length=3)[0], False),
        (lambda x: sg.sign(sg.cond(x > 0, lambda: stop(x), lambda: stop(x) * 2)), False),
        (lambda x: sg.sign(sg.cond(x > 0, lambda: stop(x), lambda: x * 2)), True),
    ],
)
def test_zero_is_not_unconnected(f, connected):
    """The sign has a derivative, zero everywhere; through it a path is connected unless something stops it."""
    traced = sg.trace(f)(2.0)
    (gradient,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    (tangent,) = sg.graph.add_tangents(traced.graph, traced.outputs, traced.inputs)
    for derivative in (gradient, tangent):
        assert (derivative is not None) == connected
        if connected:
            assert float(traced.graph.run(derivative, {traced.inputs[0]: 2.0})) == 0.0


def test_a_block_around_a_loop_stops_it():
    def f(x):
        with sg.no_gradient():
            y = sg.fori_loop(0, 2, lambda i, c: c * x, x)
            z = sg.cond(x > 0, lambda: x, lambda: -x)
        return y * x + z * x

    traced = sg.trace(f)(2.0)
    (gradient,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    assert float(traced.graph.run(gradient, {traced.inputs[0]: 2.0})) == 10.0
    assert float(sg.grad(f)(2.0)) == float(sg.trace(sg.grad(f))(2.0)(2.0)) == 10.0


def test_gates_in_a_body_ask_who_sweeps():
    def f(x):
        return sg.scan(lambda c, _: (c * stop(x * c, name="n", open=True) + x, None), x, length=3)[0]

    traced = sg.trace(f)(1.2)
    (whole,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    (cut,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs, stop_gradients="n")
    found = traced.graph.run([whole, cut], {traced.inputs[0]: 1.2})
    assert_allclose(found, [sg.grad(f)(1.2), sg.grad(f, stop="n")(1.2)], rtol=1e-13)

    def inner(x):
        return sg.grad(lambda y: sg.scan(lambda c, _: (c * stop(y * c, level="innermost") + y, None), y, length=3)[0])(
            x
        )

    assert_allclose(sg.trace(sg.grad(inner))(1.2)(1.2), sg.grad(inner)(1.2), rtol=1e-13)
