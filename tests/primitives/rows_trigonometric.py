"""Rows of the operation table: trigonometric and hyperbolic functions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import (
    ABOVE_ONE,
    ANY,
    EMPTY,
    INSIDE_ONE,
    POSITIVE,
    SCALAR,
    binary,
    unary,
    unary_edges,
)
from tests.primitives.rows import Row

BOUNDS = np.array([-1.0, 1.0, -1.5, 1.5])
QUADRANTS = (np.array([0.0, 0.0, -0.0, 1.0, -1.0, 1.0]), np.array([1.0, -1.0, -1.0, 0.0, 0.0, -1.0]))

ROWS = [
    Row("sin", primitives.sin, unary(ANY), unary_edges(), jax=jnp.sin, torch=torch.sin, compare_edge_gradients=True),
    Row("cos", primitives.cos, unary(ANY), unary_edges(), jax=jnp.cos, torch=torch.cos, compare_edge_gradients=True),
    Row("tan", primitives.tan, unary(INSIDE_ONE), unary_edges(), jax=jnp.tan, torch=torch.tan),
    Row("arcsin", primitives.arcsin, unary(INSIDE_ONE), unary_edges(BOUNDS), jax=jnp.arcsin, torch=torch.arcsin),
    Row("arccos", primitives.arccos, unary(INSIDE_ONE), unary_edges(BOUNDS), jax=jnp.arccos, torch=torch.arccos),
    Row("arctan", primitives.arctan, unary(ANY), unary_edges(), jax=jnp.arctan, torch=torch.arctan),
    Row(
        "arctan2",
        primitives.arctan2,
        binary(ANY, np.fliplr(POSITIVE).copy()),
        [QUADRANTS, (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=jnp.arctan2,
        torch=torch.arctan2,
        compare_edge_gradients=True,
    ),
    Row("sinh", primitives.sinh, unary(ANY), unary_edges(), jax=jnp.sinh, torch=torch.sinh),
    Row("cosh", primitives.cosh, unary(ANY), unary_edges(), jax=jnp.cosh, torch=torch.cosh),
    Row(
        "tanh",
        primitives.tanh,
        unary(ANY),
        unary_edges(np.array([-400.0, 400.0])),
        jax=jnp.tanh,
        torch=torch.tanh,
        compare_edge_gradients=True,
    ),
    Row("arcsinh", primitives.arcsinh, unary(ANY), unary_edges(), jax=jnp.arcsinh, torch=torch.arcsinh),
    Row("arccosh", primitives.arccosh, unary(ABOVE_ONE), unary_edges(), jax=jnp.arccosh, torch=torch.arccosh),
    Row("arctanh", primitives.arctanh, unary(INSIDE_ONE), unary_edges(BOUNDS), jax=jnp.arctanh, torch=torch.arctanh),
    Row(
        "sinc",
        primitives.sinc,
        unary(ANY),
        [(EMPTY,), (SCALAR,), (np.array([0.0, 1.0, -2.0]),)],
        jax=jnp.sinc,
        torch=torch.sinc,
        compare_edge_gradients=True,
    ),
    # Near 0 the derivative of JAX and PyTorch is 0, ours -π²x/3; 1/π is where the two ways to compute it meet.
    Row("sinc", primitives.sinc, [(np.array([0.0, 1e-9, -1e-3, 0.318, 0.319]),)]),
    Row("deg2rad", primitives.deg2rad, unary(ANY), unary_edges(), jax=jnp.deg2rad, torch=torch.deg2rad),
    Row("rad2deg", primitives.rad2deg, unary(ANY), unary_edges(), jax=jnp.rad2deg, torch=torch.rad2deg),
]
