"""Every name: documented, listed, and what is said of those that are not there."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest

import stopgrad as sg
import stopgrad.tf as tf

SUBMODULES = ("linalg", "losses", "math", "nest", "nn", "random", "train")
NAMES = [
    *(("tf", tf, name) for name in tf.__all__),
    *((f"tf.{module}", getattr(tf, module), name) for module in SUBMODULES for name in getattr(tf, module).__all__),
]


@pytest.mark.parametrize(("where", "module", "name"), NAMES, ids=[f"{where}.{name}" for where, _, name in NAMES])
def test_every_name_is_there_and_documented(where, module, name):
    found = getattr(module, name)
    if isinstance(found, types.ModuleType) or callable(found):
        assert inspect.getdoc(found), f"{where}.{name} has no docstring"
        assert not inspect.getdoc(found).startswith("\n")
    if inspect.isfunction(found) and not name.endswith("_"):
        assert found.__name__.startswith(("f", *map(chr, range(97, 123)))), found
    if inspect.isclass(found) and found.__module__.startswith("stopgrad.tf"):
        for method, function in vars(found).items():
            if not method.startswith("_") and inspect.isfunction(function):
                assert inspect.getdoc(getattr(found, method)), f"{where}.{name}.{method} has no docstring"


def test_names_are_listed():
    assert len(tf.__all__) == len(set(tf.__all__))
    assert dir(tf) == sorted(tf.__all__)
    for module in SUBMODULES:
        names = getattr(tf, module).__all__
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (tf, "function", "without the decorator"),
        (tf, "no_gradient", "stopgrad.no_gradient()"),
        (tf, "no_grad", "tf.stop_gradient"),
        (tf, "matMul", "Python's way: use tf.mat_mul"),
        (tf, "variableGrads", "tf.variable_grads"),
        (tf, "meanSquaredError", "use tf.losses.mean_squared_error"),
        (tf, "top_k", "use tf.math.top_k"),
        (tf, "reduce_summ", "near it are tf.reduce_sum"),
        (tf, "keras", "tf.train"),
        (tf, "zzzzzz", "dir(tf)"),
        (tf.math, "logg", "near it are tf.math.log"),
        (tf.nn, "logSoftmax", "use tf.nn.log_softmax"),
        (tf.train, "adma", "tf.train.adam"),
        (tf.losses, "huberLoss", "use tf.losses.huber_loss"),
        (tf.random, "nromal", "tf.random.normal"),
        (tf.linalg, "inverse", "tf.linalg has no 'inverse'"),
        (tf.nest, "flaten", "tf.nest.flatten"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_type(module, name, message):
    assert not hasattr(module, name)
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    text = str(caught.value)
    assert message in text
    assert repr(name) in text
    assert "\n" not in text


def test_eager():
    assert tf.executing_eagerly() is True
    assert tf.newaxis is None
    assert tf.Tensor is sg.Tensor
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1.0))
    assert not tf.is_tensor(np.ones(2))


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        ({"b": 1, "a": [2, None]}, [2, None, 1]),
        (None, [None]),
        ((1, [2, 3], {"x": (4,)}), [1, 2, 3, 4]),
        (7, [7]),
        ([], []),
    ],
)
def test_nest_flattens_and_packs(structure, leaves):
    assert tf.nest.flatten(structure) == leaves
    assert tf.nest.pack_sequence_as(structure, leaves) == structure
    assert tf.nest.is_nested(structure) is (structure not in (None, 7))


def test_nest_maps_over_equal_structures():
    x = tf.constant([1.0])
    doubled = tf.nest.map_structure(lambda one: one * 2, {"w": x, "b": [x, x]})
    assert doubled["b"][1].tolist() == [2]
    assert tf.nest.map_structure(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    with pytest.raises(TypeError, match="structure"):
        tf.nest.assert_same_structure([1], (1,))
    with pytest.raises(ValueError, match="leaves"):
        tf.nest.pack_sequence_as([1, 2], [1])
