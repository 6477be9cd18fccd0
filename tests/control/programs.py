"""Random programs with control flow and gates, as trees that hypothesis draws and `run` interprets.

Every expression stands for a vector of three numbers; `names` are the vectors in scope. Values stay of the order of
one. The same program runs at once, where control flow is Python's, and traced, where it is operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import stopgrad as sg

UNARY = {
    "sin": sg.sin,
    "tanh": sg.tanh,
    "root": lambda x: sg.sqrt(sg.abs(x) + 0.1),
    "square": lambda x: 0.5 * x * x,
    "total": lambda x: sg.tanh(sg.sum(x)) * np.array([1.0, -0.5, 2.0]),
    "rolled": lambda x: x[np.array([2, 0, 1])],
    "running": lambda x: sg.cumulative_sum(x) * 0.3,
    "product": lambda x: sg.tensor([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [0.0, 0.7, 0.2]]) @ x,
}
BINARY = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * sg.cos(y),
    "maximum": sg.maximum,
    "where": lambda x, y: sg.where(x > y, x, 0.5 * y),
}
GATES = {
    "stop": sg.stop_gradient,
    "named": lambda x: sg.stop_gradient(x, name="named"),
    "open": lambda x: sg.stop_gradient(x, name="open", open=True),
    "innermost": lambda x: sg.stop_gradient(x, level="innermost"),
    "some": lambda x: sg.stop_gradient(x, where=np.array([True, False, True])),
    "scale": lambda x: sg.scale_gradient(x, 0.5),
    "reverse": sg.reverse_gradient,
    "clip": lambda x: sg.clip_gradient(x, value=0.3),
    "straight": sg.straight_through(sg.round),
}
CONTROL = ("block", "cond", "switch", "scan", "fori", "while", "checkpoint", "grad")


def expressions() -> st.SearchStrategy[Any]:
    """Return a strategy of expressions."""
    leaves = st.one_of(
        st.tuples(st.just("name"), st.integers(0, 5)), st.tuples(st.just("number"), st.sampled_from((-1.3, 0.4, 0.9)))
    )

    def larger(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), one),
            st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), one, one),
            st.tuples(st.just("gate"), st.sampled_from(sorted(GATES)), one),
            st.tuples(st.just("control"), st.sampled_from(CONTROL), st.tuples(one, one, one, one)),
        )

    return st.recursive(leaves, larger, max_leaves=12)


def run(program: Any, names: list[Any]) -> Any:
    """Return the value of an expression, a vector of three."""
    kind = program[0]
    if kind == "name":
        return names[program[1] % len(names)]
    if kind == "number":
        return sg.tensor(np.array([program[1], 1.0, -0.7]))
    if kind == "unary":
        return UNARY[program[1]](run(program[2], names))
    if kind == "binary":
        return BINARY[program[1]](run(program[2], names), run(program[3], names))
    if kind == "gate":
        return GATES[program[1]](run(program[2], names))
    return _control(program[1], program[2], names)


def _control(kind: str, parts: Any, names: list[Any]) -> Any:
    first, second, third, fourth = parts
    if kind == "block":
        with sg.no_gradient():
            inside = run(second, names)
        return run(first, names) * inside
    if kind == "cond":
        chosen = sg.sum(run(first, names)) > 0
        return sg.cond(
            chosen, lambda x: run(second, [*names, x]), lambda x: run(third, [*names, x]), run(fourth, names)
        )
    if kind == "switch":
        number = sg.floor(sg.sum(run(first, names))).astype(np.int64)
        return sg.switch(number, [lambda one=one: run(one, names) for one in (second, third, fourth)])
    if kind == "scan":
        rows = np.array([[0.3, -0.2, 0.5], [1.1, 0.4, -0.9], [-0.6, 0.2, 0.1]])

        def step(carry: Any, x: Any) -> Any:
            a, (b, count) = carry
            scope = [*names, a, b, x]
            return (sg.tanh(run(second, scope)), (sg.tanh(run(third, scope)), count + 1)), run(fourth, scope)

        start = run(first, names)
        (a, (b, count)), ys = sg.scan(step, (start, (np.ones(3), 0)), rows, reverse=True)
        return a + b * count + sg.sum(ys, axis=0)
    if kind == "fori":
        return sg.fori_loop(1, 4, lambda i, c: sg.tanh(run(second, [*names, c, c * i])), run(first, names))
    if kind == "while":

        def goes_on(carry: Any) -> Any:
            return (sg.sum(carry[0]) < 1.0) & (carry[2] < 3)

        def body(carry: Any) -> Any:
            a, b, count = carry
            scope = [*names, a, b]
            return sg.tanh(run(second, scope)), sg.tanh(run(third, scope)), count + 1

        a, b, _ = sg.while_loop(goes_on, body, (run(first, names), run(fourth, names), 0))
        return a + 0.5 * b
    if kind == "checkpoint":
        return sg.checkpoint(lambda x: run(second, [*names, x]))(run(first, names))
    return sg.grad(lambda x: sg.sum(sg.sin(run(second, [*names, x]))))(run(first, names))
