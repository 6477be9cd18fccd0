"""Rows of the operation table: matrix products, contractions, diagonals and triangles."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import linalg, primitives
from stopgrad.primitives.diagonals import trace
from tests.primitives.points import ANY, EMPTY
from tests.primitives.rows import Row
from tests.primitives.rows_reductions import CUBE

Arrays = tuple[np.ndarray, ...]


def _points(*shapes: tuple[int, ...]) -> Arrays:
    """Return arrays of these shapes with entries that do not repeat."""
    arrays = []
    for number, shape in enumerate(shapes):
        count = int(np.prod(shape))
        arrays.append(np.sin(np.arange(count) * (1.3 + number) + number).reshape(shape))
    return tuple(arrays)


PRODUCTS = [
    _points((3,), (3,)),
    _points((2, 3), (3,)),
    _points((3,), (3, 2)),
    _points((2, 3), (3, 4)),
    _points((2, 2, 3), (3, 4)),
    _points((2, 3), (2, 3, 4)),
    _points((2, 1, 2, 3), (2, 3, 2)),
    _points((3,), (2, 3, 2)),
    _points((2, 2, 3), (3,)),
]
EMPTY_PRODUCTS = [_points((0, 3), (3, 2)), _points((2, 0), (0, 3)), _points((2, 0, 3), (3, 2)), _points((0,), (0,))]

# Subscripts of einsum with the shapes to try them on: sums, diagonals, traces, broadcasting, and orders of contraction.
SUBSCRIPTS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (2, 2, 3)),
    ("ii,ij->j", (2, 2), (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->", (2,), (3,)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("bij,bkj->bik", (2, 2, 3), (2, 4, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("...i,...i", (2, 1, 3), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
    ("ab,bc,ca->", (2, 3), (3, 2), (2, 2)),
    ("i,ij,ijk->ijk", (2,), (2, 3), (2, 3, 2)),
    (",i->i", (), (3,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
]


def _einsum(subscripts: str, *shapes: tuple[int, ...]) -> Row:
    points = _points(*shapes)
    is_empty = any(0 in shape for shape in shapes)
    return Row(
        "contract",
        lambda *operands: primitives.einsum(subscripts, *operands),
        [] if is_empty else [points],
        [points] if is_empty else [],
        jax=lambda *operands: jnp.einsum(subscripts, *operands),
        torch=lambda *operands: torch.einsum(subscripts, *operands),
        compare_edge_gradients=True,
    )


def _contraction(name: str, samples: list[Arrays], **more: Any) -> Row:
    return Row("contract", getattr(primitives, name), samples, jax=getattr(jnp, name), **more)


ROWS = [
    Row(
        "matmul",
        primitives.matmul,
        PRODUCTS,
        EMPTY_PRODUCTS,
        jax=jnp.matmul,
        torch=torch.matmul,
        compare_edge_gradients=True,
    ),
    Row("matmul", primitives.dot, [PRODUCTS[0], PRODUCTS[3], _points((2, 3), (2, 3, 2))], jax=jnp.dot),
    Row("matmul", primitives.vdot, [_points((2, 3), (3, 2))], jax=jnp.vdot),
    *(_einsum(*one) for one in SUBSCRIPTS),
    _contraction("tensordot", [_points((2, 3, 4), (3, 4, 2))]),
    Row(
        "contract",
        lambda a, b: primitives.tensordot(a, b, ([0, 2], [1, -1])),
        [_points((2, 3, 4), (3, 2, 4))],
        jax=lambda a, b: jnp.tensordot(a, b, ([0, 2], [1, -1])),
    ),
    _contraction("outer", [_points((2, 2), (3,))], torch=lambda a, b: torch.outer(a.ravel(), b)),
    _contraction("inner", [_points((2, 3), (2, 2, 3)), _points((3,), (3,))], torch=torch.inner),
    _contraction("vecdot", [_points((2, 3), (3,))], torch=torch.linalg.vecdot),
    _contraction("kron", [_points((2, 3), (2,)), _points((1, 2), (3, 1))], torch=torch.kron),
    Row("roll", primitives.cross, [_points((2, 3), (3,))], jax=jnp.cross),
    Row(
        "contract",
        lambda *matrices: linalg.multi_dot(matrices),
        [_points((2, 5), (5, 3), (3, 4), (4,))],
        jax=lambda *matrices: jnp.linalg.multi_dot(matrices),
        torch=lambda *matrices: torch.linalg.multi_dot(matrices),
    ),
    *(
        Row(
            "diagonal",
            lambda x, offset=offset: primitives.diagonal(x, offset),
            [(ANY,), (CUBE,)],
            [(EMPTY,)],
            jax=lambda x, offset=offset: jnp.diagonal(x, offset),
            torch=lambda x, offset=offset: torch.diagonal(x, offset),
            compare_edge_gradients=True,
        )
        for offset in (0, 1, -1)
    ),
    Row(
        "diagonal",
        lambda x: trace(x, 1, 2, 0),
        [(CUBE,)],
        jax=lambda x: jnp.trace(x, 1, 2, 0),
    ),
    *(
        Row(
            "place_diagonal",
            lambda x, offset=offset: primitives.diag_embed(x, offset),
            [(ANY,), (ANY[0],)],
            [(EMPTY,)],
            torch=lambda x, offset=offset: torch.diag_embed(x, offset),
            compare_edge_gradients=True,
        )
        for offset in (0, 2, -1)
    ),
    Row("place_diagonal", primitives.diag, [(ANY[0],), (ANY,)], jax=jnp.diag, torch=torch.diag),
    *(
        Row(
            name,
            lambda x, name=name, k=k: getattr(primitives, name)(x, k),
            [(ANY,), (CUBE,)],
            [(EMPTY,), (np.full((2, 2), np.nan),)],
            jax=lambda x, name=name, k=k: getattr(jnp, name)(x, k),
            torch=lambda x, name=name, k=k: getattr(torch, name)(x, k),
            compare_edge_gradients=True,
        )
        for name in ("tril", "triu")
        for k in (0, 1, -1)
    ),
]
