"""Rows of the operation table: sorting, quantiles, searching."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, NOT_FINITE
from tests.primitives.rows import Row
from tests.primitives.rows_reductions import CUBE, TIES

ROWS = [
    *(
        Row(
            "reorder",
            lambda x, axis=axis, descending=descending: primitives.sort(x, axis, descending=descending),
            [(ANY,), (CUBE,)],
            [(TIES,), (EMPTY,), (NOT_FINITE[None],)],
            torch=lambda x, axis=axis, descending=descending: (
                torch.sort(x, dim=axis, descending=descending, stable=True).values
            ),
            compare_edge_gradients=True,
        )
        for axis in (0, -1)
        for descending in (False, True)
    ),
    Row("reorder", lambda x: primitives.sort(x, None), [(ANY,)], [(TIES,)], jax=lambda x: jnp.sort(x, None)),
    *(
        Row(
            "argsort",
            lambda x, descending=descending: primitives.argsort(x, descending=descending),
            [(ANY,), (CUBE,)],
            [(TIES,), (EMPTY,), (NOT_FINITE,)],
            torch=lambda x, descending=descending: torch.argsort(x, dim=-1, descending=descending, stable=True),
            order=0,
        )
        for descending in (False, True)
    ),
    Row(
        "take_along_axis",
        lambda x: primitives.top_k(x, 2)[0],
        [(ANY,), (CUBE,)],
        [(TIES,)],
        jax=lambda x: jax.lax.top_k(x, 2)[0],
        torch=lambda x: torch.topk(x, 2).values,
    ),
    *(
        Row(
            "reorder",
            lambda x, axis=axis: primitives.median(x, axis),
            [(ANY,), (CUBE,)],
            [(TIES,)],
            jax=lambda x, axis=axis: jnp.median(x, axis),
        )
        for axis in (None, 0, 1, (0, -1))
    ),
    *(
        Row(
            "reorder",
            lambda x, method=method: primitives.quantile(x, [0.0, 0.3, 1.0], 1, method=method),
            [(ANY,), (CUBE,)],
            [(TIES,), (np.array([[1.0, np.nan, 2.0]]),)],
            jax=lambda x, method=method: jnp.quantile(x, np.array([0.0, 0.3, 1.0]), 1, method=method),
            rtol=1e-10,
        )
        for method in ("linear", "lower", "higher", "nearest", "midpoint")
    ),
    Row("reorder", lambda x: primitives.percentile(x, 40.0), [(ANY,)], [], jax=lambda x: jnp.percentile(x, 40.0)),
    *(
        Row(
            "searchsorted",
            lambda a, v, side=side: primitives.searchsorted(a, v, side),
            [(np.array([-1.0, 0.0, 0.0, 2.0]), ANY)],
            [(np.array([-1.0, 0.0, 0.0, 2.0]), np.array([0.0, 2.0, 5.0])), (np.zeros(0), ANY)],
            jax=lambda a, v, side=side: jnp.searchsorted(a, v, side),
            torch=lambda a, v, side=side: torch.searchsorted(a, v, side=side),
            order=0,
        )
        for side in ("left", "right")
    ),
    Row(
        "unique",
        primitives.unique,
        [(ANY,)],
        [(TIES,), (EMPTY,)],
        jax=jnp.unique,
        torch=lambda x: torch.unique(x.detach()),
        order=0,
    ),
    Row(
        "count_each",
        lambda x: primitives.unique(x, return_counts=True)[1],
        [(ANY,)],
        [(TIES,), (EMPTY,)],
        jax=lambda x: jnp.unique(x, return_counts=True)[1],
        order=0,
    ),
]
