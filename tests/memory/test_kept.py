"""Law 4 in bytes: what only a stopped path needs is not kept, and operations keep no more than their rules read.

Counted over the record (`tests.kept`), and once more from outside: by weak references to what was computed, and by what
Python has allocated.
"""

from __future__ import annotations

import dis
import inspect
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest

import stopgrad as sg
from stopgrad.core.operation import EveryInput, operations
from stopgrad.core.tensor import creation_observers
from tests.kept import kept_bytes, kept_values, nodes_behind

COUNT = 1000
BYTES = 8 * COUNT


def sines(x):
    for _ in range(50):
        x = sg.sin(x)
    return x


def recorded(f, *arrays):
    """Return what a function gives while a tape records it."""
    with sg.GradientTape() as tape:
        return f(*(tape.watch(sg.tensor(array)) for array in arrays))


X = np.linspace(0.1, 1.0, COUNT)


# A stopped branch keeps nothing


def test_a_product_with_a_stopped_branch_keeps_one_factor():
    stopped = recorded(lambda x: x * sg.stop_gradient(sines(x)), X)
    assert kept_values(stopped) == COUNT
    assert kept_bytes(stopped) == BYTES
    whole = recorded(lambda x: x * sines(x), X)
    assert BYTES < kept_bytes(whole) <= 52 * BYTES


def block(x):
    with sg.no_gradient():
        return sines(x) * 2.0


@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x: sg.stop_gradient(sines(x)), 0),
        (lambda x: sines(sg.stop_gradient(x)), 0),
        (lambda x: x + sg.stop_gradient(sines(x)), 0),
        (lambda x: x + sg.sin(sg.stop_gradient(sines(x)) * sg.stop_gradient(x)), 0),
        (lambda x: sg.stop_gradient({"a": [sines(x)]})["a"][0] + x, 0),
        (lambda x: x + block(x), 0),
        (lambda x: x * block(x), COUNT),
        (lambda x: x + sg.argmax(sines(x)), 0),
        (lambda x: sg.where(sines(x) > 0.5, x, 0.0), COUNT),  # the condition
        (lambda x: sg.straight_through(sines)(x) + x, 0),
        (lambda x: x + sg.exp(sg.stop_gradient(sines(x), level="innermost")), 0),
        (lambda x: x * sg.stop_gradient(sines(x), name="policy"), COUNT),
    ],
)
def test_what_is_stopped_is_not_kept(f, values):
    assert kept_values(recorded(f, X)) == values


def test_a_variable_frozen_is_kept_only_as_a_factor():
    w = sg.Variable(X, name="w")

    def f(x):
        with sg.frozen(w):
            return sg.sum(sines(w) * x)

    assert kept_values(recorded(f, X)) == COUNT


@pytest.mark.parametrize(
    ("gate", "values"),
    [
        (lambda x: sg.scale_gradient(x, 0.5), 0),
        (sg.reverse_gradient, 0),
        (lambda x: sg.clip_gradient(x, value=1.0), 0),
        (lambda x: sg.clip_gradient(x, norm=1.0), 0),
        (sg.prevent_gradient, 0),
        (lambda x: sg.stop_gradient(x, name="a", open=True), 0),
        (sg.straight_through(sg.sin), 0),
        (lambda x: sg.stop_gradient(x, where=X > 0.5), COUNT),  # the mask
    ],
)
def test_what_gates_keep_themselves(gate, values):
    assert kept_values(recorded(gate, X)) == values


def test_a_stopped_branch_is_freed_when_it_has_been_used():
    made = []

    def remember(tensor):
        if type(tensor.value) is np.ndarray and tensor.value.size == COUNT:
            made.append(weakref.ref(tensor.value))

    creation_observers.append(remember)
    try:
        loss = recorded(lambda x: sg.sum(x * sg.stop_gradient(sines(x))), X)
    finally:
        creation_observers.remove(remember)
    assert len(made) > 50
    assert len({id(one()) for one in made if one() is not None}) == 1  # the factor, kept for the derivative by x
    del loss
    assert not [one for one in made if one() is not None]


