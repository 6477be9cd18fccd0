"""Values, dtypes and gradients are TensorFlow's: every line of facts.txt and gradient_facts.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stopgrad.tf as tf

HERE = Path(__file__).parent


def facts(file: str) -> list[Any]:
    """Return (expression, what TensorFlow gives) for each line."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    pairs = [line.rsplit(" -> ", 1) for line in lines if not line.startswith("#")]
    return [pytest.param(expression, json.loads(given), id=expression) for expression, given in pairs]


def check(got: Any, expected: list[Any]) -> None:
    """Compare one tensor, or several, with [dtype, value] or a list of such."""
    if not isinstance(expected[0], str):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            check(one, other)
        return
    dtype, value = expected
    assert str(got.dtype) == dtype
    found = got.numpy()
    wanted = np.array(value[0]) + 1j * np.array(value[1]) if "complex" in dtype else np.array(value)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("expression", "expected"), facts("facts.txt"))
def test_value_and_dtype_are_those_of_tensorflow(expression: str, expected: list[Any]) -> None:
    check(eval(expression, {"tf": tf, "np": np}), expected)


@pytest.mark.parametrize(("expression", "expected"), facts("gradient_facts.txt"))
def test_gradient_is_that_of_tensorflow(expression: str, expected: list[Any]) -> None:
    z = tf.constant([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = eval(expression, {"tf": tf, "z": z})
    gradient = tape.gradient(y, z)
    assert gradient.dtype == tf.float32
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-4, atol=1e-4)
