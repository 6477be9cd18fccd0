"""What optimizers compute: PyTorch's numbers, any dtype and array library, all or nothing; and how they are asked."""

from __future__ import annotations

import copy
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from stopgrad.gates import stop_gradient
from stopgrad.train import OPTIMIZERS, SGD, Adagrad, Adam, AdamW, Momentum, RMSProp, Variable
from stopgrad.transforms import GradientTape
from tests.train.optimizer_table import ENTRIES, Entry

EACH = pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
WITH_TORCH = {name: entry for name, entry in ENTRIES.items() if entry.torch is not None}
START = {"w": [[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]], "b": [0.3, -0.7]}
X = np.random.default_rng(1).normal(size=(5, 2))
Y = np.random.default_rng(2).normal(size=(5, 3))


def loss_of(w: Any, b: Any, x: Any, y: Any, exp: Any) -> Any:
    """A smooth loss with gradients of both signs, none of them zero."""
    error = x @ w - y
    return (error * error).sum() + exp(0.5 * b).sum() + (w[0, 0] - b[0] * b[1]) ** 2


@pytest.mark.parametrize("entry", WITH_TORCH.values(), ids=list(WITH_TORCH))
def test_twenty_steps_equal_pytorch(entry: Entry) -> None:
    torch.set_num_threads(1)
    ours = {name: Variable(value, name=name) for name, value in START.items()}
    theirs = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in START.items()}
    rate = 0.02
    optimizer, reference = entry.make(rate), entry.torch(list(theirs.values()), rate)
    for _ in range(20):
        optimizer.minimize(lambda: loss_of(ours["w"], ours["b"], X, Y, p.exp))
        reference.zero_grad()
        loss_of(theirs["w"], theirs["b"], torch.tensor(X), torch.tensor(Y), torch.exp).backward()
        reference.step()
    for name, variable in ours.items():
        np.testing.assert_allclose(variable.numpy(), theirs[name].detach().numpy(), rtol=1e-12, atol=1e-13)


def test_rmsprop_keeps_the_rate_inside_the_momentum_and_epsilon_under_the_root() -> None:
    w = Variable([1.0])
    optimizer = RMSProp(lambda step: [0.1, 0.2][step], decay=0.5, momentum=0.5, epsilon=0.25)
    optimizer.apply_gradients({w: [2.0]})
    optimizer.apply_gradients({w: [4.0]})
    first = 0.1 * 2 / np.sqrt(0.5 * 4 + 0.25)
    second = 0.5 * first + 0.2 * 4 / np.sqrt(0.5 * (0.5 * 4) + 0.5 * 16 + 0.25)
    np.testing.assert_allclose(w.numpy(), 1 - first - second, rtol=1e-15)


def test_adagrad_has_epsilon_under_the_root() -> None:
    w = Variable([1.0])
    Adagrad(0.1, 0.5, epsilon=0.25).apply_gradients({w: [2.0]})
    np.testing.assert_allclose(w.numpy(), 1 - 0.1 * 2 / np.sqrt(0.5 + 4 + 0.25), rtol=1e-15)


def test_weight_decay_is_decoupled_in_adamw_only() -> None:
    w, v = Variable([2.0]), Variable([2.0])
    AdamW(0.1, epsilon=0.0, weight_decay=0.5).apply_gradients({w: [1.0]})
    Adam(0.1, epsilon=0.0, weight_decay=0.5).apply_gradients({v: [1.0]})
    np.testing.assert_allclose(w.numpy(), 2 * (1 - 0.1 * 0.5) - 0.1, rtol=1e-15)
    np.testing.assert_allclose(v.numpy(), 2 - 0.1, rtol=1e-15)


def test_gradients_are_clipped_before_the_decay_is_added() -> None:
    w = Variable([2.0])
    SGD(1.0, clip_norm=1.0, weight_decay=0.25).apply_gradients({w: [100.0]})
    assert w.tolist() == [2 - (1 + 0.25 * 2)]


RATES = {"adagrad": 0.5, "adagrad decay": 0.5, "adadelta": 1.0, "adadelta decay": 1.0}


