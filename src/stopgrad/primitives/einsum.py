"""`einsum`: products of any number of tensors, summed over labelled axes.

The subscripts are brought down to what the operations know: a label repeated within an operand takes a diagonal, a
label of one operand alone is summed over, and what is left is contracted two at a time, in an order chosen to be cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from stopgrad.core.arrays import Shape, is_complex
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.lazy import opt_einsum
from stopgrad.core.record import bind2
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import moveaxis, permute_dims
from stopgrad.primitives.casting import conj
from stopgrad.primitives.contraction import CONTRACT, LETTERS
from stopgrad.primitives.diagonals import diagonal
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.reductions import sum
from stopgrad.primitives.shape import reshape

_ELLIPSIS = "".join(map(chr, range(0x250, 0x290)))


class _Labelled(NamedTuple):
    """A tensor and one label for each of its axes."""

    tensor: Tensor
    labels: str


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Tensor:
    """Multiply tensors and sum, as subscripts say: Einstein's notation, as in `numpy.einsum`.

    Args:
        subscripts: a letter for each axis of each operand, operands separated by commas: "ij,jk->ik". Labels that are
            not in the output are summed over. "..." stands for axes that broadcast. Without "->" the output has the
            labels that occur once, in alphabetical order. A label repeated within an operand takes its diagonal.
        *operands: tensors.
        optimize: taken for NumPy's sake; the order is chosen in any case.

    Returns:
        Tensor with the axes the output's labels name.

    Raises:
        ArgumentError: the subscripts make no sense.
        ShapeError: the subscripts do not fit the shapes, or sizes under one label differ (and none is 1).

    Example:
        >>> import stopgrad as sg
        >>> sg.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).numpy()
        array([21., 43.])
        >>> float(sg.einsum("ii", [[1.0, 2.0], [3.0, 4.0]]))
        5.0
    """
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"einsum: the first argument is the subscripts, a string, got {subscripts!r:.60}")
    tensors = [to_tensor(operand, "einsum") for operand in operands]
    if len(tensors) == 2:
        plain = _plain(subscripts, tensors[0].shape, tensors[1].shape)
        if plain is not None:
            return bind2(CONTRACT, tensors[0], tensors[1], plain)
    labels, output = _parse(subscripts, tuple(tensor.ndim for tensor in tensors))
    terms = [_with_diagonals(_Labelled(*term)) for term in zip(tensors, labels, strict=True)]
    terms = _broadcast_ones(terms, output)
    terms = [_summed(i, terms, output) for i in range(len(terms))]
    if len(terms) == 1:
        return permute_dims(terms[0].tensor, tuple(map(terms[0].labels.index, output)))
    if len(terms) == 2:
        return _contracted(terms[0], terms[1], output).tensor
    for positions in _path(tuple(term.labels for term in terms), output, tuple(term.tensor.shape for term in terms)):
        chosen = [terms.pop(position) for position in sorted(positions, reverse=True)]
        while len(chosen) > 1:
            first, second = chosen.pop(), chosen.pop()
            elsewhere = set(output).union(*(term.labels for term in terms), *(term.labels for term in chosen))
            wanted = [label for label in dict.fromkeys(first.labels + second.labels) if label in elsewhere]
            last = not terms and not chosen
            chosen.append(_contracted(first, second, output if last else "".join(wanted)))
        terms.append(chosen[0])
    return terms[0].tensor


def vecdot(a: Any, b: Any, axis: int = -1) -> Tensor:
    """Sum of conj(a) · b along an axis; the other axes broadcast.

    Args:
        a: tensor.
        b: tensor.
        axis: along which.

    Returns:
        Tensor of the other axes, broadcast.

    Raises:
        ShapeError: the axis differs in size, or the others do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
        array([3., 7.])
    """
    a, b = to_tensor(a, "vecdot"), to_tensor(b, "vecdot")
    if not a.ndim or not b.ndim or a.shape[axis] != b.shape[axis]:
        raise ShapeError(f"vecdot: shapes {a.shape} and {b.shape} must have the same size along axis {axis}")
    a = conj(a) if is_complex(a.dtype) else a
    return einsum("...i,...i->...", moveaxis(a, axis, -1), moveaxis(b, axis, -1))


def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """Product of several matrices, multiplied in the cheapest order; the first and last may be vectors.

    Args:
        arrays: two or more matrices; the first may be a row (n,), the last a column (n,).

    Returns:
        Tensor, their product.

    Raises:
        ArgumentError: fewer than two matrices.
        ShapeError: sizes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.linalg.multi_dot([[[1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0], [2.0]]]).numpy()
        array([[4.]])
    """
    tensors = [to_tensor(array, "multi_dot") for array in arrays]
    if len(tensors) < 2:
        raise ArgumentError(f"multi_dot: takes two or more matrices, got {len(tensors)}")
    last = len(tensors) - 1
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2 and not (tensor.ndim == 1 and i in (0, last)):
            raise ShapeError(f"multi_dot: matrix {i} has shape {tensor.shape}; only the first and last may be vectors")
    labels = [LETTERS[i : i + 2] for i in range(len(tensors))]
    labels[0] = labels[0][-tensors[0].ndim :]
    labels[last] = labels[last][: tensors[last].ndim]
    ends = (labels[0][0] if tensors[0].ndim == 2 else "") + (labels[last][1] if tensors[last].ndim == 2 else "")
    return einsum(",".join(labels) + "->" + ends, *tensors)


@lru_cache(maxsize=1024)
def _parse(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str]:
    """Return the labels of every operand and of the output, with labels of their own for the axes "..." stands for."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    written = left.split(",")
    if len(written) != len(ndims):
        raise ArgumentError(f"einsum: {subscripts!r} is for {len(written)} operands, got {len(ndims)}")
    most = 0
    for text, ndim in zip(written, ndims, strict=True):
        most = max(most, _hidden(subscripts, text, ndim))
    labels = [
        text.replace("...", _ELLIPSIS[most - _hidden(subscripts, text, ndim) : most])
        for text, ndim in zip(written, ndims, strict=True)
    ]
    if arrow:
        _check(subscripts, right)
        if most and "..." not in right:
            raise ArgumentError(
                f"einsum: the output of {subscripts!r} must have '...', as an operand has axes under it"
            )
        output = right.replace("...", _ELLIPSIS[:most])
    else:
        counts = Counter("".join(written).replace(".", ""))
        output = _ELLIPSIS[:most] + "".join(sorted(label for label, count in counts.items() if count == 1))
    known = set("".join(labels))
    for label in output:
        if label not in known or output.count(label) > 1:
            raise ArgumentError(
                f"einsum: output label {label!r} of {subscripts!r} must be in an operand, and once only"
            )
    return labels, output


