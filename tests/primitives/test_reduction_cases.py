"""Reductions, scans and softmax where it is hard to be right: ties, zeros, infinities, masked rows, what is kept."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from stopgrad.check import check_gradients
from tests.kept import kept_bytes, kept_values

INF, NAN = math.inf, math.nan


def reverse(f, x):
    """Return the gradient of the sum of f."""
    return sg.grad(lambda x: sg.sum(f(x)))(x).numpy()


def forward(f, x):
    """Return the same in forward mode, one direction at a time."""
    x = np.asarray(x)
    columns = [sg.jvp(lambda x: sg.sum(f(x)), (x,), (unit,))[1] for unit in np.eye(x.size).reshape(x.size, *x.shape)]
    return np.array([float(one) for one in columns]).reshape(x.shape)


MODES = {"reverse": reverse, "forward": forward}


@pytest.fixture(params=sorted(MODES))
def derivative(request):
    """Both modes."""
    return MODES[request.param]


# Ties (row 8)


@pytest.mark.parametrize("function", [sg.max, lambda x: -sg.min(-x), sg.amax], ids=["max", "min", "amax"])
def test_equals_share_the_derivative(derivative, function):
    assert_array_equal(derivative(function, [1.0, 1.0, 0.0]), [0.5, 0.5, 0.0])
    assert_array_equal(derivative(function, [2.0, 2.0, 2.0, 2.0]), [0.25] * 4)
    assert_array_equal(derivative(function, [0.0, -0.0]), [0.5, 0.5])


def test_equals_share_along_axes(derivative):
    x = np.array([[3.0, 3.0, 1.0], [2.0, 3.0, 3.0]])
    assert_array_equal(derivative(lambda x: sg.max(x, axis=1), x), [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert_array_equal(derivative(lambda x: sg.max(x, axis=0), x), [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    assert_array_equal(derivative(lambda x: sg.max(x, axis=(0, 1), keepdims=True), x), (x == 3) / 4)
    assert_array_equal(derivative(lambda x: sg.min(x, axis=-2), x), [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]])


def test_second_derivative_at_ties_is_zero():
    assert_array_equal(sg.hessian(lambda x: sg.max(x))([1.0, 1.0, 0.0]).numpy(), np.zeros((3, 3)))
    weights = sg.hessian(lambda x: sg.max(x) ** 2)([1.0, 1.0, 0.0]).numpy()
    assert_allclose(weights, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]])


def test_nan_takes_the_derivative_of_max(derivative):
    assert math.isnan(float(sg.max([1.0, NAN])))
    assert_array_equal(derivative(sg.max, [1.0, NAN, 2.0]), [0.0, 1.0, 0.0])
    assert_array_equal(derivative(sg.nanmax, [1.0, NAN, 2.0]), [0.0, 0.0, 1.0])
    assert_array_equal(derivative(sg.max, [INF, 1.0, INF]), [0.5, 0.0, 0.5])


def test_what_max_did_not_choose_cannot_leak():
    """√x has an infinite derivative at 0, and 0 is not the largest."""
    assert_array_equal(reverse(lambda x: sg.max(sg.sqrt(x)), [0.0, 4.0]), [0.0, 0.25])
    assert_array_equal(reverse(lambda x: sg.max(sg.log(x)), [0.0, 2.0]), [0.0, 0.5])


@pytest.mark.parametrize("descending", [False, True])
def test_sort_follows_the_stable_permutation(derivative, descending):
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    order = np.argsort([-2.0, -1.0, -1.0, -2.0] if descending else [2.0, 1.0, 1.0, 2.0], stable=True)
    expected = np.empty(4)
    expected[order] = weights
    found = derivative(lambda x: sg.sort(x, descending=descending) * weights, [2.0, 1.0, 1.0, 2.0])
    assert_array_equal(found, expected)


def test_running_extremes_credit_the_first_that_was_met(derivative):
    assert_array_equal(derivative(sg.cummax, [1.0, 1.0, 0.0, 2.0]), [3.0, 0.0, 0.0, 1.0])
    assert_array_equal(derivative(lambda x: sg.cummin(x, reverse=True), [1.0, 0.0, 0.0]), [0.0, 0.0, 3.0])


# Zeros


@pytest.mark.parametrize(
    ("x", "expected"),
    [([2.0, 3.0], [3, 2]), ([2.0, 0.0, 5.0], [0, 10, 0]), ([0.0, 0.0, 5.0], [0, 0, 0]), ([0.0], [1])],
)
def test_product_at_zeros(derivative, x, expected):
    assert_array_equal(derivative(sg.prod, x), expected)


def test_second_derivative_of_product_at_zeros():
    assert_array_equal(sg.hessian(sg.prod)([0.0, 0.0, 5.0]).numpy(), [[0, 5, 0], [5, 0, 0], [0, 0, 0]])
    third = sg.jacobian(sg.hessian(sg.prod))(np.zeros(3)).numpy()
    assert third[0, 1, 2] == third[2, 0, 1] == 1
    assert np.sum(third) == 6


def test_products_over_several_axes_at_zeros():
    x = np.array([[[0.0, 2.0], [3.0, 1.0]], [[0.0, 0.0], [4.0, 5.0]]])
    for axis in (None, (0, 2), (1,), (-1, 0)):
        check_gradients(lambda x, axis=axis: sg.prod(x, axis=axis), (x,))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse_scan", [False, True])
@pytest.mark.parametrize("lanes", [1, 40])
def test_running_product_at_zeros(exclusive, reverse_scan, lanes):
    """Few lanes are run in Python's numbers, many in rows of an array."""
    x = np.cos(np.arange(5.0 * lanes)).reshape(5, lanes) + 1.5
    x[1], x[3, 0] = 0.0, 0.0
    check_gradients(lambda x: sg.cumulative_prod(x, axis=0, exclusive=exclusive, reverse=reverse_scan), (x,), order=2)


