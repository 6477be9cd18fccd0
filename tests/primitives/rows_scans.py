"""Rows of the operation table: running sums, products and extremes, and the recurrences under them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from stopgrad.core.record import bind
from stopgrad.primitives.extremes import LARGEST_SO_FAR, SMALLEST_SO_FAR
from stopgrad.primitives.recurrence import LINEAR_RECURRENCE, SHIFT
from tests.primitives.points import ANY, EMPTY
from tests.primitives.rows import Row
from tests.primitives.rows_reductions import CUBE, FACTORS, LARGE, TIES

MANY = np.linspace(-1.5, 1.7, 4 * 30).reshape(4, 30)


def _flipped(function: Any, x: Any, axis: int) -> Any:
    return jnp.flip(function(jnp.flip(x, axis)), axis)


def _before(function: Any, first: float, x: Any) -> Any:
    """Return an exclusive scan along the last axis."""
    return jnp.concatenate([jnp.full_like(x[..., :1], first), function(x)[..., :-1]], axis=-1)


def _step_by_step(a: Any, b: Any) -> Any:
    """Return yᵢ = bᵢ + aᵢ yᵢ₋₁ along the last axis."""
    rows = [b[..., 0]]
    for i in range(1, b.shape[-1]):
        rows.append(b[..., i] + a[..., i] * rows[-1])
    return jnp.stack(rows, axis=-1)


def _with_defaults(function: Any, axis: int) -> Any:
    return lambda x: function(x, axis)[0]


def _first_places(running: Any) -> Any:
    """Return where along the second axis each running extreme was first reached."""
    changed = torch.zeros(running.shape, dtype=torch.int64)
    changed[:, 1:] = (running[:, 1:] != running[:, :-1]) * torch.arange(1, running.shape[1]).reshape(
        -1, *(1,) * (running.ndim - 2)
    )
    return torch.cummax(changed, 1).values


ROWS = [
    *(
        Row(
            "cumulative_sum",
            lambda x, axis=axis: primitives.cumulative_sum(x, axis=axis),
            [(ANY,), (CUBE,)],
            [(EMPTY,), (TIES,)],
            jax=lambda x, axis=axis: jnp.cumsum(x, axis=axis),
            torch=lambda x, axis=axis: torch.cumsum(x, dim=axis),
            compare_edge_gradients=True,
        )
        for axis in (0, -1)
    ),
    Row(
        "cumulative_sum",
        lambda x: primitives.cumulative_sum(x, axis=-1, exclusive=True),
        [(ANY,)],
        [(EMPTY[:, :1],)],
        jax=lambda x: _before(lambda y: jnp.cumsum(y, -1), 0.0, x),
    ),
    Row(
        "cumulative_sum",
        lambda x: primitives.cumulative_sum(x, axis=-1, reverse=True),
        [(ANY,)],
        [(EMPTY,)],
        jax=lambda x: _flipped(lambda y: jnp.cumsum(y, -1), x, -1),
    ),
    Row("cumulative_sum", primitives.cumsum, [(ANY,)], [(EMPTY,)], jax=jnp.cumsum),
    *(
        Row(
            "cumulative_prod",
            lambda x, axis=axis: primitives.cumulative_prod(x, axis=axis),
            [(ANY,), (CUBE,), (FACTORS,), (MANY,)],
            [(EMPTY,), (FACTORS,)],
            torch=lambda x, axis=axis: torch.cumprod(x, dim=axis),
            compare_edge_gradients=True,
        )
        for axis in (0, -1)
    ),
    Row(
        "cumulative_prod",
        lambda x: primitives.cumulative_prod(x, axis=-1, exclusive=True),
        [(ANY,), (FACTORS,)],
        jax=lambda x: _before(lambda y: jnp.cumprod(y, -1), 1.0, x),
    ),
    Row(
        "cumulative_prod",
        lambda x: primitives.cumulative_prod(x, axis=-1, reverse=True),
        [(ANY,), (FACTORS,)],
        jax=lambda x: _flipped(lambda y: jnp.cumprod(y, -1), x, -1),
    ),
    Row(
        "logcumsumexp",
        lambda x: primitives.logcumsumexp(x, axis=-1),
        [(ANY,), (CUBE,)],
        [(EMPTY,), (LARGE,), (TIES,)],
        jax=lambda x: jax.lax.cumlogsumexp(x, axis=x.ndim - 1),
        torch=lambda x: torch.logcumsumexp(x, dim=-1),
        compare_edge_gradients=True,
        rtol=1e-11,
    ),
    Row(
        "logcumsumexp",
        lambda x: primitives.logcumsumexp(x, axis=0, reverse=True),
        [(ANY,)],
        [(np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0]),)],
        jax=lambda x: jax.lax.cumlogsumexp(x, axis=0, reverse=True),
    ),
    Row(
        "shift",
        lambda x: bind(SHIFT, (x,), (1, 1)),
        [(ANY,)],
        [(EMPTY,)],
        jax=lambda x: jnp.pad(x, ((0, 0), (1, 0)))[:, :-1],
    ),
    Row("shift", lambda x: bind(SHIFT, (x,), (0, -1)), [(ANY,)], [], jax=lambda x: jnp.pad(x, ((0, 1), (0, 0)))[1:]),
    Row(
        "linear_recurrence",
        lambda a, b: bind(LINEAR_RECURRENCE, (a, b), (1, False)),
        [(ANY, CUBE[0]), (FACTORS, FACTORS - 1)],
        [(EMPTY, EMPTY)],
        jax=lambda a, b: _step_by_step(a, b) if b.size else b,
    ),
    Row(
        "linear_recurrence",
        lambda a, b: bind(LINEAR_RECURRENCE, (a, b), (0, True)),
        [(ANY, CUBE[0]), (MANY, MANY - 1)],
        jax=lambda a, b: jnp.flip(_step_by_step(jnp.flip(a.T, 1), jnp.flip(b.T, 1)), 1).T,
    ),
    Row(
        "take_along_axis",
        lambda x: primitives.cummax(x, axis=1),
        [(ANY,), (CUBE,)],
        [(TIES,), (np.array([[1.0, np.nan, 2.0]]),)],
        torch=_with_defaults(torch.cummax, 1),
    ),
    Row(
        "take_along_axis",
        lambda x: primitives.cummin(x, axis=0),
        [(ANY,), (CUBE,)],
        [(TIES,)],
        torch=_with_defaults(torch.cummin, 0),
    ),
    *(
        Row(
            name,
            lambda x, operation=operation: bind(operation, (x,), (1, False)),
            [(ANY,), (CUBE,)],
            [(TIES,)],
            torch=lambda x, in_torch=in_torch: _first_places(in_torch(x, 1).values),
            order=0,
        )
        for name, operation, in_torch in (
            ("largest_so_far", LARGEST_SO_FAR, torch.cummax),
            ("smallest_so_far", SMALLEST_SO_FAR, torch.cummin),
        )
    ),
    Row("slice", lambda x: primitives.diff(x, 2), [(ANY,), (CUBE,)], [(EMPTY,)], jax=lambda x: jnp.diff(x, 2)),
]
