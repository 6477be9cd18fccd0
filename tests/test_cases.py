"""Small programs with their right values, most of them from bug reports against other systems.

One test a kind of fault. Where a program makes sense in several modes it is asked in each: reverse (`grad`), forward
(`jvp`), tape, and reverse inside reverse for the second order.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from tests.kept import kept_values


def forward_derivative(f, x):
    return sg.jvp(f, (x,), (sg.ones_like(x),))[1]


def tape_derivative(f, x):
    x = sg.tensor(x)
    with sg.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, unconnected="zero")


DERIVATIVES = {"grad": lambda f, x: sg.grad(f)(x), "jvp": forward_derivative, "tape": tape_derivative}


@pytest.fixture(params=sorted(DERIVATIVES))
def derivative(request):
    """Each way to take the derivative of a function of one number."""
    return DERIVATIVES[request.param]


# 1, 2, 3


def test_product_with_own_stop(derivative):
    assert float(derivative(lambda x: x * sg.stop_gradient(x), 3.0)) == 3.0


def test_first_and_second_derivative_beside_a_stop():
    def f(x):
        return sg.sin(x) * sg.cos(sg.stop_gradient(x))

    for first in (sg.grad(f), lambda x: forward_derivative(f, x)):
        assert float(first(3.14)) == pytest.approx(0.9999974634566875, rel=1e-15)
    expected = 0.0015926508965689952
    for second in (
        sg.grad(sg.grad(f)),
        sg.hessian(f),
        lambda x: forward_derivative(sg.grad(f), x),
        lambda x: forward_derivative(lambda y: forward_derivative(f, y), x),
        sg.grad(lambda x: forward_derivative(f, x)),
    ):
        # d²/dx² sin(x)·cos(c) = -sin(x)·cos(c): the stop holds at the second order too.
        assert float(second(3.14)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "wrap", [lambda x: {"foo": x}, lambda x: [x], lambda x: (None, x), lambda x: ("s", {"a": [x]})]
)
def test_stop_takes_any_tree(derivative, wrap):
    def f(x):
        leaf = sg.stop_gradient(wrap(x))
        while not isinstance(leaf, sg.Tensor):
            leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[-1]
        return leaf

    assert float(derivative(f, 2.0)) == 0.0


# 4, 5, 21


def test_block_without_recording(derivative):
    def f(x):
        with sg.no_gradient():
            c = x * x
        return x * c

    assert float(derivative(f, 3.0)) == 9.0


def test_mixed_second_derivative_through_a_stop():
    def f(x, y, level):
        return x * sg.stop_gradient(x * y, level=level)

    def d_dy_of_d_dx(level):
        return sg.grad(lambda y: sg.grad(lambda x: f(x, y, level))(2.0))(5.0)

    assert float(d_dy_of_d_dx("all")) == 0.0
    assert float(d_dy_of_d_dx("innermost")) == 2.0
    assert float(forward_derivative(lambda y: forward_derivative(lambda x: f(x, y, "innermost"), 2.0), 5.0)) == 2.0


def test_nested_tapes_one_of_them_stopped():
    x = sg.tensor(3.0)
    with sg.GradientTape() as outer:
        outer.watch(x)
        with sg.GradientTape() as inner:
            inner.watch(x)
            with inner.stop_recording():
                c = x * x
            y = x * c
    assert float(inner.gradient(y, x)) == 9.0
    assert float(outer.gradient(y, x)) == 27.0
    with sg.GradientTape() as outer, sg.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        with sg.no_gradient():
            c = x * x
        y = x * c
    assert float(inner.gradient(y, x)) == 9.0
    assert float(outer.gradient(y, x)) == 9.0


# 6, 7


def test_stop_on_the_carry_of_a_loop(derivative):
    def f(a, gate):
        x = sg.tensor(2.0)
        for _ in range(5):
            x = a * gate(x)
        return x

    assert float(derivative(lambda a: f(a, sg.stop_gradient), 3.0)) == 162.0
    assert float(derivative(lambda a: f(a, lambda x: x), 3.0)) == 810.0


def test_stop_on_the_whole_carry(derivative):
    def inside(t):
        carry = (sg.tensor(1.0), t)
        for _ in range(5):
            x, inner_t = sg.stop_gradient(carry)
            carry = (inner_t * x, inner_t)
        return carry[0]

    def outside(t):
        x = sg.tensor(1.0)
        for _ in range(5):
            x = sg.stop_gradient(t * x)
        return t * x

    assert float(derivative(inside, 2.0)) == 0.0
    assert float(derivative(outside, 2.0)) == 32.0


# 8, 9, 10, 11


def test_ties():
    assert_array_equal(sg.grad(sg.max)([1.0, 1.0, 0.0]), [0.5, 0.5, 0.0])
    assert_array_equal(sg.grad(sg.min)([1.0, 1.0, 0.0]), [0.0, 0.0, 1.0])
    assert [float(g) for g in sg.grads(sg.maximum)(2.0, 2.0)] == [0.5, 0.5]
    assert float(sg.grad(sg.abs)(0.0)) == 0.0
    assert float(sg.grad(sg.nn.relu)(0.0)) == 0.0


@pytest.mark.parametrize(
    ("function", "slope"),
    [(sg.sqrt, 0.25), (lambda x: x**0.5, 0.25), (sg.log, 0.25), (lambda x: 1 / x, -1 / 16), (sg.rsqrt, -1 / 16)],
)
def test_masked_branch_does_not_leak(function, slope):
    def f(x):
        return sg.sum(sg.where(x > 0, function(x), 0.0))

    assert_allclose(sg.grad(f)([0.0, 4.0]), [0.0, slope], rtol=1e-15)
    assert np.isfinite(sg.hessian(f)([0.0, 4.0]).numpy()).all()
    assert_allclose(sg.jvp(f, ([0.0, 4.0],), ([1.0, 1.0],))[1], slope, rtol=1e-15)


@pytest.mark.parametrize(
    "product",
    [
        lambda s: s @ np.array([[1.0, 2.0], [3.0, -1.0]]),
        lambda s: sg.einsum("ij,jk->ik", s, np.array([[1.0, 2.0], [3.0, -1.0]])),
        lambda s: sg.einsum("ij,ij->ij", s, s),
        lambda s: sg.expand_dims(sg.vecdot(s, s), 1),
    ],
)
@pytest.mark.parametrize(
    "select", [lambda y: y[1:], lambda y: sg.where(np.array([[False], [True]]), y, 0.0)], ids=["slice", "where"]
)
def test_masked_rows_do_not_leak_through_products(product, select):
    x, elsewhere = np.array([[0.0, 4.0], [9.0, 16.0]]), np.array([[1.0, 4.0], [9.0, 16.0]])

    def loss(x):
        return sg.sum(select(product(sg.sqrt(x))) ** 2)

    for derivative in (sg.grad(loss), sg.hessian(loss)):
        found = derivative(x)
        assert_allclose(found, derivative(elsewhere), rtol=1e-13)
        assert_allclose(sg.trace(derivative)(x)(x), found, rtol=1e-13)


def test_stop_in_a_branch_that_is_not_taken():
    def f(x):
        return sg.sum(sg.where(x > 0, x, sg.stop_gradient(sg.log(x))))

    assert_array_equal(sg.grad(f)([-1.0, 2.0]), [0.0, 1.0])


def test_elementwise_stop_beside_infinity():
    x, mask = np.array([1.0, np.inf, 2.0]), np.array([False, True, True])
    value, pullback = sg.vjp(lambda x: sg.stop_gradient(x, where=mask), x)
    assert_array_equal(value, x)
    assert_array_equal(pullback(np.ones(3))[0], [1.0, 0.0, 0.0])
    assert_array_equal(sg.jvp(lambda x: sg.stop_gradient(x, where=mask), (x,), (np.ones(3),))[1], [1.0, 0.0, 0.0])


# 12, 13, 14


def test_straight_through_is_exact():
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32) * 3
    x[:4] = np.inf, -np.inf, 0.0, -0.0
    f = lambda x: 3.3 * sg.tanh(x)
    value, pullback = sg.vjp(sg.straight_through(f), x)
    assert value.dtype == np.float32
    assert value.numpy().tobytes() == f(sg.tensor(x)).numpy().tobytes()
    assert_array_equal(pullback(np.ones_like(x))[0], np.ones_like(x))


def test_reversal_is_exact():
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    value, pullback = sg.vjp(lambda x: sg.reverse_gradient(x, 0.3), x)
    assert value.numpy().tobytes() == x.tobytes()
    assert_array_equal(pullback(np.ones_like(x))[0], np.full_like(x, -0.3))


def test_all_orders_of_exp_of_a_difference_from_its_stop():
    def f(x):
        t = x**2
        return sg.exp(t - sg.stop_gradient(t))

    first = sg.grad(f)
    assert (float(f(sg.tensor(3.0))), float(first(3.0)), float(sg.grad(first)(3.0))) == (1.0, 6.0, 38.0)


# 17


def test_a_stopped_value_cannot_be_written_into():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor([0.0, 1.0]))
        y = sg.exp(x)
        z = sg.stop_gradient(y)
        with pytest.raises(sg.errors.ReadOnlyError, match="immutable"):
            z[0] = 5.0
        with pytest.raises(sg.errors.ReadOnlyError, match="immutable"):
            del z[0]
        with pytest.raises(ValueError, match="read-only"):
            z.numpy()[0] = 5.0
        array = np.array(z)
        array[:] = 0.0
        loss = sg.sum(3 * y)
    assert_allclose(tape.gradient(loss, x), 3 * np.exp([0.0, 1.0]), rtol=1e-15)


# 18


def test_stops_said_afterwards():
    with sg.GradientTape(persistent=True) as tape:
        x = tape.watch(sg.tensor(1.0))
        y = 2 * x
        z = x + y
        for stops, expected in (([], [3.0, 1.0]), ([y], [1.0, 1.0]), ([x, y], [1.0, 1.0])):
            assert [float(g) for g in sg.gradients(z, [x, y], stop_gradients=stops)] == expected
    for stops, expected in (([], [3.0, 1.0]), ([y], [1.0, 1.0]), ([x, y], [1.0, 1.0])):
        assert [float(g) for g in tape.gradient(z, [x, y], stop_gradients=stops)] == expected


# 19, 20


def test_temporal_difference_target():
    assert float(sg.grad(lambda w: (w - sg.stop_gradient(1 + 0.9 * w * 3)) ** 2)(2.0)) == pytest.approx(-8.8)
    assert float(sg.grad(lambda w: (w - (1 + 0.9 * w * 3)) ** 2)(2.0)) == pytest.approx(14.96)


def test_actor_critic():
    def loss(log_probability, value):
        return -(log_probability * sg.stop_gradient(3 - value)) + (3 - value) ** 2

    assert [float(g) for g in sg.grads(loss)(0.5, 2.0)] == [-1.0, -2.0]


# 22


def test_connection_is_a_matter_of_structure():
    gradient = sg.grad(lambda z: sg.sum(sg.nn.softmax(z)), unconnected="error")([1.0, 2.0, 3.0])
    assert_allclose(gradient, np.zeros(3), atol=1e-15)


# 23


def test_every_subset_stopped_and_differentiated():
    rng = np.random.default_rng(0)
    start, *w = rng.normal(size=(6, 3, 3))
    names = "abcd"
    subsets = [subset for size in range(5) for subset in itertools.combinations(names, size)]

    def program(stopped):
        """Return a, b, c, d, each behind a stop if it is named; what comes out of a stop is a new tensor to ask for."""

        def gate(name, value):
            return tape.watch(sg.stop_gradient(value)) if name in stopped else value

        a = gate("a", tape.watch(sg.tensor(start)))
        b = gate("b", a @ w[0])
        c = gate("c", a @ w[1] + b @ w[2])
        d = gate("d", b @ w[3] + c @ w[4])
        return {"a": a, "b": b, "c": c, "d": d}

    compared = 0
    for stopped in subsets:
        with sg.GradientTape() as tape:
            plain, gated = program(()), program(stopped)
            for wanted in subsets:
                after = sg.gradients(
                    sg.sum(plain["d"]), [plain[n] for n in wanted], stop_gradients=[plain[n] for n in stopped]
                )
                by_gate = sg.gradients(sg.sum(gated["d"]), [gated[n] for n in wanted])
                for one, other in zip(after, by_gate, strict=True):
                    assert (one is None) == (other is None)
                    if one is not None:
                        assert_allclose(one, other, rtol=1e-14)
                compared += 1
    assert compared == 256


# 25, 26, 28


def test_what_only_a_stopped_path_needs_is_not_recorded():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(np.ones(1000)))
        s = sg.stop_gradient(x)
        for _ in range(10):
            s = sg.stop_gradient(s) + 1.0
        assert type(s.node) is not tuple
        y = sg.sum(x + s)
    assert kept_values(y) == 0
    assert_array_equal(tape.gradient(y, x), np.ones(1000))


def test_values_kept_beside_a_stopped_branch():
    def h(x):
        for _ in range(50):
            x = sg.sin(x)
        return x

    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(np.linspace(0, 1, 1000)))
        stopped = x * sg.stop_gradient(h(x))
        whole = x * h(x)
    assert kept_values(stopped) == 1000
    assert kept_values(whole) <= 51_000


def test_a_chain_of_a_million_operations():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(1.0))
        y = x
        for _ in range(1_000_000):
            y = y + 1.0
    assert float(tape.gradient(y, x)) == 1.0
    assert float(y) == 1_000_001.0


# 29


def test_second_derivatives_at_kinks_follow_a_rule():
    assert float(sg.grad(sg.grad(lambda x: x * sg.abs(x)))(0.0)) == 0.0
    for order in (sg.grad, lambda f: sg.grad(sg.grad(f))):
        order(lambda x: sg.sqrt(x**2 + 0.0))(0.0)
