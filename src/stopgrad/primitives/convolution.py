"""Convolution over any number of spatial axes, and its transpose.

y[n, o, f] = Σ x[n, o·stride + k·dilation - before, c] · filters[k, c, f], as in TensorFlow (a cross-correlation): x is
(batch, *spatial, channels), filters are (*window, channels / groups, features).

With a cotangent t of y this is one trilinear form in x, filters and t; fixing two of them gives the three operations
`conv`, `conv_input` and `conv_filters`. Each one's derivatives are the other two, so that all orders are here.
"""

from __future__ import annotations

from typing import Any

from stopgrad.core.arrays import Shape, Spec, result_dtype
from stopgrad.core.errors import ShapeError
from stopgrad.core.operation import Operation, general
from stopgrad.core.record import bind2, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.correlation import correlate, correlate_filters, correlate_input
from stopgrad.primitives.geometry import geometry_of
from stopgrad.primitives.inputs import on_host, to_integer, to_integers, to_shape, to_tensor
from stopgrad.primitives.shape import reshape

CONV: Operation = general(
    "conv",
    lambda xp, x, filters, geometry: on_host(xp, lambda a, b: correlate(a, b, geometry), x, filters),
    numpy_kernel=correlate,
    vjps=(
        lambda xp, t, _x, filters, _out, geometry: run(CONV_INPUT, t, filters, params=(geometry,)),
        lambda xp, t, x, _filters, _out, geometry: run(CONV_FILTERS, x, t, params=(geometry,)),
    ),
    jvps=(
        lambda xp, t, _x, filters, _out, geometry: run(CONV, t, filters, params=(geometry,)),
        lambda xp, t, x, _filters, _out, geometry: run(CONV, x, t, params=(geometry,)),
    ),
    spec=lambda x, filters, geometry: Spec((x.shape[0], *geometry.out, filters.shape[-1]), result_dtype((x, filters))),
)
"""conv(x, filters; geometry)"""

CONV_INPUT: Operation = general(
    "conv_input",
    lambda xp, t, filters, geometry: on_host(xp, lambda a, b: correlate_input(a, b, geometry), t, filters),
    numpy_kernel=correlate_input,
    vjps=(
        lambda xp, u, _t, filters, _out, geometry: run(CONV, u, filters, params=(geometry,)),
        lambda xp, u, t, _filters, _out, geometry: run(CONV_FILTERS, u, t, params=(geometry,)),
    ),
    jvps=(
        lambda xp, u, _t, filters, _out, geometry: run(CONV_INPUT, u, filters, params=(geometry,)),
        lambda xp, u, t, _filters, _out, geometry: run(CONV_INPUT, t, u, params=(geometry,)),
    ),
    spec=lambda t, filters, geometry: Spec(
        (t.shape[0], *geometry.size, filters.shape[-2] * geometry.groups), result_dtype((t, filters))
    ),
)
"""conv_input(t, filters; geometry): what becomes of a cotangent of conv for its input; the transposed convolution."""