@lru_cache(maxsize=4096)
def _plain(subscripts: str, shape_a: Shape, shape_b: Shape) -> tuple[str, str, str] | None:
    """Return the labels of a contraction that needs nothing done before, else `None`: the usual case, looked up."""
    (labels_a, labels_b), output = _parse(subscripts, (len(shape_a), len(shape_b)))
    counts = Counter((*labels_a, *labels_b, *output))
    sizes = dict(zip(labels_a, shape_a, strict=True))
    agree = all(sizes.get(label, size) == size for label, size in zip(labels_b, shape_b, strict=True))
    unique = all(len(set(labels)) == len(labels) for labels in (labels_a, labels_b))
    return (labels_a, labels_b, output) if agree and unique and all(n > 1 for n in counts.values()) else None


def _check(subscripts: str, text: str) -> str:
    """Return one operand's letters without the ellipsis, checked."""
    letters = text.replace("...", "", 1)
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise ArgumentError(f"einsum: {subscripts!r} may hold letters, commas, one '->', and one '...' an operand")
    return letters


def _hidden(subscripts: str, text: str, ndim: int) -> int:
    """Return how many axes "..." stands for."""
    hidden = ndim - len(_check(subscripts, text))
    if hidden < 0 or (hidden and "..." not in text):
        raise ShapeError(f"einsum: {text!r} of {subscripts!r} does not fit an operand with {ndim} axes")
    return hidden


def _with_diagonals(term: _Labelled) -> _Labelled:
    """Take the diagonal of axes that carry the same label."""
    tensor, labels = term
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if tensor.shape[first] != tensor.shape[second]:
                raise ShapeError(
                    f"einsum: the axes of size {tensor.shape[first]} and {tensor.shape[second]} with the same label "
                    f"{label!r} in one operand differ"
                )
            tensor = diagonal(tensor, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return _Labelled(tensor, labels)


def _broadcast_ones(terms: list[_Labelled], output: str) -> list[_Labelled]:
    """Drop axes of size 1 where another operand has more under the same label."""
    sizes: dict[str, int] = {}
    for tensor, labels in terms:
        for label, size in zip(labels, tensor.shape, strict=True):
            known = sizes.setdefault(label, size)
            if size != known and known != 1 and size != 1:
                shown = "under '...'" if label in _ELLIPSIS else f"under label {label!r}"
                raise ShapeError(f"einsum: sizes {known} and {size} {shown} differ")
            sizes[label] = size if known == 1 else known
    return [_without(term, {label for label in term.labels if sizes[label] != 1}) for term in terms]


def _without(term: _Labelled, long: set[str]) -> _Labelled:
    tensor, labels = term
    keep = [size != 1 or label not in long for size, label in zip(tensor.shape, labels, strict=True)]
    if False not in keep:
        return term
    shape: Shape = tuple(size for size, kept in zip(tensor.shape, keep, strict=True) if kept)
    return _Labelled(reshape(tensor, shape), "".join(label for label, kept in zip(labels, keep, strict=True) if kept))


def _summed(i: int, terms: list[_Labelled], output: str) -> _Labelled:
    """Sum over the axes whose labels are neither in the output nor in another operand."""
    tensor, labels = terms[i]
    elsewhere = set(output).union(*(term.labels for j, term in enumerate(terms) if j != i))
    alone = tuple(position for position, label in enumerate(labels) if label not in elsewhere)
    if not alone:
        return terms[i]
    return _Labelled(sum(tensor, alone), "".join(label for label in labels if label in elsewhere))


def _contracted(first: _Labelled, second: _Labelled, output: str) -> _Labelled:
    out = bind2(CONTRACT, first.tensor, second.tensor, (first.labels, second.labels, output))
    return _Labelled(out, output)


@lru_cache(maxsize=1024)
def _path(labels: tuple[str, ...], output: str, shapes: tuple[Shape, ...]) -> list[tuple[int, ...]]:
    """Return which operands to contract, step by step; each result joins at the end."""
    letters = dict(zip(dict.fromkeys("".join(labels)), LETTERS, strict=False))
    equation = ",".join("".join(map(letters.__getitem__, one)) for one in labels)
    equation += "->" + "".join(map(letters.__getitem__, output))
    path: list[tuple[int, ...]] = opt_einsum().contract_path(equation, *shapes, shapes=True)[0]
    return path
