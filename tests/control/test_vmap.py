"""What `vmap` promises: axes and trees, errors, and everything else of the library inside, around and beside it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError, TracedValueError
from stopgrad.core.operation import operations
from stopgrad.core.state import state
from tests.primitives.table import spying

ROWS = np.arange(6.0).reshape(2, 3)


# Axes and trees


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_axes_say_where_the_examples_are_and_go(axis, out_axis):
    found = sg.vmap(lambda x: x * 2, in_axes=axis, out_axes=out_axis)(ROWS)
    assert_array_equal(found, np.moveaxis(np.moveaxis(ROWS, axis, 0) * 2, 0, out_axis))


def test_arguments_and_results_are_trees_with_axes_for_parts_of_them():
    def f(tree, n, *, bias):
        (a, b), name = tree["pair"], tree["name"]
        assert name == "first"
        return {"sum": sg.sum(a) + b + bias, "same": n, "both": [a, (b,)]}

    tree = {"pair": (ROWS, [1.0, 2.0, 3.0]), "name": "first"}
    mapped = sg.vmap(
        f, in_axes=({"pair": (1, 0), "name": None}, None), out_axes={"sum": 0, "same": None, "both": [1, 0]}
    )
    found = mapped(tree, sg.tensor(7.0), bias=np.zeros(3))
    assert_array_equal(found["sum"], ROWS.sum(0) + np.array([1, 2, 3]))
    assert float(found["same"]) == 7.0
    assert found["both"][0].shape == (2, 3)
    assert_array_equal(found["both"][1][0], [1, 2, 3])


def test_results_that_are_the_same_for_all_are_repeated_unless_told_otherwise():
    w = sg.tensor([1.0, 2.0])
    assert_array_equal(sg.vmap(lambda x: w)(ROWS), [[1, 2], [1, 2]])
    assert_array_equal(sg.vmap(lambda x: w, out_axes=1)(ROWS), [[1, 1], [2, 2]])
    assert_array_equal(sg.vmap(lambda x: (w, x), out_axes=(None, 0))(ROWS)[0], [1, 2])
    with pytest.raises(ArgumentError, match="differs between examples"):
        sg.vmap(lambda x: x, out_axes=None)(ROWS)


def test_what_is_not_mapped_is_what_it_is():
    seen = []

    def f(x, y, function, flag):
        seen.append(y)
        return function(x) * y if flag and float(y) > 0 else x

    found = sg.vmap(f, in_axes=(0, None, None, None))([1.0, 4.0], np.array(2.0), sg.sqrt, True)
    assert_array_equal(found, [2, 4])
    assert isinstance(seen[0], sg.Tensor)
    assert len(seen) == 1


def test_an_axis_size_serves_where_nothing_is_mapped():
    assert sg.vmap(lambda: sg.ones(2), axis_size=3)().shape == (3, 2)
    assert sg.vmap(lambda x: x + 1, in_axes=None, axis_size=2)(1.0).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("size", [0, 1])
def test_no_example_and_a_single_one(size):
    x = np.ones((size, 3))
    mapped = sg.vmap(lambda x: (sg.sum(x), x[:2] * 2, sg.argmax(x), sg.linalg.norm(x)))
    total, part, place, norm = mapped(x)
    assert (total.shape, part.shape, place.shape, norm.shape) == ((size,), (size, 2), (size,), (size,))
    assert place.dtype == np.intp
    assert sg.grad(lambda x: sg.sum(sg.vmap(lambda x: sg.prod(x))(x)))(x).shape == (size, 3)
    looped = sg.vmap(lambda x: sg.while_loop(lambda c: sg.sum(c) < 9, lambda c: c * 2, x))(x)
    assert_array_equal(looped, x * 4)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64, bool])
def test_dtypes_are_those_of_each_example(dtype):
    x = np.ones((2, 3), dtype)
    for f in (lambda x: x, lambda x: x * 2, lambda x: sg.sum(x), lambda x: x / 3, lambda x: x @ x):
        assert sg.vmap(f)(x).dtype == f(sg.tensor(x[0])).dtype


def test_arrays_of_another_library_stay_theirs():
    torch = pytest.importorskip("torch")
    x, w = torch.arange(6.0, dtype=torch.float64).reshape(2, 3), torch.ones(3, dtype=torch.float64)

    def loss(w, x):
        return sg.sum(sg.tanh(x * w)[1:] ** 2) + sg.max(x)

    gradient = sg.vmap(sg.grad(loss), in_axes=(None, 0))(w, x)
    assert isinstance(gradient.value, torch.Tensor)
    assert_allclose(gradient.numpy(), sg.vmap(sg.grad(loss), in_axes=(None, 0))(w.numpy(), x.numpy()).numpy())
    both = sg.grad(lambda w: sg.sum(sg.vmap(lambda x: loss(w, x))(x)))(w)
    assert isinstance(both.value, torch.Tensor)


# Errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sg.vmap(3), ArgumentTypeError, "takes a function, got a int"),
        (lambda: sg.vmap(sg.sum, in_axes=None)(ROWS), ArgumentError, "nothing is mapped"),
        (
            lambda: sg.vmap(lambda a, b: a)(ROWS, {"x": np.ones(3)}),
            ShapeError,
            r"argument 0 2 along axis 0, argument 1\['x'\] 3 along axis 0",
        ),
        (lambda: sg.vmap(sg.sum, axis_size=3)(ROWS), ShapeError, "axis_size is 3, but"),
        (lambda: sg.vmap(lambda *, k: k)(k=1.0), ShapeError, r"axis 0 is out of range for keyword 'k', of shape \(\)"),
        (lambda: sg.vmap(sg.sum, in_axes=2)(ROWS), ShapeError, "axis 2 is out of range for argument 0"),
        (lambda: sg.vmap(sg.sum, out_axes=1)(ROWS), ShapeError, "out_axes has axis 1, which is out of range"),
        (
            lambda: sg.vmap(sg.sum, in_axes=(0, 0))(ROWS),
            ArgumentError,
            "in_axes has 2 entries, but sum was called with 1",
        ),
        (lambda: sg.vmap(sg.sum, in_axes=("x",))(ROWS), ArgumentTypeError, "in_axes holds 'x'"),
        (lambda: sg.vmap(sg.sum, in_axes=((0, 0),))(ROWS), ArgumentError, "in_axes does not fit argument 0"),
        (lambda: sg.vmap(lambda x: x, out_axes=(0, 0))(ROWS), ArgumentError, "out_axes does not fit the result"),
        (lambda: sg.vmap(lambda x: "text")(ROWS), ArgumentTypeError, "the result of <lambda>"),
        (lambda: sg.vmap(lambda x, s: x)(ROWS, "text"), ArgumentTypeError, "argument 1.*with in_axes=None"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x > 0 else -x,
        lambda x: float(x),
        lambda x: np.asarray(x),
        lambda x: [0.0][int(x)],
        lambda x: sg.repeat(x, x),
    ],
)
def test_asking_for_the_value_of_one_example_says_what_it_is(f):
    with pytest.raises(TracedValueError, match="is that of one example"):
        sg.vmap(f)(np.array([0.0, 0.0]))


def test_a_tensor_of_one_example_is_not_to_be_used_outside():
    leaked = []
    sg.vmap(lambda x: leaked.append(x) or x)(ROWS)
    with pytest.raises(ArgumentError, match="cannot be used outside"):
        leaked[0] * 2


def test_an_error_inside_leaves_nothing_behind():
    before = state.graph, state.recording, state.levels, state.block, state.gate_observer

    def f(x):
        sg.grad(lambda y: sg.sum(y).no_such_method())(x)

    with pytest.raises(AttributeError):
        sg.vmap(f)(ROWS)
    assert (state.graph, state.recording, state.levels, state.block, state.gate_observer) == before


# Derivatives inside, around and both


def loss(w, x, y):
    return (sg.tanh(x @ w) - y) ** 2


W, X, Y = np.array([0.3, -0.2, 0.5]), np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(4.0))


def test_gradients_for_each_example():
    each = np.stack([sg.grad(loss)(W, x, y).numpy() for x, y in zip(X, Y, strict=True)])
    assert_allclose(sg.vmap(sg.grad(loss), in_axes=(None, 0, 0))(W, X, Y), each, rtol=1e-14)
    assert_allclose(sg.vmap(lambda x, y: sg.grad(loss)(W, x, y))(X, Y), each, rtol=1e-14)
    values, gradients = sg.vmap(sg.value_and_grad(loss, (0, 1)), in_axes=(None, 0, 0))(W, X, Y)
    assert values.shape == (4,)
    assert_allclose(gradients[0], each, rtol=1e-14)
    assert gradients[1].shape == (4, 3)


def test_jacobians_and_hessians_inside_and_around():
    hessians = sg.vmap(sg.hessian(loss), in_axes=(None, 0, 0))(W, X, Y)
    assert_allclose(hessians, [sg.hessian(loss)(W, x, y).numpy() for x, y in zip(X, Y, strict=True)], atol=1e-14)
    total = sg.hessian(lambda w: sg.sum(sg.vmap(loss, in_axes=(None, 0, 0))(w, X, Y)))(W)
    assert_allclose(total, hessians.numpy().sum(0), atol=1e-14)
    for mode in ("forward", "reverse"):
        by_w = sg.jacobian(lambda w: sg.vmap(loss, in_axes=(None, 0, 0))(w, X, Y), mode=mode)(W)
        assert_allclose(by_w, sg.vmap(sg.grad(loss), in_axes=(None, 0, 0))(W, X, Y), atol=1e-14)
        of_each = sg.vmap(sg.jacobian(lambda x: sg.outer(x, W) @ x, mode=mode))(X)
        assert_allclose(of_each, [sg.jacobian(lambda x: sg.outer(x, W) @ x)(x).numpy() for x in X], atol=1e-14)


def test_vjp_jvp_and_hvp_inside():
    def f(x):
        return sg.sin(x) * sg.sum(x)

    pulled = sg.vmap(lambda x, u: sg.vjp(f, x)[1](u)[0])(X, X)
    pushed = sg.vmap(lambda x, v: sg.jvp(f, (x,), (v,))[1])(X, X)
    assert_allclose(pulled, [sg.vjp(f, x)[1](x)[0].numpy() for x in X], rtol=1e-13)
    assert_allclose(pushed, [sg.jvp(f, (x,), (x,))[1].numpy() for x in X], rtol=1e-13)
    curved = sg.vmap(lambda x, v: sg.hvp(lambda x: sg.sum(f(x)), (x,), (v,)))(X, X)
    assert_allclose(curved, [sg.hvp(lambda x: sg.sum(f(x)), (x,), (x,)).numpy() for x in X], rtol=1e-12)


def test_tapes_inside_and_around():
    w = sg.Variable(W)

    def taped(x, y):
        with sg.GradientTape() as tape:
            value = loss(w, x, y)
        return tape.gradient(value, w)

    each = sg.vmap(sg.grad(loss), in_axes=(None, 0, 0))(W, X, Y).numpy()
    assert_allclose(sg.vmap(taped)(X, Y), each, rtol=1e-14)
    x = sg.tensor(X)
    with sg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        values = sg.vmap(lambda x, y: loss(w, x, y))(x, Y)
        gradients = sg.vmap(taped)(x, Y)
    assert_allclose(tape.gradient(values, w), each.sum(0), rtol=1e-14)
    assert_allclose(tape.jacobian(values, w), each, rtol=1e-14)
    assert_allclose(
        tape.gradient(gradients, x),
        [sg.grad(lambda x, y=y: sg.sum(sg.grad(loss)(W, x, y)))(one).numpy() for one, y in zip(X, Y, strict=True)],
        rtol=1e-13,
    )


def test_a_map_in_a_map():
    a, b = np.arange(3.0), np.arange(4.0)
    table = sg.vmap(lambda x: sg.vmap(lambda y: x * sg.exp(y))(b))(a)
    assert_allclose(table, np.outer(a, np.exp(b)))
    columns = sg.vmap(sg.vmap(lambda x, y: x - y, in_axes=(None, 0)), in_axes=(0, None), out_axes=1)(a, b)
    assert_array_equal(columns, (a[:, None] - b).T)
    gradient = sg.vmap(sg.grad(lambda x: sg.sum(sg.vmap(lambda y: x**2 * y)(b))))(a)
    assert_allclose(gradient, 2 * a * b.sum())
    outer = sg.grad(lambda x: sg.sum(sg.vmap(lambda y: x @ x * y)(b)))(a)
    assert_allclose(outer, 2 * a * b.sum())


def test_it_traces_to_a_graph_with_the_lines_of_the_function():
    def f(x):
        return sg.exp(x) * 2

    line = f.__code__.co_firstlineno + 1
    traced = sg.trace(sg.vmap(f))(ROWS)
    assert_allclose(traced(ROWS), np.exp(ROWS) * 2)
    sources = [operation.source for operation in traced.graph if operation.type in ("exp", "multiply")]
    assert sources == [(__file__, line)] * 2
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    assert_allclose(traced.graph.run(dx, {traced.inputs[0]: ROWS}), np.exp(ROWS) * 2)


def test_nothing_is_computed_that_the_result_does_not_need():
    with spying(operations["exp"]) as exponentials, spying(operations["sin"]) as sines:
        sg.vmap(lambda x: (sg.exp(x), sg.sin(x))[1])(ROWS)
    assert len(exponentials) == 0
    assert len(sines) == 1


def test_what_does_not_differ_is_computed_once():
    w = sg.tensor(W)
    with spying(operations["exp"]) as calls:
        sg.vmap(lambda w, x: sg.exp(w) * x, in_axes=(None, 0))(w, X)
    assert [call[0][0].shape for call in calls] == [(3,)]


# Functions with derivatives of their own


@sg.custom_gradient
def tenfold(x, y):
    e = sg.exp(x)
    return e * y, lambda u: (u * 10 * e, u * x)


@sg.custom_jvp
def fivefold(x):
    return x * 1.0


@fivefold.defjvp
def fivefold_jvp(primals, tangents):
    return primals[0], 5 * primals[0] * tangents[0]


@pytest.mark.parametrize("f", [lambda x: tenfold(x, W), lambda x: fivefold(x) * W, lambda x: tenfold(fivefold(x), x)])
def test_customised_functions_keep_their_derivatives(f):
    def g(x):
        return sg.sum(f(x))

    first = [sg.grad(g)(x).numpy() for x in X]
    assert_allclose(sg.vmap(sg.grad(g))(X), first, rtol=1e-14)
    assert_allclose(sg.grad(lambda x: sg.sum(sg.vmap(g)(x)))(X), first, rtol=1e-14)
    pushed = sg.jvp(sg.vmap(g), (X,), (np.ones_like(X),))[1]
    assert_allclose(pushed, np.sum(first, axis=1), rtol=1e-14)
    second = [sg.grad(lambda x: sg.sum(sg.grad(g)(x) ** 2))(x).numpy() for x in X]
    assert_allclose(sg.grad(lambda x: sg.sum(sg.vmap(sg.grad(g))(x) ** 2))(X), second, rtol=1e-13)


# Random numbers


def test_every_example_draws_for_itself_as_in_a_loop():
    def f(x):
        return sg.random.normal(x, 2.0) + sg.random.dropout(x, 0.5)

    for alone in (lambda x: sg.random.normal(x, 2.0), lambda x: sg.random.dropout(x, 0.5), sg.random.permutation):
        sg.random.seed(0)
        expected = np.stack([alone(sg.tensor(x)).numpy() for x in X])
        sg.random.seed(0)
        assert_array_equal(sg.vmap(alone)(X), expected)
    sg.random.seed(0)
    noise = sg.vmap(lambda x: sg.vmap(lambda y: f(y) - y)(x))(np.zeros((2, 5))).numpy()
    assert len(np.unique(noise)) == 10


def test_a_generator_made_inside_starts_anew_for_each_example():
    def f(x):
        rng = sg.random.Generator(3)
        return x + rng.normal(size=2)

    expected = sg.random.Generator(3).normal(size=2).numpy()
    assert_array_equal(sg.vmap(f)(np.zeros(3)), [expected] * 3)


# Branches and loops


def test_examples_take_their_own_branch_or_one_for_all():
    def f(x, flag):
        return sg.cond(flag, lambda x: x**2, sg.sin, x)

    x = np.array([0.5, 2.0])
    mapped = sg.vmap(f)
    assert_allclose(mapped(x, np.array([True, False])), [0.25, np.sin(2.0)])
    own = sg.trace(mapped)(x, np.array([True, False])).graph
    assert "switch" not in [operation.type for operation in own]
    for_all = sg.trace(lambda x, flag: sg.vmap(f, in_axes=(0, None))(x, flag))(x, True)
    assert "switch" in [operation.type for operation in for_all.graph]
    assert_allclose(for_all(x, np.array(False)), np.sin(x))
    with spying(operations["square"]) as squares:
        sg.vmap(f, in_axes=(0, None))(x, False)
    assert not squares


def test_no_infinity_leaks_from_the_branch_an_example_did_not_take():
    def f(x):
        return sg.cond(x > 0, lambda x: sg.sqrt(x), lambda x: 0.0 * x, x)

    x = np.array([4.0, 0.0])
    assert_array_equal(sg.grad(lambda x: sg.sum(sg.vmap(f)(x)))(x), [0.25, 0.0])
    assert_array_equal(sg.vmap(sg.grad(f))(x), [0.25, 0.0])


def test_examples_leave_a_loop_at_their_own_time():
    def f(x, a):
        return sg.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * a, c[1] + 1), (x, 0))

    starts = np.array([1.0, 4.0, 20.0])
    values, counts = sg.vmap(f, in_axes=(0, None))(starts, 2.0)
    assert_array_equal(values, [16, 16, 20])
    assert_array_equal(counts, [4, 2, 0])
    by_a = sg.vmap(sg.grad(lambda x, a: f(x, a)[0], 1), in_axes=(0, None))(starts, 2.0)
    assert_array_equal(by_a, [4 * 8.0, 4 * 4.0, 0.0])
    assert float(sg.grad(lambda a: sg.sum(sg.vmap(lambda x: f(x, a)[0])(starts)))(2.0)) == 48.0
    traced = sg.trace(sg.vmap(sg.grad(lambda x, a: f(x, a)[0], 1), in_axes=(0, None)))(starts, 2.0)
    assert_array_equal(traced(starts * 2, np.array(2.0)), [3 * 2 * 4.0, 1 * 8.0, 0.0])
