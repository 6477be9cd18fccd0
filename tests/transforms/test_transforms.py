"""`grad` and its relatives, jvp, jacobians, the tape: structure, nesting, policies, errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg


class Params(NamedTuple):
    """A structure users have."""

    w: object
    b: object


# Structure, dtype, shape.


def test_gradients_have_the_structure_of_the_argument():
    def loss(p):
        return sg.sum(p["layer"].w ** 2) + sg.sum(p["layer"].b) * 3

    params = {"layer": Params(np.ones((2, 3)), np.float32(1.0)), "steps": 3, "name": "net", "nothing": None}
    gradient = sg.grad(loss)(params)
    assert isinstance(gradient["layer"], Params)
    assert_array_equal(gradient["layer"].w, 2 * np.ones((2, 3)))
    assert gradient["layer"].b.dtype == np.float32
    assert gradient["steps"] is None
    assert gradient["name"] is None


def test_argnums_aux_and_keywords():
    def f(x, y, *, scale):
        return x * y * scale, {"seen": x}

    (value, aux), (gy, gx) = sg.value_and_grad(f, (1, 0), has_aux=True)(2.0, 3.0, scale=10.0)
    assert (float(value), float(gy), float(gx), float(aux["seen"])) == (60.0, 20.0, 30.0, 2.0)
    assert float(sg.grad(f, -1, has_aux=True)(2.0, 3.0, scale=1.0)[0]) == 2.0
    assert type(aux["seen"].node) is not tuple


def test_results_are_constants_outside():
    value, gradient = sg.value_and_grad(lambda x: x**2)(3.0)
    assert value.node is None
    assert gradient.node is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: sg.grad(lambda x: x)([1.0, 2.0]), sg.errors.ShapeError, "must return one number"),
        (lambda: sg.grad(lambda x: x)(3), sg.errors.DTypeError, "3.0"),
        (lambda: sg.grad(lambda x: x)(np.arange(3)), sg.errors.DTypeError, "int64"),
        (lambda: sg.grad(lambda x: None)(1.0), sg.errors.ArgumentTypeError, "returned None"),
        (lambda: sg.grad(lambda x: (x, x))(1.0), sg.errors.ArgumentTypeError, "has_aux"),
        (lambda: sg.grad(3.0), sg.errors.ArgumentTypeError, "takes a function"),
        (lambda: sg.grad(lambda x: x, 1)(1.0), sg.errors.ArgumentError, "argnums 1"),
        (lambda: sg.grad(lambda x: x, "x")(1.0), sg.errors.ArgumentTypeError, "argnums"),
        (lambda: sg.grad(lambda x: x)("text"), sg.errors.ArgumentTypeError, "argument 0"),
        (lambda: sg.grad(lambda x: x * 1j)(1.0), sg.errors.DTypeError, "complex128"),
        (lambda: sg.jvp(lambda x: x, (1.0,), ()), sg.errors.ArgumentError, "tangents"),
        (lambda: sg.jvp(lambda x: x, 1.0, 1.0), sg.errors.ArgumentTypeError, r"\(x,\)"),
        (lambda: sg.jvp(lambda x: x, (np.ones(2),), (np.ones(3),)), sg.errors.ShapeError, "primal 0"),
        (lambda: sg.vjp(lambda x: x, np.ones(2))[1](np.ones(3)), sg.errors.ShapeError, "cotangent"),
        (lambda: sg.jacobian(lambda x: x, mode="sideways"), sg.errors.ArgumentError, "mode"),
        (lambda: sg.grad(lambda x: x, stop=[3]), sg.errors.ArgumentTypeError, "names of gates"),
    ],
)
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


# Nesting.


def test_levels_are_not_confused():
    # The classic: the inner derivative of x + y with respect to y is 1 whatever x is.
    assert float(sg.grad(lambda x: x * sg.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(sg.jvp(lambda x: x * sg.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1]) == 1.0
    assert float(sg.grad(lambda x: x * sg.jvp(lambda y: x * y, (2.0,), (1.0,))[1])(3.0)) == 6.0


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("modes", ["reverse", "forward", "mixed"])
def test_any_order(order, modes):
    reverse = sg.grad
    forward = lambda f: lambda x: sg.jvp(f, (x,), (1.0,))[1]
    f = sg.sin
    for i in range(order):
        f = (reverse if modes == "reverse" or (modes == "mixed" and i % 2) else forward)(f)
    exact = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos][order - 1]
    assert_allclose(float(f(0.7)), exact(0.7), rtol=1e-14)


def test_a_pullback_can_be_called_again_and_differentiated():
    x = np.array([1.0, 2.0])
    _, pullback = sg.vjp(lambda x: x**3, x)
    assert_array_equal(pullback(np.ones(2))[0], pullback(np.ones(2))[0])
    assert_array_equal(sg.jacobian(lambda c: pullback(c)[0])(np.ones(2)), np.diag(3 * x**2))


def test_the_callers_array_may_change_between_value_and_pullback():
    x = np.array([1.0, 2.0])
    _, pullback = sg.vjp(lambda x: sg.sum(x**2), x)
    x[:] = 100.0
    assert_array_equal(pullback(1.0)[0], [2.0, 4.0])


# Jacobians.


def test_jacobian_in_both_modes_over_trees():
    def f(p, y):
        return {"a": p["w"] * y, "b": sg.sum(p["w"])}

    args = {"w": np.array([1.0, 2.0])}, np.array([3.0, 4.0])
    for mode in ("reverse", "forward", "auto"):
        j = sg.jacobian(f, (0, 1), mode=mode)(*args)
        assert_array_equal(j["a"][0]["w"], np.diag([3.0, 4.0]))
        assert_array_equal(j["a"][1], np.diag([1.0, 2.0]))
        assert_array_equal(j["b"][0]["w"], [1.0, 1.0])
        assert_array_equal(j["b"][1], [0.0, 0.0])


def test_jacobian_of_nothing_has_the_right_shape():
    assert sg.jacobian(lambda x: x * 2)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert sg.jacobian(lambda x: sg.tensor(np.ones(3)), mode="forward")(np.ones(2)).shape == (3, 2)
    assert sg.jacobian(lambda x: sg.tensor(np.ones(3)), unconnected="none")(np.ones(2)) is None


def test_hessian_and_its_product():
    def f(x):
        return sg.sum(sg.exp(x) * x[0])

    x, v = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    h = sg.hessian(f)(x)
    assert_allclose(h, h.numpy().T, rtol=1e-14)
    assert_allclose(sg.hvp(f, (x,), (v,)), h.numpy() @ v, rtol=1e-14)
    blocks = sg.hessian(lambda a, b: a * a * b, (0, 1))(2.0, 3.0)
    assert [[float(c) for c in row] for row in blocks] == [[6.0, 4.0], [4.0, 0.0]]


# The tape.


def test_tape_order_of_use():
    x = sg.tensor(3.0)
    with sg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
    with pytest.raises(sg.errors.TapeError, match="persistent=True"):
        tape.gradient(y, x)
    with pytest.raises(sg.errors.TapeError, match="inside"):
        tape.watch(x)
    assert x.node is None


def test_what_happens_outside_the_block_is_not_recorded():
    x = sg.tensor(3.0)
    with sg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    z = y * 2
    assert tape.gradient(z, x) is None
    assert type(z.node) is not tuple


def test_second_order_by_nested_tapes():
    x = sg.tensor([1.0, 2.0])
    with sg.GradientTape() as outer:
        outer.watch(x)
        with sg.GradientTape() as inner:
            inner.watch(x)
            y = sg.sum(x**3)
        first = inner.gradient(y, x)
    assert_allclose(first, [3.0, 12.0])
    assert_allclose(outer.gradient(first, x), [6.0, 12.0])


def test_an_inner_tape_sees_only_what_it_watches():
    x, y = sg.tensor(2.0), sg.tensor(3.0)
    with sg.GradientTape() as outer:
        outer.watch(x)
        before = x * x
        with sg.GradientTape(persistent=True) as inner:
            inner.watch(y)
            z = before * y * x
        assert inner.gradient(z, x) is None
        assert float(inner.gradient(z, y)) == 8.0
    assert float(outer.gradient(z, x)) == 36.0


def test_tape_with_variables_targets_and_output_gradients():
    w = sg.Variable(np.array([1.0, 2.0]))
    with sg.GradientTape(persistent=True) as tape:
        y = w * w
        w.assign([5.0, 6.0])
        z = w * 1.0
    assert_array_equal(tape.gradient(y, w), [2.0, 4.0])
    assert_array_equal(tape.gradient([y, z], {"w": w})["w"], [3.0, 5.0])
    assert_array_equal(tape.gradient(y, w, output_gradients=np.array([1.0, 0.0])), [2.0, 0.0])
    assert_array_equal(tape.jacobian(y, w), np.diag([2.0, 4.0]))
    with sg.GradientTape(watch_accessed_variables=False) as tape:
        y = w * w
    assert tape.gradient(y, w) is None


def test_lists_of_numbers_are_one_cotangent_for_each_target():
    with sg.GradientTape(persistent=True) as tape:
        x = tape.watch(sg.tensor(2.0))
        y, z = x**2, x**3
        pair = sg.stack([x, 2 * x])
        assert float(sg.gradients([y, z], x, grad_ys=[1.0, 2.0])) == 28.0
        assert float(sg.gradients([y], x, grad_ys=[2.0])) == 8.0
        assert float(sg.gradients(pair, x, grad_ys=[1.0, 10.0])) == 21.0
        assert float(sg.gradients([pair, pair], x, grad_ys=[[1.0, 10.0], [0.0, 1.0]])) == 23.0
    assert float(tape.gradient([y, z], x, output_gradients=[1.0, 2.0])) == 28.0
    _, pullback = sg.vjp(lambda x: [x**2, x**3], 2.0)
    assert float(pullback([1.0, 2.0])[0]) == 28.0
    assert float(sg.jvp(lambda pair: pair[0] * pair[1], ([sg.tensor(2.0), 3.0],), ([1.0, 10.0],))[1]) == 23.0
    with pytest.raises(sg.errors.ArgumentError, match="structure"):
        pullback((1.0, 2.0))


def test_reset_forgets():
    x = sg.tensor(3.0)
    with sg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * 3
        w = y + z
    assert float(tape.gradient(w, x)) == 3.0


def test_an_error_in_the_function_leaves_no_level_behind():
    def f(x):
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        sg.grad(f)(1.0)
    assert type((sg.tensor(1.0) * 2).node) is not tuple
    x = sg.tensor(1.0)
    with pytest.raises(RuntimeError), sg.GradientTape() as tape:
        tape.watch(x)
        raise RuntimeError
    assert x.node is None


# Custom derivatives.


def test_custom_gradient_serves_both_modes_and_orders():
    @sg.custom_gradient
    def twice_as_steep(x, y):
        return x * y, lambda c: (2 * c * y, 2 * c * x)

    gx, gy = sg.grads(twice_as_steep)(3.0, 5.0)
    assert (float(gx), float(gy)) == (10.0, 6.0)
    assert float(sg.jvp(twice_as_steep, (3.0, 5.0), (1.0, 1.0))[1]) == 16.0
    mixed = sg.grad(lambda y: sg.grad(twice_as_steep)(3.0, y))
    assert float(mixed(5.0)) == 2.0
    assert float(sg.jvp(sg.grad(twice_as_steep), (3.0, 5.0), (0.0, 1.0))[1]) == 2.0


def test_custom_jvp_serves_both_modes_and_orders():
    calls = []

    @sg.custom_jvp
    def f(x, y):
        return sg.sin(x) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        calls.append(1)
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), sg.cos(x) * y * dx + sg.sin(x) * dy

    assert_allclose([float(g) for g in sg.grads(f)(0.3, 2.0)], [np.cos(0.3) * 2, np.sin(0.3)], rtol=1e-15)
    assert_allclose(float(sg.jvp(f, (0.3, 2.0), (1.0, 0.5))[1]), np.cos(0.3) * 2 + np.sin(0.3) * 0.5, rtol=1e-15)
    assert_allclose(float(sg.grad(sg.grad(f))(0.3, 2.0)), -np.sin(0.3) * 2, rtol=1e-14)
    assert calls


def test_custom_gradient_over_trees_and_several_results():
    @sg.custom_gradient
    def f(p, n):
        def pullback(ca, cb):
            return {"w": ca * n + cb}, None

        return (p["w"] * n, p["w"]), pullback

    g = sg.grad(lambda p: sg.sum(f(p, 3)[0]) + sg.sum(f(p, 3)[1]) * 10)({"w": np.ones(2)})
    assert_array_equal(g["w"], [13.0, 13.0])


def test_custom_gradient_names_itself_and_its_mistakes():
    w = sg.Variable(2.0, name="w")

    @sg.custom_gradient
    def closes_over(x):
        return x * w, lambda c: c * w

    with sg.GradientTape(persistent=True) as tape:
        x = tape.watch(sg.tensor(3.0))
        y = closes_over(x)
    assert float(tape.gradient(y, x)) == 2.0
    with pytest.raises(sg.errors.UnconnectedError, match="custom_gradient 'closes_over'"):
        tape.gradient(y, w, unconnected="error")

    with pytest.raises(sg.errors.ArgumentTypeError, match="pullback"):
        sg.custom_gradient(lambda x: x)(1.0)
    with pytest.raises(sg.errors.ShapeError, match="argument 0"):
        sg.grad(sg.custom_gradient(lambda x: (sg.sum(x), lambda c: c)))(np.ones(2))
    with pytest.raises(sg.errors.ArgumentError, match="defjvp"):
        sg.custom_jvp(lambda x: x)(1.0)
