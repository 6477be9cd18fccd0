"""Elementwise operations where it is hard to be right: ties, masked branches, powers at zero, kinks at second order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stopgrad import primitives as p
from stopgrad.transforms import GradientTape, grad, grads, hessian, jvp


def along(f, x, axis=0, count=1):
    """Return the forward derivative along one argument of `count`, the others held as constants."""
    x = x if count > 1 else (x,)
    return jvp(lambda one: f(*x[:axis], one, *x[axis + 1 :]), (x[axis],), (np.ones_like(x[axis]),))[1]


# Ties and kinks (row 8)


@pytest.mark.parametrize("function", [p.maximum, p.minimum, p.fmax, p.fmin])
def test_equals_share_the_derivative(function):
    assert [float(one) for one in grads(function)(2.0, 2.0)] == [0.5, 0.5]
    assert float(along(function, (2.0, 2.0), 0, 2)) == 0.5
    assert float(grad(lambda a: function(a, a))(2.0)) == 1.0


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (p.absolute, 0.0, 0.0),
        (p.absolute, -0.0, 0.0),
        (p.relu, 0.0, 0.0),
        (p.relu6, 6.0, 0.0),
        (lambda x: p.leaky_relu(x, 0.1), 0.0, 0.1),
        (lambda x: p.elu(x, 2.0), 0.0, 2.0),
        (lambda x: p.clip(x, 0.0, 1.0), 0.0, 1.0),
        (lambda x: p.clip(x, 0.0, 1.0), 1.0, 1.0),
        (lambda x: p.clip(x, 0.0), 0.0, 1.0),
        (lambda x: p.clip(x, None, 0.0), 0.0, 1.0),
        (p.hard_tanh, 1.0, 1.0),
        (p.hard_sigmoid, 3.0, 0.0),
        (p.sign, 0.0, 0.0),
        (p.floor, 1.0, 0.0),
        (p.round, 0.5, 0.0),
        (lambda x: p.hypot(x, 0.0), 0.0, 0.0),
        (lambda x: p.heaviside(x, 0.5), 0.0, 0.0),
    ],
)
def test_slope_at_a_kink(function, at, slope):
    assert float(grad(function)(at)) == slope
    assert float(along(function, at)) == slope


def test_nan_propagates_and_is_passed_no_more_than_the_whole_derivative():
    value = p.maximum([np.nan, 1.0, np.nan], [1.0, np.nan, np.nan])
    assert np.isnan(value.numpy()).all()
    first, second = grads(lambda a, b: p.sum(p.maximum(a, b)))([np.nan, 1.0], [1.0, np.nan])
    assert_array_equal(first.numpy() + second.numpy(), [1.0, 1.0])
    first, second = grads(lambda a, b: p.sum(p.fmax(a, b)))([np.nan, 1.0, np.nan], [1.0, np.nan, np.nan])
    assert_array_equal(first, [0.0, 1.0, 0.5])
    assert_array_equal(second, [1.0, 0.0, 0.5])


def test_clip_gives_the_derivative_to_what_was_taken():
    x, low, high = [-1.0, 0.5, 2.0, 0.5], [0.0, 0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]
    assert_array_equal(p.clip(x, low, high), np.clip(x, low, high))
    to_x, to_low, to_high = grads(lambda *a: p.sum(p.clip(*a)))(x, low, high)
    assert_array_equal(to_x, [0.0, 1.0, 0.0, 0.0])
    assert_array_equal(to_low, [1.0, 0.0, 0.0, 0.0])
    assert_array_equal(to_high, [0.0, 0.0, 1.0, 1.0])


# Masked branches (row 9)

# f(x) whose derivative at 0 is infinite or NaN, and f'(4), f''(4).
SINGULAR_AT_ZERO = {
    "sqrt": (p.sqrt, 1 / 4, -1 / 32),
    "log": (p.log, 1 / 4, -1 / 16),
    "log2": (p.log2, 1 / (4 * math.log(2)), -1 / (16 * math.log(2))),
    "divide": (lambda x: 1 / x, -1 / 16, 1 / 32),
    "reciprocal": (p.reciprocal, -1 / 16, 1 / 32),
    "rsqrt": (p.rsqrt, -1 / 16, 3 / 128),
    "cbrt": (p.cbrt, 1 / (3 * 4 ** (2 / 3)), -2 / (9 * 4 ** (5 / 3))),
    "power with a number": (lambda x: x**0.5, 1 / 4, -1 / 32),
    "power with a tensor": (lambda x: x ** p.asarray(0.5), 1 / 4, -1 / 32),
    "power of itself": (
        lambda x: x**x,
        256 * (1 + math.log(4)),
        256 * ((1 + math.log(4)) ** 2 + 1 / 4),
    ),
    "integer power": (lambda x: x**-1, -1 / 16, 1 / 32),
    "xlogy": (lambda x: p.xlogy(x, x), 1 + math.log(4), 1 / 4),
    "entr": (p.entr, -1 - math.log(4), -1 / 4),
    "a chain": (lambda x: p.exp(-p.log(p.square(p.sqrt(x)))), -1 / 16, 1 / 32),
    "a quotient of zeros": (lambda x: x * x / x, 1.0, 0.0),
}

MASKS = {
    "where": lambda function: lambda x: p.where(x > 0, function(x), 0.0),
    "where not": lambda function: lambda x: p.where(x <= 0, 0.0, function(x)),
    "where of where": lambda function: lambda x: p.where(x > 0, p.where(x > -1, function(x), x), x * 0),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", SINGULAR_AT_ZERO)
def test_what_is_masked_does_not_leak(name, mask):
    function, slope, curvature = SINGULAR_AT_ZERO[name]
    masked = MASKS[mask](function)

    def f(x):
        return p.sum(masked(x))

    x = np.array([0.0, 4.0])
    assert_allclose(grad(f)(x), [0.0, slope], rtol=1e-14)
    assert_allclose(jvp(masked, (x,), (np.ones(2),))[1], [0.0, slope], rtol=1e-14)
    with GradientTape() as tape:
        watched = tape.watch(p.asarray(x))
        total = f(watched)
    assert_allclose(tape.gradient(total, watched), [0.0, slope], rtol=1e-14)
    expected = np.diag([0.0, curvature])
    assert_allclose(hessian(f)(x), expected, rtol=1e-13, atol=1e-15)
    assert_allclose(jvp(grad(f), (x,), (np.ones(2),))[1], expected.sum(0), rtol=1e-13, atol=1e-15)
    assert_allclose(grad(lambda x: p.sum(grad(f)(x)))(x), expected.sum(0), rtol=1e-13, atol=1e-15)
    assert_allclose(grad(lambda x: p.sum(along(masked, x)))(x), expected.sum(0), rtol=1e-13, atol=1e-15)


def test_what_overflows_behind_a_mask_does_not_leak():
    x = np.array([1000.0, 1.0])

    def f(x):
        return p.sum(p.where(x < 100, p.exp(x), 0.0))

    assert_allclose(grad(f)(x), [0.0, math.e], rtol=1e-15)
    assert_allclose(hessian(f)(x), np.diag([0.0, math.e]), rtol=1e-15)


@pytest.mark.parametrize(
    "select",
    [
        lambda y: p.maximum(y, 1.0),
        lambda y: p.clip(y, 1.0, 3.0),
        lambda y: p.clip(y, 1.0),
        lambda y: p.relu(y - 1.0),
        lambda y: p.relu6(y - 1.0),
        lambda y: p.fmax(y, 1.0),
    ],
)
def test_every_selection_masks(select):
    x = np.array([0.0, 4.0])

    def f(x):
        return p.sum(select(p.sqrt(x)))

    assert_array_equal(grad(f)(x), [0.0, 0.25])
    assert_allclose(hessian(f)(x), np.diag([0.0, -1 / 32]), rtol=1e-15)


def test_quotients_and_products_without_nan_mask():
    x = np.array([0.0, 4.0])
    assert_array_equal(grad(lambda x: p.sum(p.divide_no_nan(1.0, p.sqrt(x))))(x), [0.0, -1 / 16])
    assert_array_equal(grad(lambda x: p.sum(p.multiply_no_nan(p.log(x), [0.0, 2.0])))(x), [0.0, 0.5])


def test_nothing_leaks_from_an_unselected_nan():
    x = np.array([np.nan, 2.0])
    assert_array_equal(grad(lambda x: p.sum(p.nan_to_num(x * x)))(x), [0.0, 4.0])
    assert_array_equal(grad(lambda x: p.sum(p.where(p.isnan(x), 0.0, x * x)))(x), [0.0, 4.0])


# y(x) = 0 and y' = 1 at x = 0, reached through operations that select or that move what was selected.
SELECTED_ZEROS = {
    "where": lambda x: p.where(x > -1, p.sin(x), 0.0),
    "where, then sine": lambda x: p.sin(p.where(x > -1, x, 0.0)),
    "maximum": lambda x: p.maximum(p.exp(x), 0.5) - 1.0,
    "relu": lambda x: p.relu(p.exp(x)) - 1.0,
    "clip": lambda x: p.clip(p.exp(x), 0.0, 2.0) - 1.0,
    "reshaped": lambda x: p.reshape(p.relu(p.reshape(p.exp(x), (2, 1))), (2,)) - 1.0,
    "broadcast": lambda x: p.sum(p.relu(p.broadcast_to(p.exp(x), (3, 2))), axis=0) / 3 - 1.0,
    "indexed": lambda x: p.exp(x)[::-1] - 1.0,
    "greatest": lambda x: p.max(p.stack([p.exp(x), 0 * x]), axis=0) - 1.0,
}


@pytest.mark.parametrize("name", SELECTED_ZEROS)
def test_a_cotangent_that_happens_to_be_zero_has_a_derivative(name):
    def f(x):
        return p.sum(p.square(SELECTED_ZEROS[name](x)))

    x = np.zeros(2)
    assert_array_equal(grad(f)(x), np.zeros(2))
    assert_allclose(hessian(f)(x), 2 * np.eye(2), atol=1e-15)
    assert_allclose(jvp(grad(f), (x,), (np.ones(2),))[1], [2.0, 2.0])
    assert_allclose(grad(lambda x: p.sum(grad(f)(x)))(x), [2.0, 2.0])


def test_masked_and_unmasked_routes_to_the_same_value():
    def f(x):
        root = p.sqrt(x)
        return p.sum(p.where(x > 1, root, 0.0) + p.square(root - 1.0))

    # At 1 only the second route counts, and passes a zero that has a derivative: f'' = 1/2 there.
    assert_allclose(grad(f)([1.0, 4.0]), [0.0, 0.75])
    assert_allclose(hessian(f)([1.0, 4.0]), np.diag([0.5, 1 / 16 - 1 / 32]), rtol=1e-14)


# Powers at zero (row 24)

# (x, y): ∂x, ∂y, ∂xx, ∂xy, ∂yy of xʸ; None where the mathematics has no finite value and ours is a convention.
POWERS = {
    (0.0, 2.0): (0.0, 0.0, 2.0, 0.0, 0.0),
    (0.0, 3.0): (0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 1.0): (1.0, 0.0, 0.0, None, 0.0),
    (0.0, 0.0): (0.0, 0.0, 0.0, None, None),
    (2.0, 0.0): (0.0, math.log(2), 0.0, 0.5, math.log(2) ** 2),
    (2.0, 3.0): (12.0, 8 * math.log(2), 12.0, 4 + 12 * math.log(2), 8 * math.log(2) ** 2),
    (-2.0, 3.0): (12.0, math.nan, -12.0, math.nan, math.nan),
}


@pytest.mark.parametrize("point", POWERS)
def test_power_is_finite_where_the_mathematics_is(point):
    by_x, by_y, by_xx, by_xy, by_yy = POWERS[point]
    first = grads(p.power)(*point)
    assert_allclose([float(one) for one in first], [by_x, by_y], rtol=1e-15)
    assert_allclose([float(along(p.power, point, axis, 2)) for axis in (0, 1)], [by_x, by_y], rtol=1e-15)
    expected = {(0, 0): by_xx, (0, 1): by_xy, (1, 0): by_xy, (1, 1): by_yy}
    for (inner, outer), value in expected.items():
        derivative = grad(p.power, inner)
        found = [
            float(grad(derivative, outer)(*point)),
            float(along(derivative, point, outer, 2)),
            float(grad(lambda x, y, axis=inner: along(p.power, (x, y), axis, 2), outer)(*point)),
        ]
        if value is None:
            assert np.isfinite(found).all()
        else:
            assert_allclose(found, value, rtol=1e-14)


def test_power_at_infinite_slopes():
    assert float(grad(p.power)(0.0, 0.5)) == np.inf
    assert float(grad(p.power)(0.0, -1.0)) == -np.inf
    assert float(grad(p.power, 1)(0.0, -1.0)) == -np.inf


@pytest.mark.parametrize("n", range(6))
def test_integer_powers_have_the_derivatives_of_the_monomial(n):
    for x in (0.0, -2.0, 3.0):
        f, factor = (lambda x: p.power(x, n)), 1.0
        for order in range(5):
            expected = factor * x ** (n - order) if n >= order else 0.0
            assert float(f(p.asarray(x))) == expected
            f, factor = grad(f), factor * (n - order)


def test_a_number_for_an_exponent_keeps_dtype_and_keeps_no_output():
    x = np.array([1.0, 2.0], np.float32)
    assert p.power(x, 2).dtype == p.power(x, 0.5).dtype == np.float32
    assert grad(lambda x: p.sum(x**3))(x).dtype == np.float32
    assert p.power(np.array([2, 3]), 2).dtype == np.int64
    assert_array_equal(p.float_power([1, 2, 4], -1), [1.0, 0.5, 0.25])


def test_power_of_a_number():
    assert_allclose(grad(lambda y: 2.0**y)(3.0), 8 * math.log(2), rtol=1e-15)
    assert [float(grad(lambda y: 0.0**y)(y)) for y in (2.0, 0.0)] == [0.0, 0.0]
    assert np.isnan(float(grad(lambda y: (-2.0) ** y)(3.0)))


# Second derivatives at kinks (row 29)


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (lambda x: x * p.absolute(x), 0.0, 0.0),
        (p.absolute, 0.0, 0.0),
        (p.relu, 0.0, 0.0),
        (lambda x: p.square(p.relu(x)), 0.0, 0.0),
        (lambda x: p.square(p.maximum(x, 0.0)), 0.0, 0.5),
        (lambda x: x * p.sign(x), 0.0, 0.0),
        (lambda x: p.hypot(x, 0.0), 0.0, 0.0),
        # 0·∞ at 0: the square root has an infinite derivative there and nothing says that x² cancels it.
        (lambda x: p.sqrt(p.square(x) + 0.0), math.nan, math.nan),
        (lambda x: p.sinc(x), 0.0, -(math.pi**2) / 3),
    ],
)
def test_second_derivative_at_a_kink(function, first, second):
    assert_allclose(float(grad(function)(0.0)), first)
    assert_allclose(float(along(function, 0.0)), first)
    for derivative in (
        grad(grad(function))(0.0),
        hessian(function)(0.0),
        along(grad(function), 0.0),
        along(lambda x: along(function, x), 0.0),
        grad(lambda x: along(function, x))(0.0),
    ):
        assert_allclose(float(derivative), second, rtol=1e-14)


def test_third_derivatives_near_the_center_of_sinc():
    # sinc'''' at 0 is π⁴/5.
    f = p.sinc
    for _ in range(4):
        f = grad(f)
    assert_allclose(float(f(0.0)), math.pi**4 / 5, rtol=1e-13)
    assert_allclose(float(f(1 / math.pi - 1e-6)), float(f(1 / math.pi + 1e-6)), rtol=1e-4)


def test_logaddexp_of_infinities():
    first, second = grads(lambda a, b: p.sum(p.logaddexp(a, b)))([-np.inf, -np.inf, np.inf], [-np.inf, 1.0, 1.0])
    assert_array_equal(first, [0.5, 0.0, 1.0])
    assert_array_equal(second, [0.5, 1.0, 0.0])


def test_xlogy_at_zero():
    assert float(p.xlogy(0.0, 0.0)) == 0.0
    assert [float(one) for one in grads(p.xlogy)(0.0, 2.0)] == [math.log(2), 0.0]
    assert [float(one) for one in grads(p.xlogy)(0.0, 0.0)] == [-np.inf, 0.0]
    assert_allclose(float(grad(grad(p.xlogy, 1), 0)(0.0, 2.0)), 0.5)
