"""How arguments are read: TensorFlow's dtypes for Python's numbers, and which of several operands sets the dtype."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (1.0, "float32"),
        (True, "bool"),
        (1j, "complex128"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        (2**31, "int64"),
        (-(2**31), "int32"),
        (np.float64(1), "float64"),
        (np.arange(3), "int64"),
        (np.float16(1), "float16"),
        ([np.float64(1)], "float64"),
        ((1, 2), "int32"),
    ],
)
def test_constants_have_the_dtype_tensorflow_gives_them(value, dtype):
    assert tf.constant(value).dtype == dtype
    assert tf.Variable(value).dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, "float32"), ([1, 2], "float32"), (1.5, "float32"), (True, "bool"), (np.arange(3), "int64")],
)
def test_tensorflow_js_has_one_kind_of_number(value, dtype):
    assert tf.tensor(value).dtype == dtype
    assert tf.variable(value).dtype == dtype
    assert tf.tensor(value, dtype="int32").dtype == "int32"


def test_a_python_number_keeps_its_digits_beside_a_double():
    x = tf.constant(1.0, tf.float64)
    assert float(tf.add(x, 0.1)) == 1.1
    assert float(tf.add([0.1], x)[0]) == 1.1
    assert float(tf.constant(0.1, tf.float64)) == 0.1
    assert float(tf.Variable(0.1, dtype=tf.float64)) == 0.1
    assert float(tf.fill([1], 0.1, dtype=tf.float64)[0]) == 0.1
    assert float(tf.concat([x[None], [0.1]], 0)[1]) == 0.1


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        (tf.constant([1.0]), np.array([2.0]), "float32"),
        (np.array([2.0]), tf.constant([1.0]), "float32"),
        (tf.constant([1.0]), [2], "float32"),
        (tf.constant([1]), 2.5, "float32"),
        (tf.constant([1]), [2.5], "float32"),
        (tf.constant([1]), np.array([2.5]), "float64"),
        (tf.constant([1.0]), 2j, "complex128"),
        (tf.constant([1.0], tf.float64), tf.Variable([1.0]), "float64"),
        (np.array([1.0], np.float32), [1.0], "float32"),
        ([1], 2.5, "float32"),
        (tf.constant([1.0], tf.float16), 1.5, "float16"),
    ],
)
def test_dtype_of_two_operands(a, b, dtype):
    assert tf.multiply(a, b).dtype == dtype


def test_lists_of_tensors_are_tensors():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.square([[x, 1], [x, 2]]))
    assert y.dtype == tf.float32
    assert float(tape.gradient(y, x)) == 8


def test_integers_are_computed_with_in_float32_where_tensorflow_refuses_them():
    for function in (tf.exp, tf.sqrt, tf.math.log, tf.math.sigmoid, tf.reduce_logsumexp, tf.nn.softmax):
        assert function([1, 4]).dtype == tf.float32


def test_a_tensor_must_have_the_dtype_that_is_asked_for():
    with pytest.raises(DTypeError, match=r"tf\.cast"):
        tf.constant(tf.constant(1.0), tf.int32)
    with pytest.raises(DTypeError, match=r"tf\.cast"):
        tf.convert_to_tensor(tf.constant(1.0), tf.float64)
    with pytest.raises(DTypeError, match=r"tf\.cast"):
        tf.constant(2.5, tf.int32)
    assert tf.cast(tf.constant(2.5), tf.int32).item() == 2
    assert tf.constant(np.array([1.5]), tf.int32).tolist() == [1]


def test_shapes_may_be_tensors():
    shape = tf.shape(tf.zeros([2, 3]))
    assert tf.ones(shape).shape == (2, 3)
    assert tf.reshape(tf.range(6), shape).shape == (2, 3)
    assert tf.zeros([shape[1], 1]).shape == (3, 1)
    assert tf.range(tf.constant(3)).tolist() == [0, 1, 2]


def test_dtypes_are_numpys():
    assert tf.float32 == np.float32
    assert tf.float32.name == "float32"
    assert tf.half is tf.float16
    assert tf.double is tf.float64
    assert tf.as_dtype("half") == tf.float16
    assert tf.constant(1.0).dtype == tf.float32
    assert tf.cast([1.0], tf.bfloat16).dtype == tf.bfloat16
    with pytest.raises(ArgumentError, match="as_dtype"):
        tf.as_dtype("floaty")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: tf.constant(None), ArgumentTypeError, "constant"),
        (lambda: tf.constant("a"), ArgumentTypeError, "constant"),
        (lambda: tf.constant([[1], [2, 3]]), ShapeError, "ragged"),
        (lambda: tf.constant([1, 2, 3], shape=[2, 2]), ShapeError, "3 values"),
        (lambda: tf.tensor([1, 2, 3], [2, 2]), ShapeError, "needs 4 values, got 3"),
        (lambda: tf.tensor1d([[1]]), ShapeError, "tensor1d.*1 axes"),
        (lambda: tf.tensor2d([1, 2]), ShapeError, "shape to go with a flat list"),
        (lambda: tf.tensor2d([1, 2], [2]), ShapeError, "2 sizes"),
        (lambda: tf.tensor2d([[1, 2]], [2, 1]), ShapeError, "flat list"),
        (lambda: tf.scalar([1]), ShapeError, "scalar"),
        (lambda: tf.matmul([1.0], [1.0]), ShapeError, "matvec"),
        (lambda: tf.matmul([[1.0]], [[1.0]], transpose_a=True, adjoint_a=True), ArgumentError, "at most one"),
        (lambda: tf.split([1, 2, 3], 2), ShapeError, "2 equal parts"),
        (lambda: tf.split([1, 2, 3], [1, 1]), ShapeError, "do not add up"),
        (lambda: tf.unstack([[1, 2]], num=3), ShapeError, "num is 3"),
        (lambda: tf.concat([], 0), ArgumentError, "empty"),
        (lambda: tf.gather([1, 2], -1), IndexError, "negative"),
        (lambda: tf.gather([1, 2], 2), IndexError, "2"),
        (lambda: tf.where([True], 1.0), ArgumentError, "both x and y"),
        (lambda: tf.pad([1], [[1, 1]], "REPEAT"), ArgumentError, "REFLECT"),
        (lambda: tf.sort([1], direction="UP"), ArgumentError, "ASCENDING"),
        (lambda: tf.slice([1, 2], [1], [2]), ShapeError, "outside"),
        (lambda: tf.tile([1], [1, 2]), ShapeError, "multiples"),
        (lambda: tf.range(0, 3, 0), ArgumentError, "delta"),
        (lambda: tf.linspace(0.0, 1.0, 0), ArgumentError, "num"),
        (lambda: tf.ensure_shape([1], [2]), ShapeError, "expected"),
        (lambda: tf.norm([1.0], ord="fro"), ArgumentError, "matrices"),
        (lambda: tf.nn.dropout([1.0], 1.0), ArgumentError, "rate"),
        (lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[[1.0]]), ShapeError, "labels"),
        (
            lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2], logits=[[1.0, 2.0]]),
            IndexError,
            r"\[0, 2\)",
        ),
        (lambda: tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1]), 1, "SAME"), ShapeError, "filters"),
        (
            lambda: tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), [2, 1, 1, 1], "SAME"),
            ArgumentError,
            "batch",
        ),
        (lambda: tf.nn.max_pool2d(tf.ones([1, 3, 3, 1]), 2, 2, "SAME", "NWHC"), ArgumentError, "data_format"),
        (lambda: tf.random.uniform([2], dtype=tf.int32), ArgumentError, "maxval"),
        (lambda: tf.random.stateless_normal([2], 1), ArgumentError, "pair"),
        (lambda: tf.scatter_nd([[5]], [1], [3]), IndexError, "5"),
        (lambda: tf.tensor_scatter_nd_add([1, 2], [[0]], [1, 2]), ShapeError, "updates"),
        (lambda: tf.clip_by_global_norm([None], 1.0), ArgumentError, "not None"),
    ],
)
def test_mistakes_are_named(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_functions_of_both_faces_mix():
    x = sg.tensor([1.0, 2.0])
    assert tf.exp(x).dtype == np.float64
    w = sg.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(sg.exp(w) * tf.constant([1.0, 2.0], tf.float64))
    assert float(tape.gradient(y, w)) == pytest.approx(3 * np.exp(2.0))


def test_the_argument_order_of_tensorflow_js_is_understood_where_it_differs():
    x = tf.tensor2d([[1, 2], [3, 4]])
    assert tf.gather(x, [1], 1).tolist() == [[2], [4]]
    assert tf.pad(x, [[0, 0], [1, 0]], 9).tolist() == [[9, 1, 2], [9, 3, 4]]
    mean, variance = tf.moments(x, 0, True)
    assert (mean.tolist(), variance.tolist()) == ([[2, 3]], [[1, 1]])
    assert float(tf.moments(x)[0]) == 2.5
    with pytest.raises(ShapeError, match="axis="):
        tf.unstack(x, 1)
