"""Rows of the operation table: linear systems, decompositions and norms.

Eigenvectors and singular vectors are determined up to their signs only; what is compared does not depend on them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import linalg, primitives
from stopgrad.core.record import bind
from stopgrad.primitives.determinants import COFACTORS, COFACTORS_CHANGE
from tests.primitives.points import ANY, EMPTY
from tests.primitives.rows import Row
from tests.primitives.rows_reductions import CUBE

SQUARE = np.array([[3.0, -0.7, 0.4], [0.5, 2.2, -1.1], [-0.3, 0.8, 4.1]])
STACK = np.stack([SQUARE, SQUARE.T + 0.3])
POSITIVE = SQUARE @ SQUARE.T
POSITIVES = np.stack([POSITIVE, POSITIVE + np.diag([1.0, 2.0, 3.0])])
SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
TALL = np.array([[1.0, -0.5], [0.3, 2.0], [-1.2, 0.7]])
SIDES = np.array([[1.0, -2.0], [0.5, 0.3], [2.0, 1.5]])
NONE = np.zeros((0, 3, 3))
SYSTEMS = [(SQUARE, SIDES), (SQUARE, SIDES[:, 0]), (STACK, SIDES), (SQUARE, np.stack([SIDES, SIDES + 1]))]


def _one(name: str, samples: list[np.ndarray], edges: list[np.ndarray], **more: Any) -> Row:
    return Row(
        name,
        getattr(linalg, name),
        [(one,) for one in samples],
        [(one,) for one in edges],
        jax=getattr(jnp.linalg, name),
        torch=getattr(torch.linalg, name),
        rtol=1e-10,
        **more,
    )


def _triangular(xp: Any, a: Any, b: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    triangle = xp.tril(a, -1 if unit else 0) if lower else xp.triu(a, 1 if unit else 0)
    if unit:
        triangle = triangle + xp.eye(3, dtype=a.dtype)
    triangle = xp.swapaxes(triangle, -1, -2) if transpose else triangle
    return xp.linalg.solve(triangle, b[..., None] if b.ndim == 1 else b).reshape(b.shape if a.ndim == 2 else (2, 3, 2))


def _rebuilt_from_eigen(xp: Any, a: Any) -> Any:
    values, vectors = xp.eigh((a + xp.matrix_transpose(a)) / 2)
    return xp.matmul(vectors * (values[..., None, :] ** 3), xp.matrix_transpose(vectors))


def _rebuilt_from_singular(svd: Any, a: Any) -> Any:
    u, s, vh = svd(a, full_matrices=False)
    return (u * (s[..., None, :] ** 2)) @ vh


def _cofactors(a: Any) -> Any:
    """Return the gradient of a three by three determinant, written out."""
    after, next_after = jnp.roll(a, -1, (-2, -1)), jnp.roll(a, -2, (-2, -1))
    return after * next_after - jnp.roll(a, (-1, -2), (-2, -1)) * jnp.roll(a, (-2, -1), (-2, -1))


class _Ours:
    """This library's functions under one roof."""

    eigh = staticmethod(linalg.eigh)
    matmul = staticmethod(primitives.matmul)
    matrix_transpose = staticmethod(primitives.matrix_transpose)


class _Torch:
    """PyTorch's functions under the names of the array API."""

    eigh = staticmethod(torch.linalg.eigh)
    matmul = staticmethod(torch.matmul)

    @staticmethod
    def matrix_transpose(x: Any) -> Any:
        return x.mT


class _Jax:
    """JAX's functions under one roof."""

    eigh = staticmethod(jnp.linalg.eigh)
    matmul = staticmethod(jnp.matmul)
    matrix_transpose = staticmethod(jnp.matrix_transpose)


def _norm(ord: Any, axis: Any, samples: list[np.ndarray], edges: list[np.ndarray]) -> Row:
    return Row(
        "vector_norm",
        lambda x: linalg.norm(x, ord, axis),
        [(one,) for one in samples],
        [(one,) for one in edges],
        jax=lambda x: jnp.linalg.norm(x, ord, axis),
        torch=lambda x: torch.linalg.norm(x, 2 if ord is None and isinstance(axis, int) else ord, axis),
        rtol=1e-10,
    )


