"""The checker checked: it finds rules that are wrong by 0.05 %, says where, and passes what is right.

The wrong rules are operations made here by hand and not registered. Each stands for a kind of mistake: wrong in one
mode only, at one entry only, or only when it is differentiated once more.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientCheckError,
    GradientPreventedError,
)
from stopgrad.core.operation import Operation
from stopgrad.core.record import bind1, run
from stopgrad.core.state import state

WRONG = 1.0005
X = np.array([0.4, -1.3, 0.9, 2.1, -0.2])


def sine(vjp_factor=1.0, jvp_factor=1.0):
    """A sine whose derivatives are multiplied by these."""

    def vjp(xp, t, x, _out):
        return t * xp.cos(x) * vjp_factor

    def jvp(xp, t, x, _out):
        return t * xp.cos(x) * jvp_factor

    operation = Operation("sine", lambda xp, x: xp.sin(x), vjps=(vjp,), jvps=(jvp,), spec=None)
    return lambda x: bind1(operation, x)


def only(place, shape, factor=WRONG):
    factors = np.ones(shape)
    factors[place] = factor
    return factors


# What is wrong is found


@pytest.mark.parametrize("size", [1, 5, 400])
@pytest.mark.parametrize("result", ["vector", "number"])
@pytest.mark.parametrize(
    ("vjp", "jvp", "modes", "named"),
    [
        (WRONG, WRONG, ("forward", "reverse"), ("forward", "reverse")),
        (WRONG, WRONG, ("forward",), ("forward",)),
        (WRONG, WRONG, ("reverse",), ("reverse",)),
        (WRONG, 1.0, ("forward", "reverse"), ("reverse",)),
        (WRONG, 1.0, ("reverse",), ("reverse",)),
        (1.0, WRONG, ("forward", "reverse"), ("forward",)),
        (1.0, WRONG, "forward", ("forward",)),
    ],
)
def test_a_rule_wrong_everywhere(vjp, jvp, modes, named, size, result):
    wrong = sine(vjp, jvp)
    x = np.random.default_rng(1).normal(size=size)
    f = wrong if result == "vector" else lambda x: sg.sum(wrong(x))
    with pytest.raises(GradientCheckError, match=r"first derivatives do not agree") as caught:
        check_gradients(f, (x,), modes=modes)
    for mode in ("forward", "reverse"):
        assert (f"{mode} gives" in str(caught.value)) == (mode in named)
    assert "(relative 5.0e-4)" in str(caught.value)


@pytest.mark.parametrize("modes", [("forward", "reverse"), ("forward",), ("reverse",)])
@pytest.mark.parametrize(("shape", "place"), [((5,), (3,)), ((3, 4), (2, 1)), ((40, 20), (17, 4)), ((), ())])
@pytest.mark.parametrize("result", ["vector", "number"])
def test_a_rule_wrong_at_one_entry(modes, shape, place, result):
    factor = only(place, shape)
    wrong = sine(factor, factor)
    tree = {"w": np.random.default_rng(2).uniform(-1.4, 1.4, size=shape)}

    def f(tree):
        y = wrong(tree["w"])
        return y if result == "vector" else sg.sum(y)

    with pytest.raises(GradientCheckError) as caught:
        check_gradients(f, (tree,), modes=modes)
    entry = f"[{', '.join(map(str, place))}]" if shape else ""
    assert f"argument 0['w']{entry}" in str(caught.value)
    if result == "vector" and np.prod(shape, dtype=int) > 1:
        assert f"(of result{entry})" in str(caught.value) or len(tree["w"]) > 20


def test_what_the_message_looks_like():
    wrong = sine(vjp_factor=only((2, 3), (3, 5)))
    with pytest.raises(GradientCheckError) as caught:
        check_gradients(lambda tree: sg.sum(wrong(tree["w"])), ({"w": np.full((3, 5), 0.5)},))
    assert re.fullmatch(
        r"check_gradients: first derivatives do not agree\n"
        r"  argument 0\['w'\]\[2, 3\]: reverse gives 0\.87802135\d+, differences 0\.87758256\d+ \(relative 5\.0e-4\)",
        str(caught.value),
    )


def test_small_gradients_beside_large_ones_count():
    scales = np.array([1e4, 1.0, 1e-3])
    wrong = sine(vjp_factor=only((2,), (3,)))
    with pytest.raises(GradientCheckError, match=r"argument 0\[2\]: reverse gives"):
        check_gradients(lambda x: sg.sum(scales * wrong(x)), (np.array([0.3, 0.4, 0.5]),))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_rule_whose_own_derivative_is_wrong(mode):
    cosine = Operation(
        "cosine",
        lambda xp, x: xp.cos(x),
        vjps=(lambda xp, t, x, _out: -t * xp.sin(x) * WRONG,),
        jvps=(lambda xp, t, x, _out: -t * xp.sin(x) * WRONG,),
        spec=None,
    )
    rules = (lambda xp, t, x, _out: t * run(cosine, x),)
    operation = Operation("sine", lambda xp, x: xp.sin(x), vjps=rules, jvps=rules, spec=None)
    check_gradients(lambda x: bind1(operation, x), (X,), order=1)
    with pytest.raises(GradientCheckError, match=rf"second derivatives, those of {mode} mode, do not agree"):
        check_gradients(lambda x: bind1(operation, x), (X,), modes=mode)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("forgotten", ["input", "derivative"])
def test_a_rule_that_loses_what_is_to_be_differentiated_again(mode, forgotten):
    def rule(xp, t, x, _out):
        if forgotten == "input":
            x = x.numpy() if isinstance(x, sg.Tensor) else x
        else:
            t = t.numpy() if isinstance(t, sg.Tensor) else t
        return t * xp.cos(x)

    operation = Operation("sine", lambda xp, x: xp.sin(x), vjps=(rule,), jvps=(rule,), spec=None)
    check_gradients(lambda x: bind1(operation, x), (X,), order=1)
    with pytest.raises(GradientCheckError, match="second derivatives"):
        check_gradients(lambda x: bind1(operation, x), (X,), modes=mode)


def test_values_taken_out_of_the_tensor_lose_their_gradient():
    with pytest.raises(GradientCheckError, match=r"argument 0\[\d\]"):
        check_gradients(lambda x: sg.sum(x * np.array(x.numpy())), (X,))


def test_a_derivative_of_another_shape_or_dtype():
    def rule(xp, t, _x, _out):
        return t * np.ones((2, 1))

    operation = Operation("same", lambda xp, x: x, vjps=(lambda xp, t, _x, _out: t,), jvps=(rule,), spec=None)
    with pytest.raises((GradientCheckError, ValueError)):
        check_gradients(lambda x: bind1(operation, x), (X,), order=1, modes="forward")


@pytest.mark.parametrize("part", ["real", "imaginary"])
def test_complex_rules(part):
    factor = {"real": 1.0 + 5e-4, "imaginary": 1.0 + 5e-4j}[part]

    def square(factor):
        rules = (lambda xp, t, x, _out: 2 * t * x * factor,)
        operation = Operation("square", lambda xp, x: x * x, vjps=rules, jvps=rules, spec=None)
        return lambda x: bind1(operation, x)

    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    check_gradients(square(1.0), (z,))
    with pytest.raises(GradientCheckError, match=r"argument 0\[\d\] \((real|imaginary) part\)"):
        check_gradients(square(factor), (z,))


# Kinks


@pytest.mark.parametrize(
    ("f", "x", "left", "right"),
    [
        (lambda x: sg.sum(sg.where(x > 0, x, 0.0)), [0.0, 1.0], "0", "1"),
        (lambda x: sg.sum(sg.where(x > 0, x, -x)) + x[0], [1e-13, 1.0], "0", "2"),
        (lambda x: sg.sum(sg.where(x >= 2, 5 * x, 10.0)), [1.0, 2.0], "0", "5"),
    ],
)
def test_a_kink_is_called_one(f, x, left, right):
    with pytest.raises(GradientCheckError, match=f"a kink .tie. near here: slope {left} to the left, {right} to the"):
        check_gradients(f, (x,))


def test_beside_a_kink_smaller_steps_are_taken():
    for distance in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        check_gradients(lambda x: sg.where(x > 0, sg.exp(x), 1 - x), (np.array([distance, -distance]),))


def test_where_differences_say_nothing_there_is_an_error():
    with pytest.raises(GradientCheckError, match="do not settle"):
        check_gradients(lambda x: sg.where(x >= 0, x + 1, x * 0), (np.array([0.0]),), order=1)
    with pytest.raises(GradientCheckError, match="not finite near by"):
        check_gradients(lambda x: sg.log(sg.where(x == 0, x + 1, x * 0 - 1)), (np.array([0.0]),), order=1)


# Gates

GATED = {
    "stop": lambda x: x * sg.stop_gradient(sg.exp(x)),
    "stop everything": lambda x: sg.stop_gradient(sg.exp(x)),
    "stop some entries": lambda x: x * sg.stop_gradient(sg.exp(x), where=[True, False, True, True, False]),
    "stop a tree": lambda x: sg.stop_gradient({"a": x, "b": (x * x, None)})["b"][0] * x,
    "stop the innermost level": lambda x: sg.sum(sg.sin(x) * sg.stop_gradient(x * x, level="innermost")),
    "open gate": lambda x: x * sg.stop_gradient(sg.exp(x), name="policy", open=True),
    "named gate": lambda x: x * sg.stop_gradient(sg.exp(x), name="policy"),
    "scale": lambda x: sg.exp(sg.scale_gradient(sg.sin(x), 0.3)),
    "scale by entry": lambda x: sg.exp(sg.scale_gradient(x, np.array([0.3, 0.0, -2.0, 1.0, 5.0]))),
    "reverse": lambda x: sg.exp(sg.reverse_gradient(sg.sin(x), 0.3)),
    "straight through": lambda x: sg.exp(sg.straight_through(sg.round)(3 * sg.sin(x))),
    "straight through something smooth": lambda x: sg.exp(sg.straight_through(sg.tanh)(3 * sg.sin(x))),
    "clip by value, inactive": lambda x: sg.exp(sg.clip_gradient(sg.sin(x), value=1e3)),
    "clip by norm, inactive": lambda x: sg.exp(sg.clip_gradient(sg.sin(x), norm=1e3)),
    "gates in gates": lambda x: sg.scale_gradient(
        sg.exp(sg.reverse_gradient(x * sg.stop_gradient(sg.sin(sg.scale_gradient(x, 2.0))), 0.5)), 3.0
    ),
}


@pytest.mark.parametrize("name", GATED)
def test_gates(name):
    check_gradients(GATED[name], (X,))


@pytest.mark.parametrize("name", ["stop", "scale", "straight through", "gates in gates"])
def test_gates_to_the_third_order(name):
    check_gradients(GATED[name], (X,), order=3)


def test_block_without_gradient():
    def f(x):
        with sg.no_gradient():
            c = sg.exp(x) * 2 + x
        return c * x

    check_gradients(f, (X,))


def test_a_derivative_taken_where_nothing_is_recorded():
    def f(x):
        with sg.no_gradient():
            slope = sg.grad(lambda y: sg.sum(y**3))(x)
        return slope * x

    check_gradients(f, (X,))


def test_a_derivative_inside_the_function():
    def f(x):
        slope = sg.grad(lambda y: sg.sum(y**3 * sg.stop_gradient(sg.sin(y))))(x)
        return slope * sg.stop_gradient(slope) + x

    check_gradients(f, (X,))


def in_a_loop(gate):
    def body(x, step):
        with sg.no_gradient():
            factor = sg.sin(x) * step
        return sg.sin(gate(x) * X) + 0.3 * x * factor, x

    return lambda x: sg.scan(body, x, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    "f",
    [
        in_a_loop(sg.stop_gradient),
        in_a_loop(lambda x: sg.scale_gradient(x, 0.3)),
        in_a_loop(sg.straight_through(sg.round)),
        lambda x: sg.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, x * sg.stop_gradient(c[1])), (0, x))[1],
        lambda x: sg.cond(x[0] > 0, lambda x: x * sg.stop_gradient(sg.exp(x)), lambda x: x, x),
        sg.vmap(lambda x: x * sg.stop_gradient(sg.exp(x))),
        sg.checkpoint(GATED["stop"]),
        sg.checkpoint(GATED["gates in gates"]),
        sg.checkpoint(lambda x: sg.exp(x) * sg.checkpoint(GATED["straight through"])(sg.sin(x))),
    ],
    ids=[
        "stop in scan",
        "scale in scan",
        "round in scan",
        "while_loop",
        "cond",
        "vmap",
        "checkpoint",
        "gates",
        "twice",
    ],
)
def test_gates_in_loops_branches_and_what_is_run_again(f):
    check_gradients(f, (X,))


def test_clip_gradient_where_it_clips_says_so():
    with pytest.raises(GradientCheckError, match="there is a clip_gradient gate"):
        check_gradients(lambda x: sg.exp(sg.clip_gradient(x, value=1e-3)), (X,))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 0.9995])
def test_a_rule_that_is_not_linear_is_found(share):
    """As where a gradient is clipped to a little less than what comes."""
    limits = []

    def vjp(xp, t, _x, _out):
        limits.append(share * np.abs(np.asarray(t)).min())
        return xp.clip(t, -limits[0], limits[0])

    clipped = Operation("clipped", lambda xp, x: x, vjps=(vjp,), jvps=(lambda xp, t, _x, _out: t,), spec=None)
    with pytest.raises(GradientCheckError, match="reverse gives"):
        check_gradients(lambda x: bind1(clipped, x), (np.array([2.0]),), order=1)


def test_prevented_gradients_stay_prevented():
    with pytest.raises(GradientPreventedError, match="not this way"):
        check_gradients(lambda x: sg.prevent_gradient(x, "not this way") * x, (X,))


def test_a_stop_that_leaks_in_reverse_is_found():
    leaky = Operation(
        "leaky stop",
        lambda xp, x: x,
        vjps=(lambda xp, t, _x, _out: t,),
        jvps=(lambda xp, t, _x, _out: t,),
        spec=None,
    )

    def f(x):
        stopped = sg.stop_gradient(sg.exp(x))
        return x * stopped + 0 * bind1(leaky, x), x * (stopped + bind1(leaky, sg.exp(x)) - sg.stop_gradient(sg.exp(x)))

    check_gradients(f, (X,))  # the same values, without a stop: right, too


def test_other_gates_near_by_than_at_the_point():
    def f(x):
        if float(x[0]) != X[0]:
            x = sg.scale_gradient(x, 1.0)
        return x * sg.stop_gradient(x)

    with pytest.raises(
        GradientCheckError, match=r"is scale_gradient near by, where at the given point it was stop_grad"
    ):
        check_gradients(f, (X,))


@pytest.mark.parametrize("more", [True, False])
def test_another_number_of_gates_near_by(more):
    def f(x):
        stopped = sg.stop_gradient(x)
        if (float(x[0]) != X[0]) == more:
            stopped = sg.stop_gradient(x)
        return x * stopped

    with pytest.raises(GradientCheckError, match="which gates it meets must not depend on the values"):
        check_gradients(f, (X,))


def test_a_gated_value_of_another_shape_near_by():
    def f(x):
        return x * sg.sum(sg.stop_gradient(x if float(x[0]) == X[0] else x[:2]))

    with pytest.raises(GradientCheckError, match="shapes must not depend on values"):
        check_gradients(f, (X,))


def test_a_result_of_another_structure_near_by():
    with pytest.raises(GradientCheckError, match="structure of the result must not depend on values"):
        check_gradients(lambda x: x if float(x[0]) == X[0] else (x, x), (X,))


# What is right passes, whatever the rounding

RIGHT = {
    "cancellation": lambda x: (x + 1e8) - 1e8,
    "more cancellation": lambda x: (x + 1e12) - 1e12,
    "large constant": lambda x: 1e8 + 0 * x,
    "large offset": lambda x: 1e8 + sg.sin(x),
    "fast": lambda x: sg.sin(1e3 * x),
    "very fast": lambda x: sg.sin(1e6 * x),
    "steep": lambda x: sg.exp(20 * x),
    "flat": lambda x: sg.tanh(10 * x),
    "tiny": lambda x: 1e-200 * sg.sin(x),
    "huge": lambda x: 1e200 * sg.sin(x),
    "differences of large numbers": lambda x: sg.exp(x + 15) - sg.exp(x + 15) * (1 - 1e-9),
    "normalised": lambda x: (x - sg.mean(x)) / sg.sqrt(sg.mean((x - sg.mean(x)) ** 2)),
    "constant": lambda x: x * 0 + 1.0,
    "linear": lambda x: 3 * x,
}


BEYOND_SINGLE = ("cancellation", "more cancellation", "tiny", "huge", "very fast")


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounding_does_not_matter(name, seed):
    check_gradients(RIGHT[name], (X,), seed=seed)


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e-3, 1.0, 1e3, 1e8, 1e30])
@pytest.mark.parametrize("f", [sg.square, sg.sqrt, sg.log, lambda x: 1 / x, lambda x: x**-1.5], ids=range(5))
def test_any_magnitude(f, scale):
    check_gradients(f, (np.array([1.0, 0.3, 1.7]) * scale,))


def test_magnitudes_side_by_side():
    check_gradients(sg.log, (np.array([1e-7, 1.0, 1e5]),))
    check_gradients(lambda x: sg.sum(sg.sqrt(x)), (np.array([1e-7, 1.0, 1e5]),))


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in BEYOND_SINGLE])
def test_single_precision(name):
    check_gradients(RIGHT[name], (X.astype(np.float32),))
    check_gradients(lambda x: sg.sum(sg.astype(RIGHT[name](x), np.float64)), (X.astype(np.float32),))


@pytest.mark.parametrize("modes", [("forward",), ("reverse",)])
def test_single_precision_finds_five_per_cent(modes):
    factor = np.float32(1.05)
    with pytest.raises(GradientCheckError):
        check_gradients(sine(factor, factor), (X.astype(np.float32),), modes=modes)


def test_many_entries():
    x = np.random.default_rng(0).normal(size=(50, 60))
    check_gradients(lambda x: sg.sum(sg.tanh(x) * x), (x,))


def test_the_edge_of_a_domain():
    check_gradients(sg.sqrt, (np.array([1e-6, 1e-4, 2.0]),))
    check_gradients(sg.arccos, (np.array([1 - 1e-5, 0.0, -1 + 1e-4]),))


def test_a_function_that_raises_outside_its_domain():
    def strict_log(x):
        if (x.numpy() <= 0).any():
            raise ValueError("not positive")
        return sg.log(x)

    check_gradients(strict_log, (np.array([1e-3, 1.0]),))
    with pytest.raises(ValueError, match="not positive"):
        check_gradients(strict_log, (np.array([-1e-3, 1.0]),))


# Arguments


def test_trees_and_leaves_without_derivative():
    def f(tree, count, *, unused=None):
        assert count == 3
        assert tree["name"] == "net"
        assert tree["mask"].dtype == bool
        y = sg.where(tree["mask"], tree["w"] * count, tree["pair"][1])
        return {"out": y, "number": 7, "text": "x", "pair": (None, sg.sum(y))}

    tree = {"name": "net", "w": X, "mask": X > 0, "pair": (None, 2.0), "int": np.arange(3)}
    check_gradients(f, (tree, 3))


def test_argnums():
    def f(x, y):
        return sg.sum(x * (y.numpy() if isinstance(y, sg.Tensor) else y))  # loses what goes to y

    check_gradients(f, (X, 2 * X), argnums=0)
    check_gradients(f, (X, 2 * X), argnums=(0,))
    with pytest.raises(GradientCheckError, match=r"argument 1\[\d\]"):
        check_gradients(f, (X, 2 * X), argnums=-1)


def test_lists_of_numbers_are_arrays():
    check_gradients(lambda x: sg.sum(x**3), ([1.0, 2.0],))


def test_empty_arguments_and_results():
    check_gradients(lambda x: x * x, (np.zeros((0, 3)),))
    check_gradients(lambda x: sg.sum(x * x), (np.zeros((0,)),))
    check_gradients(lambda x: x[:0], (X,))


def test_entries_that_are_not_finite_stay_where_they_are():
    x = np.array([1.0, np.inf, 2.0, np.nan])
    check_gradients(lambda x: sg.where(sg.isfinite(x), x**2, 1.0), (x,))
    check_gradients(lambda x: sg.stop_gradient(x, where=[False, True, True, True]) * 2, (x,))


def test_variables_of_the_call_are_left_alone():
    x = X.copy()
    check_gradients(lambda x: sg.sum(x**2), (x,))
    assert (x == X).all()


@pytest.mark.parametrize("step", [1e-2, 1e-4])
def test_given_tolerances_and_step(step):
    check_gradients(sg.sin, (X,), order=1, step=step)
    wrong = sine(WRONG, WRONG)
    check_gradients(wrong, (X,), order=1, rtol=1e-3)
    check_gradients(wrong, (X,), order=1, atol=1e-2)
    with pytest.raises(GradientCheckError):
        check_gradients(wrong, (X,), order=1, rtol=1e-4, step=step)


def test_a_step_far_too_large_is_no_proof():
    with pytest.raises(GradientCheckError, match="do not settle"):
        check_gradients(lambda x: sg.sin(50 * x), (X,), order=1, step=1.0)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "text"),
    [
        ((3.0, (X,)), {}, ArgumentTypeError, "takes a function, got a float"),
        ((sg.sin, X), {}, ArgumentTypeError, "write (x,)"),
        ((sg.sin, (X,)), {"order": 0}, ArgumentError, "order must be 1, 2 or more, got 0"),
        ((sg.sin, (X,)), {"order": True}, ArgumentError, "order must be"),
        ((sg.sin, (X,)), {"modes": "backward"}, ArgumentError, "modes must be"),
        ((sg.sin, (X,)), {"modes": ()}, ArgumentError, "modes must be"),
        ((sg.sin, (X,)), {"rtol": -1.0}, ArgumentError, "rtol must be a positive number"),
        ((sg.sin, (X,)), {"step": 0.0}, ArgumentError, "step must be a positive number"),
        ((sg.sin, (X,)), {"argnums": 1}, ArgumentError, "argnums 1 is out of range"),
        ((sg.sin, (np.arange(3),)), {}, DTypeError, "nothing a derivative can be taken for"),
        ((lambda x: None, (X,)), {}, ArgumentError, "holds nothing that carries a derivative"),
        ((lambda x: sg.argmax(x), (X,)), {}, ArgumentError, "holds nothing that carries a derivative"),
    ],
)
def test_mistakes_in_the_call(arguments, settings, error, text):
    with pytest.raises(error, match=re.escape(text)):
        check_gradients(*arguments, **settings)


# What goes on around it


def test_state_is_restored_after_success_and_failure():
    def fails(x):
        if state.gate_observer is not None and state.levels:
            raise RuntimeError("in the middle")
        return x

    before = (state.recording, state.levels, state.block, state.gate_observer, state.sweeping_for)
    check_gradients(GATED["gates in gates"], (X,))
    for f in (sine(WRONG, WRONG), fails):
        with pytest.raises((GradientCheckError, RuntimeError)):
            check_gradients(f, (X,))
    assert (state.recording, state.levels, state.block, state.gate_observer, state.sweeping_for) == before


def test_it_can_be_called_where_something_is_recorded_or_stopped():
    def checked(x):
        check_gradients(GATED["stop"], (x,))
        return sg.sum(x**2)

    np.testing.assert_allclose(sg.grad(checked)(X).numpy(), 2 * X)
    with sg.no_gradient():
        check_gradients(GATED["stop"], (X,))
        with pytest.raises(GradientCheckError):
            check_gradients(sine(WRONG, WRONG), (X,))


def test_a_check_in_a_checked_function():
    def f(x):
        check_gradients(GATED["stop"], (x,), order=1)
        return x * sg.stop_gradient(x)

    check_gradients(f, (X[:2],), order=1)
