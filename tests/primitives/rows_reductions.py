"""Rows of the operation table: reductions, statistics, log-sum-exp and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, SCALAR, ZEROS
from tests.primitives.rows import Row

CUBE = np.array([
    [[-1.7, 0.4, 2.3], [0.9, -0.8, 1.6]],
    [[0.2, -2.9, 1.1], [-0.3, 3.4, -1.2]],
])  # fmt: skip
# Equal largest entries, equal smallest ones, zeros of both signs.
TIES = np.array([[3.0, 3.0, 1.0, -2.0], [-2.0, 0.0, -0.0, 3.0]])
# No zero, one, several, nothing but zeros.
FACTORS = np.array([[2.0, -3.0, 0.5], [2.0, 0.0, 5.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
LARGE = np.array([[1000.0, 1001.0, 1000.0], [-1000.0, -1000.0, -1000.0]])
SMOOTH = [(ANY,), (CUBE,), (np.array(1.3),)]
AXES = ((None, False), (0, False), (-1, True))


def _over_axes(name: str, in_jax: Any, in_torch: Any, edges: list[np.ndarray], **more: Any) -> list[Row]:
    """Return rows for a reduction over all axes, the first, and the last kept."""
    function = getattr(primitives, name)
    return [
        Row(
            name,
            lambda x, axis=axis, keepdims=keepdims: function(x, axis=axis, keepdims=keepdims),
            SMOOTH if axis is None and name != "std" else SMOOTH[:2],
            [(edge,) for edge in edges],
            jax=None if in_jax is None else lambda x, a=axis, k=keepdims: in_jax(x, axis=a, keepdims=k),
            torch=None if in_torch is None else lambda x, a=axis, k=keepdims: in_torch(x, a, k),
            **more,
        )
        for axis, keepdims in AXES
    ]


def _torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction of PyTorch's that takes `None` for all axes."""
    return lambda x, axis, keepdims: function(x, dim=tuple(range(x.ndim)) if axis is None else axis, keepdim=keepdims)


def _nothing_empty(name: str, edges: list[np.ndarray]) -> list[Row]:
    """Return rows for max or min: ties as in PyTorch's amax and amin, which share them evenly as TensorFlow does."""
    in_torch = getattr(torch, f"a{name}")
    return _over_axes(name, getattr(jnp, name), _torch(in_torch), edges, compare_edge_gradients=True)


def _softmaxed(name: str) -> list[Row]:
    in_jax, in_torch = getattr(jax.nn, name), getattr(torch, name)
    return [
        Row(
            name,
            lambda x, axis=axis: getattr(primitives, name)(x, axis=axis),
            [(ANY,), (CUBE,)],
            [(TIES,), (LARGE,), (EMPTY,)],
            jax=lambda x, axis=axis: in_jax(x, axis=axis),
            torch=lambda x, axis=axis: in_torch(x, dim=axis),
            compare_edge_gradients=True,
        )
        for axis in (0, -1)
    ]


def _layer_norm(x: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


ROWS = [
    *_over_axes("sum", jnp.sum, _torch(torch.sum), [EMPTY, SCALAR[None], ZEROS], compare_edge_gradients=True),
    Row(
        "sum",
        lambda x: primitives.sum(x, axis=(2, -3)),
        [(CUBE,)],
        jax=lambda x: jnp.sum(x, axis=(2, -3)),
        torch=lambda x: torch.sum(x, dim=(2, -3)),
    ),
    *_over_axes("mean", jnp.mean, _torch(torch.mean), [SCALAR[None], ZEROS], compare_edge_gradients=True),
    *_over_axes("prod", jnp.prod, None, [EMPTY, SCALAR[None], FACTORS]),
    Row(
        "prod",
        lambda x: primitives.prod(x, axis=1),
        [(FACTORS,), (CUBE,)],
        [(EMPTY,)],
        jax=lambda x: jnp.prod(x, axis=1),
        torch=lambda x: torch.prod(x, dim=1),
        compare_edge_gradients=True,
    ),
    Row("prod", lambda x: primitives.prod(x, axis=(0, 2)), [(CUBE,)], jax=lambda x: jnp.prod(x, axis=(0, 2))),
    Row("prod", primitives.prod, [(FACTORS[0],), (FACTORS[1],), (FACTORS[2],)], jax=jnp.prod, torch=torch.prod),
    *_nothing_empty("max", [TIES, SCALAR[None], ZEROS]),
    *_nothing_empty("min", [TIES, SCALAR[None], ZEROS]),
    Row("max", lambda x: primitives.max(x, axis=1), [], [(np.zeros((0, 3)),)], torch=lambda x: torch.amax(x, 1)),
    Row("max", primitives.ptp, SMOOTH, [(TIES,)], jax=jnp.ptp),
    *(
        Row(
            name,
            lambda x, name=name, axis=axis: getattr(primitives, name)(x, axis=axis),
            SMOOTH if axis is None else SMOOTH[:2],
            [(TIES,), (ZEROS,), (EMPTY,)] if name in ("any", "all", "count_nonzero") else [(TIES,), (ZEROS,)],
            jax=lambda x, name=name, axis=axis: getattr(jnp, name)(x, axis=axis),
            order=0,
        )
        for name in ("any", "all", "count_nonzero", "argmax", "argmin")
        for axis in (None, 0)
    ),
    *_over_axes("var", jnp.var, None, [TIES, SCALAR[None]], compare_edge_gradients=True),
    Row(
        "var",
        lambda x: primitives.var(x, axis=1, ddof=1),
        [(ANY,), (CUBE,)],
        jax=lambda x: jnp.var(x, axis=1, ddof=1),
        torch=lambda x: torch.var(x, dim=1),
    ),
    # Where all entries are equal the peers' gradient of std is NaN; ours is 0.
    *_over_axes("std", jnp.std, None, [TIES[:, :0] + 1, TIES]),
    Row("std", primitives.std, [(ANY,)], [(np.ones((2, 3)),)], jax=jnp.std),
    Row("sum", primitives.nansum, [(ANY,)], [(np.array([1.0, np.nan, -2.0]),)], jax=jnp.nansum),
    Row(
        "sum",
        lambda x, w: primitives.average(x, 1, w),
        [(ANY, np.array([0.5, 1.5, 2.0]))],
        jax=lambda x, w: jnp.average(x, 1, w),
    ),
    *_over_axes(
        "logsumexp",
        jax.scipy.special.logsumexp,
        _torch(torch.logsumexp),
        [TIES, LARGE, SCALAR[None]],
        compare_edge_gradients=True,
    ),
    Row(
        "logsumexp",
        lambda x: primitives.logsumexp(x, axis=1),
        [],
        [(np.array([[-np.inf, -np.inf], [np.inf, 1.0], [-np.inf, 1.0]]),)],
        jax=lambda x: jax.scipy.special.logsumexp(x, axis=1),
        torch=lambda x: torch.logsumexp(x, dim=1),
    ),
    *_softmaxed("softmax"),
    *_softmaxed("log_softmax"),
    Row("softmax", lambda x: primitives.softmax(x, axis=(0, 2)), [(CUBE,)], jax=lambda x: jax.nn.softmax(x, (0, 2))),
    Row(
        "standardize",
        primitives.standardize,
        [(ANY,), (CUBE,)],
        [(np.ones((2, 3)),), (TIES,)],
        torch=_layer_norm,
        compare_edge_gradients=True,
    ),
]
