"""Rows of the operation table: indexing, updates, gathering, scattering, lookups."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from stopgrad.core.record import bind, bind2
from stopgrad.primitives.gathering import ADD_ALONG_AXIS
from stopgrad.primitives.indexing import SCATTER
from stopgrad.primitives.updating import WINNERS
from tests.primitives.rows import Row

CUBE = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.5
MATRIX = CUBE[0]
ROW = np.array([0.3, -1.2, 2.5])
EMPTY = np.zeros((0, 3))
MASK = np.array([[True, False, True, False], [False, False, True, True], [False, False, False, True]])
TWICE = np.array([[0, 2, 0], [-1, 1, 2]])
LINES = np.array([[1, 0, -1, 1], [0, 0, 2, 2]])


def _scatter(t: Any) -> Any:
    return bind(SCATTER, (t, np.array([0, 2, 0])), (((0, 2, 1), "array"), (2, 3)))


def _winners(places: Any) -> Any:
    return bind(WINNERS, (primitives.astype(places, np.int64),), (("array",), (3,)))


def _torch_set(x: Any, value: Any) -> Any:
    out = x.clone()
    out[:, [0, 2]] = value
    return out


ROWS = [
    Row(
        "slice",
        lambda x: primitives.getitem(x, (1, ..., slice(None, None, 2))),
        [(CUBE,), (MATRIX,)],
        [(np.zeros((2, 0, 3)),)],
        jax=lambda x: x[1, ..., ::2],
        torch=lambda x: x[1, ..., ::2],
        compare_edge_gradients=True,
    ),
    Row(
        "slice",
        lambda x: primitives.getitem(x, (slice(None, None, -1), None, slice(2, 0, -1))),
        [(CUBE,), (MATRIX,)],
        [(np.ones((1, 1)),)],
        jax=lambda x: x[::-1, None, 2:0:-1],
        compare_edge_gradients=True,
    ),
    Row(
        "index",
        lambda x: primitives.getitem(x, TWICE),
        [(MATRIX,), (ROW,)],
        [(np.zeros((3, 0)),)],
        jax=lambda x: x[TWICE],
        torch=lambda x: x[torch.asarray(TWICE)],
        compare_edge_gradients=True,
    ),
    Row(
        "index",
        lambda x: primitives.getitem(x, ([1, 0, 1], slice(None), [3, 0, 3])),
        [(CUBE,)],
        [],
        jax=lambda x: x[np.array([1, 0, 1]), :, np.array([3, 0, 3])],
        torch=lambda x: x[[1, 0, 1], :, [3, 0, 3]],
    ),
    Row(
        "index",
        lambda x: primitives.getitem(x, MASK),
        [(MATRIX,)],
        [(np.zeros((3, 4, 0)),)],
        jax=lambda x: x[MASK],
        torch=lambda x: x[torch.asarray(MASK)],
        compare_edge_gradients=True,
    ),
    Row(
        "scatter",
        _scatter,
        [(MATRIX[:2, :3],)],
        [(np.zeros((2, 3)),)],
        jax=lambda t: jnp.zeros((2, 3), t.dtype).at[:, np.array([0, 2, 0])].add(t),
        compare_edge_gradients=True,
    ),
    Row(
        "scatter",
        lambda t: primitives.scatter_nd([[0], [2], [0]], t, (4, 3)),
        [(MATRIX[:, :3],)],
        [(np.zeros((3, 3)),)],
        jax=lambda t: jnp.zeros((4, 3), t.dtype).at[np.array([0, 2, 0])].add(t),
        compare_edge_gradients=True,
    ),
    Row(
        "at_set",
        lambda x, value: primitives.at_set(x, (slice(None), [0, 2]), value),
        [(MATRIX, MATRIX[:, 2:]), (MATRIX, ROW[:2]), (MATRIX, np.array(2.0))],
        [(np.zeros((0, 3)), np.zeros((0, 2)))],
        jax=lambda x, value: x.at[:, np.array([0, 2])].set(value),
        torch=_torch_set,
        compare_edge_gradients=True,
    ),
    Row(
        "at_set",
        lambda x, value: primitives.at_set(x, (1, slice(None, None, -2)), value),
        [(MATRIX, ROW[:2])],
        [],
        jax=lambda x, value: x.at[1, ::-2].set(value),
    ),
    Row(
        "at_set",
        lambda x, value: primitives.at_set(x, [0, 2, 0], value),  # the first value is overwritten
        [(MATRIX, MATRIX + 1), (ROW, ROW)],
    ),
    Row(
        "at_set",
        lambda x, values: primitives.put_along_axis(x, [[1], [0], [-1]], values, axis=1),
        [(MATRIX, ROW[:, None])],
        [],
        jax=lambda x, values: jnp.put_along_axis(x, np.array([[1], [0], [3]]), values, axis=1, inplace=False),
        torch=lambda x, values: torch.scatter(x, 1, torch.tensor([[1], [0], [3]]), values),
    ),
    Row(
        "winners",
        _winners,
        [],
        [(np.array([0.0, 2.0, 0.0, 1.0]),)],
    ),
    Row(
        "at_add",
        lambda x, value: primitives.at_add(x, [0, 2, 0], value),
        [(MATRIX, MATRIX + 1), (MATRIX, ROW[:1]), (ROW, ROW)],
        [(np.zeros((3, 0)), np.zeros((3, 0)))],
        jax=lambda x, value: x.at[np.array([0, 2, 0])].add(value),
        torch=lambda x, value: torch.index_put(
            x, (torch.tensor([0, 2, 0]),), value.expand(3, *x.shape[1:]), accumulate=True
        ),
        compare_edge_gradients=True,
    ),
    Row(
        "take",
        lambda x: primitives.take(x, TWICE, axis=1),
        [(MATRIX,), (CUBE,)],
        [(np.zeros((0, 3)),)],
        jax=lambda x: jnp.take(x, TWICE, axis=1),
        compare_edge_gradients=True,
    ),
    Row(
        "take",
        lambda x: primitives.take(x, [-7, 1, 9, 2], axis=0, mode="wrap"),
        [(MATRIX,), (ROW,)],
        [],
        jax=lambda x: jnp.take(x, np.array([-7, 1, 9, 2]), axis=0, mode="wrap"),
    ),
    Row(
        "take",
        lambda x: primitives.take(x, [-7, 1, 9, 2], axis=0, mode="clip"),
        [(MATRIX,), (ROW,)],
        [],
        jax=lambda x: jnp.take(x, np.array([-7, 1, 9, 2]), axis=0, mode="clip"),
    ),
    Row(
        "sum_segments",
        lambda x: primitives.unsorted_segment_sum(x, [2, 0, 2], 4),
        [(MATRIX,), (ROW,)],
        [(np.zeros((3, 0)),)],
        jax=lambda x: jax.ops.segment_sum(x, np.array([2, 0, 2]), 4),
        compare_edge_gradients=True,
    ),
    Row(
        "sum_segments",
        lambda x: primitives.unsorted_segment_sum(x, [2, -1, 7], 4),  # numbers outside are left out
        [(MATRIX,), (ROW,)],
        [],
        jax=lambda x: jnp.zeros((4, *x.shape[1:]), x.dtype).at[2].add(x[0]),
    ),
    Row(
        "take_along_axis",
        lambda x: primitives.take_along_axis(x, LINES, axis=0),
        [(MATRIX,), (MATRIX[:, :1],)],
        [(np.zeros((3, 4)),)],
        jax=lambda x: jnp.take_along_axis(x, LINES, axis=0),
        compare_edge_gradients=True,
    ),
    Row(
        "take_along_axis",
        lambda x: primitives.gather(x, [[1, 0], [2, 2]], batch_dims=1),
        [(CUBE,), (MATRIX[:2],)],
        [],
        jax=lambda x: jnp.stack([x[0][np.array([1, 0])], x[1][np.array([2, 2])]]),
    ),
    Row(
        "add_along_axis",
        lambda t: bind2(ADD_ALONG_AXIS, t, LINES, (0, (3, 4))),
        [(MATRIX[:2],)],
        [(np.zeros((2, 4)),)],
        jax=lambda t: jnp.zeros((3, 4), t.dtype).at[np.array([[1, 0, 2, 1], [0, 0, 2, 2]]), np.arange(4)].add(t),
        torch=lambda t: torch.zeros(3, 4, dtype=t.dtype).scatter_add(0, torch.tensor([[1, 0, 2, 1], [0, 0, 2, 2]]), t),
        compare_edge_gradients=True,
    ),
    Row(
        "one_hot",
        lambda numbers: primitives.one_hot(primitives.astype(numbers, np.int64), 3, axis=0),
        [],
        [(np.array([[0.0, 2.0], [3.0, -1.0]]),), (np.array(1.0),), (EMPTY,)],
        jax=lambda numbers: jax.nn.one_hot(numbers.astype(int), 3, axis=0),
    ),
    Row(
        "argwhere",
        primitives.argwhere,
        [],
        [(np.array([[0.0, 1.0], [2.0, 0.0]]),), (np.array([np.nan, -0.0]),), (EMPTY,), (np.array(1.0),)],
        jax=jnp.argwhere,
        torch=torch.argwhere,
    ),
]