ROWS = [
    Row(
        "solve",
        linalg.solve,
        SYSTEMS,
        [(NONE, np.zeros((0, 3, 2)))],
        jax=lambda a, b: jnp.linalg.solve(a, b) if b.ndim != 2 or a.ndim == 2 else jnp.linalg.solve(a, b[None]),
        torch=lambda a, b: torch.linalg.solve(a, b) if b.ndim != 2 or a.ndim == 2 else torch.linalg.solve(a, b[None]),
        compare_edge_gradients=True,
        rtol=1e-10,
    ),
    *(
        Row(
            "solve_triangular",
            lambda a, b, s=settings: linalg.solve_triangular(a, b, lower=s[0], transpose=s[1], unit_diagonal=s[2]),
            SYSTEMS[:3],
            [(NONE, np.zeros((0, 3, 2)))],
            jax=lambda a, b, s=settings: _triangular(jnp, a, b, *s) if a.size else b,
            torch=lambda a, b, s=settings: _triangular(torch, a, b, *s) if a.numel() else b,
            rtol=1e-10,
        )
        for settings in (
            (True, False, False),
            (False, False, False),
            (True, True, False),
            (False, True, True),
            (True, False, True),
        )
    ),
    _one("inv", [SQUARE, STACK], [NONE], compare_edge_gradients=True),
    _one("det", [SQUARE, STACK], [NONE, SINGULAR]),
    Row("det", linalg.det, [], [(SINGULAR,), (np.zeros((3, 3)),)], jax=jnp.linalg.det),
    Row(
        "cofactors",
        lambda a: bind(COFACTORS, (a,)),
        [(SQUARE,), (STACK,)],
        [(NONE,)],
        jax=_cofactors,
        rtol=1e-10,
    ),
    Row(
        "cofactors_change",
        lambda a, e: bind(COFACTORS_CHANGE, (a, e)),
        [(SQUARE, SQUARE.T - 1), (STACK, STACK[::-1] * 2)],
        [(NONE, NONE)],
        jax=lambda a, e: jax.jvp(_cofactors, (a,), (e,))[1],
        rtol=1e-10,
    ),
    Row(
        "slogdet",
        lambda a: tuple(linalg.slogdet(a)),
        [(SQUARE,), (STACK,), (-SQUARE,)],
        [(NONE,)],
        jax=lambda a: tuple(jnp.linalg.slogdet(a)),
        torch=lambda a: tuple(torch.linalg.slogdet(a)),
        rtol=1e-10,
    ),
    _one("pinv", [SQUARE, TALL, TALL.T, STACK], []),
    Row(
        "cholesky",
        linalg.cholesky,
        [(POSITIVE,), (POSITIVES,)],
        [(NONE,)],
        jax=jnp.linalg.cholesky,
        torch=lambda a: torch.linalg.cholesky((a + a.mT) / 2),
        compare_edge_gradients=True,
        rtol=1e-10,
    ),
    Row(
        "eigh",
        linalg.eigvalsh,
        [(POSITIVE,), (POSITIVES,)],
        [(NONE,), (np.eye(3),)],
        jax=jnp.linalg.eigvalsh,
        torch=lambda a: torch.linalg.eigvalsh((a + a.mT) / 2),
        rtol=1e-10,
    ),
    Row(
        "eigh",
        lambda a: _rebuilt_from_eigen(_Ours, a),
        [(POSITIVE,), (POSITIVES,)],
        jax=lambda a: _rebuilt_from_eigen(_Jax, a),
        torch=lambda a: _rebuilt_from_eigen(_Torch, a),
        rtol=1e-9,
    ),
    Row(
        "svd",
        linalg.svdvals,
        [(SQUARE,), (TALL,), (TALL.T,), (STACK,)],
        [(NONE,), (np.zeros((0, 2)),)],
        jax=lambda a: jnp.linalg.svd(a, compute_uv=False),
        torch=torch.linalg.svdvals,
        rtol=1e-10,
    ),
    Row(
        "svd",
        lambda a: _rebuilt_from_singular(linalg.svd, a),
        [(SQUARE,), (TALL,), (TALL.T,), (STACK,)],
        jax=lambda a: _rebuilt_from_singular(jnp.linalg.svd, a),
        torch=lambda a: _rebuilt_from_singular(torch.linalg.svd, a),
        rtol=1e-9,
    ),
    Row(
        "qr",
        linalg.qr,
        [(SQUARE,), (TALL,), (STACK,)],
        [(NONE,)],
        jax=lambda a: tuple(jnp.linalg.qr(a)),
        torch=lambda a: tuple(torch.linalg.qr(a)),
        rtol=1e-10,
    ),
    Row("qr", linalg.qr, [(TALL.T,)], jax=lambda a: tuple(jnp.linalg.qr(a)), order=2, rtol=1e-10),
    *(_norm(ord, 1, [ANY, CUBE], [EMPTY]) for ord in (None, 1, 3, 1.5)),
    _norm(float("inf"), 1, [ANY], [np.array([[0.0, 0.0], [1.0, -1.0]])]),
    Row("count_nonzero", lambda x: linalg.norm(x, 0, 0), [(ANY,)], jax=lambda x: jnp.linalg.norm(x, 0, 0), order=0),
    *(_norm(ord, (0, 1), [TALL, SQUARE], [np.zeros((2, 3))]) for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"))),
    _norm(None, None, [ANY, CUBE], [np.zeros((2, 3))]),
    Row(
        "matmul",
        lambda a: linalg.matrix_power(a, 5),
        [(SQUARE,)],
        jax=lambda a: jnp.linalg.matrix_power(a, 5),
        torch=lambda a: torch.linalg.matrix_power(a, 5),
        rtol=1e-10,
    ),
    Row(
        "pinv",
        lambda a, b: linalg.lstsq(a, b)[:2],
        [(TALL, SIDES), (TALL, SIDES[:, 0])],
        jax=lambda a, b: tuple(jnp.linalg.lstsq(a, b)[:2]),
        rtol=1e-9,
    ),
    Row(
        "matrix_rank",
        linalg.matrix_rank,
        [(SQUARE,), (STACK,)],
        [(SINGULAR,), (np.zeros((2, 3)),)],
        jax=jnp.linalg.matrix_rank,
        torch=torch.linalg.matrix_rank,
        order=0,
    ),
]
