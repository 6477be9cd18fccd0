"""Contraction of two tensors over named axes, and what is written in terms of it: einsum, tensordot, outer, inner.

One operation, `contract`, multiplies two tensors whose axes carry labels and sums over the labels that the result does
not have. It becomes one matrix product; its derivatives are contractions again.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Shape, Spec, normalize_axes, result_dtype
from stopgrad.core.errors import ArgumentTypeError, ShapeError
from stopgrad.core.operation import Operation, general
from stopgrad.core.record import bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import multiply
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.shape import ravel

LETTERS = "".join(map(chr, (*range(97, 123), *range(65, 91), *range(192, 500))))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Sum of products over pairs of axes, one of a and one of b.

    Args:
        a: tensor.
        b: tensor.
        axes: how many: the last of a with the first of b; or a pair of axes (or of sequences of them), those of a and
            those of b.

    Returns:
        Tensor of the other axes of a, then those of b.

    Raises:
        ShapeError: sizes that do not fit, or axes out of range.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.tensordot([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [0.0, 1.0]]))
        7.0
    """
    a, b = to_tensor(a, "tensordot"), to_tensor(b, "tensordot")
    if hasattr(axes, "__index__"):
        count = int(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot: axes={count}, but the tensors have {a.ndim} and {b.ndim} axes")
        of_a, of_b = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        if len(axes) != 2:
            raise ArgumentTypeError(f"tensordot: axes is a number or a pair (axes of a, axes of b), got {axes!r}")
        of_a = normalize_axes("tensordot: axes of a", _listed(axes[0]), a.ndim)
        of_b = normalize_axes("tensordot: axes of b", _listed(axes[1]), b.ndim)
    sizes = [tuple(x.shape[i] for i in chosen) for x, chosen in ((a, of_a), (b, of_b))]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"tensordot: the axes summed over have sizes {sizes[0]} in a and {sizes[1]} in b")
    return bind2(CONTRACT, a, b, _tensordot_labels(a.ndim, b.ndim, of_a, of_b))


def _listed(axes: Any) -> Any:
    return axes if isinstance(axes, int) else tuple(int(axis) for axis in np.atleast_1d(axes))


@lru_cache(maxsize=1024)
def _tensordot_labels(ndim_a: int, ndim_b: int, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> tuple[str, str, str]:
    labels_a = LETTERS[:ndim_a]
    labels_b = list(LETTERS[ndim_a : ndim_a + ndim_b])
    for i, j in zip(of_a, of_b, strict=True):
        labels_b[j] = labels_a[i]
    free_a = [label for i, label in enumerate(labels_a) if i not in of_a]
    free_b = [label for j, label in enumerate(labels_b) if j not in of_b]
    return labels_a, "".join(labels_b), "".join(free_a + free_b)


def outer(a: Any, b: Any) -> Tensor:
    """Products of every entry of a with every entry of b, both flattened.

    Args:
        a: tensor.
        b: tensor.

    Returns:
        Tensor of shape (a.size, b.size).

    Example:
        >>> import stopgrad as sg
        >>> sg.outer([1.0, 2.0], [3.0, 4.0]).numpy()
        array([[3., 4.],
               [6., 8.]])
    """
    return bind2(CONTRACT, ravel(a), ravel(b), ("a", "b", "ab"))


def inner(a: Any, b: Any) -> Tensor:
    """Sum of products over the last axes of a and b; a plain product if either is a number.

    Args:
        a: tensor.
        b: tensor.

    Returns:
        Tensor of the other axes of a, then those of b.

    Raises:
        ShapeError: the last axes differ in size.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.inner([1.0, 2.0], [3.0, 4.0]))
        11.0
    """
    a, b = to_tensor(a, "inner"), to_tensor(b, "inner")
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"inner: the last axes differ in size, shapes {a.shape} and {b.shape}")
    return bind2(CONTRACT, a, b, _tensordot_labels(a.ndim, b.ndim, (a.ndim - 1,), (b.ndim - 1,)))


class _Plan(NamedTuple):
    """How a contraction becomes a matrix product; orders of axes, and how many of the result's come from where."""

    order_a: tuple[int, ...]
    order_b: tuple[int, ...]
    order_out: tuple[int, ...]
    batch: int
    free_a: int
    contracted: int


@lru_cache(maxsize=4096)
def _plan(labels_a: str, labels_b: str, labels_out: str) -> _Plan:
    batch = [label for label in labels_out if label in labels_a and label in labels_b]
    free_a = [label for label in labels_a if label in labels_out and label not in labels_b]
    free_b = [label for label in labels_b if label in labels_out and label not in labels_a]
    contracted = [label for label in labels_a if label not in labels_out]
    made = batch + free_a + free_b
    return _Plan(
        tuple(map(labels_a.index, batch + free_a + contracted)),
        tuple(map(labels_b.index, batch + contracted + free_b)),
        tuple(map(made.index, labels_out)),
        len(batch),
        len(free_a),
        len(contracted),
    )


def _contract(xp: Any, a: Any, b: Any, labels_a: str, labels_b: str, labels_out: str) -> Any:
    plan = _plan(labels_a, labels_b, labels_out)
    a, b = _permuted(xp, a, plan.order_a), _permuted(xp, b, plan.order_b)
    end_a, end_c = plan.batch + plan.free_a, plan.batch + plan.contracted
    batch, free_a, free_b = a.shape[: plan.batch], a.shape[plan.batch : end_a], b.shape[end_c:]
    if not plan.contracted:
        shape_a = (*batch, *free_a, *(1,) * len(free_b))
        shape_b = (*batch, *(1,) * len(free_a), *free_b)
        out = xp.reshape(a, shape_a) * xp.reshape(b, shape_b)
    else:
        size = prod(a.shape[end_a:])
        a = xp.reshape(a, (*batch, prod(free_a), size))
        b = xp.reshape(b, (*batch, size, prod(free_b)))
        out = a.dot(b) if xp is np and not batch else xp.matmul(a, b)
        out = xp.reshape(out, (*batch, *free_a, *free_b))
    return _permuted(xp, out, plan.order_out)


def _permuted(xp: Any, x: Any, order: tuple[int, ...]) -> Any:
    if order == tuple(range(len(order))):
        return x
    return x.transpose(order) if xp is np else xp.permute_dims(x, order)


def _contract_spec(a: Spec, b: Spec, labels_a: str, labels_b: str, labels_out: str) -> Spec:
    sizes: dict[str, int] = dict(zip(labels_a, a.shape, strict=True)) | dict(zip(labels_b, b.shape, strict=True))
    shape: Shape = tuple(sizes[label] for label in labels_out)
    return Spec(shape, result_dtype((a, b)))


CONTRACT: Operation = general(
    "contract",
    _contract,
    vjps=(
        lambda xp, t, _a, b, _out, of_a, of_b, of_out: run(CONTRACT, t, b, params=(of_out, of_b, of_a)),
        lambda xp, t, a, _b, _out, of_a, of_b, of_out: run(CONTRACT, a, t, params=(of_a, of_out, of_b)),
    ),
    jvps=(
        lambda xp, t, _a, b, _out, *labels: run(CONTRACT, t, b, params=labels),
        lambda xp, t, a, _b, _out, *labels: run(CONTRACT, a, t, params=labels),
    ),
    spec=_contract_spec,
    bilinear=True,
)
"""contract(a, b; labels of a, of b, of the result): strings, a letter an axis.

Within one of the three no label is repeated, and every label is in at least two of them with the same size.
"""