def test_running_product_over_a_wide_range():
    x = np.concatenate([np.full(500, 0.3), np.full(500, 3.0)])
    products = np.cumprod(x)
    later = np.cumsum(products[::-1])[::-1]
    assert products.min() < 1e-260
    assert_allclose(reverse(sg.cumprod, x), later / x, rtol=1e-11)


def test_standard_deviation_of_equal_entries(derivative):
    assert_array_equal(derivative(sg.std, [2.0, 2.0, 2.0]), [0.0, 0.0, 0.0])
    assert np.isfinite(sg.hessian(sg.std)([2.0, 2.0]).numpy()).all()
    assert_array_equal(derivative(lambda x: sg.std(x, axis=1), [[1.0, 1.0], [0.0, 2.0]]), [[0, 0], [-0.5, 0.5]])


def test_norm_at_zero(derivative):
    for order in (None, 1, 3, 1.5, INF):
        assert_array_equal(derivative(lambda x, order=order: sg.linalg.norm(x, order), [0.0, 0.0]), [0.0, 0.0])
    assert np.isfinite(sg.hessian(sg.linalg.norm)([0.0, 0.0]).numpy()).all()


# Nothing to reduce


def test_reductions_of_nothing():
    empty = np.zeros((0, 3))
    assert float(sg.sum(empty)) == 0.0
    assert float(sg.prod(empty)) == 1.0
    assert float(sg.logsumexp(empty)) == -INF
    assert_array_equal(sg.logsumexp(empty, axis=0).numpy(), [-INF] * 3)
    assert sg.max(empty, axis=1).shape == (0,)
    assert not bool(sg.any(empty))
    assert bool(sg.all(empty))
    for function in (sg.sum, sg.prod, sg.logsumexp, lambda x: sg.sum(sg.softmax(x)), lambda x: sg.sum(sg.sort(x))):
        assert reverse(function, empty).shape == (0, 3)
    for function in (sg.max, sg.min, sg.argmax, sg.argmin, sg.median):
        with pytest.raises(sg.errors.ShapeError, match="no entry"):
            function(empty)
    with pytest.raises(sg.errors.ShapeError, match="no entry along axis 0"):
        sg.max(empty, axis=0)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "var", "std", "any", "logsumexp", "median"])
def test_axes_are_checked(name):
    function = getattr(sg, name)
    x = np.ones((2, 3))
    with pytest.raises(sg.errors.ShapeError, match=f"{name}: axis 2 is out of range"):
        function(x, axis=2)
    with pytest.raises(sg.errors.ShapeError, match=f"{name}: axis .* names an axis twice"):
        function(x, axis=(0, -2))
    with pytest.raises(sg.errors.ArgumentTypeError, match="axis must be an integer"):
        function(x, axis=0.5)
    assert_array_equal(function(x, axis=()).shape, (2, 3))
    assert function(x, axis=[0, 1], keepdims=True).shape == (1, 1)


# Softmax and its kin (mission.md; row 22)


def softmax(x):
    e = sg.exp(x)
    return e / sg.sum(e)


def stable(x):
    e = sg.exp(x - sg.max(x))
    return e / sg.sum(e)


def stable_stopped(x):
    e = sg.exp(x - sg.stop_gradient(sg.max(x)))
    return e / sg.sum(e)


SOFTMAXES = [softmax, stable, stable_stopped, sg.softmax, lambda x: sg.exp(sg.log_softmax(x))]
NAMES = ["softmax", "stable", "stable_stopped", "sg.softmax", "sg.log_softmax"]


@pytest.mark.parametrize("program", SOFTMAXES[1:], ids=NAMES[1:])
def test_large_inputs(program):
    assert_allclose(program(np.array([1000.0, 1001.0])).numpy(), [0.26894142, 0.73105858], rtol=1e-7)


