"""Operators, methods and NumPy's own functions on tensors and variables."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg

A, B = np.array([1.0, -2.0, 3.5]), np.array([2.0, 0.5, -1.5])


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge", "matmul"]
)
def test_binary_operators_from_both_sides(name):
    function = getattr(operator, name)
    expected = function(A, B)
    variable = sg.Variable(A)
    for one, other in ((sg.tensor(A), sg.tensor(B)), (sg.tensor(A), B), (A, sg.tensor(B)), (variable, B)):
        result = function(one, other)
        assert isinstance(result, sg.Tensor)
        assert_array_equal(result, expected)


def test_powers_and_numbers():
    t = sg.tensor(A)
    assert_array_equal(t**2, A**2)
    assert_allclose(2.0**t, 2.0**A)
    assert_array_equal(1 - t, 1 - A)
    assert_array_equal(-t, -A)
    assert_array_equal(abs(t), abs(A))
    assert (np.float64(2.0) * t).shape == (3,)
    assert (t.astype(np.float32) * 2).dtype == np.float32
    assert (np.float32(2) * t.astype(np.float32)).dtype == np.float32


def test_bits_and_logic():
    t = sg.tensor([True, False])
    assert_array_equal(t & [True, True], [True, False])
    assert_array_equal(t | [True, True], [True, True])
    assert_array_equal(~t, [False, True])
    assert_array_equal(t ^ t, [False, False])


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.exp, A),
        (np.tanh, A),
        (lambda x: np.sum(x), A),
        (lambda x: np.sum(x, axis=0), A),
        (lambda x: np.mean(x), A),
        (lambda x: np.max(x), A),
        (lambda x: np.add.reduce(x), A),
        (lambda x: np.maximum(x, 0.0), A),
        (lambda x: np.where(B > 0, x, 0.0), A),
        (lambda x: np.concatenate([x, x * 2]), A),
        (lambda x: np.stack([x, B]), A),
        (lambda x: np.reshape(x, (3, 1)), A),
        (lambda x: np.transpose(x), np.outer(A, B)),
        (lambda x: np.dot(x, B), A),
        (lambda x: np.einsum("ij,j->i", x, B), np.outer(A, B)),
        (lambda x: np.linalg.norm(x), A),
        (lambda x: np.linalg.det(x), np.outer(A, B) + 3 * np.eye(3)),
        (lambda x: np.linalg.solve(x, B), np.outer(A, B) + 3 * np.eye(3)),
        (lambda x: np.clip(x, -1.2, 1.7), A),
        (lambda x: np.cumsum(x), A),
        (lambda x: np.sort(x), A),
        (lambda x: np.matmul(x, B), A),
        (lambda x: B * x, A),
        (lambda x: B @ x, A),
        (lambda x: np.power(x, 2), A),
        (lambda x: np.square(x), A),
        (lambda x: np.expand_dims(x, 0), A),
        (lambda x: np.broadcast_to(x, (2, 3)), A),
        (lambda x: np.split(x, 3)[1], A),
        (lambda x: np.var(x), A),
    ],
)
def test_numpys_functions_are_differentiated(function, x):
    expected = function(x)
    value, pullback = sg.vjp(function, x)
    assert isinstance(value, sg.Tensor)
    assert_allclose(value, expected, rtol=1e-14)
    cotangent = np.random.default_rng(0).normal(size=np.shape(expected))
    step, direction = 1e-6, np.random.default_rng(1).normal(size=x.shape)
    difference = (function(x + step * direction) - function(x - step * direction)) / (2 * step)
    assert_allclose(
        np.sum(pullback(cotangent)[0].numpy() * direction), np.sum(cotangent * difference), rtol=1e-7, atol=1e-8
    )


def test_what_numpy_cannot_do_with_a_tensor_is_said():
    t = sg.tensor(A)
    with pytest.raises(sg.errors.ArgumentTypeError, match="a = a \\+ t"):
        np.add(A, t, out=A.copy())
    array = A.copy()
    with pytest.raises(sg.errors.ArgumentTypeError, match="gradient would be lost"):
        array += t
    with pytest.raises(sg.errors.ArgumentTypeError, match=r"numpy\.histogram .*t\.numpy\(\)"):
        np.histogram(t)
    with pytest.raises(AttributeError, match="not differentiated"):
        sg.numpy.histogram


def test_a_tensor_is_an_array_for_whoever_wants_one():
    t = sg.tensor(A)
    assert_array_equal(np.asarray(t), A)
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    assert not np.asarray(t).flags.writeable
    assert np.array(t).flags.writeable
    assert list(map(float, t)) == list(A)
    assert len(t) == 3
    assert t.tolist() == list(A)
    assert float(t[0]) == 1.0
    assert int(sg.tensor(3)) == 3
    assert [10, 20, 30][sg.tensor(1)] == 20
    assert bool(sg.tensor(0.0)) is False
    with pytest.raises(ValueError, match="ambiguous"):
        bool(t)
    with pytest.raises(TypeError, match="without axes"):
        len(sg.tensor(1.0))
    with pytest.raises(sg.errors.ArgumentTypeError, match="item"):
        iter(sg.tensor(1.0))


def test_methods_and_properties():
    t = sg.tensor(np.outer(A, B))
    assert t.T.shape == (3, 3)
    assert t.reshape(9).shape == (9,)
    assert t.reshape(1, 9).shape == (1, 9)
    assert t.reshape((9, 1)).shape == (9, 1)
    assert t.sum(axis=0).shape == (3,)
    assert t.mean(0, keepdims=True).shape == (1, 3)
    assert t.transpose(1, 0).shape == (3, 3)
    assert t.at_set(0, 0.0)[0].tolist() == [0.0, 0.0, 0.0]
    assert (t.ndim, t.size) == (2, 9)
    assert "shape=(3, 3)" in repr(t)


def test_mistakes_in_shapes_are_named():
    with pytest.raises(sg.errors.ShapeError, match=r"add: shapes \(2,\) and \(3,\) do not broadcast"):
        sg.tensor([1.0, 2.0]) + sg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(sg.errors.ShapeError, match="axis 2"):
        sg.sum(sg.tensor(A), axis=2)
    with pytest.raises(sg.errors.ShapeError, match="matmul"):
        sg.tensor(np.ones((2, 3))) @ sg.tensor(np.ones((2, 3)))
    with pytest.raises(sg.errors.ArgumentTypeError, match="str"):
        sg.exp("text")
    with pytest.raises(sg.errors.ShapeError, match="ragged"):
        sg.tensor([[1.0], [1.0, 2.0]])


def test_numpy_tells_about_tensors_what_it_tells_about_arrays():
    array = np.zeros((2, 3), np.float32)
    for t in (sg.tensor(array), sg.Variable(array)):
        assert (np.shape(t), np.ndim(t), np.size(t), np.size(t, 1)) == ((2, 3), 2, 6, 3)
        assert np.result_type(t, np.float64) == np.float64
        assert not np.iscomplexobj(t)
        assert np.isrealobj(t)
    shapes = []
    sg.grad(lambda x: shapes.append(np.shape(x)) or sg.sum(x))(array)
    assert shapes == [(2, 3)]


def test_a_recorded_tensor_does_not_become_an_array_unasked():
    def f(x):
        return np.mean([x, x * 2])  # NumPy would make an array of the list, without a gradient

    with pytest.raises(sg.errors.ArgumentTypeError, match=r"lose its gradient; .* t\.numpy\(\)"):
        sg.grad(f)(3.0)
    assert float(sg.grad(lambda x: np.mean(sg.stack([x, x * 2])))(3.0)) == 1.5
    assert f(sg.tensor(3.0)) == 4.5
    w = sg.Variable([1.0, 2.0])
    with sg.GradientTape():
        with pytest.raises(sg.errors.ArgumentTypeError, match="lose its gradient"):
            np.asarray(w * 2)
        with pytest.raises(sg.errors.ArgumentTypeError, match="lose its gradient"):
            np.asarray(w)
        assert_array_equal((w * 2).numpy(), [2.0, 4.0])
        assert_array_equal(np.asarray(sg.stop_gradient(w)), [1.0, 2.0])
        with sg.no_gradient():
            assert_array_equal(np.asarray(w * 2), [2.0, 4.0])
