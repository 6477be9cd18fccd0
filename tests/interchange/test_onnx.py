"""Exported models as ONNX's own checker and runtimes see them; models made by hand; what is refused."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import onnx.checker
import onnx.reference
import onnxruntime
import pytest
from numpy.testing import assert_allclose
from onnx import helper

import stopgrad as sg
from stopgrad.core.errors import InterchangeError
from stopgrad.core.pytree import flatten
from stopgrad.interchange import from_onnx, to_onnx
from tests.interchange.programs import PROGRAMS, mutants

ROUGH = ("more functions", "activations")  # the reference evaluator's erf has seven digits
RUNTIME = onnxruntime.SessionOptions()
RUNTIME.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
RUNTIME.intra_op_num_threads = 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_exported_models_are_valid_and_give_our_values(name):
    function, arguments = PROGRAMS[name]
    traced = sg.trace(function)(*arguments)
    model = onnx.ModelProto.FromString(to_onnx(traced))
    onnx.checker.check_model(model, full_check=True)
    feed = {one.op.name: np.asarray(value) for one, value in zip(traced.inputs, arguments, strict=True)}
    found = onnx.reference.ReferenceEvaluator(model).run(None, feed)
    expected, _ = flatten(traced(*arguments))
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other.numpy(), rtol=1e-6 if name in ROUGH else 1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_exported_models_run_in_onnx_runtime(name):
    function, arguments = PROGRAMS[name]
    arguments = [np.asarray(one, np.float32) for one in arguments]
    traced = sg.trace(function)(*arguments)
    session = onnxruntime.InferenceSession(to_onnx(traced), RUNTIME, providers=["CPUExecutionProvider"])
    feed = {one.op.name: value for one, value in zip(traced.inputs, arguments, strict=True)}
    expected, _ = flatten(traced(*arguments))
    for one, other in zip(session.run(None, feed), expected, strict=True):
        assert one.dtype == other.dtype
        assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-5)


def model(nodes, inputs, outputs, initializers=(), opset=20, **settings):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **settings)


def single(shape=(2, 3), name="x"):
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def array(name, value):
    return onnx.numpy_helper.from_array(np.asarray(value), name)


@pytest.mark.parametrize(
    ("noted", "name"),
    [
        ({"doc_string": "stop_gradient"}, None),
        ({"doc_string": "stop_gradient:critic"}, "critic"),
        ({"name": "stop_gradient:critic"}, "critic"),
        ({"name": "model/StopGradient"}, None),
        ({"name": "block/stop_gradient_3"}, None),
    ],
)
def test_nodes_noted_as_stops_are_stops(noted, name):
    nodes = [node("Identity", ["x"], "s", **noted), node("Mul", ["x", "s"], "y")]
    traced = from_onnx(model(nodes, [single(())], [single((), "y")]).SerializeToString())
    assert float(sg.grad(traced)(np.float32(3.0))) == 3.0
    assert traced.graph.operation("s").params == (name,)


def test_an_identity_is_nothing():
    nodes = [node("Identity", ["x"], "s", name="Identity_stop"), node("Mul", ["x", "s"], "y")]
    traced = from_onnx(model(nodes, [single(())], [single((), "y")]).SerializeToString())
    assert [operation.type for operation in traced.graph] == ["placeholder", "multiply"]
    assert float(sg.grad(traced)(np.float32(3.0))) == 6.0


def test_prevent_gradient_comes_back():
    traced = from_onnx(to_onnx(sg.trace(lambda x: sg.prevent_gradient(x, "not here"))(3.0)))
    assert float(traced(3.0)) == 3.0
    with pytest.raises(sg.errors.GradientPreventedError, match="not here"):
        sg.grad(traced)(3.0)


# Name, nodes, shapes of inputs, initializers; run by ONNX's reference evaluator too.
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


IMAGE = (2, 4, 6, 6)
HAND_MADE = {
    "gemm": (
        [node("Gemm", ["x", "w", "b"], "y", alpha=0.5, beta=2.0, transB=1)],
        (2, 3),
        {"w": normal(4, 3), "b": normal(4)},
    ),
    "clip": ([node("Clip", ["x", "", "high"], "y")], (2, 3), {"high": np.float32(0.5)}),
    "flatten": ([node("Flatten", ["x"], "y", axis=2)], IMAGE, {}),
    "reshape": ([node("Reshape", ["x", "to"], "y")], IMAGE, {"to": [0, -1, 3]}),
    "squeeze": (
        [node("Unsqueeze", ["x", "axes"], "a"), node("Squeeze", ["a", "one"], "y")],
        (2, 3),
        {"axes": [0, 3], "one": [0]},
    ),
    "pads": ([node("Pad", ["x", "w"], "y", mode="edge")], (2, 3), {"w": [1, 0, 2, 1]}),
    "slice": (
        [node("Slice", ["x", "s", "e", "a", "st"], "y")],
        IMAGE,
        {"s": [-1, 1], "e": [-99, 4], "a": [3, 1], "st": [-2, 2]},
    ),
    "split": ([helper.make_node("Split", ["x"], ["a", "y"], axis=1, num_outputs=2)], (2, 3), {}),
    "variadic": ([node("Max", ["x", "w", "x"], "a"), node("Mean", ["a", "w"], "y")], (2, 3), {"w": normal(3)}),
    "norms": ([node("ReduceL2", ["x", "a"], "n", keepdims=0), node("ReduceLogSumExp", ["n"], "y")], (2, 3), {"a": [1]}),
    "gelu": ([node("Gelu", ["x"], "g", approximate="tanh"), node("HardSwish", ["g"], "y")], (2, 3), {}),
    "one hot": (
        [node("ArgMax", ["x"], "i", axis=1, keepdims=0), node("OneHot", ["i", "d", "v"], "y", axis=0)],
        (2, 3),
        {"d": np.int64(3), "v": np.float32([0.5, 2.0])},
    ),
    "shape": (
        [node("Shape", ["x"], "s", start=1), node("ConstantOfShape", ["s"], "z"), node("Add", ["x", "z"], "y")],
        (2, 3),
        {},
    ),
    "layer norm": (
        [node("LayerNormalization", ["x", "w", "b"], "y", axis=1)],
        (2, 3),
        {"w": normal(3), "b": normal(3)},
    ),
    "batch norm": (
        [node("BatchNormalization", ["x", "s", "o", "m", "v"], "y")],
        IMAGE,
        {"s": normal(4), "o": normal(4), "m": normal(4), "v": np.abs(normal(4))},
    ),
    "conv": (
        [node("Conv", ["x", "w", "b"], "y", group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2])],
        IMAGE,
        {"w": normal(6, 2, 3, 2), "b": normal(6)},
    ),
    "same conv": (
        [node("Conv", ["x", "w"], "y", auto_pad="SAME_UPPER", strides=[2, 2])],
        IMAGE,
        {"w": normal(3, 4, 3, 3)},
    ),
    "transposed conv": (
        [node("ConvTranspose", ["x", "w"], "y", strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0])],
        IMAGE,
        {"w": normal(4, 3, 3, 2)},
    ),
    "pools": (
        [
            node("MaxPool", ["x"], "a", kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[1, 2]),
            node("AveragePool", ["a"], "b", kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1),
            node("GlobalAveragePool", ["b"], "y"),
        ],
        IMAGE,
        {},
    ),
    "gathers": (
        [node("Gather", ["x", "i"], "a", axis=1), node("GatherElements", ["a", "j"], "y", axis=0)],
        (2, 3),
        {"i": [-1, 0], "j": [[1, 0], [0, 1]]},
    ),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_models_made_by_hand(name):
    nodes, shape, constants = HAND_MADE[name]
    initializers = [array(key, value) for key, value in constants.items()]
    made = model(
        nodes, [single(shape)], [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], initializers
    )
    x = normal(*shape)
    (expected,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})
    found = from_onnx(made.SerializeToString())(x)
    assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_sizes_that_are_open_are_given_by_the_caller(tmp_path):
    made = model([node("Relu", ["x"], "y")], [single(("batch", 3))], [single(("batch", 3), "y")])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(InterchangeError, match=r"shape of input 'x' is \(\?, 3\); give it"):
        from_onnx(path)
    traced = from_onnx(path, inputs={"x": (4, 3)})
    assert traced(np.ones((4, 3), np.float32)).shape == (4, 3)
    with pytest.raises(InterchangeError, match="does not fit"):
        from_onnx(path, inputs={"x": (4, 2)})
    with pytest.raises(InterchangeError, match="dtype float32"):
        from_onnx(path, inputs={"x": sg.Spec((4, 3), np.dtype(float))})


def test_what_cannot_be_read_is_named_once_and_in_full():
    nodes = [node("Relu", ["x"], "a"), node("LSTM", ["a", "w", "w"], "b"), node("Wonder", ["b"], "y", domain="far")]
    made = model(nodes, [single()], [single((), "y")], [array("w", np.zeros(1, np.float32))])
    with pytest.raises(InterchangeError, match=r"node 'b' is a LSTM.*: LSTM \(1\), far::Wonder \(1\)"):
        from_onnx(made.SerializeToString())
    cut = from_onnx(made.SerializeToString(), outputs="a")  # what is not needed does not matter
    assert cut(np.ones((2, 3), np.float32)).shape == (2, 3)


def damaged():
    good = model([node("Relu", ["x"], "y")], [single()], [single((2, 3), "y")])
    yield "opset", model([node("Relu", ["x"], "y")], [single()], [single((2, 3), "y")], opset=9), "opset"
    yield (
        "circle",
        model([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b")], [single()], [single((), "b")]),
        "itself",
    )
    yield "missing", model([node("Relu", ["z"], "y")], [single()], [single((), "y")]), "no value 'z'"
    yield "twice", model([node("Relu", ["x"], "y")] * 2, [single()], [single((), "y")]), "two values"
    yield "no outputs", model([node("Relu", ["x"], "y")], [single()], []), "no outputs"
    yield "no input", model([node("Add", ["x"], "y")], [single()], [single((), "y")]), "input 1 is missing"
    short = array("w", np.zeros(3, np.float32))
    short.dims[0] = 1 << 40
    yield "short", model([node("Add", ["x", "w"], "y")], [single()], [single((), "y")], [short]), "damaged"
    large = [array("s", [1 << 20, 1 << 20, 1 << 20])]
    yield "large", model([node("Expand", ["x", "s"], "y")], [single()], [single((), "y")], large), "makes no sense"
    runs = [array(name, np.float32(value)) for name, value in {"a": 0, "b": 1e30, "c": 1e-30}.items()]
    yield "long", model([node("Range", ["a", "b", "c"], "y")], [single()], [single((), "y")], runs), "a range"
    external = array("w", np.zeros(3, np.float32))
    external.data_location = onnx.TensorProto.EXTERNAL
    yield "external", model([node("Add", ["x", "w"], "y")], [single()], [single((), "y")], [external]), "another file"
    good.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    yield "strings", good, "dtype"


@pytest.mark.parametrize(("made", "text"), [one[1:] for one in damaged()], ids=[one[0] for one in damaged()])
def test_damaged_models_are_refused(made, text):
    with pytest.raises(InterchangeError, match=text):
        from_onnx(made.SerializeToString())


@pytest.mark.parametrize("data", [b"", b"no model", b"\x08", "/nowhere/model.onnx", 3])
def test_what_is_no_model_is_refused(data):
    with pytest.raises(InterchangeError, match="from_onnx"):
        from_onnx(data)


@pytest.mark.parametrize("name", ["stopped target", "conv net", "slices", "gathers", "activations"])
def test_no_mutation_does_more_than_raise_our_error(name):
    function, arguments = PROGRAMS[name]
    data = to_onnx(sg.trace(function)(*arguments))
    for mutant in mutants(data, 400):
        with contextlib.suppress(InterchangeError):
            from_onnx(mutant)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: sg.sort(sg.scale_gradient(x, 2.0)), r"argsort .*reorder .*scale_gradient"),
        (lambda x: sg.linalg.inv(x @ x.T), "inv"),
        (lambda x: x * (1 + 2j), "complex"),
        (lambda x: sg.cumprod(x, 0), "running product"),
    ],
)
def test_what_cannot_be_written_is_named(function, text):
    with pytest.raises(InterchangeError, match=text):
        to_onnx(sg.trace(function)(np.ones((2, 3))))
