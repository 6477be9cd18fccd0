"""How ONNX's convolutions, pools and normalisations are read: channels stand second there, and last with us."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import stopgrad.primitives as p
from stopgrad.core.errors import InterchangeError
from stopgrad.core.tensor import Tensor
from stopgrad.interchange.importing import Handler, Node
from stopgrad.primitives.geometry import same_pads


def _last(x: Tensor) -> Tensor:
    if x.ndim < 3:
        raise InterchangeError(f"takes (batch, channels, *spatial), got shape {x.shape}")
    return p.moveaxis(x, 1, -1)


def _second(x: Tensor) -> Tensor:
    return p.moveaxis(x, -1, 1)


def _numbers(node: Node, name: str, count: int, default: int = 1) -> tuple[int, ...]:
    found = tuple(int(one) for one in node.attribute(name, (default,) * count))
    if len(found) != count:
        raise InterchangeError(f"{name} has {len(found)} numbers, not {count}")
    return found


class _Windows:
    """Strides, dilations and padding of a node, for windows of a size over spatial axes."""

    def __init__(self, node: Node, size: tuple[int, ...], window: tuple[int, ...]) -> None:
        ndim = len(size)
        if len(window) != ndim:
            raise InterchangeError(f"windows of {window} over {ndim} axes")
        self.strides = _numbers(node, "strides", ndim)
        self.dilations = _numbers(node, "dilations", ndim)
        if min((*self.strides, *self.dilations, *window)) < 1:
            raise InterchangeError("strides, dilations and windows must be at least 1")
        reach = tuple((n - 1) * step + 1 for n, step in zip(window, self.dilations, strict=True))
        self.reach = reach
        kind = node.attribute("auto_pad", b"NOTSET").decode()
        if kind == "NOTSET":
            pads = _numbers(node, "pads", 2 * ndim, 0)
            self.pads = tuple(zip(pads[:ndim], pads[ndim:], strict=True))
        elif kind == "VALID":
            self.pads = ((0, 0),) * ndim
        elif kind in ("SAME_UPPER", "SAME_LOWER"):
            pairs = tuple(same_pads(*one) for one in zip(size, reach, self.strides, strict=True))
            self.pads = tuple(pair[:: 1 if kind == "SAME_UPPER" else -1] for pair in pairs)  # type: ignore[misc]
        else:
            raise InterchangeError(f"auto_pad {kind!r} is not supported")


def _with_bias(node: Node, y: Tensor) -> Tensor:
    return p.add(y, node[2]) if node.has(2) else y


def _conv(node: Node) -> Tensor:
    x, kernel = _last(node[0]), node[1]
    filters = p.permute_dims(kernel, (*range(2, kernel.ndim), 1, 0))
    windows = _Windows(node, x.shape[1:-1], filters.shape[:-2])
    groups = int(node.attribute("group", 1))
    found = p.conv(x, filters, windows.strides, windows.pads, windows.dilations, groups)
    return _second(_with_bias(node, found))


def _conv_transposed(node: Node) -> Tensor:
    x, kernel = _last(node[0]), node[1]
    ndim = kernel.ndim - 2
    if int(node.attribute("group", 1)) != 1 or node.attribute("output_shape", None) is not None:
        raise InterchangeError("transposed convolutions in groups, or of a given output_shape, are not supported")
    if node.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise InterchangeError("auto_pad of transposed convolutions is not supported")
    windows = _Windows(node, x.shape[1:-1], kernel.shape[2:])
    extra = _numbers(node, "output_padding", ndim, 0)
    filters = p.permute_dims(kernel, (*range(2, kernel.ndim), 1, 0))
    full = tuple(
        (size - 1) * stride + reach + more
        for size, stride, reach, more in zip(x.shape[1:-1], windows.strides, windows.reach, extra, strict=True)
    )
    # Without padding, of which then so much is cut off.
    found = p.conv_transpose(
        x, filters, (x.shape[0], *full, kernel.shape[1]), windows.strides, "VALID", windows.dilations
    )
    inside = (slice(before, size - after) for size, (before, after) in zip(full, windows.pads, strict=True))
    return _second(_with_bias(node, p.getitem(found, (slice(None), *inside))))


def _pool(kind: str) -> Handler:
    def handler(node: Node) -> Tensor:
        x = _last(node[0])
        if node.attribute("ceil_mode", 0) or node.used > 1:
            raise InterchangeError("ceil_mode, and the indices of the largest entries, are not supported")
        window = _numbers(node, "kernel_shape", x.ndim - 2)
        windows = _Windows(node, x.shape[1:-1], window)
        if any(one != 1 for one in windows.dilations):
            raise InterchangeError("pools with dilations are not supported")
        if kind == "max":
            return _second(p.max_pool(x, window, windows.strides, windows.pads))
        pads = windows.pads
        if node.attribute("count_include_pad", 0):
            x, pads = p.pad(x, ((0, 0), *pads, (0, 0))), ((0, 0),) * len(window)
        return _second(p.avg_pool(x, window, windows.strides, pads))

    return handler


def _global(function: Callable[..., Tensor]) -> Handler:
    return lambda node: function(node[0], tuple(range(2, node[0].ndim)), keepdims=True)


def _batch_normalised(node: Node) -> Tensor:
    if node.attribute("training_mode", 0):
        raise InterchangeError("batch normalisation in training is not supported; export the model for inference")
    scale, offset, mean, variance = (node[i] for i in range(1, 5))
    factor = p.multiply(scale, p.rsqrt(p.add(variance, float(node.attribute("epsilon", 1e-5)))))
    shape = (-1,) + (1,) * (node[0].ndim - 2)
    factor, offset, mean = (p.reshape(one, shape) for one in (factor, offset, mean))
    return p.add(p.multiply(p.subtract(node[0], mean), factor), offset)


def _layer_normalised(node: Node) -> Any:
    x = node[0]
    first = int(node.attribute("axis", -1)) % max(x.ndim, 1)
    axes = tuple(range(first, x.ndim))
    if node.used > 1:
        raise InterchangeError("only the first output is supported")
    found = p.multiply(p.standardize(x, axes, epsilon=float(node.attribute("epsilon", 1e-5))), node[1])
    return p.add(found, node[2]) if node.has(2) else found


def _instance_normalised(node: Node) -> Tensor:
    axes = tuple(range(2, node[0].ndim))
    scale, offset = (p.reshape(node[i], (-1,) + (1,) * len(axes)) for i in (1, 2))
    found = p.standardize(node[0], axes, epsilon=float(node.attribute("epsilon", 1e-5)))
    return p.add(p.multiply(found, scale), offset)


def _in_blocks(node: Node) -> Tensor:
    x, size = node[0], int(node.attribute("blocksize"))
    batch, channels, height, width = x.shape
    depth = channels // max(size * size, 1)
    if size < 1 or prod((size, size, depth)) != channels or np.prod(x.shape) == 0:
        raise InterchangeError(f"{channels} channels in blocks of {size}")
    if node.attribute("mode", b"DCR") == b"DCR":
        spread, order = (batch, size, size, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        spread, order = (batch, depth, size, size, height, width), (0, 1, 4, 2, 5, 3)
    return p.reshape(p.permute_dims(p.reshape(x, spread), order), (batch, depth, height * size, width * size))


LAYERS: dict[str, Handler] = {
    "AveragePool": _pool("average"),
    "BatchNormalization": _batch_normalised,
    "Conv": _conv,
    "ConvTranspose": _conv_transposed,
    "DepthToSpace": _in_blocks,
    "GlobalAveragePool": _global(p.mean),
    "GlobalMaxPool": _global(p.max),
    "InstanceNormalization": _instance_normalised,
    "LayerNormalization": _layer_normalised,
    "MaxPool": _pool("max"),
}
"""By operation, what it becomes."""
