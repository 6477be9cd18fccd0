"""The programs that say what the library is for, as written, with the values that are promised."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import UnconnectedWarning

OPTIMIZERS = {
    "sgd": lambda: tf.train.sgd(0.1),
    "sgd with decay": lambda: tf.train.sgd(0.1, weight_decay=0.1),
    "momentum": lambda: tf.train.momentum(0.1, 0.9),
    "nesterov": lambda: tf.train.momentum(0.1, 0.9, True),
    "adagrad": lambda: tf.train.adagrad(0.1),
    "adadelta": lambda: tf.train.adadelta(0.1),
    "rmsprop": lambda: tf.train.rmsprop(0.1),
    "adam": lambda: tf.train.adam(0.1),
    "adam with clipping": lambda: tf.train.adam(0.1, clip_norm=1.0),
    "adamw": lambda: tf.train.adamw(0.1, weight_decay=0.1),
    "adamax": lambda: tf.train.adamax(0.1),
}


def softmax(x):
    e = tf.exp(x)
    return e / tf.reduce_sum(e)


def stable(x):
    e = tf.exp(x - tf.reduce_max(x))
    return e / tf.reduce_sum(e)


def stable_stopped(x):
    e = tf.exp(x - tf.stop_gradient(tf.reduce_max(x)))
    return e / tf.reduce_sum(e)


@pytest.mark.parametrize("given", [[1000.0, 1001.0], tf.constant([1000.0, 1001.0]), np.array([1000.0, 1001.0])])
def test_softmax_overflows_and_the_stable_ones_do_not(given):
    assert np.isnan(softmax(given).numpy()).all()
    np.testing.assert_allclose(stable(given).numpy(), [0.26894142, 0.73105858], atol=5e-8)
    np.testing.assert_array_equal(stable(given).numpy(), stable_stopped(given).numpy())


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [3.0, 3.0, 1.0]])
@pytest.mark.parametrize("f", [softmax, stable, stable_stopped])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_all_three_have_the_jacobian_of_softmax(f, x, mode):
    p = softmax(np.array(x)).numpy()
    jacobian = sg.jacobian(f, mode=mode)(np.array(x)).numpy()
    np.testing.assert_allclose(jacobian, np.diag(p) - np.outer(p, p), rtol=0, atol=1e-15)
    with tf.GradientTape() as tape:
        given = tape.watch(tf.constant(x))
        y = f(given)
    np.testing.assert_allclose(tape.jacobian(y, given).numpy(), np.diag(p) - np.outer(p, p), rtol=0, atol=1e-7)


def test_gradient_of_a_square_and_of_a_stopped_square():
    x = tf.variable(tf.tensor1d([1, 2, 3]))
    assert tf.grad(lambda x: x.square())(x).tolist() == [2, 4, 6]
    assert tf.grad(lambda x: tf.stop_gradient(x).square())(x).tolist() == [0, 0, 0]


def test_a_stop_within_a_chain():
    def program(a):
        b = a.mul(2)
        return tf.stop_gradient(b).add(1)

    a = tf.tensor1d([1, 2, 3])
    found = tf.value_and_grad(program)(a)
    assert found["value"].tolist() == [3, 5, 7]
    assert found["grad"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_minimizing_a_stopped_loss_changes_nothing_and_says_why(make):
    w = tf.variable(tf.random_normal([2, 2]), name="w")
    x = tf.tensor2d([[1, 2]])
    y = tf.tensor2d([[0, 1]])
    loss = lambda: tf.losses.mean_squared_error(y, tf.stop_gradient(x.mat_mul(w)))
    unstopped = lambda: tf.losses.mean_squared_error(y, x.mat_mul(w))
    optimizer = make()
    optimizer.minimize(unstopped)  # fills slots, so that momentum has something to move with
    before = w.numpy().tobytes()
    with pytest.warns(UnconnectedWarning, match=r"'w' is unconnected.*stop_gradient at .*test_mission\.py:\d+"):
        optimizer.minimize(loss)
    assert w.numpy().tobytes() == before
    optimizer.minimize(unstopped)
    assert w.numpy().tobytes() != before


def test_the_warning_points_at_the_line_that_called():
    w = tf.variable(tf.scalar(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.train.sgd(0.01).minimize(lambda: tf.stop_gradient(w).square())
    assert [one.filename for one in caught] == [__file__]


def test_trainable_blocks_the_update_and_a_stop_the_gradient():
    fixed = tf.variable(tf.scalar(3), trainable=False, name="fixed")
    stopped = tf.variable(tf.scalar(3), name="stopped")
    moving = tf.variable(tf.scalar(1), name="moving")
    loss = lambda: fixed.square().add(tf.stop_gradient(stopped).square()).add(moving.square())

    assert float(tf.grad(lambda v: v.square())(fixed)) == 6
    assert float(tf.grad(lambda v: tf.stop_gradient(v).square())(stopped)) == 0
    found = tf.variable_grads(loss, [fixed, stopped, moving])
    assert {name: float(one) for name, one in found.grads.items()} == {"fixed": 6, "moving": 2}

    tf.train.sgd(0.25).minimize(loss)
    assert (float(fixed), float(stopped), float(moving)) == (3, 3, 0.5)


def test_of_two_branches_only_the_open_one_is_trained():
    tf.random.set_seed(0)
    open_, stopped = (tf.variable(tf.random_normal([3, 1]), name=name) for name in ("open", "stopped"))
    x, y = tf.random_normal([8, 3]), tf.random_normal([8, 1])
    output = lambda: x.mat_mul(open_).relu().add(tf.stop_gradient(x.mat_mul(stopped).relu()))
    loss = lambda: tf.losses.mean_squared_error(y, output())
    optimizer = tf.train.adam(0.05, clip_norm=1.0)
    before, first = stopped.numpy().tobytes(), float(loss())
    for _ in range(20):
        optimizer.minimize(loss)
    assert stopped.numpy().tobytes() == before
    assert float(loss()) < 0.9 * first


def test_a_chain_of_methods_prints(capsys):
    w = tf.tensor2d([[1, 0], [0, 1]])
    tf.tensor2d([[1, 2]]).square().mul(2).mat_mul(w).print()
    assert capsys.readouterr().out == "Tensor\n    [[2, 8]]\n"


def test_optimizers_go_by_class_names_too():
    pairs = {
        "SGD": "sgd",
        "Momentum": "momentum",
        "Adagrad": "adagrad",
        "Adadelta": "adadelta",
        "Adam": "adam",
        "Adamax": "adamax",
        "RMSProp": "rmsprop",
    }
    for name, factory in pairs.items():
        assert getattr(tf.train, name) is getattr(tf.train, f"{name}Optimizer")
        assert type(getattr(tf.train, factory)(0.1)) is getattr(tf.train, name)
