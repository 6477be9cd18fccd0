"""Rows of the operation table: selection."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, NOT_FINITE, SCALAR, ZEROS, binary, binary_edges, unary
from tests.primitives.rows import Row

OTHER = np.array([[1.3, 0.4, -2.1], [-0.7, 2.5, 0.9]])
CONDITION = np.array([[True, False, True], [False, False, True]])
# x, low and high with x beside, at and between its bounds, and with low above high.
BOUNDED = (
    np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 0.5, np.nan]),
    np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]),
    np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
)

ROWS = [
    Row(
        "where",
        lambda x, y: primitives.where(CONDITION, x, y),
        [(ANY, OTHER), (ANY, OTHER[1]), (ANY[0], OTHER), (ANY[0, 0], OTHER), (ANY, OTHER[1, 1])],
        [(np.array([np.inf, np.nan, 1.0]), np.array([1.0, 2.0, np.nan]))],
        jax=lambda x, y: jnp.where(CONDITION, x, y),
        torch=lambda x, y: torch.where(torch.asarray(CONDITION), x, y),
        compare_edge_gradients=True,
    ),
    Row(
        "where",
        lambda x: primitives.where(x > 0, x, 0.0),
        unary(ANY),
        [(ZEROS,), (EMPTY,), (SCALAR,)],
        jax=lambda x: jnp.where(x > 0, x, 0.0),
        torch=lambda x: torch.where(x > 0, x, 0.0),
        compare_edge_gradients=True,
    ),
    Row(
        "maximum",
        primitives.maximum,
        binary(ANY, OTHER),
        binary_edges(),
        jax=jnp.maximum,
        torch=torch.maximum,
    ),
    Row(
        "minimum",
        primitives.minimum,
        binary(ANY, OTHER),
        binary_edges(),
        jax=jnp.minimum,
        torch=torch.minimum,
    ),
    Row("fmax", primitives.fmax, binary(ANY, OTHER), binary_edges(), jax=jnp.fmax, torch=torch.fmax),
    Row("fmin", primitives.fmin, binary(ANY, OTHER), binary_edges(), jax=jnp.fmin, torch=torch.fmin),
    Row(
        "clip",
        primitives.clip,
        [(ANY, np.full((2, 3), -0.9), OTHER * OTHER), (ANY, np.array(-0.9), np.array([0.1, 0.9, 1.1]))],
        [BOUNDED],
        torch=torch.clip,
    ),
    Row(
        "clip",
        lambda x: primitives.clip(x, 0.0, 1.0),
        unary(ANY),
        [(BOUNDED[0][:-1],), (EMPTY,), (SCALAR,)],
        torch=lambda x: torch.clip(x, 0.0, 1.0),
        compare_edge_gradients=True,
    ),
    Row(
        "clip_low",
        lambda x: primitives.clip(x, 0.5),
        unary(ANY),
        [(BOUNDED[0][:-1],), (EMPTY,), (SCALAR,)],
        torch=lambda x: torch.clip(x, min=0.5),
        compare_edge_gradients=True,
    ),
    Row("clip_low", primitives.clip, binary(ANY, OTHER), [], torch=torch.clip),
    Row(
        "clip_high",
        lambda x: primitives.clip(x, None, 0.5),
        unary(ANY),
        [(BOUNDED[0][:-1],), (EMPTY,), (SCALAR,)],
        torch=lambda x: torch.clip(x, max=0.5),
        compare_edge_gradients=True,
    ),
    Row(
        "clip_high",
        lambda x, high: primitives.clip(x, max=high),
        binary(ANY, OTHER),
        [],
        torch=lambda x, high: torch.clip(x, max=high),
    ),
    Row(
        "nan_to_num",
        lambda x: primitives.nan_to_num(x, nan=3.0, posinf=7.0),
        unary(ANY),
        [(ZEROS,), (NOT_FINITE,), (EMPTY,), (SCALAR,)],
        jax=lambda x: jnp.nan_to_num(x, nan=3.0, posinf=7.0),
        torch=lambda x: torch.nan_to_num(x, nan=3.0, posinf=7.0),
        compare_edge_gradients=True,
    ),
]
