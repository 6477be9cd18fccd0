"""Rows of the operation table: activations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from torch.nn import functional

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, NOT_FINITE, SCALAR, ZEROS, unary
from tests.primitives.rows import Row

EDGES = [(ZEROS,), (EMPTY,), (SCALAR,), (np.array([-40.0, 40.0, 3.0, -3.0, 6.0]),)]

ROWS = [
    Row(
        "relu",
        primitives.relu,
        unary(ANY),
        [*EDGES, (NOT_FINITE[:2],)],
        jax=jax.nn.relu,
        torch=functional.relu,
        compare_edge_gradients=True,
    ),
    Row("relu6", primitives.relu6, unary(ANY * 3), EDGES, torch=functional.relu6, compare_edge_gradients=True),
    Row(
        "leaky_relu",
        lambda x: primitives.leaky_relu(x, 0.1),
        unary(ANY),
        EDGES,
        torch=lambda x: functional.leaky_relu(x, 0.1),
        compare_edge_gradients=True,
    ),
    Row(
        "leaky_relu",
        primitives.leaky_relu,
        [(ANY, np.array([0.1, -0.3, 0.5])), (ANY, np.array(0.2))],
        [(ZEROS, np.array(0.2))],
        jax=lambda x, slope: jnp.where(x > 0, x, slope * x),
    ),
    Row(
        "elu",
        lambda x: primitives.elu(x, 1.5),
        unary(ANY),
        EDGES,
        torch=lambda x: functional.elu(x, 1.5),
        compare_edge_gradients=True,
    ),
    Row(
        "elu",
        primitives.elu,
        [(ANY, np.array([1.1, -0.3, 0.5])), (ANY, np.array(0.2))],
        [(ZEROS, np.array(0.2))],
        jax=lambda x, alpha: jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0))),
    ),
    Row(
        "gelu_exact",
        primitives.gelu,
        unary(ANY),
        EDGES,
        jax=lambda x: jax.nn.gelu(x, approximate=False),
        torch=functional.gelu,
        compare_edge_gradients=True,
    ),
    Row(
        "gelu_tanh",
        lambda x: primitives.gelu(x, approximate="tanh"),
        unary(ANY),
        EDGES,
        jax=lambda x: jax.nn.gelu(x, approximate=True),
        torch=lambda x: functional.gelu(x, approximate="tanh"),
        compare_edge_gradients=True,
    ),
    Row(
        "silu",
        primitives.silu,
        unary(ANY),
        EDGES,
        jax=jax.nn.silu,
        torch=functional.silu,
        compare_edge_gradients=True,
    ),
]
