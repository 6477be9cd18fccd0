"""Tapes, gradients, hessians, custom gradients and stops, with TensorFlow's arguments and TensorFlow's answers."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError, TapeError, UnconnectedError

ZERO = tf.UnconnectedGradients.ZERO


def test_a_tape_answers_once_and_a_persistent_one_again():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert float(tape.gradient(y, x)) == 6
    with pytest.raises(TapeError, match="persistent"):
        tape.gradient(y, x)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y + x
    assert [float(g) for g in tape.gradient(z, [y, x])] == [1, 7]
    assert float(tape.gradient(y, x)) == 6


def test_sources_are_answered_in_their_structure():
    c, x = tf.constant(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(c)
        y = c * c
    found = tape.gradient(y, {"a": c, "b": [x]})
    assert float(found["a"]) == 4
    assert found["b"] == [None]
    assert float(tape.gradient([y, y], c)) == 8
    zeros = tape.gradient(y, [c, x], unconnected_gradients=ZERO)
    assert [float(g) for g in zeros] == [4, 0]
    assert [float(g) for g in tape.gradient(y, [c, x], unconnected_gradients="zero")] == [4, 0]
    with pytest.raises(UnconnectedError):
        tape.gradient(y, x, unconnected_gradients="error")
    with pytest.raises(ArgumentError, match="UnconnectedGradients"):
        tape.gradient(y, x, unconnected_gradients="zeros")


def test_output_gradients_are_cotangents():
    c = tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = c * c
    assert tape.gradient(y, c, output_gradients=tf.constant([1.0, 10.0])).tolist() == [4, 60]


def test_variables_are_watched_when_read_if_they_are_trainable():
    w, fixed = tf.Variable(3.0), tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = w * fixed
    assert tape.watched_variables() == (w,)
    assert [None if g is None else float(g) for g in tape.gradient(y, [w, fixed])] == [2, None]
    with tf.GradientTape() as tape:
        tape.watch(fixed)
        y = w * fixed
    assert {id(one) for one in tape.watched_variables()} == {id(w), id(fixed)}
    assert float(tape.gradient(y, fixed)) == 3


def test_watching_can_be_left_to_the_user():
    w, v = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = w * v
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, w) is None
    with pytest.raises(TapeError):
        tape.watch(v)


def test_recording_can_be_interrupted_and_started_anew():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = x * x
        z = y * x
    assert float(tape.gradient(z, x)) == 9
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        assert tape.watched_variables() == ()
        z = y * x
    assert float(tape.gradient(z, x)) == 9
    assert tape.watched_variables() == (x,)


def test_tapes_nest_for_higher_orders():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    assert float(first) == 27
    assert float(outer.gradient(first, x)) == 18


def test_jacobian_and_batch_jacobian():
    m = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(m)
        y = m * m
    assert tape.jacobian(y, m).shape == (2, 2, 2, 2)
    assert tape.batch_jacobian(y, m).tolist() == [[[2, 0], [0, 4]], [[6, 0], [0, 8]]]
    assert tape.batch_jacobian(y, m, experimental_use_pfor=False).shape == (2, 2, 2)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(m)
        total = tf.reduce_sum(m)
        rows = tf.reduce_sum(m * m, axis=1, keepdims=True)
        wide = tf.reshape(tf.concat([m, 2 * m, 3 * m], 1), [2, 3, 2])
    with pytest.raises(ShapeError, match="first size"):
        tape.batch_jacobian(total, m)
    assert tape.batch_jacobian(rows, m).tolist() == [[[2, 4]], [[6, 8]]]
    assert tape.batch_jacobian(wide, m).tolist() == [[[[k, 0], [0, k]] for k in (1, 2, 3)]] * 2


def test_gradients_takes_stops_said_afterwards():
    with tf.GradientTape() as tape:
        x = tape.watch(tf.constant(1.0))
        y = 2.0 * x
        z = x + y
        assert [float(g) for g in tf.gradients(z, [x, y])] == [3, 1]
        assert [float(g) for g in tf.gradients(z, [x, y], stop_gradients=[y])] == [1, 1]
        assert [float(g) for g in tf.gradients(z, x, grad_ys=tf.constant(10.0))] == [30]
        other = tf.constant(1.0)
        assert tf.gradients(z, other) == [None]
        assert [float(g) for g in tf.gradients(z, [other], unconnected_gradients=ZERO)] == [0]


def test_hessians_of_recorded_tensors():
    x, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape():
        y = tf.reduce_sum(x**3) * w
        inside = tf.hessians(y, [x, w])
    assert inside[0].tolist() == [[18, 0], [0, 36]]
    assert float(inside[1]) == 0
    assert tf.hessians(y, x)[0].tolist() == [[18, 0], [0, 36]]


def test_a_stop_takes_trees_where_tensorflow_stacks_lists():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        tree = tf.stop_gradient({"a": x, "b": [x * 2, (x, None, "text")]}, name="stop")
        y = tree["a"] * x
    assert float(tree["b"][0]) == 6
    assert tree["b"][1][1:] == (None, "text")
    assert float(tape.gradient(y, x)) == 3
    assert tf.stop_gradient([1.0, 2.0]).dtype == tf.float32
    assert tf.stop_gradient(np.ones(2)).dtype == tf.float64


def test_a_stop_can_be_switched_by_name():
    x = tf.Variable(3.0)
    with tf.GradientTape(stop={"target": False}) as tape:
        y = x * tf.stop_gradient(x, name="target")
    assert float(tape.gradient(y, x)) == 6
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.stop_gradient(x * tf.constant([1.0, 2.0]), where=[True, False]))
    assert float(tape.gradient(y, x)) == 2


def test_custom_gradients():
    x = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(a, b):
        return a * b, lambda upstream: (upstream * 10.0, None)

    @tf.custom_gradient
    def two(a):
        return (a, a * 2.0), lambda first, second: first + 10.0 * second

    with tf.GradientTape(persistent=True) as tape:
        y = scaled(x, tf.constant(2.0))
        p, q = two(x)
        z = p + q
    assert float(tape.gradient(y, x)) == 10
    assert float(tape.gradient(z, x)) == 11


def test_custom_gradients_in_the_form_of_tensorflow_js():
    calls = []

    @tf.custom_grad
    def product(a, b, save):
        save([a, b])
        calls.append("forward")

        def grad_func(dy, saved):
            return [dy.mul(saved[1]), dy.mul(saved[0]).mul(10)]

        return {"value": a.mul(b), "grad_func": grad_func}

    assert [float(g) for g in tf.grads(product)([tf.scalar(2), tf.scalar(3)])] == [3, 20]
    assert float(product(2.0, 3.0)) == 6
    assert calls == ["forward", "forward"]
    with pytest.raises(ArgumentTypeError, match="grad_func"):
        tf.custom_grad(lambda a, save: {"value": a})(tf.scalar(1))


def test_a_custom_gradient_is_differentiated_again():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda upstream: upstream * 3 * x**2

    assert float(sg.grad(sg.grad(cube))(2.0)) == 12
    assert float(sg.jvp(cube, (2.0,), (1.0,))[1]) == 12
