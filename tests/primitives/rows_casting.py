"""Rows of the operation table: casts and the parts of complex numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, SCALAR, ZEROS, binary, unary
from tests.primitives.rows import Row

EDGES = [(ZEROS,), (EMPTY,), (SCALAR,)]
OTHER = np.array([[1.3, 0.4, -2.1], [-0.7, 2.5, 0.9]])

ROWS = [
    # In double precision there is nothing to convert, so the way goes over complex numbers, which lose nothing.
    Row(
        "astype",
        lambda x: primitives.real(primitives.astype(x, "complex128")),
        unary(ANY),
        EDGES,
        jax=lambda x: jnp.real(x.astype("complex128")),
        torch=lambda x: torch.real(x.to(torch.complex128)),
    ),
    Row(
        "astype_discrete",
        lambda x: primitives.astype(x, "int64"),
        unary(ANY),
        EDGES,
        jax=lambda x: x.astype("int64"),
        torch=lambda x: x.to(torch.int64),
        order=0,
    ),
    Row(
        "real",
        lambda x, y: primitives.real(primitives.make_complex(x, y) * (2.0 - 0.5j)),
        binary(ANY, OTHER),
        [(ZEROS, ZEROS), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=lambda x, y: jnp.real((x + 1j * y) * (2.0 - 0.5j)),
        torch=lambda x, y: torch.real(torch.complex(*torch.broadcast_tensors(x, y)) * (2.0 - 0.5j)),
    ),
    Row(
        "imag",
        lambda x, y: primitives.imag(primitives.make_complex(x, y) * (2.0 - 0.5j)),
        binary(ANY, OTHER),
        [(ZEROS, ZEROS), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=lambda x, y: jnp.imag((x + 1j * y) * (2.0 - 0.5j)),
        torch=lambda x, y: torch.imag(torch.complex(*torch.broadcast_tensors(x, y)) * (2.0 - 0.5j)),
    ),
    Row(
        "conj",
        lambda x, y: primitives.imag(primitives.conj(primitives.make_complex(x, y)) * (2.0 - 0.5j)),
        binary(ANY, OTHER),
        [(ZEROS, ZEROS), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=lambda x, y: jnp.imag(jnp.conj(x + 1j * y) * (2.0 - 0.5j)),
    ),
    Row(
        "make_complex",
        lambda x, y: primitives.real(primitives.square(primitives.make_complex(x, y))),
        binary(ANY, OTHER),
        [(ZEROS, ZEROS), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=lambda x, y: jnp.real((x + 1j * y) ** 2),
        torch=lambda x, y: torch.real(torch.complex(*torch.broadcast_tensors(x, y)) ** 2),
    ),
]
