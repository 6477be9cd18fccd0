"""The row format of the operation table: what the generic tests need to know about one operation.

Each family of operations has a file `rows_<family>.py` with a list `ROWS`; `test_table.py` runs every row through the
same checks and fails if a registered operation has no row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One operation and how to try it.

    `operation` is its registered name. `call` takes tensors and returns one tensor (or a tuple of them). `samples` are
    tuples of float64 NumPy arrays at smooth points, away from kinks: derivatives of order 2 are checked there in both
    modes against differences. `edges` are further inputs (ties, zeros, negatives, empties, 0-d): values are compared
    with the reference there, and gradients too where `compare_edge_gradients`. `jax` and `torch` are references over
    `jax.numpy` / `torch`, taking arrays of theirs; at least one wherever either has the operation.
    """

    operation: str
    call: Callable[..., Any]
    samples: list[tuple[Any, ...]]
    edges: list[tuple[Any, ...]] = field(default_factory=list)
    jax: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None
    compare_edge_gradients: bool = False
    rtol: float = 1e-12
    order: int = 2
    strict: bool = True
    """Whether the kernel runs on array-api-strict arrays too."""
