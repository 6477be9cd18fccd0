"""Borders around a tensor: constant, or made of its own entries.

`pad` puts constants around; the other borders are entries taken again, so their adjoint is that of `take`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, normalize_axis
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.operation import Operation, general
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.gathering import take
from stopgrad.primitives.inputs import on_host, to_tensor
from stopgrad.primitives.shape import broadcast_to
from stopgrad.primitives.updating import at_set

Widths = tuple[tuple[int, int], ...]
Values = tuple[tuple[float | complex, float | complex], ...]


def _inside(widths: Widths, shape: Shape) -> tuple[slice, ...]:
    return tuple(slice(before, before + size) for (before, _), size in zip(widths, shape, strict=True))


def _outer(widths: Widths, shape: Shape) -> Shape:
    return tuple(before + size + after for (before, after), size in zip(widths, shape, strict=True))


def _pad_numpy(x: Any, widths: Widths, values: Values | None, _shape: Shape) -> Any:
    shape = np.shape(x)
    out = np.zeros(_outer(widths, shape), x.dtype)
    if values is not None:
        for axis, ((before, after), (first, last)) in enumerate(zip(widths, values, strict=True)):
            whole = (slice(None),) * axis
            out[(*whole, slice(0, before))] = first
            out[(*whole, slice(out.shape[axis] - after, None))] = last
    out[_inside(widths, shape)] = x
    return out


def _pad(xp: Any, x: Any, widths: Widths, values: Values | None, shape: Shape) -> Any:
    return on_host(xp, lambda host: _pad_numpy(host, widths, values, shape), x)


PAD: Operation = general(
    "pad",
    _pad,
    numpy_kernel=_pad_numpy,
    vjps=(lambda xp, t, _x, _out, widths, _values, shape: t[_inside(widths, shape)],),
    jvps=(lambda xp, t, _x, _out, widths, _values, shape: run(PAD, t, params=(widths, None, shape)),),
    spec=lambda x, widths, _values, shape: Spec(_outer(widths, shape), x.dtype),
    passes_masks=True,
)
"""pad(x; widths, values or None for zeros, shape of x): constants before and after each axis."""


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """A tensor with a border.

    Args:
        x: tensor or array.
        pad_width: how many entries before and after each axis: ((before, after), …), or (before, after) or one number
            for all axes.
        mode: "constant"; "edge" repeats the last entry; "reflect" mirrors without, "symmetric" with the last entry;
            "wrap" goes on at the other end. TensorFlow's capitals are understood.
        constant_values: for "constant": a number, or numbers in the same forms as `pad_width`, or a scalar tensor,
            which then gets a gradient.

    Returns:
        Tensor of the dtype of x.

    Raises:
        ShapeError: widths that do not fit the axes, or are negative, or a border of an empty axis.
        ArgumentError: an unknown mode.

    Example:
        >>> import stopgrad as sg
        >>> sg.pad([1.0, 2.0, 3.0], 2, mode="reflect").numpy()
        array([3., 2., 1., 2., 3., 2., 1.])
    """
    x = to_tensor(x, "pad")
    widths = _pairs("pad_width", pad_width, len(x.shape))
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError(f"pad: pad_width {widths} has a negative entry; cut with slices instead")
    kind = mode.lower()
    if kind == "constant":
        if isinstance(constant_values, Tensor):
            frame = broadcast_to(constant_values, _outer(widths, x.shape))
            return at_set(frame, _inside(widths, x.shape), x)
        values = _pairs("constant_values", constant_values, len(x.shape))
        return bind1(PAD, x, (widths, values if any(map(any, values)) else None, x.shape))
    if kind not in _BORDERS:
        raise ArgumentError(f"pad: mode must be 'constant', {', '.join(map(repr, _BORDERS))}, got {mode!r}")
    for axis, (before, after) in enumerate(widths):
        size = x.shape[axis]
        if before or after:
            if size == 0:
                raise ShapeError(f"pad: axis {axis} is empty, so mode {mode!r} has nothing to repeat; use 'constant'")
            x = take(x, _BORDERS[kind](np.arange(-before, size + after), size), axis)
    return x


def _pairs(argument: str, given: Any, ndim: int) -> tuple[tuple[Any, Any], ...]:
    """Return settings for before and after each axis in full, from any of the forms NumPy's pad takes."""
    if isinstance(given, dict):
        full: list[Any] = [(0, 0)] * ndim
        for axis, pair in given.items():
            full[normalize_axis("pad", axis, ndim)] = pair if isinstance(pair, tuple | list) else (pair, pair)
        given = full
    array = np.asarray(given)
    if argument == "pad_width" and array.dtype.kind not in "iu" and array.size:
        raise ShapeError(f"pad: pad_width must hold integers, got {given!r}")
    try:
        rows = np.broadcast_to(array, (ndim, 2)).tolist()
    except ValueError:
        raise ShapeError(
            f"pad: {argument} of shape {array.shape} does not fit a tensor with {ndim} axes; give ((before, after), …) "
            "with a pair for each axis, or one pair or number for all"
        ) from None
    return tuple((before, after) for before, after in rows)


def _reflected(places: np.ndarray, size: int) -> np.ndarray:
    period = max(2 * (size - 1), 1)
    within = places % period
    return np.minimum(within, period - within) if size > 1 else np.zeros_like(places)


def _mirrored(places: np.ndarray, size: int) -> np.ndarray:
    within = places % (2 * size)
    return np.minimum(within, 2 * size - 1 - within)


_BORDERS: dict[str, Callable[..., Any]] = {
    "edge": lambda places, size: np.clip(places, 0, size - 1),
    "reflect": _reflected,
    "symmetric": _mirrored,
    "wrap": lambda places, size: places % size,
}
"""For each mode, which entry of an axis stands at each place, counted from the axis' first."""
