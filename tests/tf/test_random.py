"""Random numbers: shapes, dtypes, seeds, and that they are what they are called."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf

N = 20_000


@pytest.fixture(autouse=True)
def seed():
    tf.random.set_seed(0)


@pytest.mark.parametrize(
    ("draw", "mean", "std"),
    [
        (lambda: tf.random.normal([N], 1.0, 2.0), 1, 2),
        (lambda: tf.random.uniform([N]), 0.5, 12**-0.5),
        (lambda: tf.random.uniform([N], -1, 3), 1, 4 * 12**-0.5),
        (lambda: tf.random.uniform([N], 0, 10, tf.int32), 4.5, (99 / 12) ** 0.5),
        (lambda: tf.random.truncated_normal([N]), 0, 0.8796),
        (lambda: tf.random.gamma([N], 2.0, 4.0), 0.5, 2**0.5 / 4),
        (lambda: tf.random.poisson([N], 4.0), 4, 2),
        (lambda: tf.cast(tf.random.categorical([[0.0, np.log(3.0)]], N), tf.float32), 0.75, 0.1875**0.5),
        (lambda: tf.random.stateless_normal([N], [1, 2], 1.0, 2.0), 1, 2),
        (lambda: tf.random.stateless_uniform([N], [1, 2], 1.0, 2.0), 1.5, 12**-0.5),
        (lambda: tf.random.stateless_truncated_normal([N], [1, 2]), 0, 0.8796),
        (lambda: tf.random.Generator.from_seed(1).normal([N], 1.0), 1, 1),
        (lambda: tf.random_normal([N], 1, 2), 1, 2),
        (lambda: tf.random_uniform([N], 1, 3), 2, 2 * 12**-0.5),
        (lambda: tf.truncated_normal([N], 1, 2), 1, 1.7592),
        (lambda: tf.random_gamma([N], 2, 4), 0.5, 2**0.5 / 4),
        (lambda: tf.multinomial([0.0, np.log(3.0)], N), 0.75, 0.1875**0.5),
    ],
)
def test_mean_and_standard_deviation(draw, mean, std):
    drawn = draw()
    assert drawn.size == N
    assert drawn.dtype in (np.float32, np.int32)
    values = drawn.numpy().astype(float)
    assert values.mean() == pytest.approx(mean, abs=5 * std / N**0.5)
    assert values.std() == pytest.approx(std, rel=0.05)


def test_truncated_samples_stay_within_two_deviations():
    assert np.abs(tf.random.truncated_normal([N]).numpy()).max() <= 2


def test_seeds():
    first = [tf.random.normal([2], seed=seed).tolist() for seed in (None, 7, 7)]
    tf.random.set_seed(0)
    again = [tf.random.normal([2], seed=seed).tolist() for seed in (None, 7, 7)]
    assert first == again
    assert first[1] != first[2]
    tf.random.set_seed(-1)
    assert tf.random.normal([2]).tolist() != first[0]
    assert tf.random_normal([2], seed=3).tolist() == tf.random_normal([2], seed=3).tolist()
    assert tf.random.stateless_normal([2], [1, 2]).tolist() == tf.random.stateless_normal([2], [1, 2]).tolist()
    assert tf.random.stateless_normal([2], [1, 2]).tolist() != tf.random.stateless_normal([2], [2, 1]).tolist()


def test_set_seed_is_for_all_of_stopgrad():
    tf.random.set_seed(5)
    first = sg.random.normal(size=2).tolist()
    tf.random.set_seed(5)
    assert sg.random.normal(size=2).tolist() == first


def test_generators_are_independent():
    stream = tf.random.Generator.from_seed(1)
    one, other = stream.split(2)
    assert one.uniform([3]).tolist() != other.uniform([3]).tolist()
    assert tf.random.Generator.from_non_deterministic_state().uniform([2], 0, 5, tf.int64).dtype == np.int64


def test_derivatives_pass_to_parameters():
    mean, deviation, rate = tf.Variable([0.0, 1.0]), tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        x = tf.random.normal([5, 2], mean, deviation)
        g = tf.random.gamma([4], 2.0, rate)
    assert tape.gradient(x, mean).tolist() == [5, 5]
    noise = (x.numpy() - mean.numpy()) / 2
    np.testing.assert_allclose(float(tape.gradient(x, deviation)), noise.sum(), rtol=1e-5)
    np.testing.assert_allclose(float(tape.gradient(g, rate)), -g.numpy().sum() / 3, rtol=1e-5)


def test_shuffle_moves_rows_and_their_derivatives():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.random.shuffle(x)
        z = tf.reduce_sum(y * y)
    assert sorted(y.tolist()) == x.tolist()
    assert tape.gradient(z, x).tolist() == (2 * x.numpy()).tolist()


def test_dropout_keeps_the_mean():
    x = tf.ones([N])
    y = tf.nn.dropout(x, 0.25)
    np.testing.assert_allclose(np.unique(y.numpy()), [0, 4 / 3], rtol=1e-6)
    assert y.numpy().mean() == pytest.approx(1, abs=0.03)
    rows = tf.nn.dropout(tf.ones([50, 4]), 0.5, noise_shape=[None, 1]).numpy()
    assert (rows == rows[:, :1]).all()
    assert tf.nn.dropout(x, 0.0) is x
