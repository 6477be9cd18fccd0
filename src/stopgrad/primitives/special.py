"""Special functions, entry by entry: error, gamma and logistic functions, and entropies.

The values are SciPy's, loaded when the first of them is called; arrays of other libraries take the way over the host
where their library has no such function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.lazy import scipy_special
from stopgrad.core.operation import Operation, elementwise
from stopgrad.core.record import bind1, run
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.define import binary, unary
from stopgrad.primitives.inputs import arrays_of, on_host

_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_SQRT_PI_OVER_2 = math.sqrt(math.pi) / 2
_1_OVER_SQRT_2PI = 1 / math.sqrt(2 * math.pi)


def _scipy(name: str) -> Callable[[Any], Any]:
    """Return a stand-in for a function of `scipy.special` that loads it when it is called."""
    return lambda x: getattr(scipy_special(), name)(x)


def _scipy_of_two(name: str) -> Callable[[Any, Any], Any]:
    """Return the same for one of two arguments; a Python number would count as double precision there."""
    return lambda a, b: getattr(scipy_special(), name)(*arrays_of(np, a, b))


@unary(_scipy("erf"), lambda xp, t, x, _out: t * (_2_OVER_SQRT_PI * xp.exp(-x * x)))
def erf(xp: Any, x: Any) -> Any:
    """Error function, 2/√π · ∫₀ˣ exp(-s²) ds.

    Example:
        >>> import stopgrad as sg
        >>> sg.erf([0.0, 1.0]).numpy()
        array([0.        , 0.84270079])
    """
    return on_host(xp, scipy_special().erf, x)


@unary(_scipy("erfc"), lambda xp, t, x, _out: t * (-_2_OVER_SQRT_PI * xp.exp(-x * x)))
def erfc(xp: Any, x: Any) -> Any:
    """Complementary error function, 1 - erf(x), exact also where it is tiny.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.erfc(0.0))
        1.0
    """
    return on_host(xp, scipy_special().erfc, x)


@unary(_scipy("erfinv"), lambda xp, t, _x, out: t * (_SQRT_PI_OVER_2 * xp.exp(out * out)))
def erfinv(xp: Any, x: Any) -> Any:
    """Inverse of the error function; infinite at ±1, NaN outside [-1, 1].

    Example:
        >>> import stopgrad as sg
        >>> sg.erfinv([0.0, 0.5]).numpy()
        array([0.        , 0.47693628])
    """
    return on_host(xp, scipy_special().erfinv, x)


@unary(_scipy("ndtr"), lambda xp, t, x, _out: t * (_1_OVER_SQRT_2PI * xp.exp(-0.5 * x * x)))
def ndtr(xp: Any, x: Any) -> Any:
    """Distribution function of the standard normal distribution.

    Example:
        >>> import stopgrad as sg
        >>> sg.ndtr([0.0, 1.0]).numpy()
        array([0.5       , 0.84134475])
    """
    return on_host(xp, scipy_special().ndtr, x)


@unary(_scipy("log_ndtr"), lambda xp, t, x, out: t * (_1_OVER_SQRT_2PI * xp.exp(-0.5 * x * x - out)))
def log_ndtr(xp: Any, x: Any) -> Any:
    """Logarithm of the distribution function of the standard normal distribution, exact also far below zero.

    Example:
        >>> import stopgrad as sg
        >>> sg.log_ndtr([0.0, -20.0]).numpy()
        array([  -0.69314718, -203.91715537])
    """
    return on_host(xp, scipy_special().log_ndtr, x)


@unary(_scipy("psi"), lambda xp, t, x, _out: t * run(POLYGAMMA, x, params=(1,)))
def digamma(xp: Any, x: Any) -> Any:
    """Derivative of `gammaln`; NaN at the negative integers and -inf at 0.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.digamma(1.0))
        -0.5772156649015329
    """
    return on_host(xp, scipy_special().psi, x)


@unary(_scipy("gammaln"), lambda xp, t, x, _out: t * run(digamma.operation, x))
def gammaln(xp: Any, x: Any) -> Any:
    """Logarithm of the absolute value of the gamma function; infinite at its poles, the integers below 1.

    Example:
        >>> import stopgrad as sg
        >>> sg.gammaln([1.0, 5.0]).numpy()
        array([0.        , 3.17805383])
    """
    return on_host(xp, scipy_special().gammaln, x)


lgamma = gammaln


def _polygamma_numpy(x: Any, order: int) -> Any:
    array = np.asarray(x)
    # SciPy computes and answers in double precision whatever it is given.
    return scipy_special().polygamma(order, array).astype(array.dtype if array.dtype.kind == "f" else np.float64)


POLYGAMMA: Operation = elementwise(
    "polygamma",
    lambda xp, x, order: on_host(xp, lambda array: _polygamma_numpy(array, order), x),
    lambda xp, t, x, _out, order: t * run(POLYGAMMA, x, params=(order + 1,)),
    numpy_kernel=_polygamma_numpy,
)
"""polygamma(x; order) for order ≥ 1."""


def polygamma(n: int, x: Any, /) -> Tensor:
    """Derivative of order n of `digamma`.

    Args:
        n: a Python integer, at least 0.
        x: tensor, array or number.

    Returns:
        Tensor of the shape of x.

    Raises:
        ArgumentTypeError: n is no integer.
        ArgumentError: n is negative.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.polygamma(1, 1.0))
        1.6449340668482266
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ArgumentTypeError(f"polygamma: n must be an integer, got {n!r}; there is no derivative by it")
    order = n.__index__()
    if order < 0:
        raise ArgumentError(f"polygamma: n must not be negative, got {order}")
    return digamma(x) if order == 0 else bind1(POLYGAMMA, x, (order,))


