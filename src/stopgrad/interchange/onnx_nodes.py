"""How each operation of ONNX is read, except for windows and normalisation (see `onnx_layers`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.errors import InterchangeError
from stopgrad.core.lazy import onnx
from stopgrad.core.tensor import Tensor
from stopgrad.interchange.importing import (
    MOST_PARTS,
    MOST_STATIC,
    Handler,
    Node,
    checked_shape,
    of_one,
    of_two,
    quotient,
)
from stopgrad.interchange.onnx_layers import LAYERS

_UNARY: dict[str, Callable[..., Tensor]] = {
    "Abs": p.absolute,
    "Acos": p.arccos,
    "Acosh": p.arccosh,
    "Asin": p.arcsin,
    "Asinh": p.arcsinh,
    "Atan": p.arctan,
    "Atanh": p.arctanh,
    "BitwiseNot": p.bitwise_invert,
    "Ceil": p.ceil,
    "Cos": p.cos,
    "Cosh": p.cosh,
    "Dropout": lambda x: x,
    "Erf": p.erf,
    "Exp": p.exp,
    "Floor": p.floor,
    "HardSwish": p.hard_swish,
    "IsNaN": p.isnan,
    "Log": p.log,
    "Mish": p.mish,
    "Neg": p.negative,
    "Not": p.logical_not,
    "Reciprocal": p.reciprocal,
    "Relu": p.relu,
    "Round": p.rint,
    "Sigmoid": p.sigmoid,
    "Sign": p.sign,
    "Sin": p.sin,
    "Sinh": p.sinh,
    "Softplus": p.softplus,
    "Softsign": p.softsign,
    "Sqrt": p.sqrt,
    "Tan": p.tan,
    "Tanh": p.tanh,
}

_BINARY: dict[str, Callable[..., Tensor]] = {
    "Add": p.add,
    "And": p.logical_and,
    "BitwiseAnd": p.bitwise_and,
    "BitwiseOr": p.bitwise_or,
    "BitwiseXor": p.bitwise_xor,
    "Equal": p.equal,
    "Greater": p.greater,
    "GreaterOrEqual": p.greater_equal,
    "Less": p.less,
    "LessOrEqual": p.less_equal,
    "MatMul": p.matmul,
    "Mul": p.multiply,
    "Or": p.logical_or,
    "Sub": p.subtract,
    "Xor": p.logical_xor,
}


def _all_of(function: Callable[..., Tensor]) -> Handler:
    return lambda node: reduce(function, (node[i] for i in range(max(len(node.inputs), 1))))


def _mean_of(node: Node) -> Tensor:
    return p.divide(_all_of(p.add)(node), float(len(node.inputs)))


def _clipped(node: Node) -> Tensor:
    low, high = (node[i] if node.has(i) else None for i in (1, 2))
    return node[0] if low is None and high is None else p.clip(node[0], low, high)


def _is_infinite(node: Node) -> Tensor:
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    if positive and negative:
        return p.isinf(node[0])
    if not positive and not negative:
        return p.zeros_like(node[0], dtype=bool)
    return p.isposinf(node[0]) if positive else p.isneginf(node[0])


def _hard_sigmoid(node: Node) -> Tensor:
    slope, shift = float(node.attribute("alpha", 0.2)), float(node.attribute("beta", 0.5))
    return p.clip(p.add(p.multiply(node[0], slope), shift), 0.0, 1.0)


def _axes(node: Node) -> tuple[int, ...] | None:
    """Return the axes an operation works over, from its second input or an attribute."""
    if node.has(1):
        return node.integers(1)
    axes = node.attribute("axes", None)
    return None if axes is None else tuple(int(one) for one in axes)


def _reduced(function: Callable[..., Tensor], keeps_dtype: bool = False) -> Handler:
    def handler(node: Node) -> Tensor:
        axes = _axes(node)
        if not axes:
            if node.attribute("noop_with_empty_axes", 0):
                return node[0]
            axes = tuple(range(node[0].ndim))
        options = {"dtype": node[0].dtype} if keeps_dtype else {}
        return function(node[0], axes, keepdims=bool(node.attribute("keepdims", 1)), **options)

    return handler


def _before(change: Callable[[Tensor], Tensor], handler: Handler) -> Handler:
    """Return a handler for what is done to a changed first input."""

    def changed(node: Node) -> Any:
        node.inputs[0] = change(node[0])
        return handler(node)

    return changed


_sum = _reduced(p.sum, keeps_dtype=True)


def _arg(function: Callable[..., Tensor]) -> Handler:
    def handler(node: Node) -> Tensor:
        if node.attribute("select_last_index", 0):
            raise InterchangeError("select_last_index is not supported")
        axis, keepdims = int(node.attribute("axis", 0)), bool(node.attribute("keepdims", 1))
        return p.astype(function(node[0], axis, keepdims=keepdims), "int64")

    return handler


def _reshaped(node: Node) -> Tensor:
    shape, sizes = node[0].shape, list(node.integers(1))
    if not node.attribute("allowzero", 0):
        sizes = [shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return p.reshape(node[0], tuple(sizes))


def _flattened(node: Node) -> Tensor:
    axis, shape = int(node.attribute("axis", 1)), node[0].shape
    if not -len(shape) <= axis <= len(shape):
        raise InterchangeError(f"axis {axis} of a tensor with {len(shape)} axes")
    axis += len(shape) if axis < 0 else 0
    return p.reshape(node[0], (prod(shape[:axis]), prod(shape[axis:])))


def _transposed(node: Node) -> Tensor:
    axes = node.attribute("perm", None)
    return p.permute_dims(node[0], tuple(axes) if axes is not None else tuple(range(node[0].ndim))[::-1])


def _split(node: Node) -> Any:
    axis = int(node.attribute("axis", 0))
    size = node[0].shape[axis]
    if node.has(1):
        sizes = node.integers(1)
    else:
        count = int(node.attribute("num_outputs", node.used))
        if not 0 < count <= MOST_PARTS:
            raise InterchangeError(f"{count} parts")
        each = -(-size // count)
        sizes = tuple(max(0, min(each, size - i * each)) for i in range(count))
    if not 0 < len(sizes) <= MOST_PARTS or min(sizes) < 0 or sum(sizes) != size:
        raise InterchangeError(f"parts of {sizes} of an axis of {size}")
    return p.split(node[0], [int(one) for one in np.cumsum(sizes)[:-1]], axis)


def _sliced(node: Node) -> Tensor:
    starts, ends = node.integers(1), node.integers(2)
    axes = node.integers(3) if node.has(3) else tuple(range(len(starts)))
    steps = node.integers(4) if node.has(4) else (1,) * len(starts)
    index: list[Any] = [slice(None)] * node[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = node[0].shape[axis]
        stop: int | None = end
        if step < 0 and end < -size:
            stop = None  # to the first entry, itself included
        index[axis] = slice(start, stop, step)
    return p.getitem(node[0], tuple(index))


def _padded(node: Node) -> Tensor:
    mode = node.attribute("mode", b"constant").decode()
    numbers = node.integers(1)
    ndim = node[0].ndim
    axes = [axis % ndim for axis in node.integers(3)] if node.has(3) else list(range(ndim))
    if len(numbers) != 2 * len(axes):
        raise InterchangeError(f"{len(numbers)} widths for {len(axes)} axes")
    widths = [(0, 0)] * ndim
    for i, axis in enumerate(axes):
        widths[axis] = (numbers[i], numbers[i + len(axes)])
    if any(min(pair) < 0 for pair in widths):
        raise InterchangeError("widths below zero, which cut off, are not supported")
    checked_shape(n + sum(pair) for n, pair in zip(node[0].shape, widths, strict=True))
    if mode == "constant":
        fill = node.static(2).reshape(()).item() if node.has(2) else 0
        return p.pad(node[0], tuple(widths), constant_values=fill)
    if any(max(pair) > n for pair, n in zip(widths, node[0].shape, strict=True)):
        raise InterchangeError(f"widths {widths} are wider than the tensor of shape {node[0].shape}")
    return p.pad(node[0], tuple(widths), {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}[mode])


def _tiled(node: Node) -> Tensor:
    repeats = node.integers(1)
    checked_shape(size * times for size, times in zip(node[0].shape, repeats, strict=True))
    return p.tile(node[0], repeats)


def _expanded(node: Node) -> Tensor:
    return p.broadcast_to(node[0], checked_shape(np.broadcast_shapes(node[0].shape, checked_shape(node.integers(1)))))


def _shape(node: Node) -> Tensor:
    sizes = node[0].shape[node.attribute("start", 0) : node.attribute("end", None)]
    return node.constant(np.array(sizes, np.int64))


def _constant(node: Node) -> Tensor:
    attributes = node.attributes
    if "value" in attributes:
        if attributes["value"].data_location:
            raise InterchangeError("its values are in another file")
        return node.constant(np.asarray(onnx().numpy_helper.to_array(attributes["value"])))
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        for key in (name, f"{name}s"):
            if key in attributes:
                return node.constant(np.asarray(attributes[key], dtype))
    raise InterchangeError("a constant of a kind that is not supported")


def _filled(node: Node) -> Tensor:
    value = node.attribute("value", None)
    number = np.zeros((), np.float32) if value is None else onnx().numpy_helper.to_array(value).reshape(())
    return p.broadcast_to(node.constant(np.asarray(number)), checked_shape(node.integers(0)))


def _range(node: Node) -> Tensor:
    start, limit, step = (node.static(i).item() for i in range(3))
    if step == 0 or not 0 <= (limit - start) / step <= MOST_STATIC:
        raise InterchangeError(f"a range from {start} to {limit} by {step}")
    return node.constant(np.arange(start, limit, step, dtype=node[0].dtype))


def _one_hot(node: Node) -> Tensor:
    depth = int(node.static(1).reshape(()).item())
    off, on = node.static(2).tolist()
    checked_shape((*node[0].shape, depth))
    indices = p.astype(node[0], "int64")
    indices = p.where(p.less(indices, 0), p.add(indices, depth), indices)
    return p.one_hot(indices, depth, on, off, axis=int(node.attribute("axis", -1)), dtype=node[2].dtype)


def _cast(node: Node) -> Tensor:
    return p.astype(node[0], np.dtype(onnx().helper.tensor_dtype_to_np_dtype(int(node.attribute("to")))))


def _cumulated(node: Node) -> Tensor:
    exclusive, reverse = bool(node.attribute("exclusive", 0)), bool(node.attribute("reverse", 0))
    return p.cumulative_sum(node[0], node.integer(1), dtype=node[0].dtype, exclusive=exclusive, reverse=reverse)


def _product(node: Node) -> Tensor:
    a = p.matrix_transpose(node[0]) if node.attribute("transA", 0) else node[0]
    b = p.matrix_transpose(node[1]) if node.attribute("transB", 0) else node[1]
    found = p.matmul(a, b)
    alpha, beta = float(node.attribute("alpha", 1.0)), float(node.attribute("beta", 1.0))
    found = found if alpha == 1 else p.multiply(found, alpha)
    if not node.has(2):
        return found
    return p.add(found, node[2] if beta == 1 else p.multiply(node[2], beta))


def _triangle(node: Node) -> Tensor:
    k = node.integer(1) if node.has(1) else 0
    return p.triu(node[0], k) if node.attribute("upper", 1) else p.tril(node[0], k)


def _top(node: Node) -> Any:
    axis = int(node.attribute("axis", -1))
    if not node.attribute("largest", 1):
        raise InterchangeError("the smallest entries are not supported")
    values, indices = p.top_k(node[0], node.integer(1), axis)
    return values, p.astype(indices, "int64")


def _shifted(node: Node) -> Tensor:
    shift = p.bitwise_left_shift if node.attribute("direction") == b"LEFT" else p.bitwise_right_shift
    return shift(node[0], node[1])


def _gelu(node: Node) -> Tensor:
    return p.gelu(node[0], approximate=node.attribute("approximate", b"none") == b"tanh")


def _prelu(node: Node) -> Tensor:
    return p.where(p.less(node[0], 0), p.multiply(node[0], node[1]), node[0])


HANDLERS: dict[str, Handler] = {
    **{op: of_one(function) for op, function in _UNARY.items()},
    **{op: of_two(function) for op, function in _BINARY.items()},
    **LAYERS,
    "ArgMax": _arg(p.argmax),
    "ArgMin": _arg(p.argmin),
    "BitShift": _shifted,
    "Cast": _cast,
    "CastLike": lambda node: p.astype(node[0], node[1].dtype),
    "Celu": lambda node: p.celu(node[0], float(node.attribute("alpha", 1.0))),
    "Clip": _clipped,
    "Concat": lambda node: p.concat(node.inputs, int(node.attribute("axis"))),
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "CumSum": _cumulated,
    "Div": of_two(quotient),
    "Einsum": lambda node: p.einsum(node.attribute("equation").decode(), *node.inputs),
    "Elu": lambda node: p.elu(node[0], float(node.attribute("alpha", 1.0))),
    "Expand": _expanded,
    "Flatten": _flattened,
    "Gather": lambda node: p.take(node[0], node[1], int(node.attribute("axis", 0))),
    "GatherElements": lambda node: p.take_along_axis(node[0], node[1], int(node.attribute("axis", 0))),
    "GatherND": lambda node: p.gather_nd(node[0], node[1]),
    "Gelu": _gelu,
    "Gemm": _product,
    "HardSigmoid": _hard_sigmoid,
    "IsInf": _is_infinite,
    "LeakyRelu": lambda node: p.leaky_relu(node[0], float(node.attribute("alpha", 0.01))),
    "LogSoftmax": lambda node: p.log_softmax(node[0], int(node.attribute("axis", -1))),
    "Max": _all_of(p.maximum),
    "Mean": _mean_of,
    "Min": _all_of(p.minimum),
    "Mod": lambda node: (p.fmod if node.attribute("fmod", 0) else p.remainder)(node[0], node[1]),
    "OneHot": _one_hot,
    "PRelu": _prelu,
    "Pad": _padded,
    "Pow": lambda node: p.power(node[0], p.astype(node[1], node[0].dtype)),
    "Range": _range,
    "ReduceL1": _before(p.absolute, _sum),
    "ReduceL2": lambda node: p.sqrt(_before(p.square, _sum)(node)),
    "ReduceLogSum": lambda node: p.log(_sum(node)),
    "ReduceLogSumExp": _reduced(p.logsumexp),
    "ReduceMax": _reduced(p.max),
    "ReduceMean": _reduced(p.mean),
    "ReduceMin": _reduced(p.min),
    "ReduceProd": _reduced(p.prod, keeps_dtype=True),
    "ReduceSum": _sum,
    "ReduceSumSquare": _before(p.square, _sum),
    "Reshape": _reshaped,
    "Selu": lambda node: p.selu(node[0]),
    "Shape": _shape,
    "Size": lambda node: node.constant(np.array(prod(node[0].shape), np.int64)),
    "Slice": _sliced,
    "Softmax": lambda node: p.softmax(node[0], int(node.attribute("axis", -1))),
    "Split": _split,
    "Squeeze": lambda node: p.squeeze(node[0], _axes(node)),
    "Sum": _all_of(p.add),
    "Tile": _tiled,
    "TopK": _top,
    "Transpose": _transposed,
    "Trilu": _triangle,
    "Unsqueeze": lambda node: p.expand_dims(node[0], _axes(node) or ()),
    "Where": lambda node: p.where(node[0], node[1], node[2]),
}
"""By operation, what it becomes."""
