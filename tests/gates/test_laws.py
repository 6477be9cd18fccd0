"""The laws of the stop gate, and of the gates through which something passes."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from tests.kept import kept_values

AWKWARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.5])
AWKWARD.view(np.uint64)[4] |= 0xBEEF  # a NaN with a payload
GATES = {
    "stop": sg.stop_gradient,
    "stop where": lambda x: sg.stop_gradient(x, where=np.arange(7) % 2 == 0),
    "open": lambda x: sg.stop_gradient(x, name="a", open=True),
    "innermost": lambda x: sg.stop_gradient(x, level="innermost"),
    "scale": lambda x: sg.scale_gradient(x, 0.3),
    "reverse": sg.reverse_gradient,
    "clip by value": lambda x: sg.clip_gradient(x, value=1.0),
    "clip by norm": lambda x: sg.clip_gradient(x, norm=1.0),
    "prevent": sg.prevent_gradient,
    "straight through": sg.straight_through(lambda x: x),
}


# Law 1: the identity forward.


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_a_gate_is_the_identity_bit_for_bit(gate, recorded, dtype):
    x = sg.tensor(AWKWARD.astype(dtype))
    with sg.GradientTape() as tape:
        if recorded:
            tape.watch(x)
        y = gate(x)
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert y.numpy().tobytes() == x.numpy().tobytes()


def test_a_stop_makes_no_copy():
    x = sg.tensor(np.ones(3))
    assert sg.stop_gradient(x).value is x.value


def test_leaves_without_derivative_pass_untouched():
    array = np.ones(2)
    tree = {"n": 3, "b": True, "none": None, "s": "text", "array": array, "t": (1.5, [sg.tensor(2)])}
    out = sg.stop_gradient(tree)
    assert out["n"] == 3
    assert out["b"] is True
    assert out["none"] is None
    assert out["s"] == "text"
    assert out["array"] is array
    assert out["t"][0] == 1.5
    assert int(out["t"][1][0]) == 2


# Law 2: the path is absent.


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_behind_a_stop_can_leak(bad):
    def f(x):
        return sg.sum(x * x + sg.stop_gradient(x * bad - x / 0.0))

    x = np.array([1.0, 2.0])
    assert sg.grad(lambda x: sg.sum(sg.stop_gradient(x * bad)), unconnected="none")(x) is None
    gradient = sg.grad(f)(x)
    assert_array_equal(gradient, 2 * x)
    assert_array_equal(sg.hessian(f)(x), 2 * np.eye(2))
    assert float(sg.jvp(f, (x,), (x,))[1]) == 10.0


# Law 3: it commutes and is idempotent.


def test_a_stop_is_idempotent_and_leaves_other_uses_alone():
    def f(x):
        return sg.sum(sg.stop_gradient(sg.stop_gradient(x)) * x**2)

    assert_allclose(sg.grad(f)([1.0, 3.0]), [2.0, 18.0])


def test_a_stop_inside_any_nesting_of_modes():
    def f(x):
        return sg.sum(x**3 * sg.stop_gradient(x))

    x, one = np.array([2.0]), np.array([1.0])
    expected = 6 * 2.0 * 2.0  # d²/dx² c·x³ = 6·x·c
    d = {
        "reverse": lambda g: lambda y: sg.vjp(g, y)[1](np.ones_like(g(y).numpy()))[0],
        "forward": lambda g: lambda y: sg.jvp(g, (y,), (one,))[1],
    }
    for outer in d.values():
        for inner in d.values():
            assert_allclose(np.ravel(outer(inner(f))(x)), [expected])


# Law 4 and 5 are tested in test_cases (25, 26) and above.


def test_a_stopped_branch_keeps_nothing():
    with sg.GradientTape() as tape:
        x = tape.watch(sg.tensor(np.ones(100)))
        y = sg.stop_gradient(sg.exp(sg.sin(x) * x))
        z = sg.stop_gradient(x)
        z = sg.exp(z * z)
    assert kept_values(y) == 0
    assert kept_values(z) == 0


# Law 6: unconnected.


def test_policies_for_what_is_unconnected():
    def f(x, y):
        return sg.sum(x * sg.stop_gradient(y, name="target"))

    x, y = np.ones(2, np.float32), np.ones((), np.float32)
    zero = sg.grad(f, 1)(x, y)
    assert (zero.shape, zero.dtype, float(zero)) == ((), np.float32, 0.0)
    assert sg.grad(f, 1, unconnected="none")(x, y) is None
    with pytest.raises(sg.errors.UnconnectedError) as caught:
        sg.grad(f, 1, unconnected="error")(x, y)
    line = inspect.getsourcelines(f)[1] + 1
    assert f"stop_gradient 'target' at {__file__}:{line}" in str(caught.value)
    assert "argument 1" in str(caught.value)
    with pytest.raises(sg.errors.UnconnectedError, match="does not depend on it"):
        sg.grad(lambda x: sg.tensor(1.0), unconnected="error")(1.0)
    with pytest.raises(sg.errors.UnconnectedError, match="argmax, which has no derivative"):
        sg.grad(lambda x: sg.argmax(x) * 1.0, unconnected="error")([1.0, 2.0])
    with pytest.raises(sg.errors.ArgumentError, match="'zero', 'none' or 'error'"):
        sg.grad(f, unconnected="nan")


def test_the_tape_gives_none_and_takes_the_same_policies():
    x = sg.tensor(2.0)
    with sg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = sg.stop_gradient(x) * 2
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(y, x, unconnected="zero")) == 0.0
    with pytest.raises(sg.errors.UnconnectedError, match="stop_gradient at"):
        tape.gradient(y, x, unconnected="error")


def test_the_block_is_named_too():
    def f(x):
        with sg.no_gradient("running statistics"):
            return x * 2

    with pytest.raises(sg.errors.UnconnectedError, match="no_gradient 'running statistics' at"):
        sg.grad(f, unconnected="error")(1.0)


# where=


def test_where_over_a_tree_and_by_broadcasting():
    def f(tree):
        a, b = sg.stop_gradient(tree, where=(np.array([True, False]), False))
        return sg.sum(a) + sg.sum(b)

    ga, gb = sg.grad(f)((np.ones((3, 2)), np.ones(2)))
    assert_array_equal(ga, [[0.0, 1.0]] * 3)
    assert_array_equal(gb, [1.0, 1.0])


def test_where_with_a_level():
    def f(x, y):
        return sg.sum(sg.stop_gradient(x * y, where=np.array([True, False]), level="innermost"))

    y, x = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    inner = lambda y: sg.grad(lambda x: f(x, y))(x)
    assert_array_equal(inner(y), [0.0, 3.0])
    assert_array_equal(sg.jacobian(inner)(y), [[0.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("where", "error"),
    [(np.ones((2, 3), bool), sg.errors.ShapeError), (np.array([0, 1]), sg.errors.ArgumentError)],
)
def test_a_bad_mask_is_refused(where, error):
    with pytest.raises(error, match="where"):
        sg.stop_gradient(sg.tensor([1.0, 2.0]), where=where)


# Names, switched for one gradient call.


def test_one_program_serves_two_losses():
    def f(x):
        return sg.stop_gradient(x, name="policy") * x + sg.stop_gradient(x**2, name="value", open=True)

    assert float(sg.grad(f)(3.0)) == 3.0 + 6.0
    assert float(sg.grad(f, stop="value")(3.0)) == 3.0
    assert float(sg.grad(f, stop={"policy": False, "value": True})(3.0)) == 6.0
    assert float(sg.jvp(f, (3.0,), (1.0,), stop={"policy": False})[1]) == 12.0
    assert float(sg.grad(sg.grad(f, stop={"policy": False}))(3.0)) == 3.0
    with sg.GradientTape(persistent=True) as tape:
        x = tape.watch(sg.tensor(3.0))
        assert float(sg.gradients(f(x), x, stop_gradients="value")) == 3.0
    with sg.GradientTape(stop={"policy": False}) as tape:
        x = tape.watch(sg.tensor(3.0))
        y = f(x)
    assert float(tape.gradient(y, x)) == 12.0


def test_a_misspelt_name_is_told():
    def f(x):
        return sg.stop_gradient(x, name="policy") * x

    for call in (
        lambda: sg.grad(f, stop={"polcy": False})(3.0),
        lambda: sg.vjp(f, 3.0, stop="polcy"),
        lambda: sg.jvp(f, (3.0,), (1.0,), stop="polcy"),
        lambda: sg.jacobian(f, stop="polcy")(3.0),
        lambda: sg.train.variable_gradients(lambda: f(sg.Variable(3.0)), stop="polcy"),
    ):
        with pytest.raises(sg.errors.ArgumentError, match=r"no gate named 'polcy' was passed; .*: 'policy'"):
            call()
    with pytest.raises(sg.errors.ArgumentError, match="'polcy'"), sg.GradientTape(stop="polcy") as tape:
        f(tape.watch(sg.tensor(3.0)))
    traced = sg.trace(lambda x: sg.stop_gradient(x, name="policy", open=True) * x)(3.0)
    assert float(sg.grad(traced, stop="policy")(3.0)) == 3.0


# The gates through which something passes: what, in both modes, at the second order.


@pytest.mark.parametrize("factor", [0.5, -2.0, 0.0])
def test_scaled(factor):
    def f(x):
        return sg.scale_gradient(x, factor) ** 3

    assert float(sg.grad(f)(2.0)) == factor * 12
    assert float(sg.jvp(f, (2.0,), (1.0,))[1]) == factor * 12
    assert float(sg.grad(sg.grad(f))(2.0)) == factor**2 * 12


def test_scaled_by_a_tensor_that_gets_no_gradient():
    dx, dfactor = sg.grads(lambda x, factor: sg.scale_gradient(x, factor) * 3)(2.0, 0.25)
    assert (float(dx), float(dfactor)) == (0.75, 0.0)
    with pytest.raises(sg.errors.ShapeError, match="factor"):
        sg.scale_gradient(sg.tensor(1.0), np.ones(3))


def test_clipped():
    f = lambda x: sg.sum(sg.clip_gradient(x, value=1.0) * np.array([3.0, 0.5, -4.0]))
    assert_array_equal(sg.grad(f)(np.ones(3)), [1.0, 0.5, -1.0])
    g = lambda x: sg.sum(sg.clip_gradient(x, norm=1.0) * np.array([3.0, 4.0]))
    assert_allclose(sg.grad(g)(np.ones(2)), [0.6, 0.8], rtol=1e-15)
    h = lambda x: sg.sum(sg.clip_gradient(x, norm=10.0) * np.array([3.0, 4.0]))
    assert_array_equal(sg.grad(h)(np.ones(2)), [3.0, 4.0])
    assert_array_equal(sg.grad(lambda x: sg.sum(sg.clip_gradient(x, norm=1.0) * 0.0))(np.ones(2)), [0.0, 0.0])
    huge = lambda x: sg.sum(sg.clip_gradient(x, norm=1.0) * 1e300)
    assert_allclose(sg.grad(huge)(np.ones(4)), [0.5] * 4, rtol=1e-15)


@pytest.mark.parametrize("bounds", [{}, {"value": 1.0, "norm": 1.0}, {"value": -1.0}, {"norm": np.nan}, {"value": "1"}])
def test_a_bad_bound_is_refused(bounds):
    with pytest.raises(sg.errors.ArgumentError, match="clip_gradient"):
        sg.clip_gradient(sg.tensor(1.0), **bounds)


def test_prevented_in_both_modes_but_only_on_a_live_path():
    f = lambda x: sg.prevent_gradient(x, "not this one") ** 2
    with pytest.raises(sg.errors.GradientPreventedError, match="not this one"):
        sg.grad(f)(1.0)
    with pytest.raises(sg.errors.GradientPreventedError, match=r"test_laws\.py"):
        sg.jvp(f, (1.0,), (1.0,))
    assert float(sg.grad(lambda x, y: f(x) * y, 1)(3.0, 1.0)) == 9.0


def test_straight_through_says_that_it_cut_off_what_its_function_reads():
    def loss(codebook):
        return sg.sum(sg.straight_through(lambda x: codebook)(sg.tensor([1.0, 2.0])))

    with pytest.raises(sg.errors.UnconnectedError, match=r"straight_through at .*test_laws\.py:\d+"):
        sg.grad(loss, unconnected="error")([3.0, 4.0])


def test_straight_through_keeps_the_shape():
    with pytest.raises(sg.errors.ShapeError, match="keep the shape"):
        sg.straight_through(sg.sum)(sg.tensor([1.0, 2.0]))


# Blocks.


def test_a_block_as_decorator_nested_and_after_an_error():
    @sg.no_gradient()
    def constant(x):
        return x * 2

    assert float(sg.grad(lambda x: constant(x) * x)(3.0)) == 6.0

    def f(x):
        with pytest.raises(RuntimeError), sg.no_gradient(), sg.no_gradient():
            raise RuntimeError
        return x * x

    assert float(sg.grad(f)(3.0)) == 6.0


def test_a_derivative_inside_a_block_works_and_is_a_constant_outside():
    def f(x):
        with sg.no_gradient():
            slope = sg.grad(lambda y: y**2)(x)
        return slope * x

    assert float(sg.grad(f)(3.0)) == 6.0


def test_frozen_stops_the_variable_not_the_path():
    w = sg.Variable(np.array([2.0, 3.0]), name="w")

    def loss(x):
        with sg.frozen(w):
            return sg.sum(w * x**2)

    x = sg.tensor([1.0, 2.0])
    with sg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        inside, outside = loss(x), sg.sum(w * x**2)
    assert_array_equal(tape.gradient(inside, x), [4.0, 12.0])
    assert tape.gradient(inside, w) is None
    assert_array_equal(tape.gradient(outside, w), [1.0, 4.0])
    with pytest.raises(sg.errors.UnconnectedError, match="frozen at"):
        tape.gradient(inside, w, unconnected="error")
    with pytest.raises(sg.errors.ArgumentTypeError, match="stop_gradient"):
        sg.frozen(x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: sg.stop_gradient(sg.tensor(1.0), name=3), "stop_gradient: name must be a string, got 3"),
        (lambda: sg.no_gradient(3), "no_gradient: name must be a string, got 3"),
        (lambda: sg.prevent_gradient(1.0, 3), "prevent_gradient: message must be a string, got 3"),
        (lambda: sg.straight_through(3), r"takes a function, got 3; write straight_through\(f\)\(x\)"),
        (lambda: sg.grad(sg.sum, stop=3)(1.0), "grad: stop= takes names of gates"),
    ],
)
def test_a_bad_argument_is_named_where_it_is_given(call, text):
    with pytest.raises(sg.errors.ArgumentTypeError, match=text):
        call()


def test_threads_do_not_see_each_other():
    seen = []

    def work():
        seen.append(float(sg.grad(lambda x: x * x)(3.0)))

    with sg.no_gradient():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [6.0]
