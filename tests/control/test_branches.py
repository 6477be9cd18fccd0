"""`cond` and `switch`: the branch chosen, its derivatives, and what the branches must agree on."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
from tests.control.modes import agree, types_in

POINT = np.array([0.5, -1.5, 2.0])


def chosen(x):
    return sg.sum(
        sg.cond(x[0] > 0, lambda y: {"a": y**2, "b": (sg.sin(y),)}, lambda y: {"a": y, "b": (y * x,)}, x)["b"][0]
    )


def two_of_three(x):
    branches = [sg.sin, lambda y: sg.stop_gradient(y) * x, lambda y: sg.scale_gradient(y, 0.5) ** 3]
    return sg.sum(sg.switch(sg.argmax(x), branches, x) * sg.switch(sg.argmin(x), branches, x * 2))


def inside_one_another(x):
    def inner(y):
        return sg.cond(sg.sum(y) > 1.0, lambda: y * x, lambda: sg.stop_gradient(y) + x)

    return sg.sum(sg.cond(x[1] < 0, inner, lambda y: -y, sg.exp(x)))


@pytest.mark.parametrize("f", [chosen, two_of_three, inside_one_another], ids=lambda f: f.__name__)
@pytest.mark.parametrize("point", [POINT, -POINT])
def test_programs(f, point):
    agree(f, point)


def test_one_graph_serves_all_branches():
    def f(x):
        return sg.cond(x > 1.0, lambda: sg.stop_gradient(x) * x, lambda: sg.cond(x > 0, lambda: -x, lambda: x**3))

    gradient = sg.trace(sg.grad(f))(0.0)
    assert [float(gradient(x)) for x in (2.0, 0.5, -2.0)] == [2.0, -1.0, 12.0]


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64])
def test_an_index_out_of_range_is_the_nearest(kind):
    def f(i):
        return sg.switch(i, [lambda: 10.0, lambda: 11.0, lambda: 12.0])

    traced = sg.trace(f)(kind(0))
    for index in (0, 1, 2, 7):
        assert float(f(kind(index))) == float(traced(kind(index))) == 10.0 + min(index, 2)
    assert float(f(-3)) == float(sg.trace(f)(0)(-3)) == 10.0


def test_a_known_condition_takes_its_branch_while_tracing():
    graph = sg.trace(lambda x: sg.cond(True, lambda: x * 2, lambda: "never"))(1.0).graph
    assert types_in(graph) == ["multiply", "placeholder"]


def test_only_the_branch_that_is_chosen_runs():
    def f(x):
        return sg.cond(x > 0, lambda: sg.linalg.inv(sg.stack([[x, 0.0], [0.0, x]]))[0, 0], lambda: x)

    assert float(sg.trace(f)(1.0)(0.0)) == 0.0
    with pytest.raises(sg.errors.LinearAlgebraError):
        sg.trace(lambda x: f(x) if False else sg.linalg.inv(sg.stack([[x, 0.0], [0.0, x]]))[0, 0])(1.0)(0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: sg.cond(x, lambda: x, lambda: x), "pred must be one boolean, got float64"),
        (lambda x: sg.cond(sg.stack([x, x]) > 0, lambda: x, lambda: x), r"one boolean, got bool\[2\]"),
        (lambda x: sg.switch(x, [lambda: x]), "index must be one integer"),
        (lambda x: sg.switch(0, []), "at least one branch"),
    ],
)
def test_errors_at_once_and_traced(call, message):
    with pytest.raises(sg.errors.StopgradError, match=message):
        call(sg.tensor(1.0))
    with pytest.raises(sg.errors.StopgradError, match=message):
        sg.trace(call)(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: sg.cond(x > 0, lambda: x, lambda: (x, x)), r"false_fn returns has the structure .*true_fn returns"),
        (
            lambda x: sg.cond(x > 0, lambda: {"a": x}, lambda: {"a": sg.stack([x, x])}),
            r"\['a'\] is float64\[2\], but .*64\[\]",
        ),
        (lambda x: sg.cond(x > 0, lambda: 1, lambda: 1.0), "float64.*int64"),
        (lambda x: sg.switch(x > 0.0, [lambda: x]), "one integer, got bool"),
        (
            lambda x: sg.switch(x.astype(int), [lambda: x, lambda: x, lambda: x > 0]),
            "branch 0 returns is float64.*branch 2",
        ),
    ],
)
def test_branches_must_agree_when_traced(call, message):
    with pytest.raises(sg.errors.StopgradError, match=message):
        sg.trace(call)(1.0)
