"""Rows of the operation table: shapes, the order of axes, joining and padding."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from stopgrad.core.placing import PLACE
from stopgrad.core.record import bind
from tests.primitives.rows import Row

CUBE = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.5
ROW = np.array([0.3, -1.2, 2.5])
SCALAR = np.array(0.7)
EMPTY = np.zeros((0, 3))


def _place(*pieces: Any) -> Any:
    return bind(PLACE, pieces, (((0, (1, 4, None)), ((None, None, None), (None, None, 2))), (2, 5)))


def _place_with(xp: Any, a: Any, b: Any) -> Any:
    edge, gaps, bottom = xp.zeros((1,), a.dtype), xp.zeros((2,), a.dtype), xp.zeros((5,), a.dtype)
    first = xp.stack((xp.concatenate((edge, a, edge)), bottom))
    return first + xp.stack((b[:, 0], gaps, b[:, 1], gaps, b[:, 2]), 1)


ROWS = [
    Row(
        "reshape",
        lambda x: primitives.reshape(x, (4, -1)),
        [(CUBE,), (CUBE[:1],)],
        [(np.zeros((4, 3, 2)),)],
        jax=lambda x: jnp.reshape(x, (4, -1)),
        torch=lambda x: torch.reshape(x, (4, -1)),
        compare_edge_gradients=True,
    ),
    Row(
        "reshape",
        lambda x: primitives.squeeze(primitives.expand_dims(x, (0, -1)), 0),
        [(CUBE,), (ROW,), (SCALAR,)],
        [(EMPTY,)],
        jax=lambda x: jnp.squeeze(jnp.expand_dims(x, (0, -1)), 0),
        torch=lambda x: x[..., None],
        compare_edge_gradients=True,
    ),
    Row(
        "broadcast_to",
        lambda x: primitives.broadcast_to(x, (2, 3, 3)),
        [(ROW,), (ROW[:1],), (SCALAR,), (ROW[:, None],), (CUBE[:, :, :1],)],
        [],
        jax=lambda x: jnp.broadcast_to(x, (2, 3, 3)),
        torch=lambda x: torch.broadcast_to(x, (2, 3, 3)),
    ),
    Row(
        "broadcast_to",
        lambda x: primitives.tile(x, (2, 1, 3)),
        [(ROW,), (CUBE,)],
        [(EMPTY,), (SCALAR,)],
        jax=lambda x: jnp.tile(x, (2, 1, 3)),
        torch=lambda x: torch.tile(x, (2, 1, 3)),
        compare_edge_gradients=True,
    ),
    Row(
        "permute_dims",
        primitives.transpose,
        [(CUBE,), (ROW,), (SCALAR,)],
        [(EMPTY,)],
        jax=jnp.transpose,
        torch=lambda x: torch.permute(x, tuple(reversed(range(x.ndim)))),
        compare_edge_gradients=True,
    ),
    Row(
        "permute_dims",
        lambda x: primitives.permute_dims(x, (1, 2, 0)),
        [(CUBE,)],
        [(np.zeros((0, 1, 2)),)],
        jax=lambda x: jnp.permute_dims(x, (1, 2, 0)),
        torch=lambda x: torch.permute(x, (1, 2, 0)),
        compare_edge_gradients=True,
    ),
    Row(
        "flip",
        lambda x: primitives.flip(x, (0, -1)),
        [(CUBE,), (CUBE[0],)],
        [(EMPTY,)],
        jax=lambda x: jnp.flip(x, (0, -1)),
        torch=lambda x: torch.flip(x, (0, -1)),
        compare_edge_gradients=True,
    ),
    Row(
        "roll",
        lambda x: primitives.roll(x, (1, -5), (0, 1)),
        [(CUBE,), (CUBE[0],)],
        [(np.ones((1, 1)),)],
        jax=lambda x: jnp.roll(x, (1, -5), (0, 1)),
        torch=lambda x: torch.roll(x, (1, -5), (0, 1)),
        compare_edge_gradients=True,
    ),
    Row(
        "concat",
        lambda a, b: primitives.concat([a, b, a], axis=1),
        [(CUBE, CUBE[:, :1]), (CUBE[0], CUBE[1])],
        [(EMPTY, EMPTY), (np.ones((2, 0)), np.ones((2, 1)))],
        jax=lambda a, b: jnp.concatenate([a, b, a], axis=1),
        torch=lambda a, b: torch.cat([a, b, a], dim=1),
        compare_edge_gradients=True,
    ),
    Row(
        "stack",
        lambda a, b: primitives.stack([a, b * a, a], axis=-1),
        [(CUBE, CUBE + 1), (ROW, ROW), (SCALAR, SCALAR)],
        [(EMPTY, EMPTY)],
        jax=lambda a, b: jnp.stack([a, b * a, a], axis=-1),
        torch=lambda a, b: torch.stack([a, b * a, a], dim=-1),
        compare_edge_gradients=True,
    ),
    Row(
        "place",
        _place,
        [(ROW, CUBE[:, :, 0])],
        [(np.zeros(3), np.ones((2, 3)))],
        jax=lambda a, b: _place_with(jnp, a, b),
        compare_edge_gradients=True,
    ),
    Row(
        "pad",
        lambda x: primitives.pad(x, ((1, 2), (0, 3))),
        [(CUBE[0],), (CUBE[:, 0],)],
        [(EMPTY,)],
        jax=lambda x: jnp.pad(x, ((1, 2), (0, 3))),
        torch=lambda x: torch.nn.functional.pad(x, (0, 3, 1, 2)),
        compare_edge_gradients=True,
    ),
    Row(
        "pad",
        lambda x: primitives.pad(x, ((1, 0), (2, 1)), constant_values=((1.5, 2.5), (-1.0, 4.0))),
        [(CUBE[0],)],
        [(EMPTY,)],
        jax=lambda x: jnp.pad(x, ((1, 0), (2, 1)), constant_values=((1.5, 2.5), (-1.0, 4.0))),
        compare_edge_gradients=True,
    ),
]
