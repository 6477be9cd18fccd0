"""Indexing agrees with NumPy on any index, and its derivatives with what NumPy itself scatters and gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import ArgumentTypeError, BoundsError, DTypeError, ShapeError
from stopgrad.core.record import OPERATION, PARENTS
from stopgrad.core.state import Level, state
from tests.kept import kept_arrays

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """An index of any kind that a tensor of this shape may take; some are out of range or do not broadcast."""
    common = draw(st.sampled_from([(), (1,), (3,), (2, 3), (0,)]))
    entries: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "array", "mask", "none", "list", "tensor"]))
        if kind == "none":
            entries.append(None)
            continue
        if kind == "int":
            entries.append(draw(st.integers(-size, size - 1)) if size else 0)
        elif kind == "slice":
            bound = st.none() | st.integers(-5, 5)
            entries.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind == "mask":
            span = draw(st.integers(0, min(2, len(shape) - axis)))
            covered = shape[axis : axis + span]
            count = int(np.prod(covered))
            flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            entries.append(np.array(flags, bool).reshape(covered))
            axis += span
            continue
        else:
            own = draw(st.sampled_from([common, common[1:], tuple(1 for _ in common)]))
            numbers = st.integers(-size, size - 1) if size else st.just(0)
            count = int(np.prod(own))
            array = np.array(draw(st.lists(numbers, min_size=count, max_size=count)), np.int64).reshape(own)
            entries.append({"array": array, "list": array.tolist(), "tensor": sg.tensor(array)}[kind])
        axis += 1
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), ...)
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


def plain(index: Any) -> Any:
    """The index with arrays in place of tensors, for NumPy."""
    entries = index if isinstance(index, tuple) else (index,)
    return tuple(one.numpy() if isinstance(one, sg.Tensor) else one for one in entries)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


def numpy_takes(x: np.ndarray, index: Any) -> bool:
    try:
        x[plain(index)]
    except IndexError:
        return False
    return True


@settings(max_examples=300)
@given(st.data())
def test_values_are_numpys(data: st.DataObject) -> None:
    x = numbered(data.draw(SHAPES))
    index = data.draw(indices(x.shape))
    if not numpy_takes(x, index):
        with pytest.raises((IndexError, ShapeError)):
            sg.tensor(x)[index]
        return
    expected = x[plain(index)]
    taken = sg.tensor(x)[index]
    assert taken.shape == expected.shape
    assert taken.dtype == expected.dtype
    assert np.array_equal(taken.numpy(), expected)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((1,), slice(-2, None, -1)),  # a step back from before the first entry
        ((1, 1, 2), (slice(None), 0, ..., [0, 1])),
        ((2, 1, 3, 1), (slice(None), 0, ..., [0, 1], 0)),
        ((2, 1, 3), ([0, 1], ..., 0, [0, 1])),  # an ellipsis that stands for no axis parts the arrays
        ((2, 2, 3), (np.array([True, False]), None, [[1], [0]])),
        ((2, 3), (np.array(True), 1)),
    ],
)
def test_corners_of_numpys_rules(shape: tuple[int, ...], index: Any) -> None:
    x = numbered(shape)
    expected = x[index]
    assert sg.tensor(x)[index].shape == expected.shape
    assert np.array_equal(sg.tensor(x)[index].numpy(), expected)
    check_gradients(lambda t: t[index] * t[index], (x,))


def test_one_row_of_values_is_added_for_every_row_of_the_index() -> None:
    x, places = np.zeros(4), np.array([[0, 1, 3], [2, 0, 3]])
    assert sg.at_add(x, places, [1.0, 10.0, 100.0]).tolist() == [11.0, 10.0, 1.0, 200.0]


@settings(max_examples=300)
@given(st.data())
def test_the_adjoint_scatters_and_adds_as_numpy_does(data: st.DataObject) -> None:
    x = numbered(data.draw(SHAPES))
    index = data.draw(indices(x.shape))
    if not numpy_takes(x, index):
        return
    taken, pullback = sg.vjp(lambda t: t[index], sg.tensor(x))
    cotangent = np.cos(numbered(taken.shape))
    expected = np.zeros_like(x)
    np.add.at(expected, plain(index), cotangent)
    np.testing.assert_allclose(pullback(sg.tensor(cotangent))[0].numpy(), expected, rtol=1e-14)
    tangent = np.sin(x)
    _, pushed = sg.jvp(lambda t: t[index], (sg.tensor(x),), (sg.tensor(tangent),))
    assert np.array_equal(pushed.numpy(), tangent[plain(index)])


@settings(max_examples=60)
@given(st.data())
def test_second_derivatives(data: st.DataObject) -> None:
    x = numbered(data.draw(SHAPES)) / 7
    index = data.draw(indices(x.shape))
    if numpy_takes(x, index) and x[plain(index)].size:
        check_gradients(lambda t: sg.sin(t)[index] * t[index], (x,))


@settings(max_examples=200)
@given(st.data())
def test_updates_are_numpys_on_a_copy(data: st.DataObject) -> None:
    x = numbered(data.draw(SHAPES))
    index = data.draw(indices(x.shape))
    if not numpy_takes(x, index):
        return
    value = -numbered(x[plain(index)].shape)
    replaced, added = x.copy(), x.copy()
    replaced[plain(index)] = value
    np.add.at(added, plain(index), value)
    given_x = sg.tensor(x)
    assert np.array_equal(sg.at_set(given_x, index, value).numpy(), replaced)
    assert np.array_equal(sg.at_add(given_x, index, value).numpy(), added)
    assert np.array_equal(given_x.numpy(), x)


@settings(max_examples=60)
@given(st.data())
def test_derivatives_of_updates(data: st.DataObject) -> None:
    x = numbered(data.draw(SHAPES)) / 7
    index = data.draw(indices(x.shape))
    if not numpy_takes(x, index) or not x.size:
        return
    shape = x[plain(index)].shape
    value = np.cos(numbered(data.draw(st.sampled_from([shape, (), shape[1:], (1,) * len(shape)]))))
    check_gradients(lambda t, v: sg.at_set(t, index, v), (x, value))
    check_gradients(lambda t, v: sg.at_add(t, index, v), (x, value), order=1)


def test_a_value_that_a_later_one_overwrote_gets_no_gradient() -> None:
    gradient = sg.grad(lambda v: sg.sum(sg.at_set(sg.zeros(3), [0, 2, 0], v) * sg.tensor([1.0, 10.0, 100.0])))
    assert gradient([5.0, 6.0, 7.0]).tolist() == [0.0, 100.0, 1.0]


@pytest.mark.parametrize("count", [10, 5000])
def test_duplicates_add_up_however_many_there_are(count: int) -> None:
    rng = np.random.default_rng(0)
    table, rows = rng.normal(size=(7, 3)), rng.integers(-7, 7, count)
    columns = rng.integers(0, 3, count)
    cotangent = rng.normal(size=(count, 3))
    expected = np.zeros_like(table)
    np.add.at(expected, rows, cotangent)
    for f in (lambda t: t[rows], lambda t: sg.take(t, rows, axis=0)):
        np.testing.assert_allclose(sg.vjp(f, table)[1](cotangent)[0].numpy(), expected, rtol=1e-10)
    pairs = np.zeros_like(table)
    np.add.at(pairs, (rows, columns), cotangent[:, 0])
    found = sg.vjp(lambda t: t[rows, columns], table)[1](cotangent[:, 0])[0].numpy()
    np.testing.assert_allclose(found, pairs, rtol=1e-10)
    lines = rng.integers(-7, 7, (count, 3))
    along = np.zeros_like(table)
    np.add.at(along, (lines, np.arange(3)), cotangent)
    found = sg.vjp(lambda t: sg.take_along_axis(t, lines, axis=0), table)[1](cotangent)[0].numpy()
    np.testing.assert_allclose(found, along, rtol=1e-10)


def test_what_was_not_taken_leaks_no_nan() -> None:
    x = np.array([0.0, 4.0, 0.0, 9.0])
    for index in (x > 0, [1, 3], slice(1, None, 2)):
        gradient = sg.grad(lambda t, index=index: sg.sum(sg.sqrt(t)[index]))(x)
        np.testing.assert_allclose(gradient.numpy(), [0, 1 / 4, 0, 1 / 6], rtol=1e-15)


def test_a_loop_over_entries_is_differentiated_by_one_placing() -> None:
    x = np.arange(1.0, 51.0)
    level = Level()
    with state.differentiate(level):
        variable = sg.tensor(x)
        gradient = sg.grad(lambda t: sum(t[i] ** 2 * variable[0] for i in range(50)))(variable)
    np.testing.assert_allclose(gradient.numpy(), 2 * x * x[0])
    hessian_row = sg.grad(lambda t: sg.grad(lambda u: sum(u[i] ** 3 for i in range(50)))(t)[7])(x)
    np.testing.assert_allclose(hessian_row.numpy(), np.where(np.arange(50) == 7, 6 * x, 0))

    def names(t: sg.Tensor) -> sg.Tensor:
        found = sg.grad(lambda u: sum(u[i] ** 3 for i in range(50)))(t)
        pending, seen = [found.node], set()
        while pending:
            node = pending.pop()
            if type(node) is tuple and id(node) not in seen:
                seen.add(id(node))
                operations.append(node[OPERATION].name)
                pending.extend(node[PARENTS])
        return sg.sum(found)

    operations: list[str] = []
    sg.grad(names)(x)
    assert operations.count("place") == 1


def test_indexing_keeps_the_index_and_not_what_is_indexed() -> None:
    kept: dict[str, list[Any]] = {}

    def f(t: sg.Tensor) -> sg.Tensor:
        kept["slice"] = kept_arrays(t[1:, None])
        kept["array"] = kept_arrays(t[[0, 2, 2]])
        kept["mask"] = kept_arrays(t[np.arange(1000) > 500])
        kept["take"] = kept_arrays(sg.take(t, [1, 2]))
        kept["set"] = kept_arrays(sg.at_set(t, [1, 2], t[:2]))
        return t[0]

    sg.grad(f)(np.ones(1000))
    assert kept["slice"] == []
    assert [(one.shape, one.dtype.kind) for one in kept["array"]] == [((3,), "i")]
    assert [(one.shape, one.dtype.kind) for one in kept["mask"]] == [((1000,), "b")]
    assert [(one.shape, one.dtype.kind) for one in kept["take"]] == [((2,), "i")]
    assert [(one.shape, one.dtype.kind) for one in kept["set"]] == [((2,), "i")]


def test_an_index_array_may_change_afterwards() -> None:
    index = np.array([0, 1])
    _, pullback = sg.vjp(lambda t: t[index], np.ones(3))
    index[:] = 2
    assert pullback([1.0, 10.0])[0].tolist() == [1.0, 10.0, 0.0]


def test_iteration_ends() -> None:
    x = sg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    assert [one.item() for one in reversed(x[0])] == [2.0, 1.0]
    _, second = x
    assert second.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (5, BoundsError, "index 5 is out of range for axis 0 of size 2"),
        ((0, -4), BoundsError, "index -4 is out of range for axis 1 of size 3"),
        ((0, 0, 0), BoundsError, "too many indices"),
        ((0, ..., 0, 0), BoundsError, "too many indices"),
        ([0, 7], BoundsError, "index 7 is out of bounds for axis 0 with size 2"),
        (1.0, ArgumentTypeError, "cannot index with 1.0 of type float"),
        ("a", ArgumentTypeError, "use integers, slices"),
        ([0.5], ArgumentTypeError, "must hold integers or booleans, got float64"),
        ((..., ...), ArgumentTypeError, "only one ellipsis"),
        (slice(None, None, 0), ArgumentTypeError, "slice"),
        (([0, 1], [0, 1, 2]), ShapeError, "(2,)"),
        (np.array([True, False, True]), BoundsError, "boolean"),
    ],
)
def test_a_bad_index_says_what_is_wrong(index: Any, error: type[Exception], words: str) -> None:
    x = sg.tensor(np.ones((2, 3)))
    with pytest.raises(error) as caught:
        x[index]
    assert words in str(caught.value)
    with pytest.raises(error):
        sg.at_set(x, index, 0.0)


def test_an_update_keeps_the_dtype_or_refuses() -> None:
    assert sg.at_set(sg.tensor([1.0, 2.0], "float32"), 0, np.float64(3.0)).dtype == np.float32
    assert sg.at_add(sg.tensor([1, 2]), 0, 3).dtype == np.int64
    assert sg.at_set(sg.tensor([1 + 2j]), 0, 3.5).tolist() == [3.5 + 0j]
    with pytest.raises(DTypeError, match="convert the tensor with astype"):
        sg.at_set(sg.tensor([1, 2]), 0, 0.5)


def test_writing_into_a_tensor_is_refused() -> None:
    x = sg.tensor([1.0])
    with pytest.raises(TypeError, match="at_set"):
        x[0] = 2.0


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_take_is_numpys(mode: str, axis: int | None) -> None:
    x = numbered((3, 4))
    places = np.array([[0, 2, -1], [-3, 1, 1]]) * (1 if mode == "raise" else 3)
    taken = sg.take(x, places, axis=axis, mode=mode)
    assert np.array_equal(taken.numpy(), np.take(x, places, axis=axis, mode=mode))
    check_gradients(lambda t: sg.take(t * t, places, axis=axis, mode=mode), (x,))


def test_take_says_what_is_out_of_range() -> None:
    with pytest.raises(BoundsError, match="index 4 is out of bounds for axis 0 with size 3"):
        sg.take(np.ones(3), [0, 4])
    with pytest.raises(ArgumentTypeError, match="must be integers, got float64"):
        sg.take(np.ones(3), [0.0])


def test_gather_agrees_with_a_loop_over_the_batch() -> None:
    x = numbered((2, 3, 4, 5))
    places = np.array([[3, 0, 3], [1, 1, 2]])
    for axis in (1, 2, 3):
        expected = np.stack([np.take(x[b], places[b] % x.shape[axis], axis - 1) for b in range(2)])
        found = sg.gather(x, places % x.shape[axis], axis=axis, batch_dims=1)
        assert np.array_equal(found.numpy(), expected)


def test_gather_nd_and_scatter_nd_are_adjoint() -> None:
    x = numbered((3, 4, 2))
    places = [[[0, 1], [2, 3]], [[0, 1], [1, 1]]]
    taken, pullback = sg.vjp(lambda t: sg.gather_nd(t, places), x)
    assert np.array_equal(taken.numpy(), x[[[0, 2], [0, 1]], [[1, 3], [1, 1]]])
    cotangent = numbered(taken.shape)
    assert np.array_equal(pullback(cotangent)[0].numpy(), sg.scatter_nd(places, cotangent, x.shape).numpy())
    assert sg.gather_nd(x, np.zeros((2, 0), int)).shape == (2, 3, 4, 2)
    assert np.array_equal(sg.scatter_nd(np.zeros((2, 0), int), np.ones((2, 3)), (3,)).numpy(), [2, 2, 2])


def test_lookups_are_numpys() -> None:
    x = np.array([[0.0, 3.0, -1.0], [0.0, 0.0, 2.0]])
    assert all(np.array_equal(a.numpy(), b) for a, b in zip(sg.nonzero(x), np.nonzero(x), strict=True))
    assert np.array_equal(sg.flatnonzero(x).numpy(), np.flatnonzero(x))
    conditions, choices = [x > 2, x > 0], [x * 10, x - 1]
    assert np.array_equal(sg.select(conditions, choices, 5.0).numpy(), np.select(conditions, choices, 5.0))
    numbers = np.array([0, 4, -1])
    for mode in ("wrap", "clip"):
        assert np.array_equal(sg.choose(numbers, [x, -x], mode=mode).numpy(), np.choose(numbers, [x, -x], mode=mode))
    with pytest.raises(BoundsError):
        sg.choose(numbers, [x, -x])
    assert np.array_equal(sg.boolean_mask(x, [True, False, True], axis=1).numpy(), x[:, [0, 2]])
    on, off = sg.grads(lambda a, b: sg.sum(sg.one_hot([0, 5, 1], 3, a, b)))(2.0, 3.0)
    assert (on.item(), off.item()) == (2.0, 7.0)