@unary(_scipy("expit"), lambda xp, t, _x, out: t * (out * (1 - out)))
def sigmoid(xp: Any, x: Any) -> Any:
    """Logistic function, 1 / (1 + e⁻ˣ).

    Example:
        >>> import stopgrad as sg
        >>> sg.sigmoid([0.0, 2.0]).numpy()
        array([0.5       , 0.88079708])
    """
    return 0.5 * (1 + xp.tanh(0.5 * x))


expit = sigmoid


def _log_sigmoid_numpy(x: Any) -> Any:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _softplus_numpy(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# NumPy's logaddexp and SciPy's log_expit would do, but are six times slower on arrays of any size.
@unary(_log_sigmoid_numpy, lambda xp, t, _x, out: t * -xp.expm1(out))
def log_sigmoid(xp: Any, x: Any) -> Any:
    """Logarithm of the logistic function, -log(1 + e⁻ˣ), without overflow.

    Example:
        >>> import stopgrad as sg
        >>> sg.log_sigmoid([0.0, -1000.0]).numpy()
        array([-6.93147181e-01, -1.00000000e+03])
    """
    return -xp.logaddexp(-x, xp.zeros_like(x))


@unary(_softplus_numpy, lambda xp, t, _x, out: t * -xp.expm1(-out))
def softplus(xp: Any, x: Any) -> Any:
    """log(1 + eˣ), without overflow: a smooth `relu`.

    Example:
        >>> import stopgrad as sg
        >>> sg.softplus([0.0, 1000.0]).numpy()
        array([6.93147181e-01, 1.00000000e+03])
    """
    return xp.logaddexp(x, xp.zeros_like(x))


@unary(_scipy("logit"), lambda xp, t, x, _out: t / (x * (1 - x)))
def logit(xp: Any, x: Any) -> Any:
    """Inverse of the logistic function, log(x / (1 - x)); infinite at 0 and 1, NaN outside [0, 1].

    Example:
        >>> import stopgrad as sg
        >>> sg.logit([0.5, 0.75]).numpy()
        array([0.        , 1.09861229])
    """
    return xp.log(x / (1 - x))


@unary(_scipy("entr"), lambda xp, t, x, _out: t * (-1 - xp.log(x)))
def entr(xp: Any, x: Any) -> Any:
    """Entropy of an entry, -x·log x; 0 at 0, -inf below. At 0 the derivative is infinite.

    Example:
        >>> import stopgrad as sg
        >>> sg.entr([0.0, 0.5]).numpy()
        array([0.        , 0.34657359])
    """
    return on_host(xp, scipy_special().entr, x)


@binary(
    _scipy_of_two("xlogy"),
    lambda xp, t, _a, b, _out: t * xp.log(xp.asarray(b, dtype=t.dtype)),
    lambda xp, t, a, b, _out: xp.where((a == 0) & (b == 0), 0, t * (a / b)),
)
def xlogy(xp: Any, a: Any, b: Any) -> Any:
    """a·log b, and 0 where a is 0 (unless b is NaN).

    ∂/∂a is log b, -inf at b = 0; ∂/∂b is a / b, and 0 at (0, 0).

    Example:
        >>> import stopgrad as sg
        >>> sg.xlogy([0.0, 2.0], [0.0, 3.0]).numpy()
        array([0.        , 2.19722458])
    """
    return on_host(xp, scipy_special().xlogy, *arrays_of(xp, a, b))


@binary(
    _scipy_of_two("xlog1py"),
    lambda xp, t, _a, b, _out: t * xp.log1p(xp.asarray(b, dtype=t.dtype)),
    lambda xp, t, a, b, _out: xp.where((a == 0) & (b == -1), 0, t * (a / (1 + b))),
)
def xlog1py(xp: Any, a: Any, b: Any) -> Any:
    """a·log(1 + b), and 0 where a is 0 (unless b is NaN).

    ∂/∂a is log(1 + b), -inf at b = -1; ∂/∂b is a / (1 + b), and 0 at (0, -1).

    Example:
        >>> import stopgrad as sg
        >>> sg.xlog1py([0.0, 2.0], [-1.0, 2.0]).numpy()
        array([0.        , 2.19722458])
    """
    return on_host(xp, scipy_special().xlog1py, *arrays_of(xp, a, b))