@EACH
def test_each_converges(entry: Entry, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    w, b = Variable([0.0, 0.0]), Variable(1.0)
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = x @ np.array([1.0, -0.5])

    def loss():
        return p.mean((x @ w + b - y) ** 2)

    start = float(loss())
    optimizer = entry.make(RATES.get(name, 0.05))
    for _ in range(400):
        optimizer.minimize(loss)
    # Decay pulls away from the minimum, by less than it gains.
    assert float(loss()) < start * (0.1 if "decay" in name else 0.02)


@EACH
def test_float32_stays_float32(entry: Entry) -> None:
    w, reference = Variable(START["w"], dtype="float32"), Variable(START["w"])
    optimizer, exact = entry.make(lambda step: np.float64(0.02)), entry.make(0.02)
    for _ in range(5):
        optimizer.minimize(lambda: p.sum(w * w))
        exact.minimize(lambda: p.sum(reference * reference))
    assert w.dtype == np.float32
    assert all(slot.dtype == np.float32 for slot in optimizer.slots_of(w).values())
    np.testing.assert_allclose(w.numpy(), reference.numpy(), rtol=1e-4)


@pytest.mark.parametrize("shape", [(), (0,), (1, 1)])
@EACH
def test_any_shape(entry: Entry, shape: tuple[int, ...]) -> None:
    w = Variable(np.full(shape, 2.0))
    optimizer = entry.make(0.1)
    for _ in range(3):
        optimizer.minimize(lambda: p.sum(w * w))
    assert w.shape == shape
    assert type(w.raw) is np.ndarray
    assert (w.numpy() < 2.0).all()


@pytest.mark.parametrize(
    "array", [array_api_strict.asarray, lambda value: torch.tensor(value, dtype=torch.float64)], ids=["strict", "torch"]
)
@EACH
def test_any_array_library(entry: Entry, array: Any) -> None:
    w, reference = Variable(array(START["b"])), Variable(START["b"])
    optimizer, exact = entry.make(0.1), entry.make(0.1)
    for _ in range(3):
        optimizer.minimize(lambda: p.sum(w * w * w))
        exact.minimize(lambda: p.sum(reference * reference * reference))
    assert type(w.raw) is type(array(START["b"]))
    np.testing.assert_allclose(w.numpy(), reference.numpy(), rtol=1e-14)


@EACH
def test_complex_variables_descend_as_pairs_of_real_ones(entry: Entry) -> None:
    z, x, y = Variable([1 + 2j, -0.5 + 1j]), Variable([1.0, -0.5]), Variable([2.0, 1.0])
    optimizer, pair = entry.make(0.1), entry.make(0.1)
    for _ in range(4):
        optimizer.minimize(lambda: p.sum(p.real(z * p.conj(z)) + p.real(z) * p.imag(z) * 0.3))
        pair.minimize(lambda: p.sum(x * x + y * y + x * y * 0.3))
    assert z.dtype == np.complex128
    np.testing.assert_allclose(z.numpy(), x.numpy() + 1j * y.numpy(), rtol=1e-13)


@EACH
def test_tensors_read_before_a_step_keep_their_values(entry: Entry) -> None:
    w = Variable([1.0, 2.0])
    optimizer = entry.make(0.1)
    optimizer.minimize(lambda: p.sum(w * w))
    gradient = np.array([1.0, -1.0])
    tensor, view = w.value(), w.numpy()
    before = view.copy()
    for _ in range(2):
        optimizer.apply_gradients({w: gradient})
    np.testing.assert_array_equal(tensor.numpy(), before)
    np.testing.assert_array_equal(view, before)
    np.testing.assert_array_equal(gradient, [1.0, -1.0])


@EACH
def test_slots_that_were_handed_out_do_not_change(entry: Entry) -> None:
    w = Variable([1.0, 2.0])
    optimizer = entry.make(0.1)
    optimizer.apply_gradients({w: [1.0, 1.0]})
    slots = optimizer.slots_of(w)
    kept = copy.deepcopy(slots)
    optimizer.apply_gradients({w: [5.0, 5.0]})
    for name, slot in slots.items():
        np.testing.assert_array_equal(slot, kept[name])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.ones(3), ShapeError),
        (1.0, ShapeError),
        (np.ones(2, np.float32), DTypeError),
        (np.ones(2, complex), DTypeError),
        ("gradient", ArgumentTypeError),
    ],
)
@EACH
def test_a_bad_gradient_leaves_everything_as_it_was(entry: Entry, bad: Any, error: type[Exception]) -> None:
    good, other = Variable([1.0, 2.0]), Variable([1.0, 2.0], name="other")
    optimizer = entry.make(0.1)
    optimizer.apply_gradients({good: [1.0, 1.0], other: [1.0, 1.0]})
    values, slots = good.tolist(), optimizer.slots_of(good)
    with pytest.raises(error, match="apply_gradients of variable 'other'" if error is not ArgumentTypeError else None):
        optimizer.apply_gradients({good: [1.0, 1.0], other: bad})
    assert good.tolist() == values
    assert optimizer.iterations == optimizer.count_of(good) == 1
    for name, slot in optimizer.slots_of(good).items():
        np.testing.assert_array_equal(slot, slots[name])


