"""Chained methods on tensors and variables."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.primitives import methods as ours
from stopgrad.tf import methods as theirs

X = [[1.0, -2.0], [3.0, 4.0]]


def test_no_method_of_stopgrads_own_is_replaced():
    taken = {*ours.METHODS, *ours.OPERATORS, *ours.PROPERTIES}
    assert not taken & {*theirs.METHODS, *theirs.PROPERTIES}
    for name in {*ours.METHODS, *ours.OPERATORS} - {*theirs.WIDENED}:
        assert getattr(sg.Tensor, name).__module__ != theirs.__name__


@pytest.mark.parametrize("name", theirs.WIDENED)
@pytest.mark.parametrize("make", [tf.tensor2d, tf.variable], ids=["tensor", "variable"])
def test_reductions_take_the_arguments_of_both(make, name):
    x, function = make(X), getattr(sg, name)
    method = getattr(x, name)
    for axis in (None, 0, (0, 1)):
        for keep in (False, True):
            expected = function(x, axis, keepdims=keep).numpy()
            for found in (method(axis, keep), method(axis=axis, keep_dims=keep), method(axis, keepdims=keep)):
                np.testing.assert_array_equal(found.numpy(), expected, strict=True)
    np.testing.assert_array_equal(method().numpy(), function(x).numpy(), strict=True)
    with pytest.raises(TypeError):
        method(keeping=True)


@pytest.mark.parametrize("cls", [sg.Tensor, sg.Variable, tf.Variable])
def test_tensors_and_variables_have_all_of_them(cls):
    for name, function in theirs.METHODS.items():
        assert getattr(cls, name) is function, name
        assert function.__doc__, name
    assert isinstance(cls.rank, property)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x.square().mul(2).mat_mul([[1.0], [1.0]]), [[10], [50]]),
        (lambda x: x.add(1).sub(2).div(2).neg(), [[0, 1.5], [-1, -1.5]]),
        (lambda x: x.sum(0), [4, 2]),
        (lambda x: x.mean(axis=1, keepdims=True), [[-0.5], [3.5]]),
        (lambda x: x.max(), 4),
        (lambda x: x.min(1), [-2, 3]),
        (lambda x: x.relu().log1p().expm1(), [[1, 0], [3, 4]]),
        (lambda x: x.sigmoid().greater(0.5), [[True, False], [True, True]]),
        (lambda x: x.softmax().sum(1), [1, 1]),
        (lambda x: x.log_softmax().exp().sum(1), [1, 1]),
        (lambda x: x.reshape([4]), [1, -2, 3, 4]),
        (lambda x: x.as1d(), [1, -2, 3, 4]),
        (lambda x: x.as2d(1, 4), [[1, -2, 3, 4]]),
        (lambda x: x.as3d(2, 1, 2), [[[1, -2]], [[3, 4]]]),
        (lambda x: x.sum().as_scalar(), 6),
        (lambda x: x.flatten(), [1, -2, 3, 4]),
        (lambda x: x.transpose(), [[1, 3], [-2, 4]]),
        (lambda x: x.transpose([1, 0]), [[1, 3], [-2, 4]]),
        (lambda x: x.expand_dims().squeeze(), X),
        (lambda x: x.expand_dims(1).squeeze([1]), X),
        (lambda x: x.as_type("int32"), [[1, -2], [3, 4]]),
        (lambda x: x.cast(tf.int32).to_float(), X),
        (lambda x: x.to_int().to_bool(), [[True, True], [True, True]]),
        (lambda x: x.concat(x, 1), [[1, -2, 1, -2], [3, 4, 3, 4]]),
        (lambda x: x.concat([x, x]).shape, (6, 2)),
        (lambda x: x.stack(x).shape, (2, 2, 2)),
        (lambda x: x.unstack()[1], [3, 4]),
        (lambda x: x.split(2, 1)[0], [[1], [3]]),
        (lambda x: x.slice([0, 1]), [[-2], [4]]),
        (lambda x: x.slice([0, 1], [1, 1]), [[-2]]),
        (lambda x: x.reverse(1), [[-2, 1], [4, 3]]),
        (lambda x: x.tile([1, 2]).shape, (2, 4)),
        (lambda x: x.pad([[1, 0], [0, 0]], 9), [[9, 9], [1, -2], [3, 4]]),
        (lambda x: x.gather([1, 1]), [[3, 4], [3, 4]]),
        (lambda x: x.gather([1], 1), [[-2], [4]]),
        (lambda x: x.arg_max(), [1, 1]),
        (lambda x: x.arg_min(1), [1, 0]),
        (lambda x: x.where([[True, False], [True, True]], x.zeros_like()), [[1, 0], [3, 4]]),
        (lambda x: x.clip_by_value(0, 3), [[1, 0], [3, 3]]),
        (lambda x: x.maximum(0).minimum(3), [[1, 0], [3, 3]]),
        (lambda x: x.squared_difference(1), [[0, 9], [4, 9]]),
        (lambda x: x.floor_div(2).mod(2), [[0, 1], [1, 0]]),
        (lambda x: x.pow(2).sqrt().abs(), [[1, 2], [3, 4]]),
        (lambda x: x.step(), [[1, 0], [1, 1]]),
        (lambda x: x.prelu(0.5), [[1, -1], [3, 4]]),
        (lambda x: x.leaky_relu(0.5), [[1, -1], [3, 4]]),
        (lambda x: x.norm("euclidean", 1).square(), [5, 25]),
        (lambda x: x.euclidean_norm().square(), 30),
        (lambda x: x.dot(tf.tensor1d([1, 1])), [-1, 7]),
        (lambda x: x.cumsum(1), [[1, -1], [3, 7]]),
        (lambda x: x.cumprod(1), [[1, -2], [3, 12]]),
        (lambda x: x.log_sum_exp(1).shape, (2,)),
        (lambda x: x.topk(1).values, [[1], [4]]),
        (lambda x: x.equal(x).logical_and(x.not_equal(0)), [[True, True], [True, True]]),
        (lambda x: x.is_nan().logical_or(x.is_inf()).logical_not(), [[True, True], [True, True]]),
        (lambda x: x.reshape_as([1.0, 2.0, 3.0, 4.0]), [1, -2, 3, 4]),
        (lambda x: x.ones_like().broadcast_to([1, 2, 2]), [[[1, 1], [1, 1]]]),
        (lambda x: x.clone(), X),
        (lambda x: x.variable(), X),
        (lambda x: x.to_int().one_hot(2).shape, (2, 2, 2)),
        (lambda x: x.array_sync(), X),
        (lambda x: x.data_sync(), [1, -2, 3, 4]),
        (lambda x: x.rank, 2),
        (lambda x: x.as4d(1, 2, 2, 1).avg_pool(2, 2, "valid").as_scalar(), 1.5),
        (lambda x: x.as4d(1, 2, 2, 1).max_pool([2, 2], [1, 1], "same").as2d(2, 2), [[4, 4], [4, 4]]),
        (lambda x: x.as4d(1, 2, 2, 1).conv2d(tf.ones([1, 1, 1, 2]), 1, "same").shape, (1, 2, 2, 2)),
    ],
)
@pytest.mark.parametrize("make", [tf.tensor2d, tf.variable], ids=["tensor", "variable"])
def test_a_method_is_the_function(make, call, expected):
    found = call(make(X))
    if hasattr(found, "numpy"):
        found = found.numpy()
        assert found.dtype in (np.float32, np.int32, np.bool_)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_gradients_flow_through_chains():
    x = tf.variable(tf.tensor2d(X))
    gradient = tf.grad(lambda x: x.relu().mul(2).concat(x, 1).slice([0, 1]).flatten().sum())(x)
    assert gradient.tolist() == [[1, 1], [1, 3]]


def test_printing(capsys):
    x = tf.tensor2d([[1, 2.5], [3, 4]])
    x.print()
    x.print(verbose=True)
    tf.variable(tf.scalar(1)).print()
    assert capsys.readouterr().out == (
        "Tensor\n    [[1, 2.5],\n     [3, 4]]\n"
        "Tensor\n  dtype: float32\n  rank: 2\n  shape: [2,2]\n  values:\n    [[1, 2.5],\n     [3, 4]]\n"
        "Tensor\n    1\n"
    )
    tf.print("x =", tf.constant([1.5, 2]), {"k": tf.constant([1]), "s": "t"}, 3)
    tf.print(tf.range(100))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "x = [1.5 2] {'k': [1], 's': 't'} 3\n[0 1 2 ... 97 98 99]\n"
