"""Shapes, joining and padding give NumPy's results on random arguments, and say what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.kept import kept_arrays

SIZES = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


def agree(ours: Any, numpys: Any) -> None:
    if isinstance(numpys, tuple | list):
        assert len(ours) == len(numpys)
        for one, other in zip(ours, numpys, strict=True):
            agree(one, other)
        return
    assert ours.shape == numpys.shape
    assert ours.dtype == numpys.dtype
    assert np.array_equal(ours.numpy(), numpys)


@given(SIZES, st.data())
def test_orders_of_axes(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    axes = st.integers(-len(shape), len(shape) - 1)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    first, second = data.draw(axes), data.draw(axes)
    agree(sg.permute_dims(x, order), np.transpose(x, order))
    agree(sg.swapaxes(x, first, second), np.swapaxes(x, first, second))
    agree(sg.moveaxis(x, first, second), np.moveaxis(x, first, second))
    agree(sg.rollaxis(x, first, second), np.rollaxis(x, first, second))
    some = tuple(data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True)))
    places = tuple(data.draw(st.permutations(range(len(shape)))))[: len(some)]
    agree(sg.moveaxis(x, some, places), np.moveaxis(x, some, places))
    agree(sg.flip(x, some), np.flip(x, some))
    shifts = tuple(data.draw(st.integers(-5, 5)) for _ in some)
    agree(sg.roll(x, shifts, some), np.roll(x, shifts, some))
    agree(sg.roll(x, shifts[:1] or 0), np.roll(x, shifts[:1] or 0))
    if len(shape) > 1 and first % len(shape) != second % len(shape):
        turns = data.draw(st.integers(-3, 5))
        agree(sg.rot90(x, turns, (first, second)), np.rot90(x, turns, (first, second)))


@given(SIZES, st.data())
def test_shapes(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    agree(sg.reshape(x, shape[::-1]), np.reshape(x, shape[::-1]))
    if x.size:
        agree(sg.reshape(x, (shape[0], -1)), np.reshape(x, (shape[0], -1)))
    new = tuple(data.draw(st.lists(st.integers(0, len(shape)), unique=True, max_size=2)))
    agree(sg.expand_dims(x, new), np.expand_dims(x, new))
    agree(sg.squeeze(sg.expand_dims(x, new), new), x)
    agree(sg.squeeze(x), np.squeeze(x))
    agree(sg.ravel(x), np.ravel(x))
    for ours, numpys in (
        (sg.atleast_1d, np.atleast_1d),
        (sg.atleast_2d, np.atleast_2d),
        (sg.atleast_3d, np.atleast_3d),
    ):
        agree(ours(x), numpys(x))
        agree(ours(2.5), numpys(2.5))
    reps = tuple(data.draw(st.lists(st.integers(0, 2), max_size=5)))
    agree(sg.tile(x, reps), np.tile(x, reps))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    size = x.size if axis is None else shape[axis]
    for repeats in (data.draw(st.integers(0, 3)), [data.draw(st.integers(0, 2)) for _ in range(size)]):
        agree(sg.repeat(x, repeats, axis), np.repeat(x, np.array(repeats, int), axis))


@given(SIZES, st.data())
def test_joining_and_parting(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    single = x.astype("float32")
    agree(sg.concat([x, single, x], axis=axis), np.concatenate([x, single, x], axis=axis))
    agree(sg.concat([x, single], axis=None), np.concatenate([x, single], axis=None))
    agree(sg.stack([single, single], axis=axis), np.stack([single, single], axis=axis))
    for ours, numpys in ((sg.vstack, np.vstack), (sg.hstack, np.hstack), (sg.dstack, np.dstack)):
        agree(ours([x, -x]), numpys([x, -x]))
    agree(sg.unstack(x, axis=axis), np.unstack(x, axis=axis))
    pieces = data.draw(st.integers(1, 4))
    agree(sg.array_split(x, pieces, axis), np.array_split(x, pieces, axis))
    places = sorted(data.draw(st.lists(st.integers(-3, 4), max_size=3)))
    agree(sg.split(x, places, axis), np.split(x, places, axis))
    agree(sg.hsplit(x, 1), np.hsplit(x, 1))
    agree(sg.vsplit(x[None], 1), np.vsplit(x[None], 1))
    agree(sg.append(x, x, axis), np.append(x, x, axis))
    agree(sg.append(x, 3.0), np.append(x, 3.0))


def test_columns_and_grids() -> None:
    a, b, c = np.arange(3.0), np.arange(2.0), np.arange(4.0)
    agree(sg.column_stack([a, np.eye(3)]), np.column_stack([a, np.eye(3)]))
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            found = sg.meshgrid(a, b, c, indexing=indexing, sparse=sparse)
            agree(found, np.meshgrid(a, b, c, indexing=indexing, sparse=sparse))
    agree(sg.meshgrid(a, np.zeros(0)), np.meshgrid(a, np.zeros(0)))
    agree(sg.meshgrid(2.0), np.meshgrid(2.0))
    agree(sg.broadcast_arrays(a, b[:, None]), np.broadcast_arrays(a, b[:, None]))
    check_gradients(lambda x, y: sg.meshgrid(x, y, sparse=True), (a, b))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("widths", [2, (1, 3), ((0, 1), (5, 0)), ((7, 2), (0, 9)), {1: 2}, {-1: (1, 0)}])
def test_padding_is_numpys(mode: str, widths: Any) -> None:
    for shape in ((2, 3), (1, 4)):
        x = numbered(shape)
        full = widths if not isinstance(widths, dict) else ((0, 0), (2, 2) if 1 in widths else (1, 0))
        agree(sg.pad(x, widths, mode=mode), np.pad(x, full, mode=mode))
        check_gradients(lambda t: sg.pad(t * t, widths, mode=mode), (x,))


@pytest.mark.parametrize("values", [1.5, (1.0, 2.0), ((1.0, 2.0), (3.0, 4.0))])
def test_padding_with_constants_is_numpys(values: Any) -> None:
    x = -numbered((2, 3))
    agree(sg.pad(x, ((1, 2), (3, 0)), constant_values=values), np.pad(x, ((1, 2), (3, 0)), constant_values=values))
    agree(sg.pad(x, 1, "CONSTANT"), np.pad(x, 1))


def test_a_tensor_to_pad_with_gets_its_gradient() -> None:
    check_gradients(lambda x, c: sg.pad(x, 1, constant_values=c * c), (numbered((2, 2)), np.array(3.0)))
    assert sg.grad(lambda c: sg.sum(sg.pad(sg.zeros((2, 2)), 1, constant_values=c)))(3.0).item() == 12.0


def test_moving_entries_keeps_nothing_and_copies_no_more_than_numpy() -> None:
    kept: list[Any] = []

    def f(x: sg.Tensor) -> sg.Tensor:
        moved = sg.flip(sg.roll(sg.transpose(sg.reshape(x, (10, 10))), 3, 0), 1)
        joined = sg.concat([moved, sg.pad(moved, 1)[1:-1, 1:-1]])
        result = sg.stack([joined, joined])
        kept.extend(kept_arrays(result))
        assert np.shares_memory(sg.reshape(x, (10, 10)).numpy(), x.numpy())
        return sg.sum(result)

    assert np.array_equal(sg.grad(f)(np.ones(100)).numpy(), np.full(100, 4.0))
    assert kept == []


def test_values_survive_bit_for_bit() -> None:
    odd = np.array([-0.0, np.nan, np.inf, -np.inf])
    for f in (lambda x: sg.pad(x, 1)[1:-1], lambda x: sg.concat([x, x])[:4], lambda x: sg.stack([x])[0], sg.flip):
        assert np.array_equal(f(odd if f is not sg.flip else odd[::-1]).numpy().view("i8"), odd.view("i8"))


def _raises(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_what_does_not_fit_is_said() -> None:
    x = np.ones((2, 3))
    _raises(lambda: sg.reshape(x, (4, 2)), ShapeError, "6 entries of shape (2, 3) do not fit shape (4, 2)")
    _raises(lambda: sg.reshape(x, (-1, -1)), ShapeError, "at most one may be -1")
    _raises(lambda: sg.reshape(x, 2.0), ArgumentTypeError, "shape must be an integer")
    _raises(lambda: sg.reshape(x, 6, order="F"), ArgumentError, "only order='C'")
    _raises(lambda: sg.transpose(x, (0, 0)), ShapeError, "names an axis twice")
    _raises(lambda: sg.permute_dims(x, (0,)), ShapeError, "must name each of the 2 axes")
    _raises(lambda: sg.matrix_transpose(x[0]), ShapeError, "at least two axes")
    _raises(lambda: sg.squeeze(x, 0), ShapeError, "axis 0 has size 2")
    _raises(lambda: sg.expand_dims(x, 4), ShapeError, "axis 4 is out of range")
    _raises(lambda: sg.broadcast_to(x, (3, 2)), ShapeError, "shape (2, 3) does not broadcast to (3, 2)")
    _raises(lambda: sg.broadcast_arrays(x, np.ones(2)), ShapeError, "broadcast")
    _raises(lambda: sg.flip(x, 2), ShapeError, "axis 2 is out of range")
    _raises(lambda: sg.roll(x, (1, 2, 3), (0, 1)), ArgumentError, "3 shifts for 2 axes")
    _raises(lambda: sg.tile(x, -1), ShapeError, "negative")
    _raises(lambda: sg.repeat(x, [1, 2, 3], 0), ShapeError, "one number or 2")
    _raises(lambda: sg.concat([x, x[0]]), ShapeError, "shapes (2, 3) and (3,) do not fit")
    _raises(lambda: sg.concat([x, x[:, :2]]), ShapeError, "but that of axis 0")
    _raises(lambda: sg.concat([1.0, 2.0]), ShapeError, "use stack")
    _raises(lambda: sg.concat([]), ArgumentError, "at least one")
    _raises(lambda: sg.stack([x, x[0]]), ShapeError, "shapes (2, 3) and (3,) differ")
    _raises(lambda: sg.split(x, 2, axis=1), ShapeError, "use array_split")
    _raises(lambda: sg.vsplit(x[0], 1), ShapeError, "use split")
    _raises(lambda: sg.sum(x, axis=9), ShapeError, f"pass one from {-x.ndim} to {x.ndim - 1}")
    _raises(lambda: sg.meshgrid(x[0], indexing="ab"), ArgumentError, "'xy' or 'ij'")
    _raises(lambda: sg.pad(x, -1), ShapeError, "negative")
    _raises(lambda: sg.pad(x, ((1, 2), (3, 4), (5, 6))), ShapeError, "does not fit a tensor with 2 axes")
    _raises(lambda: sg.pad(x, 1.5), ShapeError, "must hold integers")
    _raises(lambda: sg.pad(x, 1, "mirror"), ArgumentError, "mode must be")
    _raises(lambda: sg.pad(x[:, :0], 1, "edge"), ShapeError, "axis 1 is empty")