def peak(f):
    """Return the most memory Python had allocated at once while f ran, besides what was there before."""
    f()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        f()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_stopped_branch_takes_the_memory_of_a_plain_forward():
    x = np.linspace(0.1, 1.0, 20_000)
    plain = peak(lambda: sines(sg.tensor(x)))
    stopped = peak(lambda: sg.grad(lambda x: sg.sum(sg.stop_gradient(sines(sg.stop_gradient(x))) * x))(x))
    behind = peak(lambda: sg.grad(lambda x: sg.sum(sg.stop_gradient(sines(x)) * x))(x))
    whole = peak(lambda: sg.grad(lambda x: sg.sum(sines(x) * x))(x))
    assert stopped <= plain + 4 * x.nbytes
    assert whole >= 50 * x.nbytes
    assert behind <= whole / 0.9


# Operations keep what their rules read, and no more


@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x, y: x + y, 0),
        (lambda x, y: x - 2.0 * y, 0),
        (lambda x, y: x * y, 2 * COUNT),
        (lambda x, y: x * y.numpy(), COUNT),
        (lambda x, y: sg.exp(x), COUNT),
        (lambda x, y: sg.tanh(x), COUNT),
        (lambda x, y: sg.exp(sg.exp(x)), 2 * COUNT),
        (lambda x, y: sg.sin(x) + sg.cos(x), COUNT),  # both keep the same input
        (lambda x, y: sg.exp(x) * y, 2 * COUNT),  # what exp keeps is the factor
        (lambda x, y: sg.sum(x) + sg.mean(y), 0),
        (lambda x, y: sg.reshape(x, (10, 100)), 0),
        (lambda x, y: sg.transpose(sg.reshape(x, (10, 100))), 0),
        (lambda x, y: sg.concat([x, y]), 0),
        (lambda x, y: sg.stack([x, y]), 0),
        (lambda x, y: x[::2], 0),
        (lambda x, y: sg.flip(x), 0),
        (lambda x, y: sg.cumulative_sum(x), 0),
        (lambda x, y: sg.broadcast_to(x, (3, COUNT)), 0),
        (lambda x, y: sg.astype(x, np.float32), 0),
        (lambda x, y: sg.softmax(x), COUNT),
        (lambda x, y: sg.sign(x) + sg.floor(y), 0),
    ],
)
def test_what_operations_keep(f, values):
    assert kept_values(recorded(f, X, X + 1)) == values


def test_only_what_a_live_input_needs_is_kept():
    constant = np.ones((100, 1000))
    y = recorded(lambda x: sg.tensor(constant) @ x, X)
    assert kept_values(y) == constant.size
    y = recorded(lambda x: sg.tensor(X) * x, X)
    assert kept_values(y) == COUNT
    y = recorded(lambda x: sg.tensor(X) / x, X)
    assert kept_values(y) <= 2 * COUNT


def test_views_do_not_keep_more_than_their_base():
    def f(x):
        rows = sg.reshape(x, (10, 100))
        return rows[:5] * sg.transpose(sg.reshape(x, (100, 10)))[:5, :]

    assert kept_bytes(recorded(f, X)) == BYTES


RULES = [
    pytest.param(operation, rule, id=f"{name}-{direction}-{i}")
    for name, operation in operations.items()
    for direction, rules in (("vjp", operation.vjps), ("jvp", operation.jvps))
    if not isinstance(rules, EveryInput)
    for i, rule in enumerate(rules)
]


@pytest.mark.parametrize(("operation", "rule"), RULES)
def test_rules_read_what_they_have_kept(operation, rule):
    """A rule's parameter without an underscore keeps an array alive; it must be there for something."""
    function = rule.func if isinstance(rule, partial) else rule
    arity = len(operation.vjps)
    names = list(inspect.signature(function).parameters)[2 : arity + 3]
    read = {one.argval for one in dis.get_instructions(function) if one.opname.startswith(("LOAD_", "MAKE_CELL"))}
    assert [name for name in names if not name.startswith("_") and name not in read] == []


def test_a_record_without_a_tape_ends_with_the_derivative():
    made = []

    def f(x):
        y = sg.exp(x)
        made.append(weakref.ref(y.value))
        return sg.sum(y)

    sg.grad(f)(X)
    assert made[0]() is None
    assert not list(nodes_behind(sg.grad(f)(X)))
