"""Makes data/*.pb, graphs as TensorFlow writes them, with data/*.npz, what TensorFlow computes from them.

Needs TensorFlow (made with tensorflow-cpu 2.21), so it is no part of the tests:

    python tests/interchange/make_graphdefs.py

Each .npz has in0, in1, … for the graph's inputs in order, out0, … for its outputs, and grad0, … for the gradients of
the sum of all outputs for the inputs (left out where there is none).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

DATA = Path(__file__).parent / "data"
v1 = tf.compat.v1
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def save(name, build, *values, dtype=None):
    """Write the graph that `build(*placeholders)` makes; its outputs are named out0, out1, …"""
    graph = tf.Graph()
    with graph.as_default():
        inputs = [v1.placeholder(one.dtype, one.shape, name=f"in{i}") for i, one in enumerate(map(np.asarray, values))]
        made = build(*inputs)
        outputs = [
            tf.identity(one, name=f"out{i}") for i, one in enumerate(made if isinstance(made, tuple) else (made,))
        ]
        data = graph.as_graph_def().SerializeToString()
        floating = [one for one in outputs if one.dtype.is_floating]
        total = tf.add_n([tf.reduce_sum(tf.cast(one, tf.float64)) for one in floating]) if floating else None
        try:
            gradients = tf.gradients(total, inputs) if floating else [None] * len(inputs)
        except LookupError:  # a PreventGradient
            gradients = [None] * len(inputs)
        asked = {f"grad{i}": one for i, one in enumerate(gradients) if one is not None}
        with v1.Session(graph=graph) as session:
            feed = dict(zip(inputs, values, strict=True))
            found = session.run({**{f"out{i}": one for i, one in enumerate(outputs)}, **asked}, feed)
    (DATA / f"{name}.pb").write_bytes(data)
    np.savez_compressed(DATA / f"{name}.npz", **{f"in{i}": one for i, one in enumerate(values)}, **found)


def elementwise(x, y):
    total = tf.exp(-tf.abs(x)) + tf.math.log1p(y * y) - tf.sin(x) * tf.cos(y) / (1.5 + tf.tanh(x))
    total += tf.nn.relu(x) ** 2.0 + tf.nn.leaky_relu(y) * tf.nn.elu(x) - tf.math.erf(x) + tf.math.atan2(x, y)
    total += tf.math.squared_difference(x, y) + tf.maximum(x, y) - tf.minimum(x, 0.5) + tf.math.softplus(x)
    total += tf.where(x > y, tf.sqrt(tf.abs(x)), tf.math.rsqrt(tf.abs(y))) + tf.math.divide_no_nan(x, y)
    return total, tf.math.floormod(x, 0.7), tf.logical_and(x > 0.0, tf.math.is_finite(y)), tf.cast(x * 3, tf.int32) // 2


def reductions(x):
    return (
        tf.reduce_sum(x, 1),
        tf.reduce_mean(x, [0, 2], keepdims=True),
        tf.reduce_max(x, -1) * tf.reduce_min(x),
        tf.reduce_prod(x, 2),
        tf.argmax(x, 1),
        tf.cumsum(x, 1, exclusive=True, reverse=True),
        tf.reduce_any(x > 2.0),
    )


def shapes(x):
    a, b = tf.split(x, [1, 3], 1)
    rows = tf.unstack(x)
    shape = tf.shape(x)
    flat = tf.reshape(x, tf.stack([shape[0] * shape[1], -1]))
    return (
        tf.concat([b, a], 1) + tf.transpose(x, [0, 1, 2])[:, ::-1],
        tf.stack([rows[0], rows[-1]], axis=1)[..., tf.newaxis, 1],
        tf.gather(flat, [3, 0, 0]) * tf.tile(flat[:1], [3, 1]),
        tf.gather(x, [[0, 1, 0], [2, 2, 1]], axis=2, batch_dims=1)[:, :, 0],
        tf.pad(x, [[0, 0], [1, 0], [0, 2]], constant_values=1.5)[:, 0:3:2, -2:],
        tf.squeeze(tf.expand_dims(x, 1), 1) + tf.broadcast_to(tf.range(3.0), [2, 4, 3]),
        tf.one_hot(tf.cast(x[0, :, 0] * 2, tf.int32), 3, on_value=2.0),
        tf.fill([2, 2], x[0, 0, 0]),
        tf.raw_ops.Slice(input=x, begin=[0, 1, 0], size=[2, -1, 2]),
    )


def constants(x):
    total = x
    for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int64, tf.uint32):
        total += tf.cast(tf.constant([1, 2, 3], dtype), tf.float32) + tf.cast(tf.constant(2, dtype, [3]), tf.float32)
    total += tf.cast(tf.constant([True, False, True]), tf.float32)
    return total + tf.math.real(tf.constant([1 + 2j, 3j, 0.5], tf.complex64)) + tf.constant(0.25, shape=[3])


def layers(x):
    image = tf.nn.conv2d(x, normal(3, 3, 2, 4) * 0.5, 2, "SAME")
    image = tf.nn.bias_add(image, normal(4))
    image, *_ = v1.nn.fused_batch_norm(
        image, normal(4), normal(4), normal(4), np.abs(normal(4)) + 0.5, is_training=False
    )
    image = tf.nn.depthwise_conv2d(tf.nn.relu6(image), normal(2, 2, 4, 2), [1, 1, 1, 1], "VALID")
    image = tf.nn.avg_pool2d(tf.nn.max_pool2d(image, 2, 1, "SAME"), 2, 1, "SAME")
    rows = tf.reshape(image, [2, -1])
    logits = tf.matmul(rows, normal(rows.shape[1], 3)) + tf.matmul(rows, normal(3, rows.shape[1]), transpose_b=True)
    return (
        tf.nn.softmax(logits),
        tf.nn.log_softmax(logits),
        tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(tf.nn.softmax(logits * 2)), logits),
        tf.nn.sparse_softmax_cross_entropy_with_logits([2, 0], logits),
        tf.einsum("bi,bj->ij", logits, logits),
    )


def main():
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    save("stop", lambda x: x * tf.stop_gradient(x, name="target"), np.float32(3))
    save("prevent", lambda x: x * tf.raw_ops.PreventGradient(input=x, message="not here"), np.float32(3))
    save("elementwise", elementwise, normal(2, 3), normal(3))
    save("reductions", reductions, normal(2, 3, 4))
    save("shapes", shapes, normal(2, 4, 3))
    save("constants", constants, normal(3))
    save("layers", layers, normal(2, 6, 6, 2))
    with tf.Graph().as_default() as graph:
        v1.placeholder(tf.float32, [None, 3], name="x")
        tf.identity(graph.get_tensor_by_name("x:0") * 2.0, name="y")
    tf.io.write_graph(graph.as_graph_def(), str(DATA), "open.pbtxt")

    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, [2, 3], name="x")
        y = tf.stop_gradient(tf.tanh(x), name="cut") * x
        builder = v1.saved_model.Builder(str(DATA / "saved_model"))
        signature = v1.saved_model.predict_signature_def({"features": x}, {"score": y})
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, strip_default_attrs=True
        )
        builder.save()
    shutil.rmtree(DATA / "saved_model" / "variables", ignore_errors=True)

    weights = tf.Variable(normal(3, 2), name="weights")

    @tf.function
    def model(x):
        return tf.nn.relu(x @ weights) + tf.stop_gradient(tf.reduce_max(x))

    concrete = model.get_concrete_function(tf.TensorSpec([4, 3], tf.float32, name="x"))
    frozen = convert_variables_to_constants_v2(concrete)
    x = normal(4, 3)
    with tf.GradientTape() as tape:
        tape.watch(value := tf.constant(x))
        y = model(value)
    (DATA / "frozen.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    np.savez_compressed(DATA / "frozen.npz", in0=x, out0=y, grad0=tape.gradient(y, value))


if __name__ == "__main__":
    main()
