"""Random numbers have the dtype that was asked for, whatever numbers their parameters are."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("uniform", ()),
        ("uniform", (2, 3.5)),
        ("normal", ()),
        ("normal", (1, 2.0)),
        ("truncated_normal", (1.0, 2)),
        ("exponential", (2,)),
        ("gumbel", (1.0, 2.0)),
        ("laplace", (1.0, 2.0)),
    ],
)
def test_numbers_do_not_widen_the_dtype(name: str, parameters: tuple[float, ...], dtype: type) -> None:
    drawn = getattr(sg.random, name)(*parameters, size=3, dtype=dtype)
    assert drawn.dtype == dtype
    assert drawn.shape == (3,)
