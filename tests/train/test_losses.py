"""Losses: their formulas by hand and by PyTorch, stability, weights and reductions, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.gates import stop_gradient
from stopgrad.train import Variable, losses, variable_gradients
from stopgrad.train.losses import Reduction
from stopgrad.transforms import grad, hvp

RNG = np.random.default_rng(0)
LABELS, PREDICTIONS = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
CLASSES = np.array([0, 2, 1, 2])
ONE_HOT = np.eye(3)[CLASSES]
BITS = RNG.integers(0, 2, size=(4, 3)).astype(float)
PROBABILITIES = RNG.uniform(0.05, 0.95, size=(4, 3))

# name: (labels, predictions, the loss of each example by hand, PyTorch's)
TABLE: dict[str, tuple[Any, Any, Any, Any]] = {
    "absolute_difference": (LABELS, PREDICTIONS, abs(LABELS - PREDICTIONS), lambda y, x: F.l1_loss(x, y)),
    "mean_squared_error": (LABELS, PREDICTIONS, (LABELS - PREDICTIONS) ** 2, lambda y, x: F.mse_loss(x, y)),
    "huber_loss": (
        2 * LABELS,
        PREDICTIONS,
        np.where(
            abs(2 * LABELS - PREDICTIONS) <= 1,
            0.5 * (2 * LABELS - PREDICTIONS) ** 2,
            abs(2 * LABELS - PREDICTIONS) - 0.5,
        ),
        lambda y, x: F.huber_loss(x, y),
    ),
    "hinge_loss": (BITS, PREDICTIONS, np.maximum(0, 1 - (2 * BITS - 1) * PREDICTIONS), None),
    "log_loss": (
        BITS,
        PROBABILITIES,
        -BITS * np.log(PROBABILITIES + 1e-7) - (1 - BITS) * np.log(1 - PROBABILITIES + 1e-7),
        None,
    ),
    "sigmoid_cross_entropy": (
        BITS,
        PREDICTIONS,
        np.log1p(np.exp(PREDICTIONS)) - BITS * PREDICTIONS,
        lambda y, x: F.binary_cross_entropy_with_logits(x, y),
    ),
    "softmax_cross_entropy": (
        ONE_HOT,
        PREDICTIONS,
        np.log(np.exp(PREDICTIONS).sum(-1)) - (ONE_HOT * PREDICTIONS).sum(-1),
        lambda y, x: F.cross_entropy(x, y),
    ),
    "sparse_softmax_cross_entropy": (
        CLASSES,
        PREDICTIONS,
        np.log(np.exp(PREDICTIONS).sum(-1)) - (ONE_HOT * PREDICTIONS).sum(-1),
        lambda y, x: F.cross_entropy(x, y),
    ),
}
EACH = pytest.mark.parametrize("name", list(TABLE))


@EACH
def test_the_loss_of_each_example(name: str) -> None:
    labels, predictions, by_hand, _ = TABLE[name]
    each = getattr(losses, name)(labels, predictions, reduction=Reduction.NONE)
    np.testing.assert_allclose(each.numpy(), by_hand, rtol=1e-12)
    np.testing.assert_allclose(float(getattr(losses, name)(labels, predictions)), by_hand.mean(), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row[3] is not None])
def test_values_and_gradients_equal_pytorch(name: str) -> None:
    labels, predictions, _, reference = TABLE[name]
    x = torch.tensor(predictions, requires_grad=True)
    expected = reference(torch.tensor(labels), x)
    expected.backward()
    w = Variable(predictions)
    loss, gradients = variable_gradients(lambda: getattr(losses, name)(labels, w))
    np.testing.assert_allclose(float(loss), expected.item(), rtol=1e-12)
    np.testing.assert_allclose(gradients[w].numpy(), x.grad.numpy(), rtol=1e-12, atol=1e-15)


@EACH
def test_reductions_and_weights(name: str) -> None:
    labels, predictions, each, _ = TABLE[name]
    loss = getattr(losses, name)
    rows = np.array([0.5, 0.0, 2.0, 1.0]).reshape((4,) + (1,) * (each.ndim - 1))
    for weights in (None, 2.0, rows, np.broadcast_to(rows, each.shape), rows != 0):
        full = np.broadcast_to(1.0 if weights is None else weights, each.shape)
        total = (each * full).sum()
        expected = {
            Reduction.NONE: each * full,
            Reduction.MEAN: total / full.sum(),
            Reduction.SUM: total,
            Reduction.SUM_BY_NONZERO_WEIGHTS: total / (full != 0).sum(),
        }
        for reduction, value in expected.items():
            for spelling in (reduction, int(reduction), reduction.name.lower()):
                result = loss(labels, predictions, weights, reduction=spelling)
                np.testing.assert_allclose(result.numpy(), value, rtol=1e-12)


def test_cosine_distance() -> None:
    labels, predictions = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[0.0, 1.0], [0.6, 0.8]])
    each = losses.cosine_distance(labels, predictions, axis=1, reduction="none")
    np.testing.assert_allclose(each.numpy(), [[1.0], [0.0]], atol=1e-15)
    assert float(losses.cosine_distance(labels, predictions, -1, [[2.0], [0.0]])) == 2.0
    with pytest.raises(ShapeError, match="axis 2"):
        losses.cosine_distance(labels, predictions, axis=2)


def test_huber_turns_at_delta_without_a_jump() -> None:
    errors = np.array([-3.0, -0.5, 0.0, 0.25, 0.5, 2.0])
    gradient = grad(lambda x: losses.huber_loss(np.zeros(6), x, delta=0.5, reduction="sum"))(errors)
    np.testing.assert_array_equal(gradient.numpy(), [-0.5, -0.5, 0.0, 0.25, 0.5, 0.5])


def test_at_kinks_the_documented_rule_holds() -> None:
    assert float(grad(lambda x: losses.absolute_difference(1.0, x))(1.0)) == 0.0
    assert float(grad(lambda x: losses.hinge_loss(1.0, x))(1.0)) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_cross_entropy_is_stable_and_exact(dtype: str) -> None:
    x = np.array([-1000.0, -50.0, -1e-3, 0.0, 1e-3, 50.0, 1000.0], dtype)
    wide = x.astype(float)
    for z, value, slope in (
        (1.0, np.logaddexp(0, -wide), -np.exp(-np.logaddexp(0, wide))),
        (0.0, np.logaddexp(0, wide), np.exp(-np.logaddexp(0, -wide))),
    ):
        w, labels = Variable(x), np.full(7, z, dtype)
        each = losses.sigmoid_cross_entropy(labels, w, reduction="none")
        _, gradients = variable_gradients(lambda w=w, z=labels: losses.sigmoid_cross_entropy(z, w, reduction="sum"))
        assert each.dtype == gradients[w].dtype == np.dtype(dtype)
        np.testing.assert_allclose(each.numpy(), value, rtol=3e-7 if dtype == "float32" else 1e-14)
        np.testing.assert_allclose(gradients[w].numpy(), slope, rtol=3e-7 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("loss", [losses.softmax_cross_entropy, losses.sparse_softmax_cross_entropy])
def test_softmax_cross_entropies_are_stable(loss: Any) -> None:
    labels: Any = [[1.0, 0.0], [0.0, 1.0]] if loss is losses.softmax_cross_entropy else [0, 1]
    w = Variable([[1e4, 1e4 - 1], [-1e4, 1e4]])
    value, gradients = variable_gradients(lambda: loss(labels, w, reduction="sum"))
    small = np.exp(-1) / (1 + np.exp(-1))
    np.testing.assert_allclose(float(value), np.log1p(np.exp(-1)), rtol=1e-12)
    np.testing.assert_allclose(gradients[w].numpy(), [[-small, small], [0.0, 0.0]], atol=1e-15)


def test_label_smoothing() -> None:
    smoothed = losses.softmax_cross_entropy(ONE_HOT, PREDICTIONS, label_smoothing=0.3)
    expected = F.cross_entropy(torch.tensor(PREDICTIONS), torch.tensor(CLASSES), label_smoothing=0.3)
    np.testing.assert_allclose(float(smoothed), expected.item(), rtol=1e-12)
    smoothed = losses.sigmoid_cross_entropy(BITS, PREDICTIONS, label_smoothing=0.3)
    expected = losses.sigmoid_cross_entropy(0.7 * BITS + 0.15, PREDICTIONS)
    np.testing.assert_allclose(float(smoothed), float(expected), rtol=1e-12)
    with pytest.raises(ArgumentError, match="label_smoothing"):
        losses.sigmoid_cross_entropy(BITS, PREDICTIONS, label_smoothing=1.5)


@pytest.mark.parametrize("reduction", list(Reduction))
def test_a_weight_of_zero_takes_an_example_out_whatever_its_loss(reduction: Reduction) -> None:
    w = Variable([4.0, 0.0, -1.0])

    def loss():
        each = losses.mean_squared_error([0.0, 0.0, 0.0], p.sqrt(w), [1.0, 0.0, 0.0], reduction)
        return p.sum(each)

    value, gradients = variable_gradients(loss)
    assert float(value) == 4.0
    assert gradients[w].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("reduction", [Reduction.MEAN, Reduction.SUM_BY_NONZERO_WEIGHTS])
def test_where_no_example_counts_the_mean_is_zero(reduction: Reduction) -> None:
    w = Variable([1.0, 2.0])
    value, gradients = variable_gradients(lambda: losses.mean_squared_error([0.0, 0.0], w, 0.0, reduction))
    assert float(value) == 0.0
    assert gradients[w].tolist() == [0.0, 0.0]


def test_gradients_reach_weights_and_labels() -> None:
    weights, labels = Variable([0.0, 2.0]), Variable([1.0, 1.0])

    def loss():
        return losses.mean_squared_error(labels, [3.0, 0.0], weights, "sum")

    _, gradients = variable_gradients(loss)
    assert gradients[weights].tolist() == [4.0, 1.0]
    assert gradients[labels].tolist() == [0.0, 4.0]
    _, gradients = variable_gradients(lambda: losses.mean_squared_error([1.0, 1.0], [3.0, 0.0], weights, "mean"))
    assert gradients[weights].tolist() == [(4 - 1) / 2, (1 - 1) / 2]


def test_a_stopped_target_gets_no_gradient() -> None:
    online, target = Variable([1.0, 2.0]), Variable([3.0, 3.0])
    _, gradients = variable_gradients(lambda: losses.huber_loss(stop_gradient(target * 2), online))
    assert gradients[target] is None
    assert gradients[online].tolist() == [-0.5, -0.5]


@EACH
def test_second_derivatives_agree_with_differences(name: str) -> None:
    labels, predictions, _, _ = TABLE[name]

    def slope(x):
        return grad(lambda x: getattr(losses, name)(labels, x, reduction="sum"))(x).numpy()

    direction = np.cos(np.arange(12.0)).reshape(4, 3)
    product = hvp(lambda x: getattr(losses, name)(labels, x, reduction="sum"), (predictions,), (direction,))
    difference = (slope(predictions + 1e-6 * direction) - slope(predictions - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(product.numpy(), difference, rtol=1e-6, atol=1e-8)


def test_labels_are_brought_to_the_dtype_of_the_predictions() -> None:
    predictions = np.array([0.5, 0.25], np.float32)
    for labels in ([1, 0], [1.0, 0.0], np.array([True, False]), np.array([1.0, 0.0])):
        assert losses.mean_squared_error(labels, predictions).dtype == np.float32
    assert losses.mean_squared_error([1, 2], [3, 4]).dtype == np.float64


@pytest.mark.parametrize("name", [name for name in TABLE if name != "sparse_softmax_cross_entropy"])
def test_shapes_must_be_equal(name: str) -> None:
    with pytest.raises(ShapeError, match=rf"{name}: labels have shape \(3,\), \w+ \(3, 1\)"):
        getattr(losses, name)(np.zeros(3), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: losses.mean_squared_error([1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, "weights"),
        (lambda: losses.mean_squared_error([1.0], [1.0], [1.0, 2.0]), ShapeError, "weights"),
        (lambda: losses.compute_weighted_loss([1.0], reduction="median"), ArgumentError, "'sum_by_nonzero_weights'"),
        (lambda: losses.compute_weighted_loss([1.0], reduction=7), ArgumentError, "Reduction"),
        (lambda: losses.softmax_cross_entropy(1.0, 2.0), ShapeError, "at least one axis"),
        (lambda: losses.sparse_softmax_cross_entropy([0, 1], [[1.0, 2.0]]), ShapeError, r"need the shape \(1,\)"),
        (lambda: losses.sparse_softmax_cross_entropy([0.0], [[1.0, 2.0]]), ArgumentTypeError, "integers"),
        (lambda: losses.sparse_softmax_cross_entropy([2], [[1.0, 2.0]]), ArgumentError, r"\[0, 2\)"),
        (lambda: losses.sparse_softmax_cross_entropy([-1], [[1.0, 2.0]]), ArgumentError, "-1"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
