"""The three convolutions as NumPy computes them: windows copied side by side, then matrix products.

The windows of a batch are copied and multiplied in pieces that stay in the processor's cache. Where each channel is a
group of its own (depthwise), a product would be of single columns, so places in the window are added up instead. See
`stopgrad.primitives.convolution` for what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stopgrad.primitives.geometry import Geometry, padded, windows_of

_CHUNK_BYTES = 8 * 2**20
"""How much of the windows to copy at once for one matrix product: what stays in the processor's cache."""


def correlate(x: Any, filters: Any, geometry: Geometry) -> Any:
    """Return y of x and filters."""
    return _grouped(_correlated, _depthwise, filters.shape[-2] == 1, x, filters, geometry)


def correlate_input(t: Any, filters: Any, geometry: Geometry) -> Any:
    """Return the cotangent of x, of the cotangent t of y and filters."""
    return _grouped(_input_of, _depthwise_input, filters.shape[-2] == 1, t, filters, geometry)


def correlate_filters(x: Any, t: Any, geometry: Geometry) -> Any:
    """Return the cotangent of the filters, of x and the cotangent t of y."""
    return _grouped(_filters_of, _depthwise_filters, x.shape[-1] == geometry.groups, x, t, geometry)


def _chunks(windows: np.ndarray) -> Iterator[slice]:
    """Yield slices of the batch whose windows take about that much."""
    batch = len(windows)
    one = max(windows.size // max(batch, 1) * windows.itemsize, 1)
    step = max(_CHUNK_BYTES // one, 1)
    return (slice(start, start + step) for start in range(0, batch, step))


def _correlated(x: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    windows = windows_of(padded(x, geometry), geometry)
    rows, features = math.prod(filters.shape[:-1]), filters.shape[-1]
    out = np.empty((len(x), *geometry.out, features), np.result_type(x, filters))
    matrix = filters.reshape(rows, features)
    for chunk in _chunks(windows):
        part = out[chunk]
        columns = windows[chunk].reshape(math.prod(part.shape[:-1]), rows)
        np.matmul(columns, matrix, out=part.reshape(len(columns), features))
    return out


def _input_of(t: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    channels, features = filters.shape[-2:]
    out = np.zeros((len(t), *geometry.padded, channels), np.result_type(t, filters))
    window = (*geometry.window, channels)
    matrix = filters.reshape(math.prod(window), features).T
    for chunk in _chunks(np.broadcast_to(np.zeros((), out.dtype), (len(t), *geometry.out, *window))):
        part, cotangents = out[chunk], t[chunk]
        flat = cotangents.reshape(math.prod(cotangents.shape[:-1]), features)
        columns = np.matmul(flat, matrix).reshape(*cotangents.shape[:-1], *window)
        for place, index in geometry.places():
            part[index] += columns[(slice(None),) * (len(place) + 1) + place]
    return out[geometry.inside]


def _filters_of(x: np.ndarray, t: np.ndarray, geometry: Geometry) -> np.ndarray:
    windows = windows_of(padded(x, geometry), geometry)
    window, features = (*geometry.window, x.shape[-1]), t.shape[-1]
    rows = math.prod(window)
    out = np.zeros((rows, features), np.result_type(x, t))
    for chunk in _chunks(windows):
        cotangents = t[chunk]
        places = math.prod(cotangents.shape[:-1])
        out += np.matmul(windows[chunk].reshape(places, rows).T, cotangents.reshape(places, features))
    return out.reshape(*window, features)


def _depthwise(x: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    channels = x.shape[-1]
    each = filters.reshape(*geometry.window, channels, filters.shape[-1] // channels)
    spread = padded(x, geometry)[..., None]
    out = np.zeros((len(x), *geometry.out, channels, each.shape[-1]), np.result_type(x, filters))
    for place, index in geometry.places():
        out += spread[index] * each[place]
    return out.reshape(*out.shape[:-2], filters.shape[-1])


def _depthwise_input(t: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    channels = geometry.groups
    each = filters.reshape(*geometry.window, channels, filters.shape[-1] // channels)
    cotangents = t.reshape(*t.shape[:-1], channels, t.shape[-1] // channels)
    out = np.zeros((len(t), *geometry.padded, channels), np.result_type(t, filters))
    for place, index in geometry.places():
        out[index] += np.add.reduce(cotangents * each[place], axis=-1)
    return out[geometry.inside]


def _depthwise_filters(x: np.ndarray, t: np.ndarray, geometry: Geometry) -> np.ndarray:
    channels = x.shape[-1]
    places = math.prod(t.shape[:-1])
    cotangents = t.reshape(places, channels, t.shape[-1] // channels)
    spread = padded(x, geometry)
    out = np.zeros((*geometry.window, *cotangents.shape[1:]), np.result_type(x, t))
    for place, index in geometry.places():
        out[place] = np.einsum("nc,ncm->cm", spread[index].reshape(places, channels), cotangents)
    return out.reshape(*geometry.window, 1, t.shape[-1])


def _grouped(
    whole: Callable[..., np.ndarray],
    depthwise: Callable[..., np.ndarray],
    is_depthwise: bool,
    a: np.ndarray,
    b: np.ndarray,
    geometry: Geometry,
) -> np.ndarray:
    """Apply a kernel to each group of channels: both arrays and the result hold the groups along their last axis."""
    if geometry.groups == 1:
        return whole(a, b, geometry)
    if is_depthwise:
        return depthwise(a, b, geometry)
    pairs = zip(np.split(a, geometry.groups, axis=-1), np.split(b, geometry.groups, axis=-1), strict=True)
    return np.concatenate([whole(one, other, geometry) for one, other in pairs], axis=-1)
