"""Every registered operation through the same checks: derivatives, references, shape rule, other arrays, dtypes.

`rows.py` says what a row holds. A point is one row's arguments; `at` names it where a check fails.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.arrays import PYTHON_SCALARS, Spec, carries_derivative, is_array, spec_of
from stopgrad.core.errors import ShapeError, StopgradError
from stopgrad.core.operation import Operation, operations
from tests.primitives.references import REFERENCES
from tests.primitives.rows import Row
from tests.primitives.table import (
    FAMILIES,
    ROWS,
    assert_close,
    at,
    both_precisions,
    cotangents_for,
    derivative,
    differentiable,
    every_row,
    function_of,
    in_precision,
    largest_of,
    outputs_of,
    points,
    raw,
    spying,
)

# What no row can stand for: the record's own operations, what only graphs have (tests/graph), loops and branches, whose
# settings are programs (tests/control), and the gates, which are the identity with rules of their own (tests/gates).
WITHOUT_ROW = {
    "leaf",
    "project",
    "constant",
    "placeholder",
    "variable",
    "checkpoint",
    "scan",
    "switch",
    "while",
    "stop_gradient",
    "stop_where",
    "scale_gradient",
    "straight_through",
    "clip_gradient_by_value",
    "clip_gradient_by_norm",
    "conditional_stop",
    "prevent_gradient",
}


STRICT_ARRAY = type(array_api_strict.asarray(0.0))
SINGLE_RTOL = 2e-5


# Completeness


def test_every_operation_has_a_row_and_every_row_an_operation():
    for module in pkgutil.walk_packages(sg.__path__, "stopgrad."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with_row = {row.operation for row in ROWS}
    assert sorted(set(operations) - with_row - WITHOUT_ROW) == []
    assert sorted(with_row - set(operations)) == []
    assert len(FAMILIES) >= 8


@pytest.mark.parametrize("name", sorted({row.operation for row in ROWS}))
def test_a_row_runs_its_operation(name):
    """Some rows try what runs another operation, as x**2 is a square; one must run the operation itself."""
    with spying(operations[name]) as calls, np.errstate(all="ignore"):
        for row in ROWS:
            if row.operation == name:
                row.call(*map(sg.tensor, (row.samples + row.edges)[0]))
    assert calls


# Derivatives


@every_row
def test_derivatives_to_the_second_order(row):
    if operations[row.operation].differentiable:
        for point in points(row, edges=False):
            with at(point):
                check_gradients(row.call, point, order=row.order)


@every_row
def test_results_without_derivative_are_unconnected(row):
    if operations[row.operation].differentiable:
        return
    for point in points(row):
        places = differentiable(point)
        if places:
            with at(point):
                primals = tuple(point[place] for place in places)
                tangents = tuple(np.ones_like(one) for one in primals)
                _, found = sg.jvp(function_of(row, point, places), primals, tangents, unconnected="none")
                assert all(one is None for one in found)


@every_row
def test_forward_and_reverse_agree_at_the_edges_too(row):
    if not operations[row.operation].differentiable:
        return
    for point in points(row):
        places = differentiable(point)
        primals = tuple(point[place] for place in places)
        with at(point):
            outputs, gradients = derivative(row, point)
            weights = cotangents_for(raw(outputs))
            random = np.random.default_rng(3)
            for number, gradient in enumerate(raw(gradients)):
                tangents = [np.zeros_like(one) for one in primals]
                tangents[number] = random.uniform(0.5, 1.5, primals[number].shape).astype(primals[number].dtype)
                _, pushed = sg.jvp(function_of(row, point, places), primals, tuple(tangents))
                terms = [w * t for w, t in zip(weights, raw(pushed), strict=True) if w is not None]
                pulled = gradient * tangents[number]
                size = sum(float(np.sum(np.abs(one))) for one in (*terms, pulled))
                if np.isfinite(size):
                    forward = sum(float(np.sum(one.real)) for one in terms)
                    assert abs(forward - float(np.sum(pulled.real))) <= 1e-9 * size


# References


@both_precisions
@pytest.mark.parametrize("library", REFERENCES)
@every_row
def test_values_and_gradients_are_those_of(row, library, dtype):
    if getattr(row, library) is None:
        return
    rtol = row.rtol if dtype is np.float64 else max(row.rtol, SINGLE_RTOL)
    constant = not operations[row.operation].differentiable
    samples, edges = row.samples, row.edges
    if library == "jax" and (row.torch is not None or dtype is np.float32):
        # What JAX takes to compile grows with the points: it sees all of them once, if PyTorch does not.
        if row.torch is not None and dtype is np.float32:
            return
        samples, edges = samples[:1], edges[:2]
    kinds = ["sample"] * len(samples) + ["edge"] * len(edges)
    given = [in_precision(point, dtype) for point in (*samples, *edges)]
    references = REFERENCES[library](row, given, values_only=constant)
    for kind, point, (expected_values, expected) in zip(kinds, given, references, strict=True):
        with at(point, kind):
            values, gradients = derivative(row, point)
            for value, other in zip(raw(values), expected_values, strict=True):
                assert_close(value, other, rtol)
                assert value.dtype.kind == other.dtype.kind
                assert value.dtype.kind not in "fc" or value.dtype == other.dtype
            if expected is not None and (row.compare_edge_gradients or kind == "sample"):
                for gradient, other in zip(raw(gradients), expected, strict=True):
                    assert_close(gradient, other, rtol, scale=1e-3 * largest_of(*expected))


# Shapes and dtypes


@both_precisions
@every_row
def test_the_shape_rule_says_what_the_kernel_gives(row, dtype):
    operation = operations[row.operation]
    for point in points(row, dtype):
        with at(point), spying(operation) as calls:
            row.call(*map(sg.tensor, point))
            for arguments, out in calls:
                count = _input_count(operation, arguments)
                specs = _specs(arguments[:count])
                if _has_shape_of_values(operation, specs):
                    with pytest.raises(ShapeError, match="depend"):
                        operation.spec(*specs, *arguments[count:])
                    continue
                given = operation.spec(*specs, *arguments[count:])
                assert given == (tuple(map(spec_of, out)) if isinstance(out, tuple) else spec_of(out))


def _has_shape_of_values(operation: Operation, inputs: list[Spec]) -> bool:
    """Whether the result's shape depends on values: places and different entries, and what a mask selects."""
    masked = operation.name in ("index", "scatter", "at_set", "at_add", "winners")
    return operation.name in ("argwhere", "unique") or (masked and any(one.dtype == bool for one in inputs[1:]))