def test_large_inputs_overflow_in_the_naive_program():
    assert np.isnan(softmax(np.array([1000.0, 1001.0])).numpy()).all()


@pytest.mark.parametrize("program", SOFTMAXES, ids=NAMES)
@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [3.0, 3.0, 1.0], [0.0, 0.0, 0.0]], ids=str)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian_of_softmax(program, x, mode):
    p = np.exp(x) / np.sum(np.exp(x))
    expected = np.diag(p) - np.outer(p, p)
    assert_allclose(sg.jacobian(program, mode=mode)(x).numpy(), expected, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("program", SOFTMAXES, ids=NAMES)
def test_second_derivative_of_softmax_at_ties(program):
    x, w = np.array([3.0, 3.0, 1.0]), np.array([1.0, -2.0, 0.5])
    expected = jax.hessian(lambda x: jax.numpy.sum(jax.nn.softmax(x) * w))(x)
    assert_allclose(sg.hessian(lambda x: sg.sum(program(x) * w))(x).numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("program", SOFTMAXES, ids=NAMES)
def test_sum_of_softmax_is_connected_though_constant(program):
    gradient = sg.grad(lambda z: sg.sum(program(z)), unconnected="none")([1.0, 2.0])
    assert gradient is not None
    assert_allclose(gradient.numpy(), [0.0, 0.0], atol=1e-16)


def test_logsumexp_and_infinities(derivative):
    x = np.array([[-INF, -INF], [INF, 1.0], [INF, INF], [-INF, 1.0], [1e4, 1e4]])
    assert_allclose(sg.logsumexp(x, axis=1).numpy(), [-INF, INF, INF, 1.0, 1e4 + math.log(2)])
    expected = [[0, 0], [1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]]
    assert_array_equal(derivative(lambda x: sg.logsumexp(x, axis=1), x), expected)


def test_a_masked_row_of_logits_does_not_leak():
    """An attention row with nothing to attend to: its -inf stay out of the gradient."""
    logits = np.array([[0.5, 1.5], [-INF, -INF]])
    valid = np.array([[True], [False]])

    def loss(x):
        return sg.sum(sg.where(valid, sg.softmax(x, axis=1), 0.0) * np.array([1.0, 2.0]))

    gradient = sg.grad(loss)(logits).numpy()
    p = 1 / (1 + math.exp(1.0))
    assert_allclose(gradient[0], [-p * (1 - p), p * (1 - p)])


def test_logcumsumexp_does_not_overflow(derivative):
    x = np.array([1000.0, -1000.0, 1000.0])
    assert_allclose(sg.logcumsumexp(x).numpy(), [1000.0, 1000.0, 1000.0 + math.log(2)])
    assert_allclose(derivative(sg.logcumsumexp, x), [2.5, 0.0, 0.5])
    assert_array_equal(derivative(sg.logcumsumexp, [-INF, -INF, 1.0]), [0.0, 0.0, 1.0])


# What is kept


def recorded(f):
    """Return f of a recorded vector of 100 entries, before any sweep."""
    held = []
    sg.vjp(lambda x: held.append(f(x)) or held[0], np.linspace(1.0, 2.0, 100))
    return held[0]


@pytest.mark.parametrize("function", [sg.sum, sg.mean, sg.cumsum, sg.diff, lambda x: sg.sum(x, keepdims=True)])
def test_linear_reductions_keep_nothing(function):
    assert kept_values(recorded(function)) == 0


@pytest.mark.parametrize("function", [sg.softmax, sg.log_softmax, sg.var, sg.prod, sg.cumprod, sg.logsumexp])
def test_others_keep_one_array(function):
    assert kept_values(recorded(function)) == 100


@pytest.mark.parametrize("function", [sg.max, sg.std, sg.linalg.norm])
def test_and_some_their_result_too(function):
    assert kept_values(recorded(function)) == 101


def test_products_keep_the_other_factor_only_where_it_is_asked_for():
    weights = np.ones((100, 3))
    assert kept_bytes(recorded(lambda x: x @ weights)) == weights.nbytes
    assert kept_bytes(recorded(lambda x: sg.einsum("i,ij->j", x, weights))) == weights.nbytes
    assert kept_bytes(recorded(lambda x: sg.tensordot(weights, x, (0, 0)))) == weights.nbytes
    assert kept_values(recorded(lambda x: sg.sort(x))) == 100  # the permutation


def test_the_gradient_of_a_sum_is_a_view():
    gradient = sg.grad(sg.sum)(np.ones((1000, 1000))).numpy()
    assert gradient.strides == (0, 0)
    assert not gradient.flags.writeable


def test_the_mean_of_more_entries_than_half_precision_can_count() -> None:
    x = np.ones(70_000, np.float16)
    found = sg.grad(sg.mean)(x).numpy()
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(float), 1 / 70_000, rtol=5e-3)
