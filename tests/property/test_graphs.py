"""Random programs as graphs: traced, differentiated by adding to the graph, simplified; all agree with what runs.

More of them on demand: `STOPGRAD_EXAMPLES=10000 pytest tests/property`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.property.programs import CONTROL, GATES, OPERATIONS, programs

MANY = int(os.environ.get("STOPGRAD_EXAMPLES", "400"))
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
# What stops only the innermost level depends on how many there are while the program runs; a graph has none.
LEVELLED = {name: gate for name, gate in GATES.items() if name != "stop innermost"}

with_gates = programs(OPERATIONS, GATES)
with_control = programs(OPERATIONS, GATES, CONTROL, CONTROL)
by_hand = programs(OPERATIONS, LEVELLED, CONTROL)


def agree(ours, others):
    for one, other in zip(ours, others, strict=True):
        assert_allclose(np.asarray(one), np.asarray(other), **CLOSE)


@pytest.mark.parametrize("kind", ["gates", "control"])
def test_tracing_changes_nothing(kind):
    @settings(max_examples=MANY)
    @given(with_gates if kind == "gates" else with_control)
    def check(program):
        inputs, v, w = program.inputs(), program.directions(1), program.directions(2)
        argnums = tuple(range(len(inputs)))

        def everything(*x):
            along = lambda *y: sg.jvp(program.loss, y, v)[1]
            return (
                program.run(*x),
                *sg.grad(program.loss, argnums)(*x),
                sg.jvp(program.run, x, v)[1],
                *sg.grad(along, argnums)(*x),
                *sg.jvp(sg.grad(program.loss, argnums), x, w)[1],
            )

        agree(sg.trace(everything)(*inputs)(*inputs), everything(*inputs))

    check()


@settings(max_examples=MANY)
@given(by_hand)
def test_what_is_added_to_a_graph_is_what_grad_gives(program):
    inputs, v = program.inputs(), program.directions(1)
    argnums = tuple(range(len(inputs)))
    traced = sg.trace(program.loss)(*inputs)
    graph, xs = traced.graph, traced.inputs
    first = sg.graph.add_gradients(graph, traced.outputs, xs, unconnected="zero")
    along = sum(sg.sum(dx * d) for dx, d in zip(first, v, strict=True))
    second = sg.graph.add_gradients(graph, along, xs, unconnected="zero")
    tangents = sg.graph.add_tangents(graph, traced.outputs, xs, list(v), unconnected="zero")
    gradient = sg.grad(program.loss, argnums)
    expected = (
        *gradient(*inputs),
        *sg.grad(lambda *x: sum(sg.sum(dx * d) for dx, d in zip(gradient(*x), v, strict=True)), argnums)(*inputs),
        sg.jvp(program.loss, inputs, v)[1],
    )
    fetches = [*first, *second, *tangents]
    agree(graph.run(fetches, dict(zip(xs, inputs, strict=True))), expected)


@settings(max_examples=MANY // 2)
@given(by_hand)
def test_passes_keep_values_and_derivatives(program):
    inputs = program.inputs()
    traced = sg.trace(program.loss)(*inputs)
    after = sg.graph.simplify(traced.graph, traced.outputs)
    xs = [after.images[one] for one in traced.inputs]
    derivatives = sg.graph.add_gradients(after.graph, after.outputs, xs, unconnected="zero")
    again = sg.graph.simplify(after.graph, [*after.outputs, *derivatives])
    feed = {again.images[x]: value for x, value in zip(xs, inputs, strict=True)}
    assert len(again.graph) <= len(after.graph)
    value, gradient = sg.value_and_grad(program.loss, tuple(range(len(inputs))))(*inputs)
    agree(again.graph.run(again.outputs, feed), (value, *gradient))
