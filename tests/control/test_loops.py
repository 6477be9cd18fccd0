"""Loops: values, derivatives of both modes to the second order, at once and as operations, and what may not be."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from tests.control.modes import agree, types_in

RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(3, 3)) * 0.5
X = RANDOM.normal(size=(4, 3))
stop = sg.stop_gradient


# Cases 6 and 7: five times x = a·x with a stop on x; and on the whole carry (x, t)


def by_python(a, gate):
    x = sg.tensor(2.0)
    for _ in range(5):
        x = a * gate(x)
    return x


LOOPS = {
    "python": by_python,
    "scan": lambda a, gate: sg.scan(lambda c, _: (a * gate(c), None), 2.0, length=5)[0],
    "fori": lambda a, gate: sg.fori_loop(0, 5, lambda i, c: a * gate(c), 2.0),
    "while": lambda a, gate: sg.while_loop(lambda c: c[1] < 5, lambda c: (a * gate(c[0]), c[1] + 1), (2.0, 0))[0],
    "limited": lambda a, gate: sg.while_loop(lambda c: c < np.inf, lambda c: a * gate(c), 2.0, max_iterations=5),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize(("gate", "first", "second"), [(stop, 162.0, 0.0), (lambda x: x, 810.0, 1080.0)])
def test_stop_on_the_carry(loop, gate, first, second):
    def f(a):
        return loop(a, gate)

    assert float(sg.grad(f)(3.0)) == first
    assert float(sg.trace(sg.grad(f))(3.0)(3.0)) == first
    assert float(sg.trace(lambda a: sg.jvp(f, (a,), (1.0,))[1])(3.0)(3.0)) == first
    assert float(sg.trace(sg.grad(sg.grad(f)))(3.0)(3.0)) == second
    agree(f, 3.0)


WHOLE = {
    "fori": lambda t: sg.fori_loop(0, 5, lambda i, c: (stop(c)[1] * stop(c)[0], stop(c)[1]), (1.0, t))[0],
    "while": lambda t: sg.while_loop(
        lambda c: c[2] < 5, lambda c: (stop(c)[1] * stop(c)[0], stop(c)[1], c[2] + 1), (1.0, t, 0)
    )[0],
}
OUTSIDE = {
    "fori": lambda t: t * sg.fori_loop(0, 5, lambda i, x: stop(t * x), 1.0),
    "while": lambda t: t * sg.while_loop(lambda c: c[1] < 5, lambda c: (stop(t * c[0]), c[1] + 1), (1.0, 0))[0],
}


@pytest.mark.parametrize("kind", WHOLE)
def test_stop_on_the_whole_carry(kind):
    assert float(sg.trace(sg.grad(WHOLE[kind]))(2.0)(2.0)) == float(sg.grad(WHOLE[kind])(2.0)) == 0.0
    assert float(sg.trace(sg.grad(OUTSIDE[kind]))(2.0)(2.0)) == float(sg.grad(OUTSIDE[kind])(2.0)) == 32.0
    agree(WHOLE[kind], 2.0)
    agree(OUTSIDE[kind], 2.0)


# Programs


def layers(w):
    def step(h, x):
        h = sg.tanh(h @ w + x)
        return h, {"h": h, "sum": (sg.sum(h * x),)}

    h, ys = sg.scan(step, np.zeros(3), X)
    return sg.sum(h) + sg.sum(ys["h"] ** 2) + sg.prod(ys["sum"][0])


def only_stacked(w):
    _, ys = sg.scan(lambda h, x: (sg.sin(h @ w + x), sg.sum(h * x)), np.ones(3), X, reverse=True)
    return sg.sum(ys**2)


def rotating(w):
    a, _ = sg.fori_loop(0, 6, lambda i, c: (c[1], sg.sin(c[0] * w[2] + c[1] * i)), (w[0], w[1]))
    return sg.sum(a)


def counted(w):
    h, count = sg.while_loop(
        lambda c: sg.sum(c[0]) < 10.0, lambda c: (c[0] * 1.5 + sg.sin(w @ c[0]), c[1] + 1), (X[0] ** 2, 0)
    )
    return sg.sum(h * w) + count


def nested(w):
    def outer(c, x):
        start = (sg.abs(c) * 0.1, x @ w)
        inside = sg.while_loop(lambda s: sg.sum(s[0]) < 3.0, lambda s: (s[0] * 1.5 + sg.abs(s[1]) + 0.1, s[1]), start)[
            0
        ]
        c = sg.cond(sg.sum(inside * x) > 0, lambda u: sg.sin(u) * sg.sum(w), sg.cos, inside)
        return c, sg.scan(lambda d, k: (d * 0.5 + k, sg.sum(d * c)), inside, x)[1]

    c, ys = sg.scan(outer, np.ones(3), X)
    return sg.sum(c) + sg.sum(ys * stop(ys))


def two_phases(w):
    """One carry has a cotangent in the last iteration only."""

    def step(c, x):
        p, r = c
        return (sg.tanh(p @ w) + stop(r), sg.sin(stop(p) @ w) * x), None

    p, r = sg.scan(step, (np.ones(3), w[0]), X)[0]
    return sg.sum(p * r)


def two_phases_counted(w):
    def step(c):
        p, r, k = c
        return sg.tanh(p @ w) + stop(r), sg.sin(stop(p) @ w), k + 1

    p, r, _ = sg.while_loop(lambda c: c[2] < 4, step, (w[0], w[1], 0))
    return sg.sum(p * r)


def cycling(w):
    """Which carries have a cotangent changes from one iteration to the next, for ever."""

    def step(c):
        a, b, e, k = c
        return sg.sin(b) + stop(e), sg.tanh(a @ w), stop(a) * k, k + 1

    a, _, e, _ = sg.while_loop(lambda c: c[3] < 5, step, (w[0], w[1], w[2], 0))
    return sg.sum(a * 1.3 + e)


def dying_out(w):
    def step(c, x):
        a, b, d = c
        return (stop(d) * x, sg.sin(a @ w), sg.cos(b)), a

    (a, _, d), ys = sg.scan(step, (w[0], w[1], w[2]), X)
    return sg.sum(a * w[0]) + sg.sum(d) + sg.sum(ys[-1])


def gradient_inside(w):
    def step(c, x):
        gradient = sg.grad(lambda c: sg.sum(sg.sin(c @ w) * x))(c)
        return c + 0.1 * gradient, sg.sum(gradient)

    c, ys = sg.scan(step, np.ones(3), X)
    return sg.sum(c * c) + sg.sum(ys)


def trip_count_from_data(w):
    n = sg.floor(sg.sum(w) + 5.0).astype(int)
    return sg.sum(sg.fori_loop(0, n, lambda i, c: sg.sin(c @ w) + i, np.ones(3)))


def cut_in_pieces(w):
    def step(c, x):
        with sg.no_gradient():
            d = c * w[0]
        return c * w[1] + d * x, stop(c, where=[True, False, True]) * w[2]

    c, ys = sg.scan(step, np.ones(3), X)
    return sg.sum(c) + sg.sum(ys)


PROGRAMS = [
    layers, only_stacked, rotating, counted, nested, two_phases, two_phases_counted, cycling, dying_out,
    gradient_inside, trip_count_from_data, cut_in_pieces,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    agree(f, W)


@pytest.mark.parametrize("f", [layers, counted, nested], ids=lambda f: f.__name__)
def test_derivatives_against_differences(f):
    sg.check.check_gradients(f, (W,), order=2)


def test_jacobian_and_hessian_through_a_loop():
    def f(w):
        return sg.scan(lambda c, x: (sg.tanh(c @ w + x), sg.sum(c)), np.ones(3), X)[1]

    for transform in (sg.jacobian(f), sg.hessian(lambda w: sg.sum(f(w) ** 2))):
        assert_allclose(sg.trace(transform)(W)(W), transform(W), rtol=1e-10, atol=1e-12)


# What the functions return and take


def test_scan_as_a_running_sum():
    def f(xs):
        return sg.scan(lambda c, x: (c + x["a"], (c, x["b"])), np.zeros(2), xs)

    xs = {"a": X[:, :2], "b": np.arange(4)}
    for carry, ys in (f(xs), sg.trace(f)(xs)(xs)):
        assert_allclose(carry, X[:, :2].sum(0))
        assert_allclose(ys[0][1:], np.cumsum(X[:, :2], 0)[:-1])
        assert_array_equal(ys[1], np.arange(4))
        assert ys[1].dtype == int


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_nothing(reverse):
    def f(c):
        return sg.scan(lambda c, x: (c * x, (c, {"t": x > 0})), c, np.zeros((0,)), reverse=reverse)

    carry, (cs, flags) = f(sg.tensor([1.0, 2.0]))
    traced_carry, (traced_cs, traced_flags) = sg.trace(f)(np.ones(2))(np.array([1.0, 2.0]))
    assert carry.tolist() == traced_carry.tolist() == [1.0, 2.0]
    assert cs.shape == traced_cs.shape == (0, 2)
    assert flags["t"].dtype == traced_flags["t"].dtype == bool
    gradient = sg.grad(lambda c: sg.sum(f(c)[0] ** 2))
    assert sg.trace(gradient)(np.ones(2))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("reach", [0.5, 2.0])
def test_a_while_loop_that_may_not_run(reach):
    def f(x):
        return sg.while_loop(lambda c: c < 1.0, lambda c: c * x + x, reach) + x

    agree(f, 0.75)


def test_integers_and_booleans_in_the_carry():
    def f(x):
        def step(c, row):
            total, index, seen = c
            return (total + row[index], (index + 1) % 3, seen | (index == 1)), index

        (total, _, seen), _ = sg.scan(step, (sg.sum(x) * 0.0, 0, False), x)
        return sg.where(seen, total, 0.0) ** 2

    agree(f, X)


def test_single_precision_stays():
    def f(x):
        return sg.scan(lambda c, row: (c * 0.5 + row, c), np.zeros(3, np.float32), x)[0]

    assert f(X.astype(np.float32)).dtype == np.float32
    gradient = sg.trace(sg.grad(lambda x: sg.sum(f(x))))(X.astype(np.float32))(X.astype(np.float32))
    assert gradient.dtype == np.float32


def test_a_loop_is_one_operation_and_what_is_known_runs_at_once():
    graph = sg.trace(lambda x: sg.scan(lambda c, row: (c + row, None), 0.0, x)[0])(X[0]).graph
    assert [operation.type for operation in graph] == ["placeholder", "constant", "scan"]
    graph = sg.trace(lambda x: x * sg.fori_loop(0, 3, lambda i, c: c * 2.0, 1.0))(1.0).graph
    assert [operation.type for operation in graph] == ["placeholder", "constant", "multiply"]


def test_arrays_of_another_library():
    torch = pytest.importorskip("torch")

    def f(w):
        h, ys = sg.scan(lambda h, x: (sg.tanh(h @ w + x), sg.sum(h)), np.zeros(3), X)
        return sg.sum(h) + sg.sum(ys)

    traced = sg.trace(sg.grad(f))(W)
    found = traced.graph.run(traced.outputs[0], {traced.inputs[0]: torch.tensor(W)})
    assert type(found.value) is torch.Tensor
    assert_allclose(found.numpy(), sg.grad(f)(W), rtol=1e-12)


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: sg.scan(lambda c, x: (sg.stack([c, c]), None), x, length=2),
            r"the carry is float64\[\], but .*\[2\]",
        ),
        (
            lambda x: sg.scan(lambda c, _: ({"a": c["a"], "b": c["b"] > 0}, None), {"a": x, "b": x}, length=2),
            r"at \['b'\]",
        ),
        (lambda x: sg.fori_loop(0, 2, lambda i, c: (c, c), x), "structure"),
        (lambda x: sg.while_loop(lambda c: c[0] < 9.0, lambda c: (c[0] + 1, c[1] * 2.0), (x, 1)), r"\[1\].*int64"),
        (lambda x: sg.scan(lambda c, row: (c, None), x, {"a": np.ones(3), "b": np.ones(4)}), "one size"),
        (lambda x: sg.scan(lambda c, row: (c, None), x, np.ones(3), length=4), "one size"),
        (lambda x: sg.scan(lambda c, row: (c, None), x), "give xs"),
        (lambda x: sg.scan(lambda c, row: c, x, np.ones(3)), "pair"),
        (lambda x: sg.while_loop(lambda c: c, lambda c: c * 2, x), "one boolean, got float64"),
        (lambda x: sg.while_loop(lambda c: sg.stack([c, c]) > 0, lambda c: c * 2, x), "one boolean"),
        (lambda x: sg.fori_loop(0, 2.5, lambda i, c: c, x), "upper must be one integer"),
        (lambda x: sg.while_loop(lambda c: c < 3, lambda c: c, x, max_iterations="3"), "max_iterations"),
    ],
)
def test_one_clear_error_at_once_and_traced(call, message):
    with pytest.raises(sg.errors.StopgradError, match=message):
        call(sg.tensor(1.0))
    with pytest.raises(sg.errors.StopgradError, match=message):
        sg.trace(call)(1.0)


def test_python_control_flow_on_a_carry_is_explained():
    with pytest.raises(sg.errors.TracedValueError, match="cond, while_loop"):
        sg.trace(lambda x: sg.scan(lambda c, row: (c if c > 0 else row, None), 0.0, x))(X[0])


def test_bodies_are_compared_by_structure():
    def body(f):
        return next(one.params[0] for one in sg.trace(f)(1.0).graph if one.type == "scan")

    def loop(factor, gate=stop):
        return lambda x: sg.scan(lambda c, _: (gate(c) * x * factor, None), 1.0, length=3)[0]

    assert body(loop(2.0)) == body(loop(2.0))
    assert hash(body(loop(2.0))) == hash(body(loop(2.0)))
    others = (loop(3.0), loop(2), loop(2.0, lambda c: c), loop(2.0, lambda c: stop(c, name="n")))
    assert len({body(f) for f in (loop(2.0), *others)}) == 5


def test_types_in_bodies_are_found():
    assert "stop_gradient" in types_in(sg.trace(cycling)(W).graph)
