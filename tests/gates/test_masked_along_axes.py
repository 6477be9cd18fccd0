"""What an unselected entry lies behind, through nonlinear operations along an axis: no infinity there becomes NaN.

In every row but the first the program is smooth; the first is not selected, and its derivative is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.nn as nn

X = np.array([0.0, 0.3, 0.8])
SMOOTH = X[1:]

ALONG_AN_AXIS = {
    "logsumexp": lambda s: sg.logsumexp(s, axis=0),
    "softmax": lambda s: nn.softmax(s, axis=0)[0],
    "log_softmax": lambda s: nn.log_softmax(s, axis=0)[0],
    "standardize": lambda s: sg.standardize(s, axis=0)[0],
    "prod": lambda s: sg.prod(s, axis=0),
    "cumprod": lambda s: sg.cumprod(s, axis=0)[1],
    "logcumsumexp": lambda s: sg.logcumsumexp(s, axis=0)[1],
    "var": lambda s: sg.var(s, axis=0),
    "std": lambda s: sg.std(s, axis=0, keepdims=True)[0],
    "norm": lambda s: sg.linalg.norm(s, axis=0),
    "norm 3": lambda s: sg.linalg.vector_norm(s, axis=0, ord=3),
}
BEFORE = {"sqrt": sg.sqrt, "log": sg.log, "power": lambda x: x**-0.5}
SELECT = {
    "where": lambda h: sg.where(np.arange(h.shape[0]) >= h.shape[0] - 2, h, 0.0),
    "index": lambda h: h[-2:],
    "take": lambda h: sg.take(h, [-2, -1]),
}
DERIVATIVES = {
    "reverse": lambda f, x: sg.grad(f)(x),
    "forward": lambda f, x: sg.stack([sg.jvp(f, (x,), (unit,))[1] for unit in np.eye(len(x))]),
    "forward over reverse": lambda f, x: sg.sum(sg.hessian(f)(x), axis=0),
    "reverse over reverse": lambda f, x: sg.sum(sg.jacobian(sg.grad(f), mode="reverse")(x), axis=0),
    "reverse over forward": lambda f, x: sg.grad(lambda y: sg.jvp(f, (y,), (np.ones(len(x)),))[1])(x),
}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES.keys())
@pytest.mark.parametrize("select", SELECT.values(), ids=SELECT.keys())
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
@pytest.mark.parametrize("along", ALONG_AN_AXIS.values(), ids=ALONG_AN_AXIS.keys())
@pytest.mark.filterwarnings("ignore:.*encountered.*:RuntimeWarning")
def test_nothing_leaks_from_what_is_not_selected(along: Any, before: Any, select: Any, derivative: Any) -> None:
    def loss(x: Any) -> Any:
        s = before(x)
        return sg.sum(select(along(sg.stack([s, s * s + 1.5]))) ** 2)

    found, right = derivative(loss, X).numpy(), derivative(loss, SMOOTH).numpy()
    np.testing.assert_allclose(found, [0.0, *right], rtol=1e-10, atol=1e-12)
