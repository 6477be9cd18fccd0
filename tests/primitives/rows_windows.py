"""Rows of the operation table: convolution and pooling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from stopgrad import primitives
from stopgrad.core.record import bind, bind1, bind2
from stopgrad.primitives.convolution import CONV_FILTERS
from stopgrad.primitives.geometry import geometry_of
from stopgrad.primitives.pooling import GATHER_LARGEST, SPREAD_LARGEST, SPREAD_MEAN
from tests.primitives.rows import Row

RNG = np.random.default_rng(3)
LINE = RNG.normal(size=(2, 7, 2))
IMAGE = RNG.normal(size=(2, 5, 6, 4))
VOLUME = RNG.normal(size=(1, 3, 3, 4, 2))
POOLED = RNG.normal(size=(2, 3, 3, 4))
TIES = np.array([1.0, 1.0, 1.0, 0.0, 2.0, 2.0, -np.inf, np.nan, 3.0]).reshape(1, 3, 3, 1)
PAIR = ("NHWC", "HWIO", "NHWC")
SAME = geometry_of("rows", (5, 6), (3, 2), 2, "SAME")
UNEVEN = [(1, 2), (0, 1)]


def _normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def _jax_conv(strides: Any, padding: Any, dilations: Any = (1, 1), groups: int = 1) -> Any:
    return lambda x, filters: lax.conv_general_dilated(
        x, filters, strides, padding, rhs_dilation=dilations, dimension_numbers=PAIR, feature_group_count=groups
    )


def _torch_conv(x: Any, filters: Any) -> Any:
    out = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1), stride=2, padding=1)
    return out.permute(0, 2, 3, 1)


def _torch_conv_transpose(x: Any, filters: Any) -> Any:
    out = torch.nn.functional.conv_transpose2d(x.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1), stride=2)
    return out.permute(0, 2, 3, 1)


def _jax_conv_filters(x: Any, t: Any) -> Any:
    """The filters' cotangent for strides of 1 is a convolution whose batch are the channels."""
    out = lax.conv_general_dilated(x, t, (1, 1), "VALID", dimension_numbers=("CHWN", "IHWO", "HWNC"))
    return out


