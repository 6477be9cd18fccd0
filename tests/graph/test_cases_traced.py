"""The programs of `tests/test_cases.py` as graphs: traced, and differentiated by the gradient builder."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg

stop = sg.stop_gradient


def _blocked(x):
    with sg.no_gradient():
        c = x * x
    return x * c


def _carried(a):
    return sg.fori_loop(0, 5, lambda i, x: a * stop(x), sg.tensor(2.0))


def _counted(a):
    return sg.while_loop(lambda carry: carry[0] < 5, lambda carry: (carry[0] + 1, a * stop(carry[1])), (0, 2.0))[1]


def _whole_carry(t):
    carry = sg.fori_loop(0, 5, lambda i, carry: (stop(carry)[1] * stop(carry)[0], stop(carry)[1]), (sg.tensor(1.0), t))
    return carry[0]


MASK = np.array([False, True, True])
# The number in cases.md, the program, where to differentiate it, and its gradient.
CASES = {
    "1": (lambda x: x * stop(x), 3.0, 3.0),
    "2": (lambda x: sg.sin(x) * sg.cos(stop(x)), 3.14, 0.9999974634566875),
    "3": (lambda x: stop({"foo": x})["foo"], 2.0, 0.0),
    "4": (_blocked, 3.0, 9.0),
    "5": (lambda y: sg.grad(lambda x: x * stop(x * y))(2.0), 5.0, 0.0),
    "5, innermost": (lambda y: sg.grad(lambda x: x * stop(x * y, level="innermost"))(2.0), 5.0, 2.0),
    "6": (_carried, 3.0, 162.0),
    "6, counted": (_counted, 3.0, 162.0),
    "6, scanned": (lambda a: sg.scan(lambda x, _: (a * stop(x), None), sg.tensor(2.0), None, 5)[0], 3.0, 162.0),
    "6, open": (lambda a: sg.fori_loop(0, 5, lambda i, x: a * x, sg.tensor(2.0)), 3.0, 810.0),
    "7": (_whole_carry, 2.0, 0.0),
    "7, outside": (lambda t: t * sg.fori_loop(0, 5, lambda i, x: stop(t * x), sg.tensor(1.0)), 2.0, 32.0),
    "8, max": (sg.max, [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    "8, maximum": (lambda a: sg.maximum(a, stop(a)), 2.0, 0.5),
    "8, abs": (sg.abs, 0.0, 0.0),
    "8, clip": (lambda x: sg.sum(sg.clip(x, 0.0, 1.0)), [0.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
    "8, relu": (sg.nn.relu, 0.0, 0.0),
    "9": (lambda x: sg.sum(sg.where(x > 0, sg.sqrt(x), 0.0)), [0.0, 4.0], [0.0, 0.25]),
    "10": (lambda x: sg.sum(sg.where(x > 0, x, stop(sg.log(x)))), [-1.0, 2.0], [0.0, 1.0]),
    "11": (lambda x: sg.sum(stop(x, where=MASK)), [1.0, np.inf, 2.0], [1.0, 0.0, 0.0]),
    "12": (lambda x: sg.sum(sg.straight_through(lambda x: 3.3 * sg.tanh(x))(x)), [0.3, np.inf, -0.0], [1.0, 1.0, 1.0]),
    "13": (lambda x: sg.sum(sg.reverse_gradient(x, 0.3)), [0.1, 0.7], [-0.3, -0.3]),
    "14": (lambda x: sg.exp(x**2 - stop(x**2)), 3.0, 6.0),
    "19": (lambda w: (w - stop(1 + 0.9 * w * 3)) ** 2, 2.0, -8.8),
    "20": (lambda v: -(0.5 * stop(3 - v)) + (3 - v) ** 2, 2.0, -2.0),
    "22": (lambda z: sg.sum(sg.nn.softmax(z)), [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]),
    "24": (lambda x: sg.sum(x ** np.array([2.0, 0.0, 3.0])), [0.0, 0.0, -2.0], [0.0, 0.0, 12.0]),
    "29": (lambda x: x * sg.abs(x), 0.0, 0.0),
}
CLOSE = {"rtol": 1e-14, "atol": 1e-15}


@pytest.mark.parametrize(("f", "point", "gradient"), CASES.values(), ids=CASES)
def test_a_case_as_a_graph(f, point, gradient):
    point = np.asarray(point)
    assert_allclose(sg.trace(sg.grad(f))(point)(point), gradient, **CLOSE)
    forward = sg.trace(lambda x: sg.jvp(f, (x,), (np.ones_like(point),))[1])(point)(point)
    assert_allclose(forward, np.sum(gradient), **CLOSE)
    traced = sg.trace(f)(point)
    assert_array_equal(traced(point), f(sg.tensor(point)))
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs, unconnected="zero")
    assert_allclose(traced.graph.run(dx, {traced.inputs[0]: point}), gradient, **CLOSE)
    after = sg.graph.simplify(traced.graph, [dx])
    assert_allclose(after.graph.run(after.outputs, {after.images[traced.inputs[0]]: point})[0], gradient, **CLOSE)


def test_second_derivatives_in_a_graph():
    for name, expected in (("2", 0.0015926508965689952), ("14", 38.0), ("1", 0.0)):
        f, point, _ = CASES[name]
        graph = (traced := sg.trace(f)(point)).graph
        (dx,) = sg.graph.add_gradients(graph, traced.outputs, traced.inputs)
        (ddx,) = sg.graph.add_gradients(graph, dx, traced.inputs, unconnected="zero")
        assert_allclose(graph.run(ddx, {traced.inputs[0]: point}), expected, rtol=1e-12)


def test_what_is_recorded_of_a_stopped_path_in_a_graph():
    """Rows 25 and 26: the derivative's graph asks for nothing that only the stopped path needs."""

    def h(x):
        for _ in range(10):
            x = stop(x) + 1.0
        return x

    traced = sg.trace(lambda x: sg.sum(x * stop(h(x))))(np.ones(3))
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    after = sg.graph.passes.dead_code(traced.graph, [dx])
    forward = [one for one in after.graph if not one.name.startswith("gradients/")]
    # The values of the stopped branch are a factor of the gradient; of what is recorded, nothing else is.
    assert {one.type for one in forward} <= {"placeholder", "stop_gradient", "add", "constant"}
