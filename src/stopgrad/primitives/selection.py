"""Selection, entry by entry: where, maximum, minimum, clip and their kin.

Their cotangents hold zeros where an entry was not selected, and the sweep keeps those zero (`masks=True`): what an
unselected branch would contribute, infinite or NaN, never leaks. The rules select too instead of multiplying by 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, is_bool
from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.operation import ABSENT, elementwise
from stopgrad.core.record import bind, bind2, coerce
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


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Bring the entries of x that lie outside [min, max] to the nearer bound.

    At a bound and between them the whole derivative goes to x; outside it goes to the bound that was taken. This
    is what TensorFlow and PyTorch do, and it lets an iterate that was projected on a bound leave it again. Where
    min > max the value is max, as in NumPy, and so is the derivative.

    Args:
        x: tensor, array or number.
        min: lower bound, a number or tensor that broadcasts with x; `None` for none.
        max: upper bound, likewise.

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
    if max is None:
        return positive(x) if min is None else bind2(CLIP_LOW, x, min)
    return bind2(CLIP_HIGH, x, max) if min is None else bind(CLIP, (x, min, max))