def _input_count(operation: Operation, arguments: tuple[Any, ...]) -> int:
    """Return how many of a kernel's arguments are inputs; the others are params."""
    if operation.differentiable:
        return len(operation.vjps) if operation.fixed_arity else len(arguments) - operation.vjps.param_count
    if isinstance(operation.numpy_kernel, np.ufunc):
        return operation.numpy_kernel.nin
    return sum(1 for _ in itertools.takewhile(is_array, arguments))


def _specs(inputs: tuple[Any, ...]) -> list[Spec]:
    """Return the specs of inputs; a Python number has the dtype that it takes beside the arrays."""
    arrays = [one.dtype for one in inputs if is_array(one)]
    return [Spec((), np.result_type(*arrays, one)) if type(one) in PYTHON_SCALARS else spec_of(one) for one in inputs]


@both_precisions
@every_row
def test_derivatives_have_shape_and_dtype_of_what_they_belong_to(row, dtype):
    for point in points(row, dtype):
        places = differentiable(point)
        primals = tuple(point[place] for place in places)
        with at(point):
            _, gradients = derivative(row, point)
            assert [spec_of(one) for one in gradients] == [spec_of(one) for one in primals]
            if not places:
                continue
            outputs, tangents = sg.jvp(function_of(row, point, places), primals, primals)
            for output, tangent in zip(outputs, tangents, strict=True):
                assert not carries_derivative(output.dtype) or spec_of(tangent) == spec_of(output)


