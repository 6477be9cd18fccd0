"""Selection, entry by entry: where, maximum, minimum, clip and their kin.

Their cotangents hold zeros where an entry was not selected, and the sweep keeps those zero (`masks=True`): what an
unselected branch would contribute, infinite or NaN, never leaks. The rules select too instead of multiplying by 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, is_bool
from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.operation import ABSENT, elementwise
from stopgrad.core.record import bind, bind1, bind2, coerce
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.arithmetic import positive
from stopgrad.primitives.comparison import not_equal
from stopgrad.primitives.define import binary


def _where_kernel(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    if type(condition) in PYTHON_SCALARS:
        condition = xp.asarray(condition)
    if type(x) in PYTHON_SCALARS and type(y) in PYTHON_SCALARS:
        x = xp.asarray(x)
    return xp.where(condition, x, y)


WHERE = elementwise(
    "where",
    _where_kernel,
    lambda xp, t, _condition, _x, _y, _out: ABSENT,
    lambda xp, t, condition, _x, _y, _out: xp.where(condition, t, 0),
    lambda xp, t, condition, _x, _y, _out: xp.where(condition, 0, t),
    numpy_kernel=np.where,
    masks=True,
)
"""where(condition, x, y): the condition is boolean; all three broadcast."""


def where(condition: Any, x: Any = None, y: Any = None, /) -> Tensor:
    """Take x where the condition holds and y elsewhere.

    The derivative of an entry goes to the side it was taken from alone. Whatever the other side's derivative would be
    there, infinite or NaN, nothing of it passes.

    Args:
        condition: booleans; numbers count as true where they are not zero.
        x: tensor, array or number.
        y: likewise; the three shapes broadcast together.

    Returns:
        Tensor of the broadcast shape, in the dtype x and y promote to.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentTypeError: x or y is missing.

    Example:
        >>> import stopgrad as sg
        >>> sg.where([True, False], [1.0, 2.0], 0.0).numpy()
        array([1., 0.])
        >>> sg.grad(lambda x: sg.sum(sg.where(x > 0, sg.sqrt(x), 0.0)))([0.0, 4.0]).numpy()
        array([0.  , 0.25])
    """
    if x is None or y is None:
        raise ArgumentTypeError(
            "where: takes a condition and both branches, where(condition, x, y); for the places where a condition "
            "holds use nonzero(condition)"
        )
    value = condition.value if type(condition) is Tensor else coerce(condition, "where: condition")[0]
    if type(value) is not bool and not is_bool(value.dtype if hasattr(value, "dtype") else type(value)):
        condition = not_equal(condition, 0)
    return bind(WHERE, (condition, x, y))


def _share(xp: Any, t: Any, ours: Any, other: Any) -> Any:
    """Return what an input passes on that is selected where it is greater, and half where neither is."""
    return xp.where(ours > other, t, xp.where(ours < other, 0, t * 0.5))


@binary(
    np.maximum,
    lambda xp, t, a, b, _out: _share(xp, t, a, b),
    lambda xp, t, a, b, _out: _share(xp, t, b, a),
    masks=True,
)
def maximum(xp: Any, a: Any, b: Any) -> Any:
    """Greater of a and b, entry by entry; NaN if either is NaN.

    Where they are equal, or either is NaN, each gets half of the derivative.

    Example:
        >>> import stopgrad as sg
        >>> sg.maximum([1.0, 5.0], 3.0).numpy()
        array([3., 5.])
        >>> float(sg.grad(lambda a: sg.maximum(a, 3.0))(3.0))
        0.5
    """
    return xp.maximum(a, b)


@binary(
    np.minimum,
    lambda xp, t, a, b, _out: _share(xp, t, b, a),
    lambda xp, t, a, b, _out: _share(xp, t, a, b),
    masks=True,
)
def minimum(xp: Any, a: Any, b: Any) -> Any:
    """Smaller of a and b, entry by entry; NaN if either is NaN.

    Where they are equal, or either is NaN, each gets half of the derivative.

    Example:
        >>> import stopgrad as sg
        >>> sg.minimum([1.0, 5.0], 3.0).numpy()
        array([1., 3.])
        >>> float(sg.grad(lambda a: sg.minimum(a, 3.0))(3.0))
        0.5
    """
    return xp.minimum(a, b)


def _share_of_numbers(xp: Any, t: Any, ours: Any, other: Any, greater: Any, smaller: Any) -> Any:
    """Return what an input of `fmax` or `fmin` passes on: as `_share`, but a NaN passes nothing beside a number."""
    ours_is_nan, other_is_nan = xp.asarray(ours != ours), xp.asarray(other != other)
    taken = greater | (other_is_nan & ~ours_is_nan)
    left = smaller | (ours_is_nan & ~other_is_nan)
    return xp.where(taken, t, xp.where(left, 0, t * 0.5))


def _number_of(xp: Any, a: Any, b: Any, both: Any) -> Any:
    return xp.where(xp.asarray(a != a), b, xp.where(xp.asarray(b != b), a, both))


@binary(
    np.fmax,
    lambda xp, t, a, b, _out: _share_of_numbers(xp, t, a, b, a > b, a < b),
    lambda xp, t, a, b, _out: _share_of_numbers(xp, t, b, a, b > a, b < a),
    masks=True,
)
def fmax(xp: Any, a: Any, b: Any) -> Any:
    """Greater of a and b, entry by entry; a NaN counts as missing.

    Where they are equal each gets half of the derivative; beside a number a NaN gets nothing of it.

    Example:
        >>> import stopgrad as sg
        >>> sg.fmax([1.0, float("nan")], 0.5).numpy()
        array([1. , 0.5])
    """
    return _number_of(xp, a, b, xp.maximum(a, b))


@binary(
    np.fmin,
    lambda xp, t, a, b, _out: _share_of_numbers(xp, t, a, b, a < b, a > b),
    lambda xp, t, a, b, _out: _share_of_numbers(xp, t, b, a, b < a, b > a),
    masks=True,
)
def fmin(xp: Any, a: Any, b: Any) -> Any:
    """Smaller of a and b, entry by entry; a NaN counts as missing.

    Where they are equal each gets half of the derivative; beside a number a NaN gets nothing of it.

    Example:
        >>> import stopgrad as sg
        >>> sg.fmin([1.0, float("nan")], 0.5).numpy()
        array([0.5, 0.5])
    """
    return _number_of(xp, a, b, xp.minimum(a, b))


CLIP = elementwise(
    "clip",
    lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high),
    lambda xp, t, x, low, high, _out: xp.where((x < low) | (x > high), 0, t),
    lambda xp, t, x, low, high, _out: xp.where((x < low) & (low <= high), t, 0),
    lambda xp, t, x, low, high, _out: xp.where((x > high) | (low > high), t, 0),
    masks=True,
)
"""clip(x, low, high)."""

CLIP_LOW = elementwise(
    "clip_low",
    lambda xp, x, low: xp.maximum(x, low),
    lambda xp, t, x, low, _out: xp.where(x < low, 0, t),
    lambda xp, t, x, low, _out: xp.where(x < low, t, 0),
    numpy_kernel=np.maximum,
    masks=True,
)
"""clip_low(x, low): clip with no upper bound; unlike `maximum` all of the derivative goes to x at a tie."""

CLIP_HIGH = elementwise(
    "clip_high",
    lambda xp, x, high: xp.minimum(x, high),
    lambda xp, t, x, high, _out: xp.where(x > high, 0, t),
    lambda xp, t, x, high, _out: xp.where(x > high, t, 0),
    numpy_kernel=np.minimum,
    masks=True,
)
"""clip_high(x, high): clip with no lower bound; unlike `minimum` all of the derivative goes to x at a tie."""


def clip(x: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """Bring the entries of x that lie outside [min, max] to the nearer bound.

    At a bound and between them the whole derivative goes to x; outside it goes to the bound that was taken. This
    is what TensorFlow and PyTorch do, and it lets an iterate that was projected on a bound leave it again. Where
    min > max the value is max, as in NumPy, and so is the derivative.

    Args:
        x: tensor, array or number.
        a_min: lower bound, a number or tensor that broadcasts with x; `None` for none.
        a_max: upper bound, likewise.
        min: the same as `a_min`.
        max: the same as `a_max`.

    Returns:
        Tensor of the broadcast shape, in the dtype NumPy promotes to.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> import stopgrad as sg
        >>> sg.clip([-1.0, 0.5, 2.0], 0.0, 1.0).numpy()
        array([0. , 0.5, 1. ])
        >>> sg.grad(lambda x: sg.sum(sg.clip(x, 0.0, 1.0)))([-1.0, 0.0, 0.5, 1.0, 2.0]).numpy()
        array([0., 1., 1., 1., 0.])
    """
    low, high = a_min if min is None else min, a_max if max is None else max
    if high is None:
        return positive(x) if low is None else bind2(CLIP_LOW, x, low)
    return bind2(CLIP_HIGH, x, high) if low is None else bind(CLIP, (x, low, high))


def _nan_to_num_kernel(xp: Any, x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    limits = xp.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    infinite = xp.isinf(x)
    x = xp.where(infinite & (x > 0), float(high), xp.where(infinite & (x < 0), float(low), x))
    return xp.where(xp.isnan(x), nan, x)


NAN_TO_NUM = elementwise(
    "nan_to_num",
    _nan_to_num_kernel,
    lambda xp, t, x, _out, _nan, _posinf, _neginf: xp.where(xp.isfinite(x), t, 0),
    numpy_kernel=lambda x, nan, posinf, neginf: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    masks=True,
)


def nan_to_num(
    x: Any, /, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace what is no finite number. The derivative passes where x was finite and is 0 elsewhere.

    Args:
        x: tensor, array or number.
        copy: must be true; tensors are immutable.
        nan: number that stands for NaN.
        posinf: number that stands for inf; `None` for the greatest finite one of the dtype.
        neginf: number that stands for -inf; `None` for the least finite one.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        ArgumentError: copy is false.

    Example:
        >>> import stopgrad as sg
        >>> sg.nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0).numpy()
        array([1., 0., 9.])
    """
    if not copy:
        raise ArgumentError("nan_to_num: copy=False would write into x, and tensors are immutable; leave it out")
    numbers = (float(nan), None if posinf is None else float(posinf), None if neginf is None else float(neginf))
    return bind1(NAN_TO_NUM, x, numbers)
