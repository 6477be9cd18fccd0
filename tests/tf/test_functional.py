"""TensorFlow.js's derivatives of functions."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError, UnconnectedError


def test_grad_of_a_result_of_any_shape_sums_it_unless_dy_is_given():
    square = tf.grad(lambda x: x.square())
    assert square([1, 2, 3]).tolist() == [2, 4, 6]
    assert square([1, 2, 3], [1, 10, 100]).tolist() == [2, 40, 600]
    assert square(3).dtype == tf.float32
    with pytest.raises(ShapeError, match="dy"):
        square([1, 2, 3], [1, 2])


def test_grads_takes_and_gives_lists():
    a, b = tf.tensor1d([2, 3]), tf.scalar(5)
    da, db = tf.grads(lambda a, b: a.mul(b).sum())([a, b])
    assert da.tolist() == [5, 5]
    assert float(db) == 5
    both = tf.value_and_grads(lambda a, b: a.mul(b))([a, b], [1, 10])
    assert both.value.tolist() == [10, 15]
    assert [g.tolist() for g in both["grads"]] == [[5, 50], 32]
    with pytest.raises(ArgumentTypeError, match="list"):
        tf.grads(lambda a: a)(a)


def test_value_and_grad_gives_a_record():
    both = tf.value_and_grad(lambda x: x.square())(tf.scalar(3))
    assert set(both) == {"value", "grad"}
    assert (float(both.value), float(both.grad)) == (9, 6)
    with pytest.raises(AttributeError, match="gradient"):
        both.gradient


def test_variables_are_arguments_like_tensors():
    w = tf.variable(tf.tensor1d([1, 2]), trainable=False)
    assert tf.grad(lambda x: x.square().sum())(w).tolist() == [2, 4]


def test_gradients_nest():
    assert float(tf.grad(tf.grad(lambda x: x.pow(3)))(2.0)) == 12
    assert float(tf.grad(lambda x: tf.grad(lambda y: y.mul(tf.stop_gradient(y.mul(x))))(x))(3.0)) == 0
    assert float(sg.grad(lambda x: tf.grad(lambda y: y.mul(y).mul(x))(x))(3.0)) == 12


def test_what_cannot_be_differentiated_is_named():
    with pytest.raises(ArgumentTypeError, match="function"):
        tf.grad(3.0)
    with pytest.raises(ArgumentTypeError, match="one tensor"):
        tf.grad(lambda x: [x])(1.0)
    with pytest.raises(TypeError, match="int32"):
        tf.grad(lambda x: x)(tf.constant(1))


def test_variable_grads_finds_the_trainable_variables_that_are_read():
    w, b = tf.variable(tf.tensor1d([1, 2]), name="w"), tf.variable(tf.scalar(3), name="b")
    fixed = tf.variable(tf.scalar(4), trainable=False, name="fixed")
    unused = tf.variable(tf.scalar(5), name="unused")
    found = tf.variable_grads(lambda: w.mul(b).mul(fixed).sum())
    assert float(found.value) == 36
    assert {name: one.tolist() for name, one in found.grads.items()} == {"w": [12, 12], "b": 12}
    chosen = tf.variable_grads(lambda: w.mul(b).mul(fixed).sum(), [fixed, unused])
    assert {name: float(one) for name, one in chosen["grads"].items()} == {"fixed": 9}


def test_variable_grads_says_why_nothing_is_connected():
    w = tf.variable(tf.scalar(1), name="w")
    with pytest.raises(UnconnectedError, match=r"'w'.*stop_gradient at .*test_functional"):
        tf.variable_grads(lambda: tf.stop_gradient(w).square())
    with pytest.raises(UnconnectedError, match="reads no trainable variable"):
        tf.variable_grads(lambda: tf.scalar(1))
    with pytest.raises(ArgumentError, match="empty"):
        tf.variable_grads(lambda: w.square(), [])
    with pytest.raises(ShapeError, match="one number"):
        tf.variable_grads(lambda: w.mul([1.0, 2.0]))
    other = tf.variable(tf.scalar(1), name="w")
    with pytest.raises(ArgumentError, match="two variables"):
        tf.variable_grads(lambda: w.mul(other))


def test_gradients_are_in_the_dtype_of_what_they_are_for():
    x = np.array([1.0, 2.0])
    assert tf.grad(lambda x: tf.cast(x, tf.float32).square())(x).dtype == np.float64


def test_programs_of_this_face_can_be_traced():
    def program(x, numbers):
        probabilities = tf.nn.softmax(x - tf.stop_gradient(tf.reduce_max(x)))
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=numbers[:1], logits=probabilities[None])
        return tf.tidy(lambda: tf.gather(x, numbers).mul(2).add(loss).sum())

    x, numbers = np.array([1.0, 3.0, 2.0], np.float32), np.array([2, 0, 0], np.int32)
    traced = sg.trace(program)(sg.Spec((3,), np.dtype(np.float32)), sg.Spec((3,), np.dtype(np.int32)))
    assert float(traced(x, numbers)) == pytest.approx(float(program(tf.constant(x), tf.constant(numbers))), rel=1e-6)
    assert "stop_gradient" in [operation.type for operation in traced.graph]
