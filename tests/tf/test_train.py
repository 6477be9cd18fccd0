"""Variables and optimizers in the forms of TensorFlow and of TensorFlow.js."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentError, DTypeError, ShapeError


def test_variables_take_tensorflows_arguments():
    w = tf.Variable([1, 2], False, None, None, "w", None, tf.float64)
    assert (w.trainable, w.name, w.dtype, w.shape) == (False, "w", np.float64, (2,))
    assert float(tf.Variable(lambda: 3.0)) == 3
    assert tf.Variable(tf.range(4), shape=[2, 2]).shape == (2, 2)
    assert tf.Variable(1.0, trainable=None).trainable
    assert isinstance(w, sg.Variable)
    js = tf.variable([1, 2], False, "js", "int32")
    assert (js.trainable, js.name, js.dtype) == (False, "js", np.int32)


def test_assigning_converts_arrays_but_not_tensors():
    w = tf.Variable([1.0, 2.0])
    assert w.assign([3, 4]).tolist() == [3, 4]
    assert w.assign_add(np.array([0.5, 0.5])).tolist() == [3.5, 4.5]
    assert w.assign_sub([1.0, 1.0], read_value=False).tolist() == [2.5, 3.5]
    assert w.dtype == tf.float32
    with pytest.raises(DTypeError):
        w.assign(tf.constant([1.0, 2.0], tf.float64))
    with pytest.raises(ShapeError):
        w.assign([1.0, 2.0, 3.0])


def test_minimize_takes_the_arguments_of_both():
    w, b = tf.Variable(1.0), tf.Variable(1.0)
    loss = lambda: w * w + b * b
    optimizer = tf.train.SGD(0.25)
    assert optimizer.minimize(loss) is None
    assert (float(w), float(b)) == (0.5, 0.5)
    assert float(optimizer.minimize(loss, True)) == 0.5
    assert float(optimizer.minimize(loss, True, [w])) == 0.125
    assert (float(w), float(b)) == (0.125, 0.25)
    optimizer.minimize(loss, [b])
    optimizer.minimize(loss, var_list=[b])
    assert (float(w), float(b)) == (0.125, 0.0625)
    assert optimizer.iterations == 5


def test_gradients_are_computed_and_applied_by_name_or_by_variable():
    w, b = tf.variable(tf.scalar(1), name="first"), tf.variable(tf.scalar(2), name="second")
    optimizer = tf.train.sgd(0.5)
    found = optimizer.compute_gradients(lambda: w.square().add(b.square()))
    assert float(found.value) == 5
    optimizer.apply_gradients(found.grads)
    assert (float(w), float(b)) == (0, 0)
    optimizer.apply_gradients({name: tf.scalar(-2) for name in found.grads})
    optimizer.apply_gradients([{"name": "first", "tensor": tf.scalar(1)}])
    optimizer.apply_gradients(zip([tf.scalar(1), None], [b, w], strict=True))
    optimizer.apply_gradients({b: tf.scalar(1)})
    assert (float(w), float(b)) == (0.5, 0)


def test_a_name_must_say_which_variable_is_meant():
    first, second = (tf.variable(tf.scalar(1), name="the same") for _ in range(2))
    optimizer = tf.train.sgd(0.5)
    with pytest.raises(ArgumentError, match="more than one"):
        optimizer.apply_gradients({"the same": tf.scalar(1)})
    with pytest.raises(ArgumentError, match="no variable"):
        optimizer.apply_gradients({"not there": tf.scalar(1)})
    assert (float(first), float(second)) == (1, 1)
    del second
    optimizer.apply_gradients({"the same": tf.scalar(1)})
    assert float(first) == 0.5


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (sg.train.SGD(0.1), tf.train.sgd(0.1)),
        (sg.train.Momentum(0.1, 0.8, True), tf.train.momentum(0.1, 0.8, True)),
        (sg.train.Adagrad(0.1, 0.2), tf.train.adagrad(0.1, 0.2)),
        (sg.train.Adadelta(0.1, 0.9), tf.train.adadelta(0.1, 0.9)),
        (sg.train.RMSProp(0.1, 0.8, 0.5, 1e-7, True), tf.train.rmsprop(0.1, 0.8, 0.5, None, True)),
        (sg.train.Adam(0.1, 0.8, 0.99, 1e-5), tf.train.adam(0.1, 0.8, 0.99, 1e-5)),
        (sg.train.AdamW(0.1, weight_decay=0.1), tf.train.adamw(0.1, weight_decay=0.1)),
        (sg.train.Adamax(0.1, 0.8, 0.99), tf.train.adamax(0.1, 0.8, 0.99)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_optimizers_are_stopgrads(ours, theirs):
    w, v = tf.Variable([1.0, -2.0]), tf.Variable([1.0, -2.0])
    for _ in range(3):
        ours.minimize(lambda: tf.reduce_sum(w**2))
        theirs.minimize(lambda: tf.reduce_sum(v**2))
    assert w.numpy().tobytes() == v.numpy().tobytes()
    assert w.tolist() != [1, -2]


def test_the_rate_of_adamax_can_decay():
    w = tf.Variable(10.0)
    optimizer = tf.train.adamax(1.0, decay=1.0)
    steps = []
    for _ in range(3):
        before = float(w)
        optimizer.minimize(lambda: w * 1.0)
        steps.append(before - float(w))
    np.testing.assert_allclose(steps, [1, 1 / 2, 1 / 3], rtol=1e-4)


def test_losses_read_numbers_in_float32():
    labels, predictions = [1, 0], [0.5, 0.25]
    for name in ("mean_squared_error", "absolute_difference", "huber_loss", "hinge_loss", "log_loss"):
        loss = getattr(tf.losses, name)(labels, predictions)
        assert loss.dtype == tf.float32
        same = getattr(sg.train.losses, name)(labels, predictions)
        np.testing.assert_allclose(loss.numpy(), same.numpy(), rtol=1e-6)
    assert tf.losses.sigmoid_cross_entropy(labels, predictions).dtype == tf.float32
    assert tf.losses.softmax_cross_entropy([labels], [predictions]).dtype == tf.float32
    assert tf.losses.sparse_softmax_cross_entropy([1], [predictions]).dtype == tf.float32
    assert tf.losses.cosine_distance(labels, predictions, 0).dtype == tf.float32
    each = tf.losses.mean_squared_error(labels, predictions, [1, 2], tf.Reduction.NONE)
    assert each.tolist() == [0.25, 0.125]
    assert float(tf.losses.compute_weighted_loss([1.0, 3.0], weights=[1.0, 0.0])) == 1


def test_training_learns():
    tf.random.set_seed(1)
    x = tf.random_normal([64, 2])
    y = x.mat_mul([[1.0], [-2.0]]).add(0.5)
    w, b = tf.variable(tf.zeros([2, 1])), tf.variable(tf.scalar(0))
    optimizer = tf.train.adam(0.1)
    loss = lambda: tf.losses.mean_squared_error(y, x.mat_mul(w).add(b))
    for _ in range(200):
        tf.tidy(lambda: optimizer.minimize(loss))
    np.testing.assert_allclose(w.numpy(), [[1], [-2]], atol=1e-2)
    assert float(b) == pytest.approx(0.5, abs=1e-2)
