"""Values and gradients of a row by JAX and by PyTorch, to compare ours with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.primitives.rows import Row
from tests.primitives.table import Point, cotangents_for, differentiable, outputs_of, replaced

torch.set_num_threads(1)


def jax_derivative(row: Row, point: Point, *, values_only: bool) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """Return values, and gradients by the floating-point arguments, of the outputs added up with fixed weights."""
    if values_only:
        return [np.asarray(one) for one in outputs_of(row.jax(*map(jnp.asarray, point)))], None
    places = differentiable(point)

    def f(*given: Any) -> tuple[Any, ...]:
        return tuple(outputs_of(row.jax(*replaced(tuple(map(jnp.asarray, point)), places, given))))

    def both(given: tuple[Any, ...]) -> Any:
        outputs, pullback = jax.vjp(f, *given)
        cotangents = tuple(
            np.zeros(one.shape, jax.dtypes.float0) if seed is None else seed
            for seed, one in zip(cotangents_for(outputs), outputs, strict=True)
        )
        return outputs, pullback(cotangents)

    given = tuple(jnp.asarray(point[place]) for place in places)
    try:
        values, gradients = jax.jit(both)(given)  # quicker than to compile operation by operation
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):  # where shapes depend on values
        values, gradients = both(given)
    return [np.asarray(one) for one in values], [np.asarray(one) for one in gradients]


def torch_derivative(row: Row, point: Point, *, values_only: bool) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """Return the same by PyTorch; no gradients for complex numbers, of which its are the conjugates."""
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


REFERENCES = {"jax": jax_derivative, "torch": torch_derivative}