CONV_FILTERS: Operation = general(
    "conv_filters",
    lambda xp, x, t, geometry: on_host(xp, lambda a, b: correlate_filters(a, b, geometry), x, t),
    numpy_kernel=correlate_filters,
    vjps=(
        lambda xp, u, _x, t, _out, geometry: run(CONV_INPUT, t, u, params=(geometry,)),
        lambda xp, u, x, _t, _out, geometry: run(CONV, x, u, params=(geometry,)),
    ),
    jvps=(
        lambda xp, u, _x, t, _out, geometry: run(CONV_FILTERS, u, t, params=(geometry,)),
        lambda xp, u, x, _t, _out, geometry: run(CONV_FILTERS, x, u, params=(geometry,)),
    ),
    spec=lambda x, t, geometry: Spec(
        (*geometry.window, x.shape[-1] // geometry.groups, t.shape[-1]), result_dtype((x, t))
    ),
)
"""conv_filters(x, t; geometry): what becomes of a cotangent of conv for its filters."""


def conv(x: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1, groups: int = 1) -> Tensor:
    """Convolution over all axes between the first and the last (a cross-correlation, as in neural networks).

    Args:
        x: tensor of shape (batch, *spatial, channels).
        filters: tensor of shape (*window, channels / groups, features), with as many axes as x.
        strides: how far the window moves each step; one number or one a spatial axis.
        padding: "VALID" for none; "SAME" for as many zeros as give ceil(size / stride) results, TensorFlow's way; or
            for each spatial axis how many zeros to add, one number or (before, after).
        dilations: distance of neighbouring entries in a window.
        groups: into how many groups to cut channels and features; each works by itself.

    Returns:
        Tensor of shape (batch, *results, features).

    Raises:
        ShapeError: shapes that do not fit, or a window that fits nowhere.
        ArgumentError: a setting that makes no sense.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.reshape([1.0, 2.0, 3.0, 4.0], (1, 4, 1))
        >>> sg.conv(x, sg.reshape([1.0, -1.0], (2, 1, 1)))[0, :, 0].numpy()
        array([-1., -1., -1.])
    """
    x, filters = to_tensor(x, "conv"), to_tensor(filters, "conv")
    ndim = len(x.shape) - 2
    if ndim < 1 or len(filters.shape) != ndim + 2:
        raise ShapeError(
            f"conv: x must be (batch, *spatial, channels) and filters (*window, channels / groups, features), with at "
            f"least three axes and equally many; got shapes {x.shape} and {filters.shape}"
        )
    count = to_integer("conv", "groups", groups)
    channels, features = filters.shape[-2:]
    if count < 1 or channels * count != x.shape[-1] or features % count:
        raise ShapeError(
            f"conv: {x.shape[-1]} channels of x do not fit filters of shape {filters.shape} in {count} groups; the "
            "filters need channels / groups on their last axis but one, and features that divide into the groups"
        )
    geometry = geometry_of("conv", x.shape[1:-1], filters.shape[:-2], strides, padding, dilations, count)
    return bind2(CONV, x, filters, (geometry,))


def conv1d(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution over one axis; see `conv`.

    Args:
        x: tensor of shape (batch, length, channels).
        filters: tensor of shape (window, channels / groups, features).
        strides: see `conv`, as are the rest.
        padding: "VALID", "SAME" or numbers.
        dilations: distance of neighbouring entries in a window.
        groups: into how many groups to cut channels and features.

    Returns:
        Tensor of shape (batch, results, features).

    Raises:
        ShapeError: shapes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.conv1d(sg.ones((1, 4, 1)), sg.ones((3, 1, 2)), padding="SAME").shape
        (1, 4, 2)
    """
    return conv(_with_axes("conv1d", x, 1), filters, strides, padding, dilations, groups)


def conv2d(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution over two axes; see `conv`.

    Args:
        x: tensor of shape (batch, height, width, channels).
        filters: tensor of shape (window height, window width, channels / groups, features).
        strides: see `conv`, as are the rest.
        padding: "VALID", "SAME" or numbers.
        dilations: distance of neighbouring entries in a window.
        groups: into how many groups to cut channels and features.

    Returns:
        Tensor of shape (batch, *results, features).

    Raises:
        ShapeError: shapes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.conv2d(sg.ones((1, 4, 4, 1)), sg.ones((3, 3, 1, 1)))[0, :, :, 0].numpy()
        array([[9., 9.],
               [9., 9.]])
    """
    return conv(_with_axes("conv2d", x, 2), filters, strides, padding, dilations, groups)


def conv3d(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution over three axes; see `conv`.

    Args:
        x: tensor of shape (batch, depth, height, width, channels).
        filters: tensor of shape (*window, channels / groups, features).
        strides: see `conv`, as are the rest.
        padding: "VALID", "SAME" or numbers.
        dilations: distance of neighbouring entries in a window.
        groups: into how many groups to cut channels and features.

    Returns:
        Tensor of shape (batch, *results, features).

    Raises:
        ShapeError: shapes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.conv3d(sg.ones((1, 2, 2, 2, 1)), sg.ones((2, 2, 2, 1, 1))).numpy().ravel()
        array([8.])
    """
    return conv(_with_axes("conv3d", x, 3), filters, strides, padding, dilations, groups)


def depthwise_conv2d(x: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1) -> Tensor:
    """Convolution of each channel by itself, with several filters each, as TensorFlow's.

    Args:
        x: tensor of shape (batch, height, width, channels).
        filters: tensor of shape (window height, window width, channels, multiplier).
        strides: see `conv`, as are the rest.
        padding: "VALID", "SAME" or numbers.
        dilations: distance of neighbouring entries in a window.

    Returns:
        Tensor of shape (batch, *results, channels · multiplier).

    Raises:
        ShapeError: shapes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.depthwise_conv2d(sg.ones((1, 3, 3, 2)), sg.ones((2, 2, 2, 3))).shape
        (1, 2, 2, 6)
    """
    x, filters = _with_axes("depthwise_conv2d", x, 2), to_tensor(filters, "depthwise_conv2d")
    if len(filters.shape) != 4 or filters.shape[2] != x.shape[-1]:
        raise ShapeError(
            f"depthwise_conv2d: filters must be (*window, {x.shape[-1]} channels, multiplier), got {filters.shape}"
        )
    grouped = reshape(filters, (*filters.shape[:2], 1, filters.shape[2] * filters.shape[3]))
    return conv(x, grouped, strides, padding, dilations, x.shape[-1])


def _with_axes(name: str, x: Any, ndim: int) -> Tensor:
    x = to_tensor(x, name)
    if len(x.shape) != ndim + 2:
        raise ShapeError(f"{name}: x must have {ndim + 2} axes (batch, {ndim} spatial, channels), got shape {x.shape}")
    return x


def conv_transpose(
    x: Any, filters: Any, output_shape: Any = None, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1
) -> Tensor:
    """Transposed convolution: the adjoint of `conv` for its input, which spreads every entry over a window.

    Args:
        x: tensor of shape (batch, *spatial, features): what a convolution would have put out.
        filters: tensor of shape (*window, channels, features): those of that convolution.
        output_shape: of the result (batch, *sizes, channels), or its sizes alone, where more than one fits; by
            default size · stride with padding "SAME", and the smallest that fits with any other.
        strides: of that convolution.
        padding: of that convolution; see `conv`.
        dilations: of that convolution.

    Returns:
        Tensor of shape (batch, *sizes, channels).

    Raises:
        ShapeError: shapes that do not fit.
        ArgumentError: a setting that makes no sense.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.reshape([1.0, 2.0], (1, 2, 1))
        >>> sg.conv_transpose(x, sg.reshape([1.0, 10.0], (2, 1, 1)), strides=2)[0, :, 0].numpy()
        array([ 1., 10.,  2., 20.])
    """
    x, filters = to_tensor(x, "conv_transpose"), to_tensor(filters, "conv_transpose")
    ndim = len(x.shape) - 2
    if ndim < 1 or len(filters.shape) != ndim + 2 or filters.shape[-1] != x.shape[-1]:
        raise ShapeError(
            "conv_transpose: x must be (batch, *spatial, features) and filters (*window, channels, features), with the "
            f"same features; got shapes {x.shape} and {filters.shape}"
        )
    if output_shape is None:
        size = _smallest_input(x.shape[1:-1], filters.shape[:-2], strides, padding, dilations)
    else:
        given = to_shape("conv_transpose", output_shape)
        size = given[1:-1] if len(given) == ndim + 2 else given
    if len(size) != ndim:
        raise ShapeError(f"conv_transpose: output_shape {output_shape} does not have the axes of x, of shape {x.shape}")
    geometry = geometry_of("conv_transpose", size, filters.shape[:-2], strides, padding, dilations)
    if geometry.out != x.shape[1:-1]:
        raise ShapeError(
            f"conv_transpose: a convolution of spatial axes {size} gives {geometry.out}, not {x.shape[1:-1]} as x has; "
            "choose another output_shape"
        )
    return bind2(CONV_INPUT, x, filters, (geometry,))


def _smallest_input(out: Shape, window: Shape, strides: Any, padding: Any, dilations: Any) -> Shape:
    """Return the spatial sizes a convolution with these results has by default."""
    ndim = len(out)
    steps, spacing = (
        one * ndim if len(one) == 1 else one
        for one in (
            to_integers("conv_transpose", "strides", strides),
            to_integers("conv_transpose", "dilations", dilations),
        )
    )
    same = isinstance(padding, str) and padding.upper() == "SAME"
    # The padding of an axis large enough for any window, to have it read and checked in one place.
    room = tuple((count - 1) * step + 1 for count, step in zip(window, spacing, strict=True))
    pads = geometry_of("conv_transpose", room, window, steps, padding, spacing).pads
    return tuple(
        size * stride if same else (size - 1) * stride + max(reach, stride) - before - after
        for size, stride, reach, (before, after) in zip(out, steps, room, pads, strict=True)
    )


def conv2d_transpose(
    x: Any, filters: Any, output_shape: Any = None, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1
) -> Tensor:
    """Transposed convolution over two axes; see `conv_transpose`.

    Args:
        x: tensor of shape (batch, height, width, features).
        filters: tensor of shape (window height, window width, channels, features).
        output_shape: see `conv_transpose`, as are the rest.
        strides: of the convolution this is the adjoint of.
        padding: likewise.
        dilations: likewise.

    Returns:
        Tensor of shape (batch, *sizes, channels).

    Raises:
        ShapeError: shapes that do not fit.

    Example:
        >>> import stopgrad as sg
        >>> sg.conv2d_transpose(sg.ones((1, 2, 2, 3)), sg.ones((3, 3, 5, 3)), strides=2, padding="SAME").shape
        (1, 4, 4, 5)
    """
    return conv_transpose(_with_axes("conv2d_transpose", x, 2), filters, output_shape, strides, padding, dilations)
