"""Convolution and pooling do what their formulas say, cut into any pieces, and keep no more than they need."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.primitives import correlation
from tests.kept import kept_arrays

RNG = np.random.default_rng(0)


def by_definition(
    x: np.ndarray, filters: np.ndarray, strides: tuple[int, ...], dilations: tuple[int, ...], groups: int
) -> np.ndarray:
    """y[n, o, f] = Σ x[n, o·stride + k·dilation, c] · filters[k, c, f], each group of channels by itself."""
    window = filters.shape[:-2]
    out = tuple(
        (size - (k - 1) * d - 1) // s + 1
        for size, k, s, d in zip(x.shape[1:-1], window, strides, dilations, strict=True)
    )
    channels, features = filters.shape[-2], filters.shape[-1] // groups
    y = np.zeros((len(x), *out, filters.shape[-1]))
    for place in itertools.product(*map(range, out)):
        for k in itertools.product(*map(range, window)):
            at = tuple(o * s + i * d for o, s, i, d in zip(place, strides, k, dilations, strict=True))
            for group in range(groups):
                entries = x[(slice(None), *at, slice(group * channels, (group + 1) * channels))]
                chosen = slice(group * features, (group + 1) * features)
                y[(slice(None), *place, chosen)] += entries @ filters[k][:, chosen]
    return y


@settings(max_examples=40)
@given(st.data())
def test_convolution_is_its_formula(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(ndim))

    window, strides, dilations = each(1, 3), each(1, 3), each(1, 2)
    size = tuple((k - 1) * d + 1 + more for k, d, more in zip(window, dilations, each(0, 2), strict=True))
    groups, channels, features = data.draw(st.sampled_from([(1, 1, 2), (1, 2, 1), (2, 2, 1), (3, 1, 1), (2, 1, 2)]))
    x = RNG.normal(size=(2, *size, channels * groups))
    filters = RNG.normal(size=(*window, channels, features * groups))
    expected = by_definition(x, filters, strides, dilations, groups)
    found = sg.conv(x, filters, strides, "VALID", dilations, groups)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    check_gradients(lambda a, b: sg.conv(a, b, strides, "VALID", dilations, groups), (x, filters))


@pytest.mark.parametrize(("size", "window", "stride"), [(5, 3, 1), (6, 3, 2), (5, 2, 2), (4, 1, 3), (7, 4, 3)])
def test_same_padding_gives_the_size_over_the_stride_and_more_zeros_behind(size: int, window: int, stride: int) -> None:
    x, filters = RNG.normal(size=(1, size, 1)), RNG.normal(size=(window, 1, 1))
    found = sg.conv1d(x, filters, stride, "same").numpy()
    results = -(-size // stride)
    total = max((results - 1) * stride + window - size, 0)
    assert found.shape == (1, results, 1)
    explicit = sg.conv1d(x, filters, stride, [(total // 2, total - total // 2)])
    assert np.array_equal(found, explicit.numpy())


def test_a_batch_gives_the_same_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    x, filters = RNG.normal(size=(7, 6, 5, 2)), RNG.normal(size=(3, 2, 2, 4))

    def all_three() -> list[np.ndarray]:
        y, pullback = sg.vjp(lambda a, b: sg.conv2d(a, b, (2, 1), "SAME"), x, filters)
        return [one.numpy() for one in (y, *pullback(np.cos(y.numpy())))]

    whole = all_three()
    monkeypatch.setattr(correlation, "_CHUNK_BYTES", 3000)
    for one, other in zip(whole, all_three(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_transposed_convolution_is_the_adjoint() -> None:
    for strides, padding in ((2, "SAME"), (3, "VALID"), (2, 1), (1, [(0, 1), (2, 0)])):
        x, filters = RNG.normal(size=(2, 6, 7, 3)), RNG.normal(size=(3, 2, 3, 4))
        y = sg.conv2d(x, filters, strides, padding).numpy()
        u = RNG.normal(size=y.shape)
        back = sg.conv2d_transpose(u, filters, x.shape, strides, padding).numpy()
        assert back.shape == x.shape
        np.testing.assert_allclose(np.sum(u * y), np.sum(back * x), rtol=1e-12)


def test_convolution_keeps_only_what_its_live_inputs_need() -> None:
    x, filters = np.ones((1, 8, 8, 2)), np.ones((3, 3, 2, 4))
    shapes: list[list[tuple[int, ...]]] = []

    def f(a: Any, b: Any) -> sg.Tensor:
        y = sg.conv2d(a, b)
        shapes.append([one.shape for one in kept_arrays(y)])
        return sg.sum(y)

    sg.grad(f)(x, filters)
    sg.grad(f, 1)(x, filters)
    assert shapes == [[filters.shape], [x.shape]]


def test_ties_in_a_pool_share_evenly() -> None:
    def total(x: Any) -> sg.Tensor:
        return sg.sum(sg.max_pool(x, 2))

    assert sg.grad(total)(np.zeros((1, 2, 2, 1))).tolist() == np.full((1, 2, 2, 1), 0.25).tolist()
    assert sg.grad(total)(np.array([3.0, 3.0, 1.0, 0.0]).reshape(1, 2, 2, 1)).numpy().ravel().tolist() == [
        0.5,
        0.5,
        0,
        0,
    ]
    # Entries as low as the padding do not share with it.
    lowest = np.full((1, 2, 1), -np.inf)
    assert sg.grad(lambda x: sg.sum(sg.max_pool(x, 2, 1, "SAME")))(lowest).numpy().ravel().tolist() == [0.5, 1.5]


def test_means_do_not_count_padding() -> None:
    pooled = sg.avg_pool(np.full((1, 5, 5, 1), 3.0), 3, 2, "SAME")
    assert np.array_equal(pooled.numpy(), np.full((1, 3, 3, 1), 3.0))
    assert sg.avg_pool(np.arange(4).reshape(1, 4, 1), 2).numpy().ravel().tolist() == [0.5, 2.5]


def test_pools_of_integers_and_single_precision() -> None:
    assert sg.max_pool(np.array([[[-5], [-3], [-9]]]), 3, 1, "SAME").numpy().ravel().tolist() == [-3, -3, -3]
    x = RNG.normal(size=(1, 4, 4, 1)).astype("float32")
    for f in (
        lambda t: sg.max_pool(t, 2),
        lambda t: sg.avg_pool(t, 3, 1, "SAME"),
        lambda t: sg.conv(t, x[0, :2, :2, None]),
    ):
        y, pullback = sg.vjp(f, x)
        assert y.dtype == np.float32
        assert pullback(y)[0].dtype == np.float32


def test_global_pools_and_nearest_entries() -> None:
    x = RNG.normal(size=(2, 3, 4, 5))
    assert np.array_equal(sg.global_max_pool(x).numpy(), x.max((1, 2)))
    np.testing.assert_allclose(sg.global_avg_pool(x, keepdims=True).numpy(), x.mean((1, 2), keepdims=True), rtol=1e-14)
    assert np.array_equal(sg.resize_nearest(x, (6, 2)).numpy(), x.repeat(2, 1)[:, :, [1, 3]])
    check_gradients(lambda t: sg.resize_nearest(t * t, (5, 2)), (x,))


def _raises(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_what_does_not_fit_is_said() -> None:
    x, filters = np.ones((1, 5, 6, 3)), np.ones((3, 3, 3, 2))
    _raises(lambda: sg.conv2d(x[0], filters), ShapeError, "conv2d: x must have 4 axes")
    _raises(lambda: sg.conv(x, filters[0]), ShapeError, "equally many; got shapes")
    _raises(
        lambda: sg.conv(x, filters[:, :, :2]), ShapeError, "3 channels of x do not fit filters of shape (3, 3, 2, 2)"
    )
    _raises(lambda: sg.conv(x, filters, groups=3), ShapeError, "in 3 groups")
    _raises(lambda: sg.conv(x, np.ones((7, 3, 3, 2))), ShapeError, "a window of (7, 3) does not fit")
    _raises(lambda: sg.conv(x, filters, padding="FULL"), ArgumentError, "padding must be 'SAME', 'VALID'")
    _raises(lambda: sg.conv(x, filters, padding=-1), ArgumentError, "padding must be")
    _raises(lambda: sg.conv(x, filters, strides=0), ArgumentError, "strides must be at least 1")
    _raises(lambda: sg.conv(x, filters, dilations=(1, 2, 3)), ShapeError, "dilations must be one integer or 2")
    _raises(lambda: sg.depthwise_conv2d(x, np.ones((3, 3, 2, 2))), ShapeError, "3 channels, multiplier")
    _raises(lambda: sg.conv_transpose(x, filters), ShapeError, "with the same features")
    _raises(
        lambda: sg.conv_transpose(x, np.ones((3, 3, 2, 3)), (9, 9), 2), ShapeError, "gives (4, 4), not (5, 6) as x has"
    )
    _raises(lambda: sg.max_pool(x[0, 0], 2), ShapeError, "at least three axes")
    _raises(lambda: sg.max_pool(x, 9), ShapeError, "does not fit")
    _raises(lambda: sg.avg_pool(x, 2, padding=2), ArgumentError, "nothing but padding")
    _raises(lambda: sg.resize_nearest(x, (1, 2, 3)), ShapeError, "give a size for each")
