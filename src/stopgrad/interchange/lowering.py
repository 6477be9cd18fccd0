"""How operations that are not elementwise are written, in terms of what an exporter can write."""

from __future__ import annotations

import string
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from stopgrad.core.arrays import normalize_axes
from stopgrad.core.errors import InterchangeError
from stopgrad.core.graph import CONSTANT, GraphOperation, Output
from stopgrad.core.placing import index_of
from stopgrad.interchange.exporting import Exporter, Value

Lowering = Callable[[Exporter, GraphOperation], Value]


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return normalize_axes("export", axis, ndim)


def _reduced(kind: str) -> Lowering:
    def lower(e: Exporter, op: GraphOperation) -> Value:
        (x,) = e.inputs(op)
        if kind in ("sum", "mean", "prod"):
            x = e.cast(x, op.outputs[0].dtype)
        elif kind in ("any", "all"):
            x = _truth(e, x)
        return e.reduce(kind, x, _axes(op.params[0], x.ndim), op.params[1])

    return lower


def _truth(e: Exporter, x: Value) -> Value:
    return x if x.dtype.kind == "b" else e.do("not_equal", x, e.number(x, 0))


def _counted(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    ones = e.cast(_truth(e, x), op.outputs[0].dtype)
    return e.reduce("sum", ones, _axes(op.params[0], x.ndim), op.params[1])


def _arg(kind: str) -> Lowering:
    def lower(e: Exporter, op: GraphOperation) -> Value:
        (x,) = e.inputs(op)
        axis, keepdims = op.params
        if axis is None:
            found = e.arg(kind, e.reshape(x, (prod(x.shape),)), 0)
        else:
            found = e.arg(kind, x, axis)
        return e.reshape(found, op.outputs[0].shape) if keepdims else found

    return lower


def _centred(e: Exporter, x: Value, axes: tuple[int, ...]) -> Value:
    return e.do("subtract", x, e.reduce("mean", x, axes, True))


def _variance(e: Exporter, x: Value, axes: tuple[int, ...], keepdims: bool, ddof: float = 0) -> Value:
    squares = e.do("square", _centred(e, x, axes))
    if not ddof:
        return e.reduce("mean", squares, axes, keepdims)
    count = prod(x.shape[axis] for axis in axes) - ddof
    return e.do("divide", e.reduce("sum", squares, axes, keepdims), e.number(x, max(count, 0)))


def _var(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    axis, keepdims, _, ddof = op.params
    return _variance(e, e.cast(x, op.outputs[0].dtype), _axes(axis, x.ndim), keepdims, ddof)


def _standardized(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    axes, epsilon = op.params
    spread = e.do("add", _variance(e, x, axes, True), e.number(x, epsilon))
    return e.do("multiply", _centred(e, x, axes), e.do("rsqrt", spread))


def _logsumexp(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    axes = _axes(op.params[0], x.ndim)
    top = e.reduce("max", x, axes, True)
    lowest, highest = (e.number(x, one) for one in (np.finfo(x.dtype).min, np.finfo(x.dtype).max))
    top = e.do("minimum", e.do("maximum", top, lowest), highest)  # all -inf, or an inf: inf - inf would be NaN
    total = e.reduce("sum", e.do("exp", e.do("subtract", x, top)), axes, True)
    return e.reshape(e.do("add", e.do("log", total), top), op.outputs[0].shape)


def _softmax(kind: str) -> Lowering:
    def lower(e: Exporter, op: GraphOperation) -> Value:
        (x,) = e.inputs(op)
        axes = op.params[0]
        rest = tuple(i for i in range(x.ndim) if i not in axes)
        order = (*rest, *axes)
        turned = e.transpose(x, order)
        flat = e.reshape(turned, (*turned.shape[: len(rest)], prod(turned.shape[len(rest) :])))
        found = e.reshape(e.softmax(kind, flat), turned.shape)
        return e.transpose(found, tuple(int(i) for i in np.argsort(order)))

    return lower


def _norm(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    order, axis, keepdims, _ = op.params
    axes, sizes = _axes(axis, x.ndim), e.do("absolute", x)
    if order == 2:
        return e.do("sqrt", e.reduce("sum", e.do("square", sizes), axes, keepdims))
    if order == 1:
        return e.reduce("sum", sizes, axes, keepdims)
    if abs(order) == np.inf:
        return e.reduce("max" if order > 0 else "min", sizes, axes, keepdims)
    total = e.reduce("sum", e.do("power", sizes, e.number(x, order)), axes, keepdims)
    return e.do("power", total, e.number(x, 1 / order))


def _matmul(e: Exporter, op: GraphOperation) -> Value:
    a, b = e.promoted(op)
    a = e.reshape(a, (1, *a.shape)) if a.ndim == 1 else a
    b = e.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    return e.reshape(e.matmul(a, b), op.outputs[0].shape)


def _contract(e: Exporter, op: GraphOperation) -> Value:
    a, b = e.promoted(op)
    used = dict.fromkeys("".join(op.params))
    if len(used) > len(string.ascii_letters):
        raise InterchangeError(f"a contraction of {len(used)} axes")
    letters = dict(zip(used, string.ascii_letters, strict=False))
    of_a, of_b, of_out = ("".join(letters[one] for one in labels) for labels in op.params)
    return e.einsum(f"{of_a},{of_b}->{of_out}", a, b, op.outputs[0].shape)


def _flip(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    return e.cut(x, [range(n)[::-1] if i in op.params[0] else range(n) for i, n in enumerate(x.shape)])


def _roll(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    for by, axis in zip(*op.params, strict=True):
        size = x.shape[axis]
        if size and by % size:
            ranges = [range(n) for n in x.shape]
            parts = []
            for piece in (range(size - by % size, size), range(size - by % size)):
                ranges[axis] = piece
                parts.append(e.cut(x, ranges))
            x = e.concat(parts, axis)
    return x


def _stack(e: Exporter, op: GraphOperation) -> Value:
    axis = op.params[0]
    parts = e.promoted(op)
    return e.concat([e.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in parts], axis)


def _slice(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    ranges: list[range] = []
    for entry in index_of(op.params[0]):
        if entry is not None:
            size = x.shape[len(ranges)]
            ranges.append(range(size)[entry] if isinstance(entry, slice) else range(entry, entry + 1))
    ranges += [range(n) for n in x.shape[len(ranges) :]]
    return e.reshape(e.cut(x, ranges), op.outputs[0].shape)


def _known(one: Any) -> np.ndarray | None:
    """Return the value of an input that is a constant."""
    if type(one) is Output:
        return np.asarray(one.op.params[0].value) if one.op.operation is CONSTANT else None
    return np.asarray(one)


def _indices(e: Exporter, one: Any, size: int, mode: str = "raise") -> Value:
    """Return indices counted from the front."""
    known = _known(one)
    if known is not None:
        if mode == "clip":
            return e.constant(np.clip(known, 0, max(size - 1, 0)).astype(np.int64), "indices")
        return e.constant((known % max(size, 1)).astype(np.int64), "indices")
    indices = e.cast(e.values[one], np.dtype(np.int64))
    if mode == "clip":
        return e.do("minimum", e.do("maximum", indices, e.number(indices, 0)), e.number(indices, size - 1))
    if mode == "wrap":
        return e.do("remainder", indices, e.number(indices, size))
    return e.where(e.do("less", indices, e.number(indices, 0)), e.do("add", indices, e.number(indices, size)), indices)


def _take(e: Exporter, op: GraphOperation) -> Value:
    axis, mode, size = op.params
    return e.gather(e.values[op.inputs[0]], _indices(e, op.inputs[1], size, mode), axis)


def _index(e: Exporter, op: GraphOperation) -> Value:
    template, shape = op.params
    places = [i for i, one in enumerate(template) if one == "array"]
    plain = all(one == (0, n, 1) for one, n in zip(template, shape, strict=False) if isinstance(one, tuple))
    if len(places) != 1 or not plain or any(not isinstance(one, tuple) and one != "array" for one in template):
        raise InterchangeError("an index with more than one array, or an array beside integers, slices or new axes")
    (axis,) = places
    return e.gather(e.values[op.inputs[0]], _indices(e, op.inputs[1], shape[axis]), axis)


def _take_along(e: Exporter, op: GraphOperation) -> Value:
    axis, _ = op.params
    x = e.values[op.inputs[0]]
    size, indices = x.shape[axis], _indices(e, op.inputs[1], x.shape[axis])
    batch = np.broadcast_shapes(*(one.shape[:axis] + one.shape[axis + 1 :] for one in (x, indices)))
    order = (*(i for i in range(x.ndim) if i != axis), axis)
    x, indices = e.transpose(x, order), e.transpose(indices, order)
    x = e.reshape(e.broadcast(x, (*batch, size)), (prod(batch) * size,))
    indices = e.broadcast(indices, (*batch, indices.shape[-1]))
    offsets = e.constant(np.arange(prod(batch), dtype=np.int64).reshape((*batch, 1)) * size)
    found = e.gather(x, e.do("add", indices, offsets), 0)
    return e.transpose(found, tuple(int(i) for i in np.argsort(order)))


def _diagonal(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    *settings, _ = op.params
    places = np.arange(prod(x.shape), dtype=np.int64).reshape(x.shape).diagonal(*settings)
    return e.gather(e.reshape(x, (prod(x.shape),)), e.constant(np.ascontiguousarray(places)), 0)


def _triangle(function: Callable[..., Any]) -> Lowering:
    def lower(e: Exporter, op: GraphOperation) -> Value:
        (x,) = e.inputs(op)
        mask = e.constant(function(np.ones(x.shape[-2:], bool), op.params[0]))
        return e.where(mask, x, e.number(x, 0))

    return lower


def _pad(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    widths, values, _ = op.params
    fills = {0.0} if values is None else {float(one) for pair in values for one in pair}
    if len(fills) > 1:
        raise InterchangeError("a border of several numbers")
    return e.pad(x, widths, fills.pop() if fills else 0.0)


def _one_hot(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    depth, axis = op.params
    spread = e.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))
    numbers = np.arange(depth).reshape((-1,) + (1,) * (x.ndim - axis)).astype(x.dtype)
    return e.do("equal", spread, e.constant(numbers))


def _where(e: Exporter, op: GraphOperation) -> Value:
    condition, a, b = e.promoted(op, skip=1)
    return e.where(_truth(e, condition), a, b)


def _stop_where(e: Exporter, op: GraphOperation) -> Value:
    x, mask = e.values[op.inputs[0]], e.values[op.inputs[1]]
    return e.where(e.broadcast(mask, x.shape), e.gate("stop_gradient", x, None), x)


def _convolved(e: Exporter, op: GraphOperation) -> Value:
    x, filters = e.promoted(op)
    write = e.conv if op.type == "conv" else e.conv_input
    return write(x, filters, op.params[0], op.outputs[0].spec)


def _rounded(e: Exporter, op: GraphOperation) -> Value:
    (x,) = e.inputs(op)
    factor = e.number(x, 10.0 ** op.params[0])
    return e.do("divide", e.do("rint", e.do("multiply", x, factor)), factor) if op.params[0] else e.do("rint", x)


def _cumulative(kind: str) -> Lowering:
    def lower(e: Exporter, op: GraphOperation) -> Value:
        axis, exclusive, reverse, _ = op.params
        return e.cumulative(kind, e.cast(e.inputs(op)[0], op.outputs[0].dtype), axis, exclusive, reverse)

    return lower


def _astype(e: Exporter, op: GraphOperation) -> Value:
    return e.cast(e.inputs(op)[0], op.outputs[0].dtype)


LOWERING: dict[str, Lowering] = {
    "all": _reduced("all"),
    "any": _reduced("any"),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "astype": _astype,
    "astype_discrete": _astype,
    "avg_pool": lambda e, op: e.pool("avg_pool", e.inputs(op)[0], op.params[0], op.outputs[0].spec),
    "broadcast_to": lambda e, op: e.broadcast(e.inputs(op)[0], op.params[0]),
    "concat": lambda e, op: e.concat(e.promoted(op), op.params[0]),
    "contract": _contract,
    "conv": _convolved,
    "conv_input": _convolved,
    "count_nonzero": _counted,
    "cumulative_prod": _cumulative("prod"),
    "cumulative_sum": _cumulative("sum"),
    "diagonal": _diagonal,
    "flip": _flip,
    "index": _index,
    "log_softmax": _softmax("log_softmax"),
    "logsumexp": _logsumexp,
    "matmul": _matmul,
    "max": _reduced("max"),
    "max_pool": lambda e, op: e.pool("max_pool", e.inputs(op)[0], op.params[0], op.outputs[0].spec),
    "mean": _reduced("mean"),
    "min": _reduced("min"),
    "one_hot": _one_hot,
    "pad": _pad,
    "permute_dims": lambda e, op: e.transpose(e.inputs(op)[0], op.params[0]),
    "prevent_gradient": lambda e, op: e.gate("prevent_gradient", e.inputs(op)[0], op.params[0]),
    "prod": _reduced("prod"),
    "reshape": lambda e, op: e.reshape(e.inputs(op)[0], op.outputs[0].shape),
    "roll": _roll,
    "round": _rounded,
    "slice": _slice,
    "softmax": _softmax("softmax"),
    "stack": _stack,
    "standardize": _standardized,
    "std": lambda e, op: e.do("sqrt", _var(e, op)),
    "stop_gradient": lambda e, op: e.gate("stop_gradient", e.inputs(op)[0], op.params[0]),
    "stop_where": _stop_where,
    "sum": _reduced("sum"),
    "take": _take,
    "take_along_axis": _take_along,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "var": _var,
    "vector_norm": _norm,
    "where": _where,
}
"""By operation, how it is written."""
