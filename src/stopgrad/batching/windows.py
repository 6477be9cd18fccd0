"""Batching rules of convolutions and pools, which have a batch axis of their own: the examples are laid into it.

Where the filters differ from example to example each example becomes a group of channels instead.
"""

from __future__ import annotations

from typing import Any

from stopgrad.batching.application import Application
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import moveaxis
from stopgrad.primitives.shape import reshape


def folded(application: Application) -> Any:
    """Lay the examples into the batch axis of all inputs; for pools, and convolutions with the same filters for all."""
    inputs = [_into_batch(application.full(i)) for i in range(len(application.inputs))]
    return _out_of_batch(application.bound(inputs), application.size)


def conv(application: Application) -> Any:
    """Rule of conv (x, filters; geometry) and conv_input (t, filters; geometry)."""
    x_mapped, filters_mapped = application.mapped
    x, filters = application.inputs
    if not filters_mapped:
        return _out_of_batch(application.bound([_into_batch(x), filters]), application.size)
    (geometry,) = application.params
    size = application.size
    if application.operation.name == "conv" and not x_mapped and geometry.groups == 1:
        grouped = geometry  # the features of all examples beside each other
    else:
        x = _into_channels(application.full(0))
        grouped = geometry._replace(groups=geometry.groups * size)
    return _out_of_channels(application.bound([x, _into_channels(filters)], (grouped,)), size)


def conv_filters(application: Application) -> Any:
    """Rule of conv_filters (x, t; geometry)."""
    x_mapped, _ = application.mapped
    x, t = application.inputs
    (geometry,) = application.params
    size = application.size
    if geometry.groups == 1 and not x_mapped:
        return _out_of_channels(application.bound([x, _into_channels(t)]), size)
    grouped = geometry._replace(groups=geometry.groups * size)
    made = application.bound([_into_channels(application.full(0)), _into_channels(application.full(1))], (grouped,))
    return _out_of_channels(made, size)


def _into_batch(x: Tensor) -> Tensor:
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _out_of_batch(x: Tensor, size: int) -> Tensor:
    return reshape(x, (size, x.shape[0] // size, *x.shape[1:]))


def _into_channels(x: Tensor) -> Tensor:
    """Lay the axis of examples, in front, into the last one."""
    behind = moveaxis(x, 0, -2)
    return reshape(behind, (*behind.shape[:-2], behind.shape[-2] * behind.shape[-1]))


def _out_of_channels(x: Tensor, size: int) -> Tensor:
    apart = reshape(x, (*x.shape[:-1], size, x.shape[-1] // size))
    return moveaxis(apart, -2, 0)
