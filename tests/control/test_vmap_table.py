"""Every row of the operation table under `vmap`, against the same call for one example after the other."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import stopgrad as sg
from stopgrad.batching import sweep
from stopgrad.control.rules import ALL_RULES
from stopgrad.core.errors import ShapeError, TracedValueError
from stopgrad.core.operation import operations
from tests.primitives.rows import Row
from tests.primitives.table import (
    assert_close,
    at,
    cotangents_for,
    differentiable,
    every_row,
    function_of,
    outputs_of,
    points,
    raw,
    replaced,
)

FACTORS = (1.0, 0.9375, 1.0625)
SIZE = len(FACTORS)


def is_shaped_by_values(row: Row) -> bool:
    """Whether the shape of what the row gives depends on values, which differ between examples."""
    return row.operation in ("unique", "argwhere", "count_each") or "lstsq" in row.call.__code__.co_names


# What stands for no operation to be batched: the record's own, what a graph begins with, and what has no shape.
WITHOUT_RULE = {"leaf", "project", "placeholder", "constant", "variable", "argwhere", "unique", "count_each"}


def test_every_operation_has_a_batching_rule_and_every_rule_an_operation() -> None:
    for module in pkgutil.walk_packages(sg.__path__, "stopgrad."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    without = {name for name, one in operations.items() if name not in ALL_RULES and not one.elementwise}
    assert without == WITHOUT_RULE
    assert set(ALL_RULES) <= set(operations)


@every_row
def test_no_fast_rule_is_missing_where_examples_differ_in_everything(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching among other entries for each example is the one thing that is done one by one."""
    if is_shaped_by_values(row) or row.operation == "searchsorted":
        return
    monkeypatch.setattr(sweep, "one_by_one", None)
    with np.errstate(all="ignore"):
        for point in points(row, edges=False):
            stacked, _ = arguments_for(point, [0] * len(point))
            sg.vmap(row.call)(*stacked)


def examples_of(point: Any) -> list[tuple[Any, ...]]:
    """Return three points like the given one; integers and booleans are the same in all."""
    return [tuple(one * factor if one.dtype.kind in "fc" else one for one in point) for factor in FACTORS]


def ways(point: Any) -> list[list[int | None]]:
    """Return the axes to map arguments along: all the first, all the last, and each alone."""
    count = len(point)
    found: list[list[int | None]] = [[0] * count, [-1] * count]
    if count > 1:
        found += [[0 if i == alone else None for i in range(count)] for alone in range(count)]
    return found


def arguments_for(point: Any, axes: list[int | None]) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Return arguments with examples along the axes, and the arguments of each example."""
    examples = examples_of(point)
    stacked = [
        one if axis is None else np.stack([example[i] for example in examples], axis)
        for i, (one, axis) in enumerate(zip(point, axes, strict=True))
    ]
    each = [
        tuple(sg.tensor(one if axis is None else other) for one, other, axis in zip(point, example, axes, strict=True))
        for example in examples
    ]
    return stacked, each


def check_close(actual: Any, expected: list[Any], rtol: float) -> None:
    """Compare mapped results with those of each example."""
    assert actual.shape == (SIZE, *expected[0].shape)
    assert actual.dtype == expected[0].dtype
    assert_close(actual, np.stack(expected), rtol)


@every_row
def test_values_are_those_of_each_example(row: Row) -> None:
    if is_shaped_by_values(row):
        return
    with np.errstate(all="ignore"):
        for point in points(row):
            for axes in ways(point):
                with at(point, f"{axes}"):
                    stacked, each = arguments_for(point, axes)
                    actual = outputs_of(sg.vmap(row.call, in_axes=tuple(axes))(*stacked))
                    expected = [raw(outputs_of(row.call(*one))) for one in each]
                    for one, others in zip(raw(actual), zip(*expected, strict=True), strict=True):
                        check_close(one, list(others), row.rtol)


def pulled(row: Row, point: Any) -> Any:
    """Return a function of the differentiable arguments that gives their cotangents for fixed ones of the result."""
    places = differentiable(point)

    def gradients(*arguments: Any) -> tuple[Any, ...]:
        f = function_of(row, arguments, places)
        outputs, pullback = sg.vjp(f, *(arguments[place] for place in places))
        seeds = cotangents_for(outputs)
        return pullback(tuple(np.zeros(one.shape) if s is None else s for s, one in zip(seeds, outputs, strict=True)))

    return gradients


@every_row
def test_derivatives_are_those_of_each_example(row: Row) -> None:
    if not operations[row.operation].differentiable or is_shaped_by_values(row):
        return
    with np.errstate(all="ignore"):
        for point in points(row):
            if not differentiable(point):
                continue
            gradients = pulled(row, point)
            for axes in ways(point):
                with at(point, f"{axes}"):
                    stacked, each = arguments_for(point, axes)
                    actual = sg.vmap(gradients, in_axes=tuple(axes))(*stacked)
                    expected = [raw(gradients(*one)) for one in each]
                    for one, others in zip(raw(actual), zip(*expected, strict=True), strict=True):
                        check_close(one, list(others), row.rtol)


def function_of_places(f: Any, arguments: Any, places: list[int]) -> Any:
    """Return a function as one of the arguments at some places, giving a tuple."""
    return lambda *given: tuple(outputs_of(f(*replaced(arguments, places, given))))


@every_row
def test_derivatives_of_the_mapped_function_are_those_of_each_example(row: Row) -> None:
    if not operations[row.operation].differentiable or is_shaped_by_values(row):
        return
    with np.errstate(all="ignore"):
        for point in points(row):
            places = differentiable(point)
            if not places:
                continue
            gradients = pulled(row, point)
            for axes in ways(point):
                with at(point, f"{axes}"):
                    stacked, each = arguments_for(point, axes)
                    expected = [raw(gradients(*one)) for one in each]
                    mapped = sg.vmap(row.call, in_axes=tuple(axes))

                    given = [stacked[place] for place in places]
                    outputs, pullback = sg.vjp(function_of_places(mapped, stacked, places), *given)
                    seeds = cotangents_for([one[0] for one in outputs])
                    cotangents = tuple(
                        np.zeros(one.shape) if s is None else np.broadcast_to(s, one.shape)
                        for s, one in zip(seeds, outputs, strict=True)
                    )
                    for place, actual, others in zip(
                        places, raw(pullback(cotangents)), zip(*expected, strict=True), strict=True
                    ):
                        axis = axes[place]
                        total = sum(others) if axis is None else np.stack(others, axis)
                        assert_close(actual, total, row.rtol, scale=1.0)


@pytest.mark.parametrize(
    "f", [sg.unique, sg.argwhere, lambda x: sg.boolean_mask(x, x > 0), lambda x: sg.linalg.lstsq(x, x)]
)
def test_shapes_that_depend_on_values_are_refused(f: Any) -> None:
    with pytest.raises((ShapeError, TracedValueError), match="value"):
        sg.vmap(f)(np.ones((2, 3, 2)))
