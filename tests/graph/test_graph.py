"""Graphs: traced and written by hand, run, and differentiated by adding to them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg

FLOAT = np.dtype(float)
PROGRAMS = {
    "gate": lambda x: sg.sum(x * sg.stop_gradient(x) ** 2),
    "masked": lambda x: sg.sum(sg.where(x > 0, sg.sqrt(x), 0.0) * sg.max(x)),
    "indexed": lambda x: sg.sum(x[1:] * x[:-1]) * sg.var(x),
    "softmax": lambda x: sg.sum(sg.nn.softmax(x) * sg.tanh(x)),
    "products": lambda x: sg.sum(sg.outer(x, x) @ x),
    "passing": lambda x: sg.sum(sg.scale_gradient(x, 0.5) ** 2 + sg.reverse_gradient(x) ** 3),
    "straight": lambda x: sg.sum(sg.straight_through(sg.round)(x) * x),
    "where": lambda x: sg.sum(sg.stop_gradient(x, where=np.array([True, False, True])) ** 2),
}
POINT = np.array([0.0, 1.7, 4.0])


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_traced_equals_what_runs(f):
    direction = np.array([1.0, -1.0, 0.5])
    functions = (
        f,
        sg.grad(f),
        sg.hessian(f),
        lambda x: sg.jvp(f, (x,), (direction,))[1],
        lambda x: sg.jvp(sg.grad(f), (x,), (direction,))[1],
    )
    for function in functions:
        assert_allclose(sg.trace(function)(POINT)(POINT), function(sg.tensor(POINT)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_the_gradient_builder_equals_grad(f):
    traced = sg.trace(f)(POINT)
    graph, (x,), (y,) = traced.graph, traced.inputs, traced.outputs
    before = [repr(operation) for operation in graph]
    (dx,) = sg.graph.add_gradients(graph, y, x)
    assert [repr(operation) for operation in graph][: len(before)] == before
    assert all(operation.name.startswith("gradients/") for operation in list(graph)[len(before) :])
    assert_allclose(graph.run(dx, {x: POINT}), sg.grad(f)(POINT), rtol=1e-13)
    (ddx,) = sg.graph.add_gradients(graph, dx, x)
    second = sg.grad(lambda x: sg.sum(sg.grad(f)(x)))(POINT)
    assert_allclose(0.0 if ddx is None else graph.run(ddx, {x: POINT}), second, rtol=1e-12, atol=1e-12)
    (dy,) = sg.graph.add_tangents(graph, y, x, [POINT])
    assert_allclose(graph.run(dy, {x: POINT}), sg.jvp(f, (POINT,), (POINT,))[1], rtol=1e-13)


def test_every_subset_stopped_and_differentiated():
    rng = np.random.default_rng(0)
    start, *w = rng.normal(size=(6, 3, 3))
    names = "abcd"
    subsets = [subset for size in range(5) for subset in itertools.combinations(names, size)]

    def program(graph, stopped):
        def gate(name, value):
            return sg.stop_gradient(value) if name in stopped else value

        a = gate("a", graph.placeholder(sg.Spec((3, 3), FLOAT), "a"))
        b = gate("b", a @ w[0])
        c = gate("c", a @ w[1] + b @ w[2])
        d = gate("d", b @ w[3] + c @ w[4])
        return {"a": a, "b": b, "c": c, "d": d}

    compared = 0
    for stopped in subsets:
        graph = sg.graph.Graph()
        plain, gated = program(graph, ()), program(graph, stopped)
        feed = {graph.operation("a").output(): start, graph.operation("a_1").output(): start}
        for wanted in subsets:
            after = sg.graph.add_gradients(
                graph, plain["d"], [plain[n] for n in wanted], stop_gradients=[plain[n] for n in stopped]
            )
            compared += 1
            # What comes out of a stop is a value of its own: ask for it there.
            by_gate = sg.graph.add_gradients(graph, gated["d"], [gated[n] for n in wanted])
            for one, other in zip(after, by_gate, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    assert_allclose(graph.run(one, feed), graph.run(other, feed), rtol=1e-13)
    assert compared == 256


def test_unconnected_in_a_graph():
    graph = sg.graph.Graph()
    x = graph.placeholder(sg.Spec((), FLOAT), "x")
    y = sg.stop_gradient(x, name="target") * 2
    assert sg.graph.add_gradients(graph, y, x) == [None]
    (zero,) = sg.graph.add_gradients(graph, y, x, unconnected="zero")
    assert float(graph.run(zero)) == 0.0
    with pytest.raises(sg.errors.UnconnectedError, match=r"stop_gradient 'target' at .*test_graph\.py"):
        sg.graph.add_gradients(graph, y, x, unconnected="error")


def test_blocks_are_kept_when_traced():
    def f(x):
        with sg.no_gradient():
            c = x * x
        return x * c

    assert float(sg.trace(sg.grad(f))(3.0)(3.0)) == 9.0
    traced = sg.trace(f)(3.0)
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    assert float(traced.graph.run(dx, {traced.inputs[0]: 3.0})) == 9.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x * float(x),
        lambda x: x + np.asarray(x),
        lambda x: x * x.numpy(),
        lambda x: [x for _ in range(int(x))],
    ],
)
def test_values_that_are_not_known_are_asked_for(f):
    with pytest.raises(sg.errors.TracedValueError, match="cond, while_loop"):
        sg.trace(f)(1.0)


def test_feeding():
    graph = sg.graph.Graph()
    x = graph.placeholder(sg.Spec((2,), np.dtype(np.float32)), "x")
    y = x * 2
    assert_array_equal(graph.run({"y": y}, {x: [1, 2]})["y"], [2.0, 4.0])
    assert_array_equal(graph.run(y + 1, {y: np.ones(2, np.float32)}), [2.0, 2.0])
    with pytest.raises(sg.errors.ArgumentError, match="not fed"):
        graph.run(y)
    with pytest.raises(sg.errors.ShapeError, match="x:0"):
        graph.run(y, {x: np.ones(3, np.float32)})
    with pytest.raises(sg.errors.DTypeError, match="float64"):
        graph.run(y, {x: np.ones(2)})
    with pytest.raises(sg.errors.ArgumentError, match="another graph"):
        sg.graph.Graph().add(sg.exp.operation, (x,))


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_derivatives_are_taken_through_what_was_traced(f):
    traced = sg.trace(f)(POINT)
    assert_allclose(sg.grad(traced)(POINT), sg.grad(f)(POINT), rtol=1e-13)
    assert_allclose(sg.hessian(traced)(POINT), sg.hessian(f)(POINT), rtol=1e-12, atol=1e-12)
    assert_allclose(sg.jvp(traced, (POINT,), (POINT,))[1], sg.jvp(f, (POINT,), (POINT,))[1], rtol=1e-13)
    assert_allclose(sg.trace(lambda x: traced(x) * 2)(POINT)(POINT), f(sg.tensor(POINT)) * 2, rtol=1e-13)


def test_stops_of_what_was_traced_keep_their_names():
    traced = sg.trace(lambda x: x * sg.stop_gradient(x, name="target"))(3.0)
    assert float(sg.grad(traced, stop={"target": False})(3.0)) == 6.0
    with pytest.raises(sg.errors.UnconnectedError, match="target"):
        sg.grad(sg.trace(lambda x: sg.stop_gradient(x, name="target"))(3.0), unconnected="error")(3.0)
