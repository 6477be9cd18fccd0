"""Rows of the operation table: arithmetic and powers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, POSITIVE, SCALAR, ZEROS, binary, binary_edges, unary, unary_edges
from tests.primitives.rows import Row

OTHER = np.array([[1.3, 0.4, -2.1], [-0.7, 2.5, 0.9]])
ZERO_BASE = (np.array([0.0, 0.0, 0.0, 2.0, 1.0]), np.array([2.0, 1.0, 3.5, 0.0, 0.0]))

ROWS = [
    Row(
        "add",
        primitives.add,
        binary(ANY, OTHER),
        binary_edges(),
        jax=jnp.add,
        torch=torch.add,
        compare_edge_gradients=True,
    ),
    Row(
        "subtract",
        primitives.subtract,
        binary(ANY, OTHER),
        binary_edges(),
        jax=jnp.subtract,
        torch=torch.subtract,
        compare_edge_gradients=True,
    ),
    Row(
        "multiply",
        primitives.multiply,
        binary(ANY, OTHER),
        binary_edges(),
        jax=jnp.multiply,
        torch=torch.multiply,
        compare_edge_gradients=True,
    ),
    Row("divide", primitives.divide, binary(ANY, OTHER), binary_edges(), jax=jnp.divide, torch=torch.divide),
    Row(
        "negative",
        primitives.negative,
        unary(ANY),
        unary_edges(),
        jax=jnp.negative,
        torch=torch.negative,
        compare_edge_gradients=True,
    ),
    Row("positive", primitives.positive, unary(ANY), unary_edges(), jax=jnp.positive, torch=torch.positive),
    Row(
        "square",
        primitives.square,
        unary(ANY),
        unary_edges(),
        jax=jnp.square,
        torch=torch.square,
        compare_edge_gradients=True,
    ),
    # At 0 JAX has 1 for the derivative where ours, PyTorch's and TensorFlow's is 0.
    Row(
        "absolute",
        primitives.absolute,
        unary(ANY),
        [(ZEROS,), (EMPTY,), (SCALAR,)],
        torch=torch.abs,
        compare_edge_gradients=True,
    ),
    Row("sqrt", primitives.sqrt, unary(POSITIVE), unary_edges(), jax=jnp.sqrt, torch=torch.sqrt),
    Row("rsqrt", primitives.rsqrt, unary(POSITIVE), unary_edges(), jax=lambda x: 1 / jnp.sqrt(x), torch=torch.rsqrt),
    Row("cbrt", primitives.cbrt, unary(ANY), unary_edges(), jax=jnp.cbrt),
    Row("reciprocal", primitives.reciprocal, unary(ANY), unary_edges(), jax=jnp.reciprocal, torch=torch.reciprocal),
    Row(
        "squared_difference",
        primitives.squared_difference,
        binary(ANY, OTHER),
        binary_edges(),
        jax=lambda a, b: jnp.square(a - b),
        torch=lambda a, b: torch.square(a - b),
        compare_edge_gradients=True,
    ),
    Row("hypot", primitives.hypot, binary(ANY, OTHER), binary_edges(), jax=jnp.hypot, torch=torch.hypot),
    Row(
        "logaddexp",
        primitives.logaddexp,
        binary(ANY, OTHER),
        binary_edges((np.array([-np.inf, -np.inf, 800.0]), np.array([-np.inf, 1.0, -800.0]))),
        jax=jnp.logaddexp,
        torch=torch.logaddexp,
    ),
    Row(
        "logaddexp2",
        primitives.logaddexp2,
        binary(ANY, OTHER),
        binary_edges((np.array([-np.inf, -np.inf, 2000.0]), np.array([-np.inf, 1.0, -2000.0]))),
        jax=jnp.logaddexp2,
        torch=torch.logaddexp2,
    ),
    Row(
        "floor_divide",
        primitives.floor_divide,
        binary(ANY, OTHER),
        binary_edges((np.array([7.0, -7.0, 6.0]), np.array([2.0, 2.0, 3.0]))),
        jax=jnp.floor_divide,
    ),
    Row(
        "remainder",
        primitives.remainder,
        binary(ANY, OTHER),
        binary_edges((np.array([7.0, -7.0, 7.0, -7.0]), np.array([4.0, 4.0, -4.0, -4.0]))),
        jax=jnp.remainder,
        torch=torch.remainder,
    ),
    Row(
        "fmod",
        primitives.fmod,
        binary(ANY, OTHER),
        binary_edges((np.array([7.0, -7.0, 7.0, -7.0]), np.array([4.0, 4.0, -4.0, -4.0]))),
        jax=jnp.fmod,
        torch=torch.fmod,
    ),
    Row(
        "multiply_no_nan",
        primitives.multiply_no_nan,
        binary(ANY, OTHER),
        [(np.array([np.inf, np.nan, 2.0]), np.array([0.0, 0.0, 3.0]))],
        jax=lambda a, b: jnp.where(b == 0, 0.0, a * b),
    ),
    Row(
        "divide_no_nan",
        primitives.divide_no_nan,
        binary(ANY, OTHER),
        [(np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.0, 4.0]))],
        jax=lambda a, b: jnp.where(b == 0, 0.0, a / jnp.where(b == 0, 1.0, b)),
        compare_edge_gradients=True,
    ),
    Row(
        "copysign",
        primitives.copysign,
        binary(ANY, OTHER),
        binary_edges((np.array([1.0, -2.0]), np.array([-0.0, 0.0]))),
        jax=jnp.copysign,
        torch=torch.copysign,
    ),
    Row("nextafter", primitives.nextafter, binary(ANY, OTHER), binary_edges(), torch=torch.nextafter),
    Row(
        "power",
        primitives.power,
        binary(POSITIVE, OTHER),
        binary_edges(ZERO_BASE),
        jax=jnp.power,
        torch=torch.pow,
    ),
    *(
        Row(
            "power",
            lambda x, n=n: primitives.power(x, n),
            unary(ANY),
            unary_edges() if n >= 0 else [],
            jax=lambda x, n=n: jnp.power(x, n),
            torch=lambda x, n=n: torch.pow(x, n),
            compare_edge_gradients=n > 1,
        )
        for n in (0, 1, 2, 3, 7, -1, -2)
    ),
    Row("power", lambda x: primitives.power(x, 1.5), unary(POSITIVE), [], jax=lambda x: jnp.power(x, 1.5)),
    Row("power", lambda x: primitives.power(2.0, x), unary(ANY), unary_edges(), jax=lambda x: jnp.power(2.0, x)),
]