def _jax_windows(x: Any) -> Any:
    """The entries of each window of 2 by 2 along a last axis, windows side by side."""
    batch, height, width, channels = x.shape
    cut = x[:, : height // 2 * 2, : width // 2 * 2]
    blocks = jnp.reshape(cut, (batch, height // 2, 2, width // 2, 2, channels))
    return jnp.reshape(jnp.moveaxis(blocks, 2, 4), (batch, height // 2, width // 2, 4, channels)).swapaxes(3, 4)


def _torch_pool(function: Any, **settings: Any) -> Any:
    return lambda x: function(x.permute(0, 3, 1, 2), **settings).permute(0, 2, 3, 1)


def _largest(operation: Any, t: Any, x: Any) -> Any:
    return bind(operation, (t, x, primitives.max_pool(x, (3, 2), 2, "SAME")), (SAME,))


ROWS = [
    Row(
        "conv",
        lambda x, filters: primitives.conv1d(x, filters, 2, "SAME"),
        [(LINE, _normal(3, 2, 4))],
        [(LINE[:0], _normal(3, 2, 4)), (LINE, np.zeros((3, 2, 0)))],
        jax=lambda x, filters: lax.conv_general_dilated(
            x, filters, (2,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")
        ),
        compare_edge_gradients=True,
    ),
    Row(
        "conv",
        lambda x, filters: primitives.conv2d(x, filters, (2, 1), "SAME", (1, 2)),
        [(IMAGE, _normal(3, 2, 4, 3))],
        [(IMAGE * 0, _normal(3, 2, 4, 3))],
        jax=_jax_conv((2, 1), "SAME", (1, 2)),
        compare_edge_gradients=True,
    ),
    Row(
        "conv",
        lambda x, filters: primitives.conv2d(x, filters, 2, 1),
        [(IMAGE, _normal(3, 3, 4, 3)), (IMAGE, _normal(1, 1, 4, 2))],
        [],
        torch=_torch_conv,
    ),
    Row(
        "conv",
        lambda x, filters: primitives.conv2d(x, filters, 1, UNEVEN, groups=2),
        [(IMAGE, _normal(3, 2, 2, 6))],
        [],
        jax=_jax_conv((1, 1), UNEVEN, groups=2),
    ),
    Row(
        "conv",
        lambda x, filters: primitives.depthwise_conv2d(x, filters, 2, "SAME"),
        [(IMAGE, _normal(3, 2, 4, 2))],
        [],
        jax=lambda x, filters: _jax_conv((2, 2), "SAME", groups=4)(x, jnp.reshape(filters, (3, 2, 1, 8))),
    ),
    Row(
        "conv",
        lambda x, filters: primitives.conv3d(x, filters, 1, "VALID"),
        [(VOLUME, _normal(2, 2, 3, 2, 2))],
        [],
        jax=lambda x, filters: lax.conv_general_dilated(
            x, filters, (1, 1, 1), "VALID", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
        ),
        torch=lambda x, filters: torch.nn.functional.conv3d(
            x.permute(0, 4, 1, 2, 3), filters.permute(4, 3, 0, 1, 2)
        ).permute(0, 2, 3, 4, 1),
    ),
    Row(
        "conv_input",
        lambda x, filters: primitives.conv2d_transpose(x, filters, None, 2, "SAME"),
        [(POOLED, _normal(3, 2, 2, 4))],
        [(POOLED[:0], _normal(3, 2, 2, 4))],
        jax=lambda x, filters: lax.conv_transpose(
            x, filters, (2, 2), "SAME", dimension_numbers=PAIR, transpose_kernel=True
        ),
        compare_edge_gradients=True,
    ),
    Row(
        "conv_input",
        lambda x, filters: primitives.conv2d_transpose(x, filters, None, 2),
        [(POOLED, _normal(3, 2, 2, 4)), (POOLED, _normal(2, 2, 2, 4))],
        [],
        torch=_torch_conv_transpose,
    ),
    Row(
        "conv_filters",
        lambda x, t: bind2(CONV_FILTERS, x, t, (geometry_of("rows", (5, 6), (3, 4), 1, "VALID"),)),
        [(IMAGE, POOLED[..., :2])],
        [(IMAGE * 0, POOLED[..., :2])],
        jax=_jax_conv_filters,
        compare_edge_gradients=True,
    ),
    Row(
        "max_pool",
        lambda x: primitives.max_pool(x, (3, 2), (2, 1), "SAME"),
        [(IMAGE,)],
        [(IMAGE[:0],)],
        jax=lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 1, 1), "SAME"),
        compare_edge_gradients=True,
    ),
    Row(
        "max_pool",
        lambda x: primitives.max_pool(x, 2),
        [(IMAGE,)],
        [(np.zeros((1, 4, 4, 1)),), (TIES,)],
        jax=lambda x: jnp.max(_jax_windows(x), axis=-1),  # shares evenly at ties, as reduce_max does
        torch=_torch_pool(torch.nn.functional.max_pool2d, kernel_size=2),
    ),
    Row(
        "spread_largest",
        lambda t, x: _largest(SPREAD_LARGEST, t, x),
        [(POOLED, IMAGE)],
        [(np.ones((1, 3, 3, 1)), np.zeros((1, 5, 6, 1)))],
    ),
    Row(
        "gather_largest",
        lambda t, x: _largest(GATHER_LARGEST, t, x),
        [(IMAGE + 1, IMAGE)],
        [(np.ones((1, 5, 6, 1)), np.zeros((1, 5, 6, 1)))],
    ),
    Row(
        "avg_pool",
        lambda x: primitives.avg_pool(x, (3, 2), 2, "SAME"),
        [(IMAGE,)],
        [(IMAGE[:0],), (np.zeros((1, 4, 4, 1)),)],
        jax=lambda x: (
            lax.reduce_window(x, 0.0, lax.add, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
            / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
        ),
        compare_edge_gradients=True,
    ),
    Row(
        "avg_pool",
        lambda x: primitives.avg_pool(x, 2, 1, 1),
        [(IMAGE,)],
        [],
        torch=_torch_pool(torch.nn.functional.avg_pool2d, kernel_size=2, stride=1, padding=1, count_include_pad=False),
    ),
    Row(
        "spread_mean",
        lambda t: bind1(SPREAD_MEAN, t, (geometry_of("rows", (6, 6), (2, 2), 2, "VALID"),)),
        [(POOLED,)],
        [(POOLED[:0],)],
        jax=lambda t: jnp.repeat(jnp.repeat(t, 2, 1), 2, 2) / 4,
        compare_edge_gradients=True,
    ),
]
