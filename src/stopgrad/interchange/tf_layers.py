"""How TensorFlow's operations for neural networks are read: convolutions, pools, normalisation and losses.

In data format NCHW channels come second; ours come last, so they are moved there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stopgrad.primitives as p
from stopgrad.core.errors import InterchangeError
from stopgrad.core.tensor import Tensor
from stopgrad.interchange.importing import Handler, Node


def flag(node: Node, name: str) -> bool:
    """Return a boolean attribute, false if it is not there."""
    return bool(node.attribute(name).b) if name in node.attributes else False


def number(node: Node, name: str, kind: str = "i", default: int = 0) -> int:
    """Return an integer (`i`) or data type (`type`) attribute."""
    return int(getattr(node.attribute(name), kind)) if name in node.attributes else default


def text(node: Node, name: str, default: str = "") -> str:
    """Return a string attribute."""
    return node.attribute(name).s.decode() if name in node.attributes else default


def _numbers(node: Node, name: str) -> tuple[int, ...]:
    return tuple(int(one) for one in node.attribute(name).list.i) if name in node.attributes else ()


class _Layout:
    """Where the channels are, and the settings given for each axis, read for the spatial ones."""

    def __init__(self, node: Node, ndim: int = 4) -> None:
        layout = text(node, "data_format", "NHWC")
        if layout not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
            raise InterchangeError(f"data format {layout!r} is not supported")
        self.second = layout.startswith("NC")
        self.node = node
        self.ndim = ndim

    def last(self, x: Tensor) -> Tensor:
        """Return x with its channels last."""
        if x.ndim != self.ndim:
            raise InterchangeError(f"takes a tensor of {self.ndim} axes, got shape {x.shape}")
        return p.moveaxis(x, 1, -1) if self.second else x

    def back(self, x: Tensor) -> Tensor:
        """Return x with its channels where they were."""
        return p.moveaxis(x, -1, 1) if self.second else x

    def spatial(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the settings of the spatial axes; those of batch and channels must be 1."""
        if not numbers:
            return (1,) * (self.ndim - 2)
        first, inner, last = (
            (numbers[:2], numbers[2:], ()) if self.second else (numbers[:1], numbers[1:-1], numbers[-1:])
        )
        if len(numbers) != self.ndim or any(one != 1 for one in (*first, *last)):
            raise InterchangeError(f"windows that move along batch or channels, {numbers}, are not supported")
        return inner

    def padding(self) -> Any:
        """Return the padding of the spatial axes."""
        kind = text(self.node, "padding")
        if kind != "EXPLICIT":
            return kind
        listed = _numbers(self.node, "explicit_paddings")
        pairs = list(zip(listed[::2], listed[1::2], strict=True))
        return pairs[2:] if self.second else pairs[1:-1]


def _conv(ndim: int) -> Handler:
    def handler(node: Node) -> Tensor:
        layout = _Layout(node, ndim)
        x, filters = layout.last(node[0]), node[1]
        if filters.ndim != ndim or not filters.shape[-2] or x.shape[-1] % filters.shape[-2]:
            raise InterchangeError(f"filters of shape {filters.shape} do not fit an input of shape {x.shape}")
        strides, dilations = (layout.spatial(_numbers(node, name)) for name in ("strides", "dilations"))
        groups = x.shape[-1] // filters.shape[-2]
        return layout.back(p.conv(x, filters, strides, layout.padding(), dilations, groups))

    return handler


def _depthwise(node: Node) -> Tensor:
    layout = _Layout(node)
    strides, dilations = (layout.spatial(_numbers(node, name)) for name in ("strides", "dilations"))
    return layout.back(p.depthwise_conv2d(layout.last(node[0]), node[1], strides, layout.padding(), dilations))


def _conv_transposed(node: Node) -> Tensor:
    layout = _Layout(node)
    sizes = node.integers(0)
    if len(sizes) != 4:
        raise InterchangeError(f"the sizes of the input, {sizes}, must be four")
    if layout.second:
        sizes = (sizes[0], *sizes[2:], sizes[1])
    strides, dilations = (layout.spatial(_numbers(node, name)) for name in ("strides", "dilations"))
    found = p.conv2d_transpose(layout.last(node[2]), node[1], sizes, strides, layout.padding(), dilations)
    return layout.back(found)


def _pool(function: Callable[..., Tensor], from_inputs: bool = False) -> Handler:
    def handler(node: Node) -> Tensor:
        layout = _Layout(node)
        window, strides = (
            (node.integers(1), node.integers(2))
            if from_inputs
            else (_numbers(node, "ksize"), _numbers(node, "strides"))
        )
        x = layout.last(node[0])
        return layout.back(function(x, layout.spatial(window), layout.spatial(strides), layout.padding()))

    return handler


def _bias(node: Node) -> Tensor:
    x, bias = node[0], node[1]
    if text(node, "data_format", "NHWC").startswith("NC") and x.ndim > 2:
        bias = p.reshape(bias, (-1,) + (1,) * (x.ndim - 2))
    return p.add(x, bias)


def _normalised(node: Node) -> Any:
    if node.attributes.get("is_training") is None or flag(node, "is_training"):
        raise InterchangeError("batch normalisation in training is not supported; export the model for inference")
    layout = _Layout(node, 5 if text(node, "data_format").endswith("DHW") else 4)
    scale, offset, mean, variance = (node[i] for i in range(1, 5))
    epsilon = node.attribute("epsilon").f if "epsilon" in node.attributes else 1e-4
    factor = p.multiply(scale, p.rsqrt(p.add(variance, float(epsilon))))
    x = layout.last(node[0])
    return (layout.back(p.add(p.multiply(p.subtract(x, mean), factor), offset)), mean, variance)


def _cross_entropy(node: Node) -> Any:
    logits, labels = node[0], node[1]
    if node.op.startswith("Sparse"):
        labels = p.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    losses = p.negative(p.sum(p.multiply(labels, p.log_softmax(logits)), -1))
    if node.used < 2:
        return losses
    return losses, p.subtract(p.softmax(logits), labels)


def _slope(node: Node) -> float:
    return float(node.attribute("alpha").f) if "alpha" in node.attributes else 0.2


def _top(node: Node) -> Any:
    count = node.integer(1) if node.has(1) else number(node, "k")
    values, indices = p.top_k(node[0], count)
    return values, p.astype(indices, "int32")


LAYERS: dict[str, Handler] = {
    "AvgPool": _pool(p.avg_pool),
    "BiasAdd": _bias,
    "BiasAddV1": _bias,
    "Conv2D": _conv(4),
    "Conv2DBackpropInput": _conv_transposed,
    "Conv3D": _conv(5),
    "DepthwiseConv2dNative": _depthwise,
    "FusedBatchNorm": _normalised,
    "FusedBatchNormV2": _normalised,
    "FusedBatchNormV3": _normalised,
    "LeakyRelu": lambda node: p.leaky_relu(node[0], _slope(node)),
    "LogSoftmax": lambda node: p.log_softmax(node[0]),
    "MaxPool": _pool(p.max_pool),
    "MaxPoolV2": _pool(p.max_pool, from_inputs=True),
    "Softmax": lambda node: p.softmax(node[0]),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _cross_entropy,
    "TopK": _top,
    "TopKV2": _top,
}
"""By operation, what it becomes."""
