"""tidy, keep, dispose and memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentTypeError, DisposedError
from stopgrad.core.tensor import creation_observers


@pytest.fixture(autouse=True)
def nobody_goes_on_observing():
    yield
    assert creation_observers == []


def test_tidy_disposes_of_what_it_does_not_return():
    made = []

    def program():
        made.append(tf.tensor1d([1, 2]))
        made.append(made[0].square())
        return made[1].add(1)

    result = tf.tidy("a name", program)
    assert result.tolist() == [2, 5]
    assert [one.is_disposed for one in made] == [True, True]


@dataclass
class Pair:
    first: object
    second: object


def test_what_is_returned_is_found_in_any_container():
    def program():
        a, b, c, d, e, f = (tf.scalar(i) for i in range(6))
        tf.scalar(7)
        return {"a": [a, (b, {c})], "d": Pair(d, "text"), "e": tf.value_and_grad(lambda x: x.square())(e), 3: f}

    result = tf.tidy(program)
    values = [result["a"][0], result["a"][1][0], *result["a"][1][1], result["d"].first, result["e"].grad, result[3]]
    assert [float(one) for one in values] == [0, 1, 2, 3, 8, 5]


def test_outer_tensors_and_variables_are_left_alone():
    outer = tf.scalar(1)
    made = []

    def program():
        made.append(tf.variable(tf.scalar(2)))
        made.append(sg.Variable(3.0))
        tf.grad(lambda x: x.mul(made[0]))(outer)
        return outer

    assert tf.tidy(program) is outer
    assert float(outer) == 1
    assert [float(one) for one in made] == [2, 3]
    tf.tidy(lambda: tf.train.adam(0.1).minimize(lambda: made[0].square()))
    assert float(made[0]) == pytest.approx(1.9)


def test_an_inner_result_belongs_to_the_outer_tidy():
    seen = []

    def inner():
        seen.append(tf.scalar(1))
        return tf.scalar(2)

    def program():
        kept = tf.tidy(inner)
        assert seen[0].is_disposed
        seen.append(kept)
        return kept.add(1)

    assert float(tf.tidy(program)) == 3
    assert seen[1].is_disposed


def test_keep_lets_tensors_outlive_every_tidy():
    kept = {}

    def inner():
        kept["a"] = tf.keep(tf.scalar(1))
        kept["list"] = tf.keep([tf.scalar(2), tf.scalar(3)])

    tf.tidy(lambda: tf.tidy(inner))
    assert float(kept["a"]) == 1
    assert [float(one) for one in kept["list"]] == [2, 3]
    assert tf.keep(kept) is kept


def test_an_exception_disposes_too_and_goes_on():
    made = []

    def program():
        made.append(tf.scalar(1))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tf.tidy(program)
    assert made[0].is_disposed
    made.append(tf.scalar(2))
    assert float(made[1]) == 2


def test_what_is_recorded_is_not_touched():
    x = tf.variable(tf.tensor1d([1, 2]))
    loss = lambda: tf.tidy(lambda: tf.tidy(lambda: x.square()).mul(x).sum())
    assert tf.grad(lambda x: tf.tidy(lambda: x.square().mul(x).sum()))(x).tolist() == [3, 12]
    assert tf.variable_grads(loss).grads[x.name].tolist() == [3, 12]
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loss()
        first = tf.tidy(lambda: inner.gradient(y, x))
    assert first.tolist() == [3, 12]
    assert outer.gradient(first, x).tolist() == [6, 12]
    assert sg.hessian(lambda x: tf.tidy(lambda: tf.reduce_sum(x**3)))([1.0, 2.0]).tolist() == [[6, 0], [0, 12]]


def test_a_pullback_keeps_what_it_needs():
    @tf.custom_gradient
    def cube(x):
        square = x * x
        return square * x, lambda upstream: upstream * 3 * square

    @tf.custom_grad
    def product(a, b, save):
        save([a, b])
        return {"value": a.mul(b), "grad_func": lambda dy, saved: [dy.mul(saved[1]), dy.mul(saved[0])]}

    inputs = []

    def program(x):
        inputs.append(x.mul(1))
        return tf.tidy(lambda: cube(inputs[0]).mul(1))

    assert float(tf.grad(program)(2.0)) == 12
    assert [float(g) for g in tf.grads(lambda a, b: tf.tidy(lambda: product(a.mul(1), b)))([2.0, 3.0])] == [3, 2]
    made = []
    tf.tidy(lambda: made.append(cube(tf.scalar(2))))
    assert made[0].is_disposed


def test_a_disposed_tensor_says_so_whatever_is_done_with_it():
    x, other = tf.tensor1d([1, 2]), tf.tensor1d([3, 4])
    tf.dispose([x])
    x.dispose()
    assert repr(x) == "Tensor(disposed)"
    uses = [
        lambda: x + 1,
        lambda: x.mul(2),
        lambda: other.mul(x),
        lambda: sg.exp(x),
        lambda: np.exp(x),
        lambda: np.asarray(x),
        lambda: x.numpy(),
        lambda: x.shape,
        lambda: x.print(),
        lambda: x[0],
        lambda: tf.stack([x, other]),
        lambda: tf.constant(x),
        lambda: tf.grad(lambda y: y)(x),
        lambda: tf.stop_gradient(x) + 1,
    ]
    for use in uses:
        with pytest.raises(DisposedError, match=r"dispose"):
            use()


def test_disposing_a_variable():
    w = tf.variable(tf.scalar(1), name="w")
    before = w.value()
    w.dispose()
    assert repr(w) == "Variable('w', disposed)"
    assert float(before) == 1
    for use in (lambda: w + 1, lambda: tf.exp(w), lambda: w.numpy(), lambda: w.assign(2.0), lambda: w.shape):
        with pytest.raises(DisposedError):
            use()


def test_tensors_that_share_an_array_are_disposed_of_one_by_one():
    x = tf.tensor1d([1, 2])
    copy, view = x.clone(), x.reshape([2, 1])
    x.dispose()
    assert copy.tolist() == [1, 2]
    assert view.tolist() == [[1], [2]]


def test_each_thread_tidies_its_own():
    in_tidy, made_elsewhere = threading.Event(), threading.Event()
    found = []

    def elsewhere():
        in_tidy.wait(10)
        found.append(tf.scalar(1))
        tf.tidy(lambda: found.append(tf.scalar(2)))
        made_elsewhere.set()

    def program():
        in_tidy.set()
        made_elsewhere.wait(10)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    tf.tidy(program)
    thread.join()
    assert [one.is_disposed for one in found] == [False, True]


def test_tidy_takes_a_function():
    with pytest.raises(ArgumentTypeError, match="tidy"):
        tf.tidy("name")

    async def later():
        return tf.scalar(1)

    pending = []
    with pytest.raises(ArgumentTypeError, match="asynchronous"):
        tf.tidy(lambda: pending.append(later()) or pending[0])
    pending[0].close()


def test_memory_counts_tensors_and_shared_arrays_once():
    start = tf.memory()
    x = tf.zeros([10, 10])
    copies = [x.clone() for _ in range(3)]
    after = tf.memory()
    assert after.num_tensors - start.num_tensors == 4
    assert after["num_data_buffers"] - start["num_data_buffers"] == 1
    assert after.num_bytes - start.num_bytes == 400
    w = tf.variable(x)
    assert tf.memory().num_bytes - start.num_bytes == 800
    tf.dispose([x, copies, w])
    assert tf.memory() == start
    assert after.unreliable is False


def test_tidy_leaves_no_more_than_it_returns():
    start = tf.memory().num_tensors
    y = tf.tidy(lambda: tf.tensor1d([1, 2, 3]).square().log().neg())
    assert tf.memory().num_tensors == start + 1
    assert y.shape == (3,)


def test_dead_tensors_are_not_kept_alive_by_a_tidy():
    def program():
        before = tf.memory().num_tensors
        for _ in range(100):
            tf.scalar(1).add(1)
        return tf.memory().num_tensors - before

    assert tf.tidy(program) == 0
