"""Where windows slide: strides, dilations and padding of convolutions and pools, and the windows as views.

Tensors are laid out as TensorFlow's: batch first, channels last, any number of spatial axes between.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Shape
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.primitives.inputs import to_integers

Pads = tuple[tuple[int, int], ...]


class Geometry(NamedTuple):
    """How windows slide over the spatial axes; hashable, so that it can be a parameter of an operation."""

    size: Shape
    """Of the input, along its spatial axes."""
    window: Shape
    strides: Shape
    dilations: Shape
    pads: Pads
    """Entries before and after each axis."""
    groups: int = 1

    @property
    def padded(self) -> Shape:
        """Sizes of the spatial axes with their padding."""
        return tuple(size + before + after for size, (before, after) in zip(self.size, self.pads, strict=True))

    @property
    def reach(self) -> Shape:
        """Sizes of a window from its first to its last entry."""
        return tuple((count - 1) * step + 1 for count, step in zip(self.window, self.dilations, strict=True))

    @property
    def out(self) -> Shape:
        """How many windows fit along each axis."""
        return tuple(
            (size - reach) // stride + 1
            for size, reach, stride in zip(self.padded, self.reach, self.strides, strict=True)
        )

    @property
    def inside(self) -> tuple[slice, ...]:
        """Index of the input within the padded array."""
        spatial = (slice(before, before + size) for size, (before, _) in zip(self.size, self.pads, strict=True))
        return (slice(None), *spatial)

    def places(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each place in a window, and the index of the entries of a padded array that stand there."""
        for place in itertools.product(*map(range, self.window)):
            spatial = (
                slice(number * dilation, number * dilation + (out - 1) * stride + 1, stride)
                for number, dilation, stride, out in zip(place, self.dilations, self.strides, self.out, strict=True)
            )
            yield place, (slice(None), *spatial)


def geometry_of(
    name: str,
    size: Shape,
    window: Any,
    strides: Any,
    padding: Any,
    dilations: Any = 1,
    groups: int = 1,
) -> Geometry:
    """Read the settings of a convolution or pool, or raise in the name of the function."""
    ndim = len(size)
    windows = _each(name, "window", window, ndim)
    steps = _each(name, "strides", strides, ndim)
    spacing = _each(name, "dilations", dilations, ndim)
    geometry = Geometry(size, windows, steps, spacing, ((0, 0),) * ndim, groups)
    geometry = geometry._replace(pads=_pads(name, padding, geometry))
    if min(geometry.out, default=1) < 1:
        raise ShapeError(
            f"{name}: a window of {geometry.reach} does not fit into spatial axes of {geometry.padded} (with padding); "
            "use a smaller window or padding='SAME'"
        )
    return geometry


def _each(name: str, argument: str, given: Any, ndim: int) -> tuple[int, ...]:
    numbers = to_integers(name, argument, given)
    if len(numbers) == 1:
        numbers *= ndim
    if len(numbers) != ndim:
        raise ShapeError(f"{name}: {argument} must be one integer or {ndim}, one a spatial axis; got {given!r}")
    if any(number < 1 for number in numbers):
        raise ArgumentError(f"{name}: {argument} must be at least 1, got {given!r}")
    return numbers


def _pads(name: str, padding: Any, geometry: Geometry) -> Pads:
    ndim = len(geometry.size)
    if isinstance(padding, str):
        kind = padding.upper()
        if kind == "VALID":
            return ((0, 0),) * ndim
        if kind == "SAME":
            return tuple(
                same_pads(size, reach, stride)
                for size, reach, stride in zip(geometry.size, geometry.reach, geometry.strides, strict=True)
            )
    else:
        pairs = [padding] * ndim if isinstance(padding, int) else list(padding)
        full = tuple((one, one) if isinstance(one, int) else tuple(one) for one in pairs)
        if len(full) == ndim and all(len(pair) == 2 and min(pair) >= 0 for pair in full):
            return full
    raise ArgumentError(
        f"{name}: padding must be 'SAME', 'VALID', or for each of the {ndim} spatial axes how many entries to add "
        f"before and after, got {padding!r}"
    )


def same_pads(size: int, reach: int, stride: int) -> tuple[int, int]:
    """Return TensorFlow's padding "SAME" of one axis: what ceil(size / stride) windows need, the larger half behind."""
    out = -(-size // stride)
    total = max((out - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def padded(x: np.ndarray, geometry: Geometry, fill: Any = 0) -> np.ndarray:
    """Return an array with its spatial padding, itself if there is none."""
    if not any(map(any, geometry.pads)):
        return x
    out = np.full((x.shape[0], *geometry.padded, x.shape[-1]), fill, x.dtype)
    out[geometry.inside] = x
    return out


def windows_of(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the windows of a padded array as a view of shape (batch, *out, *window, channels)."""
    batch, *steps, channel = x.strides
    return np.lib.stride_tricks.as_strided(
        x,
        (x.shape[0], *geometry.out, *geometry.window, x.shape[-1]),
        (
            batch,
            *(step * stride for step, stride in zip(steps, geometry.strides, strict=True)),
            *(step * dilation for step, dilation in zip(steps, geometry.dilations, strict=True)),
            channel,
        ),
        writeable=False,
    )
