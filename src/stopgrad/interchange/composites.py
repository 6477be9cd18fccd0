"""Elementwise operations in terms of others, for formats that lack them: accurate where the plain formula cancels."""

from __future__ import annotations

import math
from collections.abc import Callable

from stopgrad.interchange.exporting import Exporter, Value


def _expm1(e: Exporter, x: Value) -> Value:
    half = e.do("tanh", e.do("multiply", x, e.number(x, 0.5)))
    return e.do("multiply", half, e.do("add", e.do("exp", x), e.number(x, 1)))


def _log1p(e: Exporter, x: Value) -> Value:
    # log(u)·x / (u - 1) with u = 1 + x as rounded (Kahan).
    one = e.number(x, 1)
    u = e.do("add", x, one)
    d = e.do("subtract", u, one)
    log = e.do("log", u)
    exact = e.do("equal", d, x)
    safe = e.where(e.do("equal", d, e.number(x, 0)), one, d)
    scaled = e.where(exact, log, e.do("multiply", log, e.do("divide", x, safe)))
    return e.where(e.do("equal", d, e.number(x, 0)), x, scaled)


def _scaled(kind: str, factor: float) -> Callable[..., Value]:
    return lambda e, x: e.do("multiply", e.do(kind, x), e.number(x, factor))


def _guarded(e: Exporter, guard: Value, value: Value) -> Value:
    """Return zero where the guard is zero, else the value."""
    zero = e.number(guard, 0)
    return e.where(e.do("equal", guard, zero), e.number(value, 0), value)


def _divide_no_nan(e: Exporter, a: Value, b: Value) -> Value:
    safe = e.where(e.do("equal", b, e.number(b, 0)), e.number(b, 1), b)
    return _guarded(e, b, e.do("divide", a, safe))


def _remainder(e: Exporter, a: Value, b: Value) -> Value:
    return e.do("subtract", a, e.do("multiply", e.do("floor_divide", a, b), b))


def _gelu_tanh(e: Exporter, x: Value) -> Value:
    cube = e.do("multiply", e.do("multiply", x, x), x)
    inside = e.do("add", x, e.do("multiply", cube, e.number(x, 0.044715)))
    bent = e.do("tanh", e.do("multiply", inside, e.number(x, math.sqrt(2 / math.pi))))
    return e.do("multiply", e.do("multiply", x, e.number(x, 0.5)), e.do("add", bent, e.number(x, 1)))


def _ndtr(e: Exporter, x: Value) -> Value:
    return e.do("multiply", e.do("erfc", e.do("multiply", x, e.number(x, -math.sqrt(0.5)))), e.number(x, 0.5))


def _logaddexp(e: Exporter, a: Value, b: Value) -> Value:
    apart = e.do("negative", e.do("absolute", e.do("subtract", a, b)))
    return e.do("add", e.do("maximum", a, b), e.do("softplus", apart))


def _softplus(e: Exporter, x: Value) -> Value:
    tail = e.do("log1p", e.do("exp", e.do("negative", e.do("absolute", x))))
    return e.do("add", e.do("maximum", x, e.number(x, 0)), tail)


def _below_zero(e: Exporter, x: Value, below: Value) -> Value:
    return e.where(e.do("greater", x, e.number(x, 0)), x, below)


def _isfinite(e: Exporter, x: Value) -> Value:
    return e.do("logical_not", e.do("logical_or", e.do("isnan", x), e.do("isinf", x)))


def _arctan2(e: Exporter, y: Value, x: Value) -> Value:
    zero, half = e.number(x, 0), e.number(x, math.pi / 2)
    upper = e.do("greater_equal", y, zero)
    flat = e.do("equal", x, zero)
    angle = e.do("arctan", e.do("divide", y, e.where(flat, e.number(x, 1), x)))
    turned = e.do("add", angle, e.where(upper, e.number(x, math.pi), e.number(x, -math.pi)))
    upright = e.where(e.do("equal", y, zero), zero, e.where(upper, half, e.number(x, -math.pi / 2)))
    return e.where(flat, upright, e.where(e.do("less", x, zero), turned, angle))


COMPOSITES: dict[str, Callable[..., Value]] = {
    "arctan2": _arctan2,
    "cbrt": lambda e, x: e.do("multiply", e.do("sign", x), e.do("power", e.do("absolute", x), e.number(x, 1 / 3))),
    "clip": lambda e, x, low, high: e.do("minimum", e.do("maximum", x, low), high),
    "clip_high": lambda e, x, high: e.do("minimum", x, high),
    "clip_low": lambda e, x, low: e.do("maximum", x, low),
    "deg2rad": lambda e, x: e.do("multiply", x, e.number(x, math.pi / 180)),
    "divide_no_nan": _divide_no_nan,
    "elu": lambda e, x, alpha: _below_zero(e, x, e.do("multiply", alpha, e.do("expm1", x))),
    "entr": lambda e, x: e.do("negative", e.do("xlogy", x, x)),
    "erfc": lambda e, x: e.do("subtract", e.number(x, 1), e.do("erf", x)),
    "exp2": lambda e, x: e.do("power", e.number(x, 2), x),
    "expm1": _expm1,
    "floor_divide": lambda e, a, b: e.do("floor", e.do("divide", a, b)),
    "gelu_exact": lambda e, x: e.do("multiply", x, e.do("ndtr", x)),
    "gelu_tanh": _gelu_tanh,
    "greater_equal": lambda e, a, b: e.do("less_equal", b, a),
    "hypot": lambda e, a, b: e.do("sqrt", e.do("add", e.do("square", a), e.do("square", b))),
    "isfinite": _isfinite,
    "leaky_relu": lambda e, x, slope: _below_zero(e, x, e.do("multiply", x, slope)),
    "log10": _scaled("log", 1 / math.log(10)),
    "log1p": _log1p,
    "log2": _scaled("log", 1 / math.log(2)),
    "log_sigmoid": lambda e, x: e.do("negative", e.do("softplus", e.do("negative", x))),
    "logaddexp": _logaddexp,
    "logical_xor": lambda e, a, b: e.do(
        "logical_and", e.do("logical_or", a, b), e.do("logical_not", e.do("logical_and", a, b))
    ),
    "logit": lambda e, x: e.do("log", e.do("divide", x, e.do("subtract", e.number(x, 1), x))),
    "multiply_no_nan": lambda e, a, b: _guarded(e, b, e.do("multiply", a, b)),
    "ndtr": _ndtr,
    "not_equal": lambda e, a, b: e.do("logical_not", e.do("equal", a, b)),
    "positive": lambda e, x: x,
    "rad2deg": lambda e, x: e.do("multiply", x, e.number(x, 180 / math.pi)),
    "reciprocal": lambda e, x: e.do("divide", e.number(x, 1), x),
    "relu6": lambda e, x: e.do("minimum", e.do("relu", x), e.number(x, 6)),
    "remainder": _remainder,
    "rsqrt": lambda e, x: e.do("reciprocal", e.do("sqrt", x)),
    "silu": lambda e, x: e.do("multiply", x, e.do("sigmoid", x)),
    "softplus": _softplus,
    "square": lambda e, x: e.do("multiply", x, x),
    "squared_difference": lambda e, a, b: e.do("square", e.do("subtract", a, b)),
    "trunc": lambda e, x: e.do("multiply", e.do("sign", x), e.do("floor", e.do("absolute", x))),
    "xlog1py": lambda e, a, b: _guarded(e, a, e.do("multiply", a, e.do("log1p", b))),
    "xlogy": lambda e, a, b: _guarded(e, a, e.do("multiply", a, e.do("log", b))),
}
"""By operation, how it is written with others."""
