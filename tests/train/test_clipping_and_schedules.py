"""Clipping of gradients by norm and by value, and learning rates that change."""

from __future__ import annotations

import math

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stopgrad.core.errors import ArgumentError
from stopgrad.train import SGD, Variable, schedules
from stopgrad.train.clipping import clip_by_norm, clip_by_value, global_norm

ARRAYS = st.lists(
    arrays(np.float64, array_shapes(min_dims=0, max_dims=2, max_side=4), elements=st.floats(-1e6, 1e6)), min_size=1
)


@given(ARRAYS)
def test_the_global_norm_is_that_of_all_entries(values: list[np.ndarray]) -> None:
    together = np.concatenate([value.ravel() for value in values])
    assert global_norm(values) == pytest.approx(np.linalg.norm(together), rel=1e-12)
    strict = [array_api_strict.asarray(value) for value in values]
    assert global_norm(strict) == pytest.approx(global_norm(values), rel=1e-12)


@given(ARRAYS, st.floats(1e-3, 1e3))
def test_clipping_by_norm_keeps_the_direction(values: list[np.ndarray], limit: float) -> None:
    norm = global_norm(values)
    clipped = clip_by_norm(values, limit)
    assert global_norm(clipped) <= limit * (1 + 1e-12)
    if norm <= limit:
        assert clipped is values
    for before, after in zip(values, clipped, strict=True):
        np.testing.assert_allclose(after * max(norm, limit), before * limit, rtol=1e-12, atol=1e-12)


def test_it_agrees_with_pytorch_beyond_the_small_number_that_adds() -> None:
    values = [np.array([3.0, -4.0]), np.array([[12.0]])]
    theirs = [torch.zeros(value.shape, dtype=torch.float64, requires_grad=True) for value in values]
    for tensor, value in zip(theirs, values, strict=True):
        tensor.grad = torch.tensor(value)
    torch.nn.utils.clip_grad_norm_(theirs, 2.0)
    for ours, tensor in zip(clip_by_norm(values, 2.0), theirs, strict=True):
        np.testing.assert_allclose(ours, tensor.grad.numpy(), rtol=1e-6)


def test_a_norm_whose_square_overflows_is_clipped_all_the_same() -> None:
    values = [np.array([3e30, 0.0], np.float32), np.array([4e30], np.float32)]
    with np.errstate(over="ignore"):
        clipped = clip_by_norm(values, 1.0)
    np.testing.assert_allclose(np.concatenate(clipped), [0.6, 0.0, 0.8], rtol=1e-6)
    assert all(one.dtype == np.float32 for one in clipped)


def test_infinite_and_nan_norms() -> None:
    finite = np.array([1.0, 2.0])
    with np.errstate(invalid="ignore"):
        zeros, nan = clip_by_norm([finite, np.array([np.inf])], 1.0)
    assert zeros.tolist() == [0.0, 0.0]
    assert np.isnan(nan).all()
    unclipped = clip_by_norm([finite, np.array([np.nan, np.inf])], 1.0)
    assert unclipped[0] is finite


def test_clipping_by_value() -> None:
    (clipped,) = clip_by_value([np.array([-3.0, 0.5, np.nan, np.inf])], 1.0)
    np.testing.assert_array_equal(clipped, [-1.0, 0.5, np.nan, 1.0])


def test_the_schedules_have_their_formulas() -> None:
    decay = schedules.exponential_decay(0.5, 4, 0.1)
    np.testing.assert_allclose([decay(step) for step in (0, 2, 4, 8)], [0.5, 0.5 * 0.1**0.5, 0.05, 0.005])
    steps = schedules.exponential_decay(0.5, 4, 0.1, staircase=True)
    np.testing.assert_allclose([steps(step) for step in (0, 3, 4, 7, 8)], [0.5, 0.5, 0.05, 0.05, 0.005])
    inverse = schedules.inverse_time_decay(1.0, 2, 1.0)
    assert [inverse(step) for step in (0, 2, 6)] == [1.0, 0.5, 0.25]
    cosine = schedules.cosine_decay(2.0, 8, alpha=0.25)
    expected = [2 * (0.75 * 0.5 * (1 + math.cos(math.pi * done)) + 0.25) for done in (0, 0.25, 1, 1)]
    np.testing.assert_allclose([cosine(step) for step in (0, 2, 8, 100)], expected)
    pieces = schedules.piecewise_constant([2, 4], [3.0, 2.0, 1.0])
    assert [pieces(step) for step in range(6)] == [3.0, 3.0, 3.0, 2.0, 2.0, 1.0]
    rising = schedules.warmup(schedules.exponential_decay(1.0, 1, 0.5), 2)
    assert [rising(step) for step in range(5)] == [0.5, 1.0, 1.0, 0.5, 0.25]
    assert schedules.constant(0.1)(7) == 0.1


def test_an_optimizer_follows_its_schedule() -> None:
    w = Variable(0.0)
    optimizer = SGD(schedules.piecewise_constant([0], [1.0, 0.25]))
    values = []
    for _ in range(3):
        optimizer.minimize(lambda: w)
        values.append(float(w))
    assert values == [-1.0, -1.25, -1.5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: schedules.piecewise_constant([1, 2], [1.0, 2.0]),
        lambda: schedules.piecewise_constant([2, 2], [1.0, 2.0, 3.0]),
        lambda: schedules.exponential_decay(1.0, 0, 0.5),
        lambda: schedules.warmup(1.0, 0),
    ],
)
def test_schedules_that_make_no_sense_are_refused(make) -> None:
    with pytest.raises(ArgumentError):
        make()
