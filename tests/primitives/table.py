"""The operation table: all rows, and what its tests have in common.

The rows of a family stand in `rows_<family>.py`; each such file in this folder is read.
"""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stopgrad as sg
from stopgrad.core.arrays import carries_derivative
from stopgrad.core.operation import Operation
from tests.primitives.rows import Row

Point = tuple[Any, ...]

FAMILIES = sorted(path.stem for path in Path(__file__).parent.glob("rows_*.py"))
ROWS: list[Row] = [row for name in FAMILIES for row in importlib.import_module(f"tests.primitives.{name}").ROWS]


def _with_ids() -> list[Any]:
    numbers = Counter(row.operation for row in ROWS)
    counts = {name: itertools.count(1) for name in numbers}
    return [
        pytest.param(
            row, id=row.operation if numbers[row.operation] == 1 else f"{row.operation}-{next(counts[row.operation])}"
        )
        for row in ROWS
    ]


every_row = pytest.mark.parametrize("row", _with_ids())
both_precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


@contextmanager
def at(point: Point, kind: str = "point") -> Iterator[None]:
    """Say in an error of the block at which point of a row it happened; NumPy says nothing of inf and NaN there."""
    try:
        with np.errstate(all="ignore"):
            yield
    except BaseException as error:
        error.add_note(f"at the {kind} {point!r}"[:600])
        raise


def points(row: Row, dtype: Any = np.float64, *, edges: bool = True) -> Iterator[Point]:
    """Yield samples, and edges too, with their floats in this precision."""
    for point in [*row.samples, *(row.edges if edges else [])]:
        yield in_precision(point, dtype)


def in_precision(point: Point, dtype: Any) -> Point:
    """Return a point with its floats and complex numbers in this precision."""
    kinds = {"f": dtype, "c": np.result_type(dtype, np.complex64)}
    arrays = map(np.asarray, point)
    return tuple(one.astype(kinds.get(one.dtype.kind, one.dtype)) for one in arrays)


def differentiable(arguments: Point) -> list[int]:
    """Return the places of the arguments that carry a derivative."""
    return [i for i, one in enumerate(arguments) if carries_derivative(one.dtype)]


def replaced(arguments: Point, places: list[int], given: Point) -> list[Any]:
    """Return the arguments with those at the places replaced."""
    found = list(arguments)
    for place, one in zip(places, given, strict=True):
        found[place] = one
    return found


def outputs_of(result: Any) -> list[Any]:
    """Return what an operation gave, one or several, as a list."""
    return list(result) if isinstance(result, tuple | list) else [result]


def function_of(row: Row, arguments: Point, places: list[int]) -> Callable[..., tuple[Any, ...]]:
    """Return the row's call as a function of the arguments at some places, giving a tuple."""
    return lambda *given: tuple(outputs_of(row.call(*replaced(arguments, places, given))))


def raw(tensors: Any) -> list[np.ndarray]:
    """Return tensors as NumPy arrays."""
    return [one.numpy() for one in tensors]


def cotangents_for(outputs: list[Any]) -> list[np.ndarray | None]:
    """Return the same cotangents every time, of size one, `None` for outputs that carry no derivative."""
    random = np.random.default_rng(7)
    found = []
    for one in outputs:
        cotangent = random.uniform(0.5, 1.5, one.shape) * random.choice((-1.0, 1.0), one.shape)
        found.append(np.asarray(cotangent, one.dtype) if one.dtype.kind in "fc" else None)
    return found


def derivative(row: Row, point: Point, wrap: Callable[[Any], Any] = np.asarray) -> tuple[list[Any], list[Any]]:
    """Return values, and gradients by the floating-point arguments, of the outputs added up with fixed weights.

    `wrap` makes the arrays to compute with of the point's.
    """
    places = differentiable(point)
    f = function_of(row, tuple(wrap(one) for one in point), places)
    if not places:
        return list(f()), []
    outputs, pullback = sg.vjp(f, *(wrap(point[place]) for place in places))
    seeds = cotangents_for(raw(outputs))
    cotangents = tuple(
        wrap(np.zeros(output.shape) if seed is None else seed) for seed, output in zip(seeds, outputs, strict=True)
    )
    return list(outputs), list(pullback(cotangents))


def assert_close(actual: Any, expected: Any, rtol: float, scale: float = 0.0) -> None:
    """Compare, with an absolute tolerance that follows the largest finite entry, or `scale` if that is larger."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    largest = max(scale, largest_of(expected))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * largest, equal_nan=True)


def largest_of(*arrays: np.ndarray) -> float:
    """Return the size of the largest finite entry of some arrays, 0 for none."""
    return max((float(np.max(np.abs(one[np.isfinite(one)]), initial=0.0)) for one in arrays), default=0.0)


@contextmanager
def spying(operation: Operation) -> Iterator[list[tuple[Point, Any]]]:
    """Collect what the operation's kernel is called with, and gives, for NumPy arrays."""
    calls: list[tuple[Point, Any]] = []
    kernel = operation.numpy_kernel

    def spy(*arguments: Any) -> Any:
        out = kernel(*arguments)
        calls.append((arguments, out))
        return out

    operation.numpy_kernel = spy
    try:
        yield calls
    finally:
        operation.numpy_kernel = kernel
