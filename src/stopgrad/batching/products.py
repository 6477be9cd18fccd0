"""Batching rules of products: matrix products and contractions of labelled axes."""

from __future__ import annotations

from typing import Any

from stopgrad.batching.application import Application
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import swapaxes
from stopgrad.primitives.contraction import LETTERS
from stopgrad.primitives.products import MATMUL
from stopgrad.primitives.shape import reshape, squeeze


def matmul(application: Application) -> Tensor:
    """Rule of matmul (a, b; axes_a, axes_b): vectors become matrices, the examples a stack of them."""
    axes_a, axes_b = application.params
    a, b = application.inputs
    a_mapped, b_mapped = application.mapped
    if not b_mapped and axes_a <= 2 and axes_b <= 2:
        return _product(a, b)  # the rows of all examples in one product
    if not a_mapped and axes_b == 1 and axes_a <= 2:
        return _product(b, a if axes_a == 1 else swapaxes(a, 0, 1))
    stack = max(axes_a, axes_b, 2) - 2
    if a_mapped:
        a = reshape(a, (a.shape[0], *(1,) * (stack + 2 - max(axes_a, 2)), *((1,) if axes_a == 1 else ()), *a.shape[1:]))
    elif axes_a == 1:
        a = reshape(a, (1, *a.shape))
    if b_mapped:
        column = (1,) if axes_b == 1 else ()
        b = reshape(b, (b.shape[0], *(1,) * (stack + 2 - max(axes_b, 2)), *b.shape[1:], *column))
    elif axes_b == 1:
        b = reshape(b, (*b.shape, 1))
    product = _product(a, b)
    dropped = ((product.ndim - 2,) if axes_a == 1 else ()) + ((product.ndim - 1,) if axes_b == 1 else ())
    return squeeze(product, dropped) if dropped else product


def _product(a: Tensor, b: Tensor) -> Tensor:
    return bind2(MATMUL, a, b, (a.ndim, b.ndim))


def contract(application: Application) -> Any:
    """Rule of contract (a, b; their labels and the result's): the examples get a label of their own."""
    labels_a, labels_b, labels_out = application.params
    used = {*labels_a, *labels_b}
    label = next(letter for letter in LETTERS if letter not in used)
    of_a, of_b = (label if mapped else "" for mapped in application.mapped)
    return application.bound(application.inputs, (of_a + labels_a, of_b + labels_b, label + labels_out))
