"""Reading TensorFlow's graphs: values and gradients as TensorFlow computes them, stops kept, damaged files refused.

The files in data/ are made by make_graphdefs.py.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.core.errors import InterchangeError
from stopgrad.interchange import from_graphdef
from stopgrad.interchange.protos import message_classes
from tests.interchange.programs import mutants

DATA = Path(__file__).parent / "data"
GRAPHS = sorted(path.stem for path in DATA.glob("*.npz"))


def read(name):
    with np.load(DATA / f"{name}.npz") as file:
        facts = dict(file)
    traced = from_graphdef(DATA / f"{name}.pb")
    return traced, [facts[f"in{i}"] for i in range(len(traced.inputs))], facts


def listed(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_those_of_tensorflow(name):
    traced, inputs, facts = read(name)
    results = listed(traced(*inputs))
    assert len(results) == sum(key.startswith("out") for key in facts)
    for i, one in enumerate(results):
        expected = facts[f"out{i}"]
        assert one.dtype == expected.dtype
        assert_allclose(one.numpy(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "prevent"])
def test_gradients_are_those_of_tensorflow(name):
    traced, inputs, facts = read(name)

    def total(*arrays):
        floating = [one for one in listed(traced(*arrays)) if one.dtype.kind == "f"]
        return sum(sg.sum(sg.astype(one, "float64")) for one in floating)

    places = tuple(i for i in range(len(inputs)) if f"grad{i}" in facts)
    found = sg.grad(total, argnums=places)(*inputs)
    for i, one in zip(places, found, strict=True):
        assert_allclose(one, facts[f"grad{i}"], rtol=1e-4, atol=1e-4)


def test_the_stop_of_the_mission():
    traced, (x,), _ = read("stop")
    assert float(traced(x)) == 9.0
    assert float(sg.grad(traced)(x)) == 3.0
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    assert float(traced.graph.run(dx, {traced.inputs[0]: x})) == 3.0
    assert traced.graph.operation("target").params == ("target",)
    with pytest.raises(sg.errors.UnconnectedError, match="target"):
        sg.grad(from_graphdef(DATA / "stop.pb", outputs="target"), unconnected="error")(x)


def test_prevent_gradient_raises():
    traced, (x,), _ = read("prevent")
    with pytest.raises(sg.errors.GradientPreventedError, match="not here"):
        sg.grad(traced)(x)


def test_a_saved_model_is_read_by_its_signature():
    for path in (DATA / "saved_model", DATA / "saved_model" / "saved_model.pb"):
        traced = from_graphdef(path)
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        assert [one.op.name for one in traced.inputs] == ["x"]
        assert_allclose(traced(x), np.tanh(x) * x, rtol=1e-6)
        assert_allclose(sg.grad(lambda x, f=traced: sg.sum(f(x)))(x), np.tanh(x), rtol=1e-6)


def test_sizes_that_are_open_are_given_by_the_caller():
    with pytest.raises(InterchangeError, match=r"input 'x' is \(\?, 3\); give it: inputs="):
        from_graphdef(DATA / "open.pbtxt")
    traced = from_graphdef(DATA / "open.pbtxt", inputs={"x": sg.Spec((2, 3), np.dtype(np.float32))})
    assert_allclose(traced(np.ones((2, 3), np.float32)), np.full((2, 3), 2.0))
    with pytest.raises(InterchangeError, match="does not fit"):
        from_graphdef(DATA / "open.pbtxt", inputs={"x": (2, 4)})


def test_a_graph_is_cut_where_the_caller_says():
    traced = from_graphdef(DATA / "stop.pb", inputs={"target": (), "in0": ()}, outputs=["out0:0"])
    assert [one.op.name for one in traced.inputs] == ["target", "in0"]
    assert float(traced(np.float32(2.0), np.float32(5.0))) == 10.0
    assert float(sg.grad(traced)(np.float32(2.0), np.float32(5.0))) == 5.0


def graph_of(*nodes):
    """Return a GraphDef of nodes (name, operation, inputs, data type), one named x being an input of numbers."""
    graph = message_classes()["GraphDef"]()
    for name, op, inputs, *rest in (("x", "Placeholder", ()), *nodes):
        node = graph.node.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op in ("Placeholder", "Const") else "T"].type = rest[0] if rest else 1
        if op == "Placeholder":
            node.attr["shape"].shape.SetInParent()
        if len(rest) > 1:
            rest[1](node)
    return graph.SerializeToString()


def constant(shape, dtype=3, **lists):
    def fill(node):
        tensor = node.attr["value"].tensor
        tensor.dtype = dtype
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        for key, values in lists.items():
            if key == "tensor_content":
                tensor.tensor_content = values
            else:
                getattr(tensor, key).extend(values)

    return fill


REFUSED = {
    "circle": (graph_of(("a", "AddV2", ["x", "b"]), ("b", "Exp", ["a"]), ("y", "Exp", ["b"])), "depends on itself"),
    "missing": (graph_of(("y", "Exp", ["z"])), "no node 'z'"),
    "twice": (graph_of(("y", "Exp", ["x"]), ("y", "Exp", ["x"])), "two nodes"),
    "no output": (graph_of(("y", "Exp", ["x:3"])), "no output 3"),
    "bad name": (graph_of(("y", "Exp", ["x:first"])), "no name of a tensor"),
    "too few": (graph_of(("y", "AddV2", ["x"])), r"'y' \(AddV2\): input 1 is missing"),
    "unknown": (
        graph_of(("a", "Mystery", ["x"]), ("b", "Riddle", ["a"]), ("c", "Riddle", ["b"]), ("y", "Exp", ["c"])),
        r"node 'a' is a Mystery.*: Mystery \(1\), Riddle \(2\)",
    ),
    "large": (
        graph_of(("s", "Const", (), 3, constant([3], int_val=[1 << 30])), ("y", "Fill", ["s", "x"])),
        "makes no sense",
    ),
    "long range": (
        graph_of(
            *((n, "Const", (), 1, constant([], 1, float_val=[v])) for n, v in (("a", 0), ("b", 1e30), ("c", 1e-9))),
            ("y", "Range", ["a", "b", "c"]),
        ),
        "a range",
    ),
    "static": (
        graph_of(("i", "Cast", ["x"], 1, lambda n: setattr(n.attr["DstT"], "type", 3)), ("y", "Fill", ["i", "x"])),
        "depends on the input 'x'",
    ),
    "static and large": (
        graph_of(
            ("c", "Const", (), 3, constant([1 << 30], int_val=[1])),
            ("a", "Const", (), 3, constant([], int_val=[0])),
            ("s", "Sum", ["c", "a"], 3),
            ("y", "Fill", ["s", "x"]),
        ),
        "known at import",
    ),
    "too many values": (graph_of(("y", "Const", (), 3, constant([1], int_val=[1, 2]))), "has 2 values"),
    "too few bytes": (graph_of(("y", "Const", (), 3, constant([2], tensor_content=b"1234567"))), "needs 8 bytes"),
    "repeated": (graph_of(("y", "Const", (), 3, constant([1 << 39], int_val=[1, 2]))), "with only 2 values"),
    "negative": (graph_of(("y", "Const", (), 3, constant([-1], int_val=[1]))), "full shape"),
    "strings": (graph_of(("y", "Const", (), 7, constant([], 7, string_val=[b"a"]))), "type string"),
}


@pytest.mark.parametrize(("data", "text"), REFUSED.values(), ids=REFUSED)
def test_damaged_graphs_are_refused(data, text):
    with pytest.raises(InterchangeError, match=text):
        from_graphdef(data)


@pytest.mark.parametrize("data", [b"", b"no graph", b"\x08\x01", "/nowhere/graph.pb", 3])
def test_what_is_no_graph_is_refused(data):
    with pytest.raises(InterchangeError, match="from_graphdef"):
        from_graphdef(data)


def test_a_long_chain_is_read():
    nodes = [(f"n{i}", "Neg", [f"n{i - 1}" if i else "x"]) for i in range(3000)]
    assert float(sg.grad(from_graphdef(graph_of(*nodes)))(np.float32(2.0))) == 1.0


@pytest.mark.parametrize("name", [*GRAPHS, "saved_model/saved_model"])
def test_no_mutation_does_more_than_raise_our_error(name):
    for mutant in mutants((DATA / f"{name}.pb").read_bytes(), 300):
        with contextlib.suppress(InterchangeError):
            from_graphdef(mutant)
