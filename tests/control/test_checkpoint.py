"""`checkpoint`: the derivative of the function, of which only the arguments are kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.control.modes import agree
from tests.kept import kept_bytes

W = np.random.default_rng(0).normal(size=(3, 3))


def program(wrap):
    """A program whose function takes a tree, uses a value from outside, and has gates inside."""

    def f(w):
        outside = sg.exp(w * 0.1)

        def inner(x, rest, power=1):
            z = sg.tanh(x @ w + rest[0] * outside)
            with sg.no_gradient():
                blocked = z * x
            return {"a": z * sg.stop_gradient(x) ** power, "b": sg.scale_gradient(sg.sum(z), 0.3), "c": blocked}

        first = wrap(inner)(w, [outside, 2.0], power=2)
        second = wrap(inner)(first["a"], (w,))
        return sg.sum(first["a"] ** 2) * first["b"] + sg.sum(second["a"] * first["c"]) + second["b"]

    return f


def test_it_is_the_function():
    plain, wrapped = program(lambda f: f), program(sg.checkpoint)
    agree(wrapped, W)
    assert_allclose(wrapped(W), plain(W), rtol=1e-14)
    assert_allclose(sg.grad(wrapped)(W), sg.grad(plain)(W), rtol=1e-12)
    assert_allclose(sg.hessian(wrapped)(W), sg.hessian(plain)(W), rtol=1e-10)
    assert_allclose(sg.jvp(wrapped, (W,), (W,))[1], sg.jvp(plain, (W,), (W,))[1], rtol=1e-12)
    assert_allclose(sg.hvp(wrapped, (W,), (W,)), sg.hvp(plain, (W,), (W,)), rtol=1e-10)


def test_only_the_arguments_are_kept():
    def layer(x):
        for _ in range(20):
            x = sg.sin(x) * sg.exp(-x)
        return x

    x = np.linspace(0.0, 1.0, 1000)
    with sg.GradientTape() as tape:
        tensor = tape.watch(sg.tensor(x))
        kept = {name: kept_bytes(f(tensor)) for name, f in {"plain": layer, "checkpoint": sg.checkpoint(layer)}.items()}
    assert kept["plain"] > 40 * x.nbytes
    assert kept["checkpoint"] == x.nbytes


def test_nothing_is_kept_or_run_again_for_what_is_stopped():
    runs = []

    def layer(x):
        runs.append(x)
        return sg.sin(x)

    def f(x):
        return sg.sum(sg.stop_gradient(sg.checkpoint(layer)(x)) + sg.checkpoint(layer)(sg.stop_gradient(x)) * x)

    sg.grad(f)(np.ones(3))
    assert len(runs) == 2


def test_every_sweep_runs_it_once():
    runs = []

    def layer(x, y):
        runs.append(None)
        return sg.sin(x) * y, sg.cos(x) + y

    def f(x, y):
        a, b = sg.checkpoint(layer)(x, y)
        return a * b

    sg.grads(f)(1.0, 2.0)
    assert len(runs) == 2
    sg.jvp(f, (1.0, 2.0), (1.0, 1.0))
    assert len(runs) == 4


def test_gates_decide_as_they_did_when_it_was_called():
    def f(x, gate):
        inner = sg.checkpoint(lambda y: y * gate(y * x))
        return sg.grad(lambda y: inner(y))(x)

    for gate in (
        lambda v: sg.stop_gradient(v, level="innermost"),
        sg.stop_gradient,
        lambda v: sg.stop_gradient(v, name="n", open=True),
    ):
        expected = sg.grad(lambda x, gate=gate: sg.grad(lambda y: y * gate(y * x))(x))(1.5)
        assert float(sg.grad(lambda x, gate=gate: f(x, gate))(1.5)) == pytest.approx(float(expected), rel=1e-14)


def test_a_zero_tangent_beside_another():
    def f(x):
        return sg.checkpoint(lambda s, y: (s * y**2, s))(sg.sign(x), x)

    def pushed(x):
        return sg.jvp(f, (x,), (1.0,))

    for values in (pushed(sg.tensor(-3.0)), sg.trace(pushed)(1.0)(-3.0)):
        assert [float(one) for pair in values for one in pair] == [-9.0, -1.0, 6.0, 0.0]


def test_variables_get_their_gradients():
    w = sg.Variable([2.0, 3.0], name="w")
    v = sg.Variable([1.0, 1.0], name="v")
    with sg.GradientTape() as tape, sg.frozen(v):
        y = sg.sum(sg.checkpoint(lambda x: x * w * v)(w))
    dw, dv = tape.gradient(y, [w, v])
    assert dw.tolist() == [4.0, 6.0]
    assert dv is None


def test_a_function_that_changes_is_found_out():
    rng = sg.random.Generator(0)
    with pytest.raises(sg.errors.ArgumentError, match="computed something else"):
        sg.grad(lambda x: sg.sum(sg.checkpoint(lambda x: x * rng.normal(size=3))(x)))(np.ones(3))
    noisy = sg.checkpoint(lambda x, noise: x * noise)
    assert sg.grad(lambda x: sg.sum(noisy(x, rng.normal(size=3))))(np.ones(3)).shape == (3,)


def test_remat_is_the_same_and_needs_a_function():
    assert sg.remat is sg.checkpoint
    with pytest.raises(sg.errors.ArgumentTypeError, match="takes a function"):
        sg.checkpoint(3.0)
