"""Convolution and pooling with TensorFlow's arguments: `data_format`, strides of one, two or four numbers, paddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.tf.values import as_floats, as_tensor, integers, operands


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolution over one axis: input (batch, width, channels), filters (window, channels, features).

    Channels come second for data_format="NCW".
    """
    return _convolved("conv1d", 1, input, filters, stride, padding, data_format, dilations)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolution over two axes (a cross-correlation, as in neural networks).

    Args:
        input: tensor of shape (batch, height, width, channels), or with channels second for data_format="NCHW".
        filters: tensor of shape (window height, window width, channels / groups, features).
        strides: one number, two, or one for each axis of the input.
        padding: "SAME", "VALID", or pairs (before, after) for each axis of the input.
        data_format: "NHWC" or "NCHW".
        dilations: distance of neighbouring entries in a window, as `strides`.
        name: not used.

    Example:
        >>> import stopgrad.tf as tf
        >>> y = tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), strides=1, padding="SAME")
        >>> tf.squeeze(y).numpy()
        array([[4., 4., 2.],
               [4., 4., 2.],
               [2., 2., 1.]], dtype=float32)
    """
    return _convolved("conv2d", 2, input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolution over three axes; see `conv2d`."""
    return _convolved("conv3d", 3, input, filters, strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolution of every channel for itself: filters (window height, window width, channels, multiplier)."""
    x, window = operands("depthwise_conv2d", as_floats(input, "depthwise_conv2d"), filter)
    layout = _Layout("depthwise_conv2d", 2, data_format)
    found = p.depthwise_conv2d(
        layout.channels_last(x), window, layout.each(strides), layout.padding(padding), layout.each(dilations)
    )
    return layout.restored(found)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """`depthwise_conv2d`, and then a `conv2d` with windows of one entry that mixes the channels."""
    between = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(between, pointwise_filter, 1, "VALID", data_format)


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` for its input.

    Filters are (window height, window width, channels of the output, channels of the input).
    """
    x, window = operands("conv2d_transpose", as_floats(input, "conv2d_transpose"), filters)
    layout = _Layout("conv2d_transpose", 2, data_format)
    shape = layout.shape(integers(output_shape, "conv2d_transpose: output_shape"))
    found = p.conv2d_transpose(
        layout.channels_last(x), window, shape, layout.each(strides), layout.padding(padding), layout.each(dilations)
    )
    return layout.restored(found)


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC", name: str | None = None
) -> Tensor:
    """Largest entry of each window along one axis; equal ones share the derivative."""
    return _pooled(p.max_pool, "max_pool1d", 1, input, ksize, strides, padding, data_format)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """Largest entry of each window over two axes; equal ones share the derivative, where TensorFlow takes the first.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
        >>> tf.squeeze(tf.nn.max_pool2d(x, 2, 2, "VALID")).numpy()
        array(3., dtype=float32)
    """
    return _pooled(p.max_pool, "max_pool2d", 2, input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC", name: str | None = None
) -> Tensor:
    """Mean of each window along one axis; padding is not counted."""
    return _pooled(p.avg_pool, "avg_pool1d", 1, input, ksize, strides, padding, data_format)


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """Mean of each window over two axes; padding is not counted."""
    return _pooled(p.avg_pool, "avg_pool2d", 2, input, ksize, strides, padding, data_format)


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Largest entry of each window over all axes between batch and channels. Of TensorFlow, and of TensorFlow.js."""
    return _pooled(p.max_pool, "max_pool", _spatial(input, "max_pool"), input, ksize, strides, padding, data_format)


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Mean of each window over all axes between batch and channels. Of TensorFlow, and of TensorFlow.js."""
    return _pooled(p.avg_pool, "avg_pool", _spatial(input, "avg_pool"), input, ksize, strides, padding, data_format)


class _Layout:
    """Where the channels are, and what that makes of arguments that may be given for every axis."""

    def __init__(self, name: str, spatial: int, data_format: str | None) -> None:
        self._name = name
        self._spatial = spatial
        self._channels_first = data_format is not None and data_format.upper().startswith("NC")
        known = {"NW", "NHW", "NDHW"}
        if data_format is not None and data_format.upper().replace("C", "") not in known:
            raise ArgumentError(f"{name}: data_format must be such as 'NHWC' or 'NCHW', got {data_format!r}")

    def channels_last(self, x: Tensor) -> Tensor:
        """Return the input with its channels last."""
        if x.ndim != self._spatial + 2:
            raise ShapeError(f"{self._name}: the input must have {self._spatial + 2} axes, got shape {x.shape}")
        return p.moveaxis(x, 1, -1) if self._channels_first else x

    def restored(self, y: Tensor) -> Tensor:
        """Return a result in the layout of the input."""
        return p.moveaxis(y, -1, 1) if self._channels_first else y

    def shape(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape with its channels last."""
        return (sizes[0], *sizes[2:], sizes[1]) if self._channels_first else sizes

    def each(self, given: Any) -> tuple[int, ...]:
        """Return a setting for each spatial axis, given once, so, or for every axis."""
        numbers = (1,) if given is None else integers(given, self._name)
        if len(numbers) == 1:
            return numbers * self._spatial
        if len(numbers) == self._spatial + 2:
            batch, *spatial, channels = self.shape(numbers)
            if batch != 1 or channels != 1:
                raise ArgumentError(f"{self._name}: strides over batch and channels must be 1, got {numbers}")
            return tuple(spatial)
        if len(numbers) != self._spatial:
            raise ArgumentError(f"{self._name}: takes 1, {self._spatial} or {self._spatial + 2} numbers, got {numbers}")
        return numbers

    def padding(self, given: Any) -> Any:
        """Return a padding for the spatial axes."""
        if isinstance(given, str | int):
            return given
        pairs = [integers(pair, f"{self._name}: padding") for pair in given]
        if len(pairs) == self._spatial + 2:
            pairs = [*pairs[2:]] if self._channels_first else pairs[1:-1]
        return tuple(pairs)


def _convolved(
    name: str, spatial: int, input: Any, filters: Any, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Tensor:
    x, window = operands(name, as_floats(input, name), filters)
    layout = _Layout(name, spatial, data_format)
    last = layout.channels_last(x)
    if window.ndim != spatial + 2:
        raise ShapeError(
            f"{name}: filters must have {spatial + 2} axes (window, channels, features), got {window.shape}"
        )
    channels = window.shape[-2]
    groups = last.shape[-1] // channels if channels and last.shape[-1] % channels == 0 else 1
    found = p.conv(last, window, layout.each(strides), layout.padding(padding), layout.each(dilations), groups)
    return layout.restored(found)


def _pooled(
    function: Callable[..., Tensor],
    name: str,
    spatial: int,
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
) -> Tensor:
    layout = _Layout(name, spatial, data_format)
    x = layout.channels_last(as_floats(input, name))
    return layout.restored(function(x, layout.each(ksize), layout.each(strides), layout.padding(padding)))


def _spatial(input: Any, name: str) -> int:
    ndim = as_tensor(input, name).ndim
    if ndim < 3:
        raise ShapeError(f"{name}: the input must have at least three axes, got {ndim}")
    return ndim - 2
