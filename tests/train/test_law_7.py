"""Law 7: an unconnected or frozen variable is bit for bit unchanged, whatever the optimizer, and minimize says why."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import stopgrad.primitives as p
from stopgrad.core.errors import UnconnectedWarning
from stopgrad.gates import frozen, no_gradient, stop_gradient
from stopgrad.train import SGD, Adam, Optimizer, Variable, losses
from tests.train.optimizer_table import ENTRIES

EACH = pytest.mark.parametrize("make", [entry.make for entry in ENTRIES.values()], ids=list(ENTRIES))
Make = Callable[[float], Optimizer]


def snapshot(optimizer: Optimizer, variable: Variable) -> tuple[bytes, int, dict[str, bytes]]:
    """Return all bits of a variable and of what an optimizer keeps for it."""
    slots = {name: slot.tobytes() for name, slot in optimizer.slots_of(variable).items()}
    return variable.numpy().tobytes(), optimizer.count_of(variable), slots


@EACH
def test_case_15_a_step_without_gradient_changes_nothing_at_all(make: Make) -> None:
    w, other = Variable([1.0, 2.0]), Variable([1.0, 2.0])
    optimizer = make(0.1)
    optimizer.minimize(lambda: p.sum(w + other))
    assert w.tolist() != [1.0, 2.0]
    before = snapshot(optimizer, w)
    optimizer.minimize(lambda: p.sum(stop_gradient(w) * other))
    assert snapshot(optimizer, w) == before
    optimizer.apply_gradients([(None, w), ([1.0, 1.0], other)])
    assert snapshot(optimizer, w) == before
    with pytest.warns(UnconnectedWarning):
        optimizer.minimize(lambda: p.sum(stop_gradient(w)))
    assert snapshot(optimizer, w) == before
    assert optimizer.count_of(other) == optimizer.iterations == 3


@EACH
def test_case_15_alone(make: Make) -> None:
    w = Variable([1.0, 2.0])
    optimizer = make(0.1)
    optimizer.apply_gradients([([1.0, 1.0], w)])
    before = snapshot(optimizer, w)
    with pytest.warns(UnconnectedWarning):
        optimizer.apply_gradients([(None, w)])
    assert snapshot(optimizer, w) == before


@pytest.mark.parametrize("name", ["momentum", "momentum decay", "adam", "adamw", "rmsprop centered", "adamax"])
def test_a_zero_gradient_is_another_thing(name: str) -> None:
    w = Variable([1.0, 2.0])
    optimizer = ENTRIES[name].make(0.1)
    optimizer.apply_gradients([([1.0, 1.0], w)])
    before = snapshot(optimizer, w)
    optimizer.apply_gradients([([0.0, 0.0], w)])
    assert snapshot(optimizer, w) != before


@EACH
def test_a_frozen_variable_changes_nothing_at_all(make: Make) -> None:
    w, other = Variable([1.0, 2.0]), Variable([1.0, 2.0])
    optimizer = make(0.1)
    optimizer.minimize(lambda: p.sum(w * other))
    before = snapshot(optimizer, w)
    with frozen(w):
        optimizer.minimize(lambda: p.sum(w * other))
        optimizer.apply_gradients([([1.0, 1.0], w), ([1.0, 1.0], other)])
    assert snapshot(optimizer, w) == before
    assert optimizer.count_of(other) == 3


@EACH
def test_a_variable_that_is_not_trainable_changes_nothing_at_all(make: Make) -> None:
    w, other = Variable([1.0, 2.0], trainable=False), Variable([1.0, 2.0])
    optimizer = make(0.1)
    optimizer.minimize(lambda: p.sum(w * other))
    optimizer.minimize(lambda: p.sum(w * other), [w, other])
    optimizer.apply_gradients([([1.0, 1.0], w), ([1.0, 1.0], other)])
    assert snapshot(optimizer, w) == (np.array([1.0, 2.0]).tobytes(), 0, {})
    assert optimizer.count_of(other) == 3


@pytest.mark.parametrize("block", [frozen, None])
@EACH
def test_after_standing_still_a_variable_is_treated_as_if_no_step_had_been(make: Make, block) -> None:
    """No bias correction, schedule of its own or stale gradient remembers the steps it did not take part in."""
    w, twin, other = Variable([1.0, 2.0]), Variable([1.0, 2.0]), Variable([1.0])
    optimizer, reference = make(0.1), make(0.1)
    for optimizer_, variable in ((optimizer, w), (reference, twin)):
        optimizer_.apply_gradients({variable: [1.0, -0.5]})
    for _ in range(5):
        if block is None:
            optimizer.apply_gradients({w: None, other: [1.0]})
        else:
            with block(w):
                optimizer.apply_gradients({w: [7.0, 7.0], other: [1.0]})
    for optimizer_, variable in ((optimizer, w), (reference, twin)):
        optimizer_.apply_gradients({variable: [0.25, 0.125]})
    assert snapshot(optimizer, w) == snapshot(reference, twin)


@pytest.mark.parametrize("standing", ["unconnected", "frozen", "not trainable"])
def test_it_has_no_share_in_the_clipping_norm(standing: str) -> None:
    w, alone = Variable([0.0]), Variable([0.0])
    still = Variable([0.0], trainable=standing != "not trainable")
    SGD(1.0, clip_norm=1.0).apply_gradients({alone: [3.0]})
    with frozen(still) if standing == "frozen" else frozen():
        SGD(1.0, clip_norm=1.0).apply_gradients({w: [3.0], still: None if standing == "unconnected" else [4.0]})
    assert w.tolist() == alone.tolist() == [-1.0]


@EACH
def test_the_javascript_program(make: Make, rng: np.random.Generator) -> None:
    w = Variable(rng.normal(size=(2, 2)), name="w")
    x, y = np.array([[1.0, 2.0]]), np.array([[0.0, 1.0]])
    before = w.numpy().tobytes()
    optimizer = make(0.01)
    with pytest.warns(UnconnectedWarning) as caught:
        optimizer.minimize(lambda: losses.mean_squared_error(y, stop_gradient(x @ w)))
    assert w.numpy().tobytes() == before
    assert optimizer.iterations == 0
    assert optimizer.slots_of(w) == {}
    (warning,) = caught
    assert "variable 'w' is unconnected" in str(warning.message)
    assert "stop_gradient at " in str(warning.message)
    assert warning.filename == __file__
    optimizer.minimize(lambda: losses.mean_squared_error(y, x @ w))
    assert (w.numpy() != np.frombuffer(before).reshape(2, 2)).all()


@EACH
def test_of_two_branches_the_stopped_one_stays(make: Make) -> None:
    trained, stopped, shared = Variable([1.0, 2.0]), Variable([1.0, 2.0]), Variable([1.0, 2.0])

    def loss():
        return p.sum((trained * shared - stop_gradient(stopped * shared)) ** 2) + p.sum(trained)

    optimizer = make(0.1)
    for _ in range(3):
        optimizer.minimize(loss)
    assert snapshot(optimizer, stopped) == (np.array([1.0, 2.0]).tobytes(), 0, {})
    assert trained.tolist() != [1.0, 2.0]
    assert shared.tolist() != [1.0, 2.0]


def warning_of(loss, variables=None) -> str:
    with pytest.warns(UnconnectedWarning) as caught:
        Adam(0.1).minimize(loss, variables)
    (warning,) = caught
    return str(warning.message)


def test_the_warning_names_every_gate_and_every_variable() -> None:
    a, b = Variable(1.0, name="a"), Variable(1.0, name="b")

    def loss():
        with no_gradient("evaluation"):
            second = b * b
        return stop_gradient(a, name="policy") * second

    text = warning_of(loss)
    assert "Adam.minimize changed nothing: each of the variables 'b', 'a' is unconnected" in text
    assert "stop_gradient 'policy' at " in text
    assert "no_gradient 'evaluation' at " in text
    assert text.count("test_law_7.py:") == 2


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Variable(1.0, name="w", trainable=False), "variable 'w' has trainable=False"),
        (lambda: Variable(1, name="w"), "variable 'w' is int64, which has no derivative"),
    ],
)
def test_the_warning_says_what_else_is_in_the_way(make: Callable[[], Variable], text: str) -> None:
    w = make()
    assert text in warning_of(lambda: w * 1.0)


def test_the_warning_says_that_nothing_was_read() -> None:
    w = Variable(1.0, name="w")
    outside = w.value()
    assert "reads no variable" in warning_of(lambda: outside * 2)
    assert "does not depend on it" in warning_of(lambda: outside * 2, [w])
    with frozen(w):
        assert "inside a frozen block" in warning_of(lambda: w * 2)


def test_the_warning_names_an_operation_without_derivative() -> None:
    w = Variable([1.0, 2.0], name="w")
    assert "argmax, which has no derivative" in warning_of(lambda: p.argmax(w) * 1.0)


def test_a_schedule_does_not_advance_where_nothing_changes() -> None:
    asked: list[int] = []
    w = Variable(1.0)
    optimizer = SGD(lambda step: asked.append(step) or 0.1)
    optimizer.minimize(lambda: w)
    with warnings.catch_warnings(action="ignore"):
        optimizer.minimize(lambda: stop_gradient(w))
    optimizer.minimize(lambda: w)
    assert asked == [0, 1]
