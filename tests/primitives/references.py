"""Values and gradients of a row by JAX and by PyTorch, to compare ours with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.primitives.rows import Row
from tests.primitives.table import Point, cotangents_for, differentiable, outputs_of, replaced

Derivative = tuple[Sequence[np.ndarray], Sequence[np.ndarray] | None]
"""Values, and gradients by the floating-point arguments, `None` where they are not to be compared."""

torch.set_num_threads(1)


def jax_derivatives(row: Row, points: list[Point], *, values_only: bool) -> list[Derivative]:
    """Return, for each point, values, and gradients of the outputs added up with fixed weights.

    All points are compiled together, which is quicker than each by itself or operation by operation.
    """

    def one(point: Point, places: list[int], given: Point) -> Any:
        def f(*given: Any) -> tuple[Any, ...]:
            return tuple(outputs_of(row.jax(*replaced(tuple(map(jnp.asarray, point)), places, given))))

        if values_only:
            return f(*given), None
        outputs, pullback = jax.vjp(f, *given)
        cotangents = tuple(
            np.zeros(one.shape, jax.dtypes.float0) if seed is None else seed
            for seed, one in zip(cotangents_for(outputs), outputs, strict=True)
        )
        return outputs, pullback(cotangents)

    places = [differentiable(point) for point in points]
    given = [tuple(jnp.asarray(point[i]) for i in chosen) for point, chosen in zip(points, places, strict=True)]

    def each(given: list[Point]) -> list[Any]:
        return [one(*arguments) for arguments in zip(points, places, given, strict=True)]

    try:
        found = jax.jit(each)(given)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):  # where shapes depend on values
        found = each(given)
    return jax.tree.map(np.asarray, found)


def torch_derivatives(row: Row, points: list[Point], *, values_only: bool) -> list[Derivative]:
    """Return the same by PyTorch; no gradients for complex numbers, of which its are the conjugates."""
    return [_torch_derivative(row, point, values_only) for point in points]


def _torch_derivative(row: Row, point: Point, values_only: bool) -> Derivative:
    places = differentiable(point)
    arguments = [torch.tensor(one, requires_grad=i in places) for i, one in enumerate(point)]
    outputs = [torch.as_tensor(one) for one in outputs_of(row.torch(*arguments))]
    values = [one.detach().resolve_conj().numpy() for one in outputs]
    if values_only or any(one.dtype.kind == "c" for one in (*values, *point)):
        return values, None
    weighted = [
        (output, torch.tensor(seed))
        for output, seed in zip(outputs, cotangents_for(values), strict=True)
        if seed is not None and output.requires_grad
    ]
    wanted = [arguments[place] for place in places]
    found = (
        torch.autograd.grad([one for one, _ in weighted], wanted, [seed for _, seed in weighted], allow_unused=True)
        if weighted
        else [None] * len(wanted)
    )
    zeros = [torch.zeros_like(one) for one in wanted]
    return values, [(zero if one is None else one).numpy() for one, zero in zip(found, zeros, strict=True)]


REFERENCES = {"jax": jax_derivatives, "torch": torch_derivatives}
