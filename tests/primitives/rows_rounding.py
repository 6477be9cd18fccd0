"""Rows of the operation table: rounding, sign and steps."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, SCALAR, ZEROS, binary, unary, unary_edges
from tests.primitives.rows import Row

HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.0])
OTHER = np.array([[1.3, 0.4, -2.1], [-0.7, 2.5, 0.9]])

ROWS = [
    Row(
        "floor",
        primitives.floor,
        unary(ANY),
        unary_edges(HALVES),
        jax=jnp.floor,
        torch=torch.floor,
        compare_edge_gradients=True,
    ),
    Row(
        "ceil",
        primitives.ceil,
        unary(ANY),
        unary_edges(HALVES),
        jax=jnp.ceil,
        torch=torch.ceil,
        compare_edge_gradients=True,
    ),
    Row(
        "trunc",
        primitives.trunc,
        unary(ANY),
        unary_edges(HALVES),
        jax=jnp.trunc,
        torch=torch.trunc,
        compare_edge_gradients=True,
    ),
    Row(
        "rint",
        primitives.rint,
        unary(ANY),
        unary_edges(HALVES),
        jax=jnp.rint,
        torch=torch.round,
        compare_edge_gradients=True,
    ),
    Row("round", primitives.round, unary(ANY), unary_edges(HALVES), jax=jnp.round, torch=torch.round),
    Row(
        "round",
        lambda x: primitives.round(x, 2),
        unary(ANY * 1.2345),
        [(ZEROS,), (EMPTY,), (SCALAR,)],
        jax=lambda x: jnp.round(x, 2),
        torch=lambda x: torch.round(x, decimals=2),
    ),
    Row(
        "sign",
        primitives.sign,
        unary(ANY),
        unary_edges(),
        jax=jnp.sign,
        compare_edge_gradients=True,
    ),
    Row(
        "heaviside",
        primitives.heaviside,
        binary(ANY, OTHER),
        [(ZEROS, np.array([0.5, 0.25, 3.0, 3.0])), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=jnp.heaviside,
    ),
]
