"""How each operation of TensorFlow is read, except for neural networks' (see `tf_layers`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.arrays import carries_derivative, is_complex
from stopgrad.core.errors import InterchangeError
from stopgrad.core.tensor import Tensor
from stopgrad.gates import prevent_gradient
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
from stopgrad.interchange.tensor_protos import dtype_of
from stopgrad.interchange.tf_layers import LAYERS, flag, number, text

_UNARY: dict[str, Callable[..., Tensor]] = {
    "Abs": p.absolute,
    "Acos": p.arccos,
    "Acosh": p.arccosh,
    "Asin": p.arcsin,
    "Asinh": p.arcsinh,
    "Atan": p.arctan,
    "Atanh": p.arctanh,
    "Ceil": p.ceil,
    "ComplexAbs": p.absolute,
    "Conj": p.conj,
    "Cos": p.cos,
    "Cosh": p.cosh,
    "Digamma": p.digamma,
    "Elu": p.elu,
    "Erf": p.erf,
    "Erfc": p.erfc,
    "Erfinv": p.erfinv,
    "Exp": p.exp,
    "Expm1": p.expm1,
    "Floor": p.floor,
    "Imag": p.imag,
    "Inv": p.reciprocal,
    "Invert": p.bitwise_invert,
    "IsFinite": p.isfinite,
    "IsInf": p.isinf,
    "IsNan": p.isnan,
    "Lgamma": p.lgamma,
    "Log": p.log,
    "Log1p": p.log1p,
    "LogicalNot": p.logical_not,
    "Neg": p.negative,
    "OnesLike": p.ones_like,
    "Real": p.real,
    "Reciprocal": p.reciprocal,
    "Relu": p.relu,
    "Relu6": p.relu6,
    "Rint": p.rint,
    "Round": p.rint,
    "Rsqrt": p.rsqrt,
    "Selu": p.selu,
    "Sigmoid": p.sigmoid,
    "Sign": p.sign,
    "Sin": p.sin,
    "Sinh": p.sinh,
    "Softplus": p.softplus,
    "Softsign": p.softsign,
    "Sqrt": p.sqrt,
    "Square": p.square,
    "Tan": p.tan,
    "Tanh": p.tanh,
    "ZerosLike": p.zeros_like,
}

_BINARY: dict[str, Callable[..., Tensor]] = {
    "Add": p.add,
    "AddV2": p.add,
    "Atan2": p.arctan2,
    "BitwiseAnd": p.bitwise_and,
    "BitwiseOr": p.bitwise_or,
    "BitwiseXor": p.bitwise_xor,
    "Complex": p.make_complex,
    "DivNoNan": p.divide_no_nan,
    "Equal": p.equal,
    "FloorDiv": p.floor_divide,
    "FloorMod": p.remainder,
    "Greater": p.greater,
    "GreaterEqual": p.greater_equal,
    "LeftShift": p.bitwise_left_shift,
    "Less": p.less,
    "LessEqual": p.less_equal,
    "LogicalAnd": p.logical_and,
    "LogicalOr": p.logical_or,
    "Maximum": p.maximum,
    "Minimum": p.minimum,
    "Mod": p.fmod,
    "Mul": p.multiply,
    "MulNoNan": p.multiply_no_nan,
    "NotEqual": p.not_equal,
    "Pow": p.power,
    "RealDiv": p.divide,
    "RightShift": p.bitwise_right_shift,
    "SquaredDifference": p.squared_difference,
    "Sub": p.subtract,
    "TruncateMod": p.fmod,
    "Xdivy": p.divide_no_nan,
    "Xlog1py": p.xlog1py,
    "Xlogy": p.xlogy,
}


def _reduced(function: Callable[..., Tensor], keeps_dtype: bool = False) -> Handler:
    def handler(node: Node) -> Tensor:
        axis = node.integers(1) if node.has(1) else tuple(range(node[0].ndim))
        options = {"dtype": node[0].dtype} if keeps_dtype else {}
        return function(node[0], axis, keepdims=flag(node, "keep_dims"), **options)

    return handler


def _mean(node: Node) -> Tensor:
    if not carries_derivative(node[0].dtype):
        raise InterchangeError("means of integers are not supported")
    return _reduced(p.mean)(node)


def _arg(function: Callable[..., Tensor]) -> Handler:
    def handler(node: Node) -> Tensor:
        kind = number(node, "output_type", "type", 9)
        return p.astype(function(node[0], node.integer(1) if node.has(1) else 0), dtype_of(kind))

    return handler


def _cumulative(function: Callable[..., Tensor]) -> Handler:
    return lambda node: function(
        node[0],
        node.integer(1),
        dtype=node[0].dtype,
        exclusive=flag(node, "exclusive"),
        reverse=flag(node, "reverse"),
    )


def _matmul(node: Node) -> Tensor:
    a, b = node[0], node[1]
    for name in ("transpose_a", "adj_x"):
        if flag(node, name):
            a = _adjoint(a, name)
    for name in ("transpose_b", "adj_y"):
        if flag(node, name):
            b = _adjoint(b, name)
    if a.ndim < 2 or b.ndim < 2:
        raise InterchangeError(f"takes matrices, got shapes {a.shape} and {b.shape}")
    return p.matmul(a, b)


def _adjoint(x: Tensor, name: str) -> Tensor:
    turned = p.matrix_transpose(x)
    return p.conj(turned) if name.startswith("adj") and is_complex(x.dtype) else turned


def _squeezed(node: Node) -> Tensor:
    axes = tuple(int(one) for one in node.attribute("squeeze_dims").list.i) if "squeeze_dims" in node.attributes else ()
    return p.squeeze(node[0], axes or None)


def _concat(node: Node) -> Tensor:
    return p.concat(node.inputs[:-1], node.integer(len(node.inputs) - 1))


def _unpacked(node: Node) -> Any:
    axis, count = number(node, "axis"), number(node, "num")
    return _few(p.unstack, node[0], axis, node[0].shape[axis], count)


def _few(function: Callable[..., Any], x: Tensor, axis: int, found: int, count: int) -> Any:
    if found != count or not 0 < count <= MOST_PARTS:
        raise InterchangeError(f"{count} parts of an axis of {found}")
    return function(x, axis=axis)


def _split(node: Node) -> Any:
    axis, count = node.integer(0), number(node, "num_split")
    if not 0 < count <= MOST_PARTS or node[1].shape[axis] % count:
        raise InterchangeError(f"{count} parts of an axis of {node[1].shape[axis]}")
    return p.split(node[1], count, axis)


def _split_at(node: Node) -> Any:
    sizes, axis = list(node.integers(1)), node.integer(2)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = node[0].shape[axis] - sum(sizes) - 1
    if not 0 < len(sizes) <= MOST_PARTS or min(sizes) < 0 or sum(sizes) != node[0].shape[axis]:
        raise InterchangeError(f"parts of {sizes} of an axis of {node[0].shape[axis]}")
    return p.split(node[0], [int(one) for one in np.cumsum(sizes)[:-1]], axis)


def _slice(node: Node) -> Tensor:
    begin, size, shape = node.integers(1), node.integers(2), node[0].shape
    index = []
    for first, count, total in zip(begin, size, shape, strict=True):
        last = total if count == -1 else first + count
        if not 0 <= first <= last <= total:
            raise InterchangeError(f"begin {begin} and size {size} do not fit shape {shape}")
        index.append(slice(first, last))
    return p.getitem(node[0], tuple(index))


def _strided_slice(node: Node) -> Tensor:
    masks = {name: number(node, f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[Any] = []
    for i, (begin, end, step) in enumerate(zip(*(node.integers(one) for one in (1, 2, 3)), strict=True)):
        on = {name for name, bits in masks.items() if bits >> i & 1}
        if "ellipsis" in on:
            index.append(Ellipsis)
        elif "new_axis" in on:
            index.append(None)
        elif "shrink_axis" in on:
            index.append(begin)
        else:
            index.append(slice(None if "begin" in on else begin, None if "end" in on else end, step))
    return p.getitem(node[0], tuple(index))


def _gather(node: Node) -> Tensor:
    axis = node.integer(2) if node.has(2) else 0
    batch = number(node, "batch_dims")
    if batch:
        return p.gather(node[0], node[1], axis, batch % max(node[1].ndim, 1))
    return p.take(node[0], node[1], axis)


def _pairs(node: Node, i: int) -> tuple[tuple[int, int], ...]:
    """Return an input of shape (axes, 2) that must be known."""
    value = node.static(i)
    if value.ndim != 2 or value.shape[1:] != (2,) or value.dtype.kind != "i":
        raise InterchangeError(f"paddings must be pairs of integers, got shape {value.shape}")
    return tuple((int(before), int(after)) for before, after in value)


def _padded(node: Node) -> Tensor:
    fill = node.static(2).item() if node.has(2) else 0
    return p.pad(node[0], _pairs(node, 1), constant_values=fill)


def _mirrored(node: Node) -> Tensor:
    mode = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}[text(node, "mode")]
    widths = _pairs(node, 1)
    if any(max(pair) > size for pair, size in zip(widths, node[0].shape, strict=True)):
        raise InterchangeError(f"paddings {widths} are wider than the tensor of shape {node[0].shape}")
    return p.pad(node[0], widths, mode)


def _tiled(node: Node) -> Tensor:
    repeats = node.integers(1)
    checked_shape(size * times for size, times in zip(node[0].shape, repeats, strict=True))
    return p.tile(node[0], repeats)


def _range(node: Node) -> Tensor:
    start, limit, step = (node.static(i).item() for i in range(3))
    if step == 0 or not 0 <= (limit - start) / step <= MOST_STATIC:
        raise InterchangeError(f"a range from {start} to {limit} by {step}")
    return node.constant(np.arange(start, limit, step, dtype=node[0].dtype))


def _one_hot(node: Node) -> Tensor:
    depth, axis = node.integer(1), number(node, "axis", default=-1)
    checked_shape((*node[0].shape, depth))
    on, off = (node.static(i).item() for i in (2, 3))
    return p.one_hot(node[0], depth, on, off, axis=axis, dtype=node[2].dtype)


def _shape_of(x: Tensor, node: Node, default: int = 3) -> Tensor:
    return node.constant(np.array(x.shape, dtype_of(number(node, "out_type", "type", default))))


def _size_of(node: Node) -> Tensor:
    return node.constant(np.array(prod(node[0].shape), dtype_of(number(node, "out_type", "type", 3))))


def _selected(node: Node) -> Tensor:
    condition = node[0]
    if condition.ndim == 1 and node[1].ndim > 1:  # the older Select: one decision for each row
        condition = p.reshape(condition, (-1,) + (1,) * (node[1].ndim - 1))
    return p.where(condition, node[1], node[2])


def _prevented(node: Node) -> Tensor:
    message = node.attribute("message").s.decode("utf-8", "replace") if "message" in node.attributes else ""
    return prevent_gradient(node[0], message or f"{node.name!r} must not be differentiated")


def _all_of(function: Callable[[Tensor], Any]) -> Handler:
    return lambda node: tuple(function(one) for one in node.inputs)


def _triangles(node: Node) -> Tensor:
    lower, upper = node.integer(1), node.integer(2)
    below = node[0] if lower < 0 else p.triu(node[0], -lower)
    return below if upper < 0 else p.tril(below, upper)


HANDLERS: dict[str, Handler] = {
    **{op: of_one(function) for op, function in _UNARY.items()},
    **{op: of_two(function) for op, function in _BINARY.items()},
    **LAYERS,
    "AddN": lambda node: reduce(p.add, (node[i] for i in range(max(len(node.inputs), 1)))),
    "All": _reduced(p.all),
    "Any": _reduced(p.any),
    "ArgMax": _arg(p.argmax),
    "ArgMin": _arg(p.argmin),
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul,
    "BroadcastTo": lambda node: p.broadcast_to(node[0], checked_shape(node.integers(1))),
    "Cast": lambda node: p.astype(node[0], dtype_of(node.attribute("DstT").type)),
    "CheckNumerics": lambda node: node[0],
    "ClipByValue": lambda node: p.clip(node[0], node[1], node[2]),
    "Concat": lambda node: p.concat(node.inputs[1:], node.integer(0)),
    "ConcatV2": _concat,
    "Cumprod": _cumulative(p.cumulative_prod),
    "Cumsum": _cumulative(p.cumulative_sum),
    "Div": of_two(quotient),
    "Einsum": lambda node: p.einsum(text(node, "equation"), *node.inputs),
    "EnsureShape": lambda node: node[0],
    "EuclideanNorm": lambda node: p.sqrt(_reduced(p.sum, keeps_dtype=True)(_with_square(node))),
    "ExpandDims": lambda node: p.expand_dims(node[0], node.integer(1)),
    "Fill": lambda node: p.broadcast_to(node[1], checked_shape(node.integers(0))),
    "Gather": _gather,
    "GatherNd": lambda node: p.gather_nd(node[0], node[1]),
    "GatherV2": _gather,
    "Identity": lambda node: node[0],
    "IdentityN": _all_of(lambda one: one),
    "L2Loss": lambda node: p.multiply(p.sum(p.square(node[0])), 0.5),
    "MatMul": _matmul,
    "MatrixBandPart": _triangles,
    "Max": _reduced(p.max),
    "Mean": _mean,
    "Min": _reduced(p.min),
    "MirrorPad": _mirrored,
    "OneHot": _one_hot,
    "Pack": lambda node: p.stack(node.inputs, number(node, "axis")),
    "Pad": _padded,
    "PadV2": _padded,
    "PlaceholderWithDefault": lambda node: node[0],
    "PreventGradient": _prevented,
    "Prod": _reduced(p.prod, keeps_dtype=True),
    "Range": _range,
    "Rank": lambda node: node.constant(np.array(node[0].ndim, np.int32)),
    "Reshape": lambda node: p.reshape(node[0], node.integers(1)),
    "ReverseV2": lambda node: p.flip(node[0], node.integers(1)),
    "Roll": lambda node: p.roll(node[0], node.integers(1), node.integers(2)),
    "Select": _selected,
    "SelectV2": lambda node: p.where(node[0], node[1], node[2]),
    "Shape": lambda node: _shape_of(node[0], node),
    "ShapeN": lambda node: tuple(_shape_of(one, node) for one in node.inputs),
    "Size": _size_of,
    "Slice": _slice,
    "Snapshot": lambda node: node[0],
    "Split": _split,
    "SplitV": _split_at,
    "Squeeze": _squeezed,
    "StopGradient": lambda node: node.stop(node[0], text(node, "_stop_name", node.name)),
    "StridedSlice": _strided_slice,
    "Sum": _reduced(p.sum, keeps_dtype=True),
    "Tile": _tiled,
    "Transpose": lambda node: p.permute_dims(node[0], node.integers(1)),
    "TruncateDiv": of_two(quotient),
    "Unpack": _unpacked,
}
"""By operation, what it becomes."""


def _with_square(node: Node) -> Node:
    node.inputs[0] = p.square(node[0])
    return node