# Other ways to run


@every_row
def test_arrays_of_another_library(row):
    if not row.strict:
        return
    for point in points(row):
        with at(point):
            expected, expected_gradients = derivative(row, point)
            actual, gradients = derivative(row, point, wrap=array_api_strict.asarray)
            for one, other in zip(actual, expected, strict=True):
                assert type(one.value) is STRICT_ARRAY
                assert_close(one.numpy(), other.numpy(), row.rtol)
                assert one.numpy().dtype == other.numpy().dtype
            for one, other in zip(gradients, expected_gradients, strict=True):
                assert type(one.value) is STRICT_ARRAY
                assert_close(one.numpy(), other.numpy(), row.rtol, scale=1e-3)


@every_row
def test_a_recorded_sweep_gives_what_a_raw_one_does(row):
    if not operations[row.operation].differentiable:
        return
    for point in points(row):
        places = differentiable(point)
        primals = tuple(point[place] for place in places)
        with at(point):
            _, expected = derivative(row, point)
            recorded: list[np.ndarray] = []

            def swept(*given: Any, point: Any = point, places: Any = places, recorded: Any = recorded) -> Any:
                outputs, pullback = sg.vjp(function_of(row, point, places), *given)
                seeds = cotangents_for(raw(outputs))
                zeros = [np.zeros(one.shape, one.dtype) for one in outputs]
                gradients = pullback(tuple(z if s is None else s for s, z in zip(seeds, zeros, strict=True)))
                recorded[:] = raw(gradients)
                return gradients

            sg.jvp(swept, primals, primals)
            for one, other in zip(recorded, expected, strict=True):
                assert_close(one, other.numpy(), 1e-14)


# Integers and booleans


def _in_numpy(row: Row) -> Callable[..., Any] | None:
    """Return NumPy's function for a row whose call is a function of ours with the same name there."""
    name = getattr(row.call, "__name__", "")
    return getattr(np, name, None) if getattr(sg, name, None) is row.call else None


@pytest.mark.parametrize("kind", ["int64", "int32", "bool"])
@every_row
def test_integers_and_booleans(row, kind):
    """Results are NumPy's where it has the function; elsewhere what cannot be computed raises one of our errors."""
    reference = _in_numpy(row)
    for point in points(row):
        if any(one.dtype.kind == "f" and not np.isfinite(one).all() for one in point):
            continue
        given = tuple(one.astype(kind) if one.dtype.kind == "f" else one for one in point)
        with at(given):
            try:
                expected = None if reference is None else outputs_of(reference(*given))
            except (TypeError, ValueError):
                continue
            try:
                actual = raw(outputs_of(row.call(*map(sg.tensor, given))))
            except StopgradError:
                assert expected is None, "NumPy can do it"
                continue
            for one, other in zip(actual, expected or (), strict=expected is not None):
                assert one.dtype == np.asarray(other).dtype
                assert_close(one, other, 1e-12)


@every_row
def test_an_integer_beside_a_float_carries_no_derivative_and_breaks_none(row):
    for point in points(row, edges=False):
        places = differentiable(point)
        for place in places if len(places) > 1 else ():
            rounded = list(point)
            rounded[place] = np.round(point[place])
            integer = list(rounded)
            integer[place] = rounded[place].astype(np.int64)
            with at(tuple(integer)):
                try:
                    expected, expected_gradients = derivative(row, tuple(rounded))
                    actual, gradients = derivative(row, tuple(integer))
                except StopgradError:
                    continue
                del expected_gradients[places.index(place)]
                for one, other in zip(raw([*actual, *gradients]), raw([*expected, *expected_gradients]), strict=True):
                    assert_close(one, other, 1e-12)
