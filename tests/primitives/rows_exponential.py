"""Rows of the operation table: exponentials and logarithms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, POSITIVE, unary, unary_edges
from tests.primitives.rows import Row

OVERFLOW = np.array([-800.0, 800.0, 1e-20])

ROWS = [
    Row(
        "exp",
        primitives.exp,
        unary(ANY),
        unary_edges(OVERFLOW),
        jax=jnp.exp,
        torch=torch.exp,
        compare_edge_gradients=True,
    ),
    Row("exp2", primitives.exp2, unary(ANY), unary_edges(), jax=jnp.exp2, torch=torch.exp2),
    Row("expm1", primitives.expm1, unary(ANY), unary_edges(OVERFLOW), jax=jnp.expm1, torch=torch.expm1),
    Row(
        "log",
        primitives.log,
        unary(POSITIVE),
        unary_edges(),
        jax=jnp.log,
        torch=torch.log,
        compare_edge_gradients=True,
    ),
    Row(
        "log1p",
        primitives.log1p,
        unary(POSITIVE),
        unary_edges(np.array([-1.0, -2.0, 1e-20])),
        jax=jnp.log1p,
        torch=torch.log1p,
    ),
    Row("log2", primitives.log2, unary(POSITIVE), unary_edges(), jax=jnp.log2, torch=torch.log2),
    Row("log10", primitives.log10, unary(POSITIVE), unary_edges(), jax=jnp.log10, torch=torch.log10),
]
