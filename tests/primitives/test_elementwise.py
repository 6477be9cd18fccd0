"""Elementwise functions beyond the table: those made of other operations, dtypes, what nodes keep, and error texts."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from stopgrad import primitives as p
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.operation import operations
from stopgrad.core.tensor import Tensor
from stopgrad.transforms import GradientTape, grad, grads, hessian
from tests.kept import kept_arrays

X = np.array([-4.0, -2.5, -0.6, 0.3, 0.9, 2.2, 5.0])
Z = np.array([1.0 + 2.0j, -0.5 - 1.5j, 2.0 - 0.3j])

COMPOSITES = {
    "selu": (p.selu, jax.nn.selu),
    "celu": (lambda x: p.celu(x, 1.7), lambda x: jax.nn.celu(x, 1.7)),
    "mish": (p.mish, jax.nn.mish),
    "hard_sigmoid": (p.hard_sigmoid, jax.nn.hard_sigmoid),
    "hard_tanh": (p.hard_tanh, jax.nn.hard_tanh),
    "hard_silu": (p.hard_silu, jax.nn.hard_silu),
    "softsign": (p.softsign, jax.nn.soft_sign),
    "float_power": (lambda x: p.float_power(x, 3), lambda x: x**3),
    "ldexp": (lambda x: p.ldexp(x, np.arange(-3, 4)), lambda x: jnp.ldexp(x, np.arange(-3, 4))),
    "divmod": (lambda x: p.divmod(x, 0.7)[0] + p.divmod(x, 0.7)[1], lambda x: jnp.floor(x / 0.7) + jnp.mod(x, 0.7)),
    "angle of a complex number": (lambda x: p.angle(p.make_complex(x, x * x)), lambda x: jnp.angle(x + 1j * x * x)),
    "modulus of a complex number": (lambda x: p.abs(p.make_complex(x, 2.0)), lambda x: jnp.abs(x + 2j)),
    # JAX takes the derivative of the sign to be 0 for complex numbers too.
    "sign of a complex number": (
        lambda x: p.imag(p.sign(p.make_complex(x, 2.0))),
        lambda x: jnp.imag((x + 2j) / jnp.abs(x + 2j)),
    ),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_functions_made_of_others(name):
    ours, reference = COMPOSITES[name]
    assert_allclose(ours(X), reference(jnp.asarray(X)), rtol=1e-14)
    expected = jax.grad(lambda x: jnp.sum(reference(x)))(X)
    assert_allclose(grad(lambda x: p.sum(ours(x)))(X), expected, rtol=1e-13, atol=1e-15)
    second = jax.hessian(lambda x: jnp.sum(reference(x)))(X)
    assert_allclose(hessian(lambda x: p.sum(ours(x)))(X), second, rtol=1e-12, atol=1e-15)
    assert ours(X.astype(np.float32)).dtype == (np.float64 if name == "float_power" else np.float32)


def test_other_names_are_the_same_functions():
    pairs = [
        (p.abs, p.absolute),
        (p.fabs, p.absolute),
        (p.pow, p.power),
        (p.mod, p.remainder),
        (p.asin, p.arcsin),
        (p.acos, p.arccos),
        (p.atan, p.arctan),
        (p.atan2, p.arctan2),
        (p.asinh, p.arcsinh),
        (p.acosh, p.arccosh),
        (p.atanh, p.arctanh),
        (p.radians, p.deg2rad),
        (p.degrees, p.rad2deg),
        (p.expit, p.sigmoid),
        (p.swish, p.silu),
        (p.lgamma, p.gammaln),
        (p.invert, p.bitwise_invert),
        (p.around, p.round),
        (p.fix, p.trunc),
    ]
    assert all(one is other for one, other in pairs)


# Complex numbers


@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "cos", "tanh", "sqrt", "square", "reciprocal", "arctan", "expm1"]
)
def test_holomorphic_functions(name):
    ours, reference = getattr(p, name), getattr(jnp, name)
    assert_allclose(ours(Z), reference(Z), rtol=1e-13)
    assert_allclose(
        grad(lambda z: p.sum(p.real(ours(z) * (1 + 2j))))(Z),
        jax.grad(lambda z: jnp.sum(jnp.real(reference(z) * (1 + 2j))))(Z),
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", ["abs", "conj", "real", "imag", "angle"])
def test_functions_that_are_not_holomorphic(name):
    ours, reference = getattr(p, name), getattr(jnp, name)
    assert_allclose(ours(Z), reference(Z), rtol=1e-14)
    assert_allclose(
        grad(lambda z: p.sum(p.real(ours(z * (1 + 2j)) * (2 - 1j))))(Z),
        jax.grad(lambda z: jnp.sum(jnp.real(reference(z * (1 + 2j)) * (2 - 1j))))(Z),
        rtol=1e-12,
    )
    assert_allclose(
        hessian(lambda x: p.sum(p.real(ours(p.make_complex(x, x * x)) * (2 - 1j))))(X),
        jax.hessian(lambda x: jnp.sum(jnp.real(reference(x + 1j * x * x) * (2 - 1j))))(X),
        rtol=1e-11,
        atol=1e-12,
    )


def test_modulus_and_sign_of_complex_zero_have_derivative_zero():
    assert_array_equal(grad(lambda z: p.sum(p.abs(z)))([0j, 3j]), [0, -1j])
    assert_array_equal(grad(lambda z: p.sum(p.real(p.sign(z))))([0j, 3 + 0j]), [0, 0])


def test_complex_powers():
    for n in (3, 1.5, 2 - 1j):
        assert_allclose(p.power(Z, n), Z**n, rtol=1e-14)
        assert_allclose(grad(lambda z, n=n: p.sum(p.real(p.power(z, n))))(Z), n * Z ** (n - 1), rtol=1e-14)
    assert_allclose(grad(lambda z: p.sum(p.real(p.power(Z, z))))(Z), Z**Z * np.log(Z), rtol=1e-13)


def test_real_numbers_made_complex_get_real_gradients():
    gradient = grad(lambda x: p.sum(p.abs(x * (3 + 4j))))([1.0, -2.0])
    assert gradient.dtype == np.float64
    assert_allclose(gradient, [5.0, -5.0])


# dtypes


def test_casts():
    x = np.array([1.7, -1.7])
    assert p.astype(x, int).dtype == np.int64
    assert p.astype(x, "float32").dtype == np.float32
    assert p.astype(x, np.float16).dtype == np.float16
    assert p.astype(x, complex).dtype == np.complex128
    assert str(p.astype(x, "bfloat16").dtype) == "bfloat16"
    assert p.astype(2.5, int).item() == 2
    tensor = p.asarray(x)
    assert p.astype(tensor, float) is tensor
    with pytest.raises(ArgumentError, match="'flaot32' is not a dtype"):
        p.astype(x, "flaot32")
    assert p.astype(torch.ones(2), "float64").dtype == torch.float64
    assert p.astype(torch.ones(2), torch.int32).dtype == torch.int32


def test_gradients_pass_casts_between_floats_and_end_at_integers():
    x = np.array([1.5, 2.5])
    gradient = grad(lambda x: p.sum(p.astype(x, np.float32) * p.astype(x, "bfloat16")))(x)
    assert gradient.dtype == np.float64
    assert_allclose(gradient, 2 * x)
    assert_array_equal(grad(lambda x: p.sum(x * p.astype(x, int)))(x), [1.0, 2.0])
    assert grad(lambda x: p.sum(p.astype(p.astype(x, bool), float)), unconnected="none")(x) is None
    # A complex number made real loses its imaginary part, silently: asked for it is what is wanted.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(grad(lambda z: p.sum(p.astype(z, float)))(Z), np.ones(3))


def test_integers_never_break_a_program():
    counts = np.array([1, 2, 3])

    def f(x):
        y = p.where(counts > 1, x, counts) + p.maximum(counts, 2) * x + counts // 2
        return p.sum(y * p.astype(counts, x.dtype) + p.sqrt(counts) + (x > counts))

    assert_allclose(grad(f)([1.0, 2.0, 3.0]), [2.0, 6.0, 12.0])
    assert p.square(counts).dtype == p.relu(counts).dtype == p.abs(counts).dtype == np.int64


def test_python_numbers_do_not_promote():
    x = p.asarray(np.array([0.5, 2.0], np.float32))
    two_arguments = [p.add, p.multiply, p.divide, p.maximum, p.power, p.where, p.clip, p.arctan2, p.logaddexp, p.hypot]
    for function in two_arguments:
        given = (x > 1, x, 2.0) if function is p.where else (x, 2.0)
        assert function(*given).dtype == np.float32, function
    for function in (p.divide_no_nan, p.multiply_no_nan, p.squared_difference, p.xlogy, p.leaky_relu, p.elu, p.fmod):
        assert function(x, 2.0).dtype == np.float32, function
    for function in (p.gelu, p.silu, p.softplus, p.log_sigmoid, p.sigmoid, p.relu6, p.rsqrt, p.erfinv, p.sinc):
        assert function(x).dtype == np.float32, function


def test_numbers_and_nested_lists_are_tensors():
    assert float(p.exp(0)) == 1.0
    assert isinstance(p.exp(0.0), Tensor)
    assert_array_equal(p.add([[1, 2], [3, 4]], [10, 20]), [[11, 22], [13, 24]])
    assert_array_equal(grad(lambda x: p.sum(p.maximum([x, 2 * x], 3.0)))(2.0), 2.0)


# What nodes keep


def kept_by(function, *arguments):
    with GradientTape() as tape:
        tensors = [tape.watch(p.asarray(np.full(5, float(i + 2)))) for i, _ in enumerate(range(arguments[0]))]
        result = function(*tensors, *arguments[1:])
    names = {id(tensor.value): f"input {i}" for i, tensor in enumerate(tensors)} | {id(result.value): "output"}
    return sorted(names.get(id(array), "other") for array in kept_arrays(result))


@pytest.mark.parametrize(
    ("function", "count", "kept"),
    [
        (p.add, 2, []),
        (p.subtract, 2, []),
        (p.negative, 1, []),
        (p.multiply, 2, ["input 0", "input 1"]),
        (p.squared_difference, 2, ["input 0", "input 1"]),
        (p.exp, 1, ["output"]),
        (p.tanh, 1, ["output"]),
        (p.sqrt, 1, ["output"]),
        (p.rsqrt, 1, ["output"]),
        (p.reciprocal, 1, ["output"]),
        (p.sigmoid, 1, ["output"]),
        (p.softplus, 1, ["output"]),
        (p.relu, 1, ["output"]),
        (p.relu6, 1, ["output"]),
        (p.log, 1, ["input 0"]),
        (p.sin, 1, ["input 0"]),
        (p.square, 1, ["input 0"]),
        (p.absolute, 1, ["input 0"]),
        (p.gelu, 1, ["input 0"]),
        (p.silu, 1, ["input 0"]),
        (p.elu, 1, ["input 0"]),
        (p.sign, 1, []),
        (p.floor, 1, []),
        (p.round, 1, []),
        (lambda x: p.astype(x, np.float32), 1, []),
        (lambda x: x * 3.0, 1, []),
        (lambda x: x / 3.0, 1, []),
        (lambda x: x**3, 1, ["input 0"]),
        (lambda x: p.clip(x, 0.0, 1.0), 1, ["input 0"]),
        (lambda x: p.maximum(x, 0.0), 1, ["input 0"]),
        (lambda x: p.remainder(x, 3.0), 1, []),
        (lambda x: p.where(np.ones(5, bool), x, 0.0), 1, ["other"]),
    ],
)
def test_a_node_keeps_no_more_than_its_rule_needs(function, count, kept):
    assert kept_by(function, count) == kept


def test_one_constant_factor_is_kept_the_other_is_not():
    weights = np.arange(5.0)
    assert kept_by(lambda x: x * weights, 1) == ["other"]
    assert kept_by(lambda x: weights / x, 1) == ["input 0", "output"]


# Warnings and errors


def test_stable_functions_do_not_overflow():
    far = np.array([-np.inf, -1e4, -800.0, 800.0, 1e4, np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (p.sigmoid, p.log_sigmoid, p.softplus, p.elu, p.selu, p.tanh, p.hard_tanh, p.relu):
            result = function(far).numpy()
            assert not np.isnan(result[1:]).any()
            gradient = grad(lambda x, f=function: p.sum(f(x)))(far[1:-1]).numpy()
            assert np.isfinite(gradient).all()
        p.divide_no_nan([1.0, 0.0], [0.0, 0.0])
        grad(lambda x: p.sum(p.where(x > 0, p.divide(1.0, p.maximum(x, 1e-300)), 0.0)))([0.0, 1.0])
    assert_array_equal(p.softplus(far), [0.0, 0.0, 0.0, 800.0, 1e4, np.inf])
    assert_allclose(p.log_sigmoid(far), [-np.inf, -1e4, -800.0, 0.0, 0.0, 0.0], atol=0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: p.where([True, False]), ArgumentTypeError, "nonzero"),
        (lambda: p.add(np.ones(2), np.ones(3)), ShapeError, r"add: shapes \(2,\) and \(3,\) do not broadcast"),
        (lambda: p.where([True, False], np.ones(3), 0.0), ShapeError, "where: shapes"),
        (lambda: p.clip(np.ones(2), np.ones(3), 4.0), ShapeError, "clip: shapes"),
        (lambda: p.power(np.array([1, 2]), -1), ArgumentError, "convert the base to floats"),
        (lambda: p.round(1.5, 1.0), ArgumentTypeError, "decimals must be an integer, got 1.0"),
        (lambda: p.gelu(1.0, "exact"), ArgumentError, "approximate must be .* got 'exact'"),
        (lambda: p.polygamma(-1, 1.0), ArgumentError, "must not be negative, got -1"),
        (lambda: p.polygamma(0.5, 1.0), ArgumentTypeError, "n must be an integer, got 0.5"),
        (lambda: p.nan_to_num(1.0, copy=False), ArgumentError, "copy=False"),
        (lambda: p.exp("a"), ArgumentTypeError, "exp: cannot use a str"),
        (lambda: p.linspace(0.0, 1.0, -1), ArgumentError, "num must not be negative"),
        (lambda: p.arange(0, 3, 0), ArgumentError, "step must not be 0"),
        (lambda: p.zeros((2, -1)), ShapeError, "negative size"),
        (lambda: p.full(2, [1.0, 2.0]), ShapeError, "takes numbers"),
    ],
)
def test_errors_say_what_and_how(call, error, text):
    with pytest.raises(error, match=text):
        call()


# Constants


def test_constants_are_like_numpys():
    assert_array_equal(p.arange(2, 8, 2), np.arange(2, 8, 2))
    assert_array_equal(p.arange(3.0), np.arange(3.0))
    assert_array_equal(p.linspace(0.0, 1.0, 4, endpoint=False), np.linspace(0.0, 1.0, 4, endpoint=False))
    assert_array_equal(p.eye(2, 3, k=1), np.eye(2, 3, k=1))
    assert_array_equal(p.tri(3, k=-1), np.tri(3, k=-1))
    assert p.zeros(3).dtype == np.float64
    assert p.ones((2,), dtype="float32").dtype == np.float32
    assert p.full((2, 2), 7).dtype == np.int64
    assert p.zeros_like(np.ones(2, np.float32)).dtype == np.float32
    assert p.ones_like([1, 2], dtype=float).dtype == np.float64
    assert_array_equal(p.full_like([1.0, 2.0], 7), [7.0, 7.0])
    assert isinstance(p.zeros_like(torch.ones(2)).value, torch.Tensor)
    assert grads(lambda x: p.sum(p.zeros_like(x)), unconnected="none")([1.0])[0] is None


def test_every_operation_of_these_families_says_where_its_mask_comes_from():
    selecting = {name for name, operation in operations.items() if operation.masks}
    expected = {"where", "maximum", "minimum", "fmax", "fmin", "clip", "clip_low", "clip_high", "relu", "relu6"}
    assert expected <= selecting
    assert not selecting & {"add", "multiply", "exp", "sqrt", "power", "absolute", "leaky_relu"}
