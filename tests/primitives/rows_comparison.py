"""Rows of the operation table: comparisons, logic and bits. They carry no derivative, so `order` is 0."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, SCALAR, ZEROS, binary, binary_edges, unary, unary_edges
from tests.primitives.rows import Row

OTHER = np.array([[1.3, -0.6, -2.1], [0.8, 2.5, 0.9]])
BITS = [(np.array([12, 10, -1, 0]), np.array([6, 3, 5, 2])), (np.array([[1], [2]]), np.array([0, 1, 2]))]
TRUTHS = [(np.array([True, True, False, False]), np.array([True, False, True, False]))]


def _comparison(name: str) -> Row:
    return Row(
        name,
        getattr(primitives, name),
        binary(ANY, OTHER),
        binary_edges(),
        jax=getattr(jnp, name),
        torch=getattr(torch, "eq" if name == "equal" else name),
        order=0,
    )


def _logic(name: str) -> Row:
    return Row(
        name,
        getattr(primitives, name),
        [*binary(ANY, OTHER), *TRUTHS],
        [(ZEROS, ZEROS[::-1].copy()), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=getattr(jnp, name),
        torch=getattr(torch, name),
        order=0,
    )


def _test(name: str) -> Row:
    function = getattr(primitives, name)
    return Row(name, function, unary(ANY), unary_edges(), jax=getattr(jnp, name), torch=getattr(torch, name), order=0)


def _bits(name: str, samples: list[tuple[np.ndarray, ...]]) -> Row:
    in_torch = getattr(torch, name.replace("bitwise_invert", "bitwise_not"))
    return Row(name, getattr(primitives, name), samples, [], jax=getattr(jnp, name), torch=in_torch, order=0)


ROWS = [
    *(_comparison(name) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")),
    *(_logic(name) for name in ("logical_and", "logical_or", "logical_xor")),
    Row(
        "logical_not",
        primitives.logical_not,
        [*unary(ANY), (TRUTHS[0][0],)],
        [(ZEROS,), (EMPTY,), (SCALAR,)],
        jax=jnp.logical_not,
        torch=torch.logical_not,
        order=0,
    ),
    *(_test(name) for name in ("isnan", "isinf", "isfinite", "signbit")),
    *(_bits(name, [*BITS, *TRUTHS]) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(_bits(name, BITS) for name in ("bitwise_left_shift", "bitwise_right_shift")),
    _bits("bitwise_invert", [(BITS[0][0],), (TRUTHS[0][0],)]),
    Row(
        "isclose",
        primitives.isclose,
        [(ANY, ANY * (1 + 1e-7)), (ANY, ANY * 1.01), (ANY, ANY[0])],
        binary_edges((np.array([np.inf, np.inf, -np.inf]), np.array([np.inf, -np.inf, -np.inf]))),
        jax=jnp.isclose,
        torch=lambda a, b: torch.isclose(*torch.broadcast_tensors(a, b)),
        order=0,
    ),
    Row(
        "isclose",
        lambda a, b: primitives.isclose(a, b, rtol=1e-3, atol=0.1, equal_nan=True),
        [(ANY, ANY * (1 + 1e-7)), (ANY, ANY * 1.01), (ANY, ANY + 0.2)],
        binary_edges((np.array([np.nan, 0.0]), np.array([np.nan, 0.05]))),
        jax=lambda a, b: jnp.isclose(a, b, rtol=1e-3, atol=0.1, equal_nan=True),
        order=0,
    ),
    Row(
        "allclose",
        primitives.allclose,
        [(ANY, ANY * (1 + 1e-7)), (ANY, ANY * 1.01)],
        [(EMPTY, EMPTY), (SCALAR, SCALAR), (np.array([np.nan]), np.array([np.nan]))],
        jax=jnp.allclose,
        order=0,
    ),
    Row(
        "array_equal",
        primitives.array_equal,
        [(ANY, ANY.copy()), (ANY, OTHER), (ANY, ANY[0])],
        [(EMPTY, EMPTY), (SCALAR, SCALAR), (np.array([np.nan]), np.array([np.nan]))],
        jax=jnp.array_equal,
        torch=torch.equal,
        order=0,
    ),
]
