"""Graphs written by hand, the way TensorFlow's Java programs are: scopes, op classes, operands."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import stopgrad as sg
from stopgrad.core.operation import operations

ops = sg.graph.ops


def test_a_java_program_line_by_line():
    graph = sg.graph.Graph()
    scope = sg.graph.Scope(graph)
    x = ops.Placeholder.create(scope.with_name("x"), sg.Spec((2, 2), float))
    w = ops.Constant.create(scope.with_name("w"), np.eye(2) * 3)
    layer = scope.with_sub_scope("layer")
    product = ops.MatMul.create(layer, x, w)
    stop = ops.StopGradient.create(layer.with_name("target"), product)
    loss = ops.Sum.create(layer, ops.Multiply.create(layer, stop, product))
    assert [operation.name for operation in graph] == [
        "x", "w", "layer/MatMul", "layer/target", "layer/Multiply", "layer/Sum",
    ]  # fmt: skip
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_array_equal(graph.run(stop.output(), {x: value}), graph.run(product, {x: value}))
    (dx,) = sg.graph.add_gradients(graph, loss, x)
    assert_array_equal(graph.run(dx, {x: value}), 9 * value)
    assert sg.graph.add_gradients(graph, stop, x) == [None]


def test_equality_hash_and_text():
    graph = sg.graph.Graph()
    scope = sg.graph.Scope(graph)
    x = ops.Placeholder.create(scope, sg.Spec((), float))
    a, b = ops.Exp.create(scope, x), ops.Exp.create(scope, x)
    assert a == ops.Exp(a.op())
    assert hash(a) == hash(ops.Exp(a.op()))
    assert a != b
    assert len({a, b, ops.PrimitiveOp(a.op())}) == 2
    assert repr(b) == "Exp('Exp_1', (<output Placeholder:0 float64[]>,))"
    assert a.as_output() is a.output() is a.op().outputs[0]
    assert (a.output().op, a.output().index, a.output().shape, a.output().dtype) == (a.op(), 0, (), np.dtype(float))


def test_several_outputs_have_no_single_one():
    graph = sg.graph.Graph()
    scope = sg.graph.Scope(graph)
    x = ops.Placeholder.create(scope, sg.Spec((2, 2), float))
    factors = ops.Qr.create(scope, x)
    assert factors.output(1).shape == (2, 2)
    with pytest.raises(sg.errors.ArgumentError, match="2 outputs"):
        factors.as_output()
    with pytest.raises(sg.errors.ArgumentError, match="no output 2"):
        factors.output(2)


def test_there_is_a_class_for_every_operation():
    bodies = {"checkpoint", "scan", "switch", "while"}  # added by calling scan(...), cond(...) … inside a scope
    assert set(ops.classes) - bodies == set(operations) - bodies - {"leaf", "project"}
    for cls in ops.classes.values():
        assert cls.__doc__
        assert getattr(ops, cls.__name__) is cls


def test_names_of_scopes_are_unique_and_checked():
    graph = sg.graph.Graph()
    scope = sg.graph.Scope(graph)
    assert [scope.with_sub_scope("a").prefix for _ in range(3)] == ["a", "a_1", "a_2"]
    assert scope.with_sub_scope("a").with_sub_scope("a").prefix == "a_3/a"
    assert scope.with_sub_scope("b").with_name("c").make_op_name("default") == "b/c"
    for bad in ("", "a/b", " a", "_a"):
        with pytest.raises(sg.errors.ArgumentError, match="name in a graph"):
            scope.with_sub_scope(bad)
    x = graph.placeholder(sg.Spec((), float), "x")
    with scope.with_sub_scope("f") as inner, inner.with_sub_scope("g"):
        y = sg.exp(x)
    assert sg.graph.as_output(y).name == "f/g/exp:0"
    assert sg.graph.as_output(sg.exp(x)).name == "exp:0"


def test_operands_have_to_be_of_the_graph():
    scope = sg.graph.Scope(sg.graph.Graph())
    with pytest.raises(sg.errors.ArgumentTypeError, match=r"graph\.constant"):
        ops.Exp.create(scope, np.ones(2))
    with pytest.raises(sg.errors.ArgumentTypeError, match="output of a graph"):
        ops.StopGradient.create(scope, np.ones(2))
    other = ops.Placeholder.create(sg.graph.Scope(sg.graph.Graph()), sg.Spec((), float))
    with pytest.raises(sg.errors.ArgumentError, match="another graph"):
        ops.Exp.create(scope, other)
