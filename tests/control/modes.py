"""Every way to the first and second derivative of a function, at once, traced, and by adding to its graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import stopgrad as sg


def derivatives(f: Callable[[Any], Any], v: np.ndarray, u: np.ndarray) -> dict[str, Callable[[Any], Any]]:
    """Return functions of the point: the value, gradient, tangent along v, and all four second derivatives."""
    gradient = sg.grad(f)

    def tangent(x):
        return sg.jvp(f, (x,), (v,))[1]

    return {
        "value": f,
        "reverse": gradient,
        "forward": tangent,
        "reverse of reverse": sg.grad(lambda x: sg.sum(gradient(x) * v)),
        "forward of reverse": lambda x: sg.jvp(gradient, (x,), (v,))[1],
        "reverse of forward": sg.grad(tangent),
        "forward of forward": lambda x: sg.jvp(tangent, (x,), (u,))[1],
    }


def by_adding(f: Callable[[Any], Any], point: np.ndarray, v: np.ndarray, u: np.ndarray) -> dict[str, Any]:
    """Return the same derivatives, run in a graph to which they were added after tracing."""
    traced = sg.trace(f)(point)
    graph, x = traced.graph, traced.inputs[0]

    def pulled(y, seed=None):
        return sg.graph.add_gradients(graph, y, x, seed, unconnected="zero")[0]

    def pushed(y, seed):
        return sg.graph.add_tangents(graph, y, x, [seed], unconnected="zero")[0]

    first, along = pulled(traced.outputs), pushed(traced.outputs, v)
    outputs = {
        "reverse": first,
        "forward": along,
        "reverse of reverse": pulled(first, [v]),
        "forward of reverse": pushed(first, v),
        "reverse of forward": pulled(along),
        "forward of forward": pushed(along, u),
    }
    return graph.run(outputs, {x: point})


FIRST = ("value", "reverse", "forward")


def agree(f: Callable[[Any], Any], point: Any, *, order: int = 2, added: bool = True, rtol: float = 1e-10) -> None:
    """Check that a function and its derivatives are the same at once, traced, and added to the graph."""
    point = np.asarray(point, float)
    v, u = np.random.default_rng(3).normal(size=(2, *point.shape))
    expected = {}
    for name, function in derivatives(f, v, u).items():
        if order == 2 or name in FIRST:
            expected[name] = function(sg.tensor(point)).numpy()
            assert_allclose(sg.trace(function)(point)(point), expected[name], rtol=rtol, atol=1e-11, err_msg=name)
    if added:
        for name, value in by_adding(f, point, v, u).items():
            if name in expected:
                assert_allclose(value, expected[name], rtol=rtol, atol=1e-11, err_msg=f"added: {name}")


def types_in(graph: Any) -> list[str]:
    """Return the types of the operations of a graph, those in bodies included."""
    found = []
    pending = list(graph)
    while pending:
        operation = pending.pop()
        found.append(operation.type)
        for setting in operation.params:
            for body in setting if isinstance(setting, tuple) else (setting,):
                pending.extend(getattr(body, "operations", ()))
    return found
