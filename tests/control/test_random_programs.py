"""Random programs with control flow and gates: at once, traced, and derivatives added to the graph are the same."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.control.modes import agree
from tests.control.programs import expressions, run

POINT = np.array([0.7, -0.4, 1.1])


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(expressions())
def test_a_program_is_the_same_in_every_mode(program):
    def f(x):
        return sg.sum(run(program, [x, sg.sin(x)]))

    # Which level is the innermost is decided where the gate stands: not when derivatives are added afterwards. What is
    # computed again has gates of its own, and a clipped sum is not the sum of what is clipped.
    written = str(program)
    agree(f, POINT, order=1 if "clip" in written else 2, added="innermost" not in written, rtol=1e-9)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(expressions())
def test_gates_are_switched_inside_bodies(program):
    def f(x):
        for name in ("named", "open"):  # to switch a gate that the program does not pass is an error
            sg.stop_gradient(x, name=name)
        return sg.sum(run(program, [x, sg.sin(x)]))

    gradient = sg.grad(f, stop={"named": False, "open": True})
    assert_allclose(sg.trace(gradient)(POINT)(POINT), gradient(sg.tensor(POINT)), rtol=1e-9, atol=1e-11)