def test_a_loss_that_raises_leaves_everything_as_it_was() -> None:
    w = Variable([1.0, 2.0])
    optimizer = Adam(0.1)
    with pytest.raises(ShapeError, match="one number"):
        optimizer.minimize(lambda: w * 2)
    with pytest.raises(ZeroDivisionError):
        optimizer.minimize(lambda: w / (1 // 0))
    assert w.tolist() == [1.0, 2.0]
    assert optimizer.iterations == 0


@EACH
def test_nan_stays_with_its_variable(entry: Entry) -> None:
    w, other, alone = Variable([1.0, 2.0]), Variable([1.0, 2.0]), Variable([1.0, 2.0])
    entry.make(0.1).apply_gradients({w: [np.nan, 1.0], other: [0.125, 0.25]})
    entry.make(0.1).apply_gradients({alone: [0.125, 0.25]})
    assert np.isnan(w.numpy()).tolist() == [True, False]
    assert other.tolist() == alone.tolist()


def test_minimize_returns_the_cost_before_the_step_if_asked() -> None:
    w = Variable(3.0)
    assert SGD(0.1).minimize(lambda: w * w) is None
    value = float(w)
    cost = SGD(0.1).minimize(lambda: w * w, return_cost=True)
    assert float(cost) == value**2
    assert cost.node is None


def test_minimize_updates_the_given_variables_only() -> None:
    a, b = Variable(1.0), Variable(1.0)
    SGD(0.5).minimize(lambda: a * b, [a])
    assert (float(a), float(b)) == (0.5, 1.0)
    SGD(0.5).minimize(lambda: a * b, b)
    assert (float(a), float(b)) == (0.5, 0.75)


def test_minimize_takes_switches_of_named_gates() -> None:
    a, b = Variable(1.0), Variable(1.0)

    def loss():
        return stop_gradient(a, name="policy") * b

    SGD(0.5).minimize(loss, stop={"policy": False})
    assert (float(a), float(b)) == (0.5, 0.5)
    SGD(0.5).minimize(loss)
    assert (float(a), float(b)) == (0.5, 0.25)


def test_minimize_inside_a_tape_works_and_is_not_differentiated() -> None:
    w, v = Variable(3.0), Variable(2.0)
    with GradientTape() as tape:
        before = w * v
        SGD(0.1).minimize(lambda: w * w)
        total = before + w * v
    assert float(w) == pytest.approx(2.4)
    gradients = tape.gradient(total, [w, v])
    assert [float(one) for one in gradients] == [4.0, pytest.approx(5.4)]


def test_gradients_of_a_tape_can_be_applied() -> None:
    w = Variable([1.0, 2.0])
    with GradientTape() as tape:
        loss = p.sum(w * w)
    SGD(0.25).apply_gradients(zip(tape.gradient(loss, [w]), [w], strict=True))
    assert w.tolist() == [0.5, 1.0]


def test_gradients_can_be_computed_looked_at_and_applied() -> None:
    w, b = Variable(3.0), Variable(1.0)
    optimizer = SGD(0.5)
    loss, gradients = optimizer.compute_gradients(lambda: w * w + stop_gradient(b))
    assert (float(loss), float(gradients[w]), gradients[b]) == (10.0, 6.0, None)
    optimizer.apply_gradients(gradients)
    assert (float(w), float(b)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (lambda w: [w], ArgumentTypeError, "pairs"),
        (lambda w: [(w, [1.0])], ArgumentTypeError, "list stands where a variable should"),
        (lambda w: {"w": [1.0]}, ArgumentTypeError, "str stands where a variable should"),
        (lambda w: [([1.0], w), ([1.0], w)], ArgumentError, "twice"),
    ],
)
def test_what_are_no_gradients_is_refused(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        SGD(0.1).apply_gradients(given(Variable([1.0])))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: SGD(-0.1), ArgumentError, "SGD: learning_rate"),
        (lambda: SGD(float("nan")), ArgumentError, "learning_rate"),
        (lambda: SGD("fast"), ArgumentTypeError, "learning_rate must be a number"),
        (lambda: Adam(beta1=1.0), ArgumentError, "Adam: beta1 must be at least 0 and less than 1"),
        (lambda: Momentum(momentum=True), ArgumentTypeError, "momentum"),
        (lambda: SGD(clip_norm=1.0, clip_value=1.0), ArgumentError, "at most one"),
        (lambda: SGD(clip_norm=-1.0), ArgumentError, "clip_norm"),
        (lambda: SGD(weight_decay=-1.0), ArgumentError, "weight_decay"),
        (lambda: SGD(decay=1.0), ArgumentTypeError, "SGD: unknown arguments: decay"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_schedule_that_goes_wrong_is_refused_before_anything_changes() -> None:
    w = Variable(1.0)
    optimizer = Adam(lambda step: float("nan"))
    with pytest.raises(ArgumentError, match="schedule"):
        optimizer.minimize(lambda: w)
    assert float(w) == 1.0
    assert optimizer.count_of(w) == 0


def test_the_learning_rate_can_be_set() -> None:
    w = Variable(1.0)
    optimizer = SGD(0.5)
    optimizer.learning_rate = 0.25
    optimizer.minimize(lambda: w)
    assert (optimizer.learning_rate, float(w)) == (0.25, 0.75)
    with pytest.raises(ArgumentError):
        optimizer.learning_rate = -1


def test_the_defaults_are_those_of_tensorflow_js() -> None:
    made = {name: repr(make()) for name, make in OPTIMIZERS.items()}
    clip = "clip_norm=None, clip_value=None"
    assert made == {
        "sgd": f"SGD(learning_rate=0.01, weight_decay=0.0, {clip})",
        "momentum": f"Momentum(learning_rate=0.01, weight_decay=0.0, {clip}, momentum=0.9, use_nesterov=False)",
        "adagrad": f"Adagrad(learning_rate=0.001, weight_decay=0.0, {clip}, initial_accumulator_value=0.1, "
        "epsilon=1e-07)",
        "adadelta": f"Adadelta(learning_rate=0.001, weight_decay=0.0, {clip}, rho=0.95, epsilon=1e-07)",
        "rmsprop": f"RMSProp(learning_rate=0.001, weight_decay=0.0, {clip}, decay=0.9, momentum=0.0, epsilon=1e-07, "
        "centered=False)",
        "adam": f"Adam(learning_rate=0.001, weight_decay=0.0, {clip}, beta1=0.9, beta2=0.999, epsilon=1e-07, "
        "amsgrad=False)",
        "adamw": f"AdamW(learning_rate=0.001, weight_decay=0.004, {clip}, beta1=0.9, beta2=0.999, epsilon=1e-07, "
        "amsgrad=False)",
        "adamax": f"Adamax(learning_rate=0.002, weight_decay=0.0, {clip}, beta1=0.9, beta2=0.999, epsilon=1e-07)",
    }
