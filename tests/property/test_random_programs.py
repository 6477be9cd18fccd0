"""Random programs of operations and gates: whatever way their derivatives are asked for, the answers agree.

The oracle for values is frozen replay (`check_gradients`); the rest compares modes, nestings, tapes and policies.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from numpy.testing import assert_allclose

import stopgrad as sg
from stopgrad.check import check_gradients
from stopgrad.core.errors import UnconnectedError
from tests.property.programs import GATES, OPERATIONS, VALUES, Instruction, Program, programs

gated = programs(OPERATIONS, GATES)
smooth = programs(OPERATIONS)
mostly_gates = programs(GATES, dict(list(OPERATIONS.items())[:5]), length=6)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def paired(program, vectors, directions):
    return sum(float(np.sum(np.asarray(v) * d)) for v, d in zip(vectors, directions, strict=True))


@settings(max_examples=150)
@given(gated)
def test_derivatives_are_those_of_the_frozen_program(program):
    check_gradients(program.run, program.inputs())


@settings(max_examples=100)
@given(mostly_gates)
def test_derivatives_through_many_gates_are_those_of_the_frozen_program(program):
    check_gradients(program.run, program.inputs())


@settings(max_examples=150)
@given(gated)
def test_forward_reverse_tape_and_jacobian_agree(program):
    inputs, directions = program.inputs(), program.directions(0)
    gradient = sg.grads(program.loss)(*inputs)
    forward = sg.jvp(program.loss, inputs, directions)[1]
    assert_allclose(float(forward), paired(program, gradient, directions), **TIGHT)
    tensors = [sg.tensor(one) for one in inputs]
    with sg.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        loss = program.loss(*tensors)
    taped = tape.gradient(loss, tensors, unconnected="zero")
    for one, other in zip(taped, gradient, strict=True):
        assert_allclose(one.numpy(), other.numpy(), rtol=1e-14, atol=1e-15)
    for mode in ("forward", "reverse"):
        jacobian = sg.jacobian(program.run, tuple(range(len(inputs))), mode=mode)(*inputs)
        pushed = sg.jvp(program.run, inputs, directions)[1].numpy()
        total = sum(
            np.tensordot(one.numpy(), d, axes=d.ndim) if d.ndim else one.numpy() * d
            for one, d in zip(jacobian, directions, strict=True)
        )
        assert_allclose(total, pushed, **TIGHT)


@settings(max_examples=150)
@given(gated)
def test_the_four_ways_to_nest_two_modes_agree(program):
    """wᵀ·H·v with the inner derivative along v and the outer along w; beside gates H need not be symmetric."""
    inputs, v, w = program.inputs(), program.directions(1), program.directions(2)
    argnums = tuple(range(len(inputs)))

    def inner_reverse(*x):
        gradient = sg.grad(program.loss, argnums)(*x)
        return sum(sg.sum(one * d) for one, d in zip(gradient, v, strict=True))

    def inner_forward(*x):
        return sg.jvp(program.loss, x, v)[1]

    answers = []
    for inner in (inner_reverse, inner_forward):
        answers.append(float(sg.jvp(inner, inputs, w)[1]))
        answers.append(paired(program, sg.grad(inner, argnums)(*inputs), w))
    assert_allclose(answers, answers[0], **TIGHT)


@settings(max_examples=100)
@given(smooth)
def test_without_gates_the_hessian_is_symmetric_and_the_third_order_agrees(program):
    inputs, u, v, w = program.inputs(), *(program.directions(i) for i in (1, 2, 3))

    def along(f, direction):
        return lambda *x: sg.jvp(f, x, direction)[1]

    def back(f, direction):
        def product(*x):
            gradient = sg.grads(f)(*x)
            return sum(sg.sum(one * d) for one, d in zip(gradient, direction, strict=True))

        return product

    assert_allclose(
        float(along(along(program.loss, v), w)(*inputs)), float(back(back(program.loss, w), v)(*inputs)), **TIGHT
    )
    third = [
        float(nest(inner(middle(program.loss, u), v), w)(*inputs))
        for nest, inner, middle in (
            (along, along, along),
            (back, along, back),
            (along, back, back),
            (back, back, along),
        )
    ]
    assert_allclose(third, third[0], rtol=1e-8, atol=1e-9)


@settings(max_examples=150)
@given(gated)
def test_nested_derivatives_are_not_confused(program):
    """d/dx [∂f/∂y at y = x] moves both: it is the derivative of ∂f/∂y by x plus that by y, along the same direction."""
    shape = (2, 3)
    x = np.random.default_rng(program.seed).uniform(-1.0, 1.0, shape)
    v, w = (np.random.default_rng(program.seed + i).uniform(-1.0, 1.0, shape) for i in (1, 2))
    others = program.inputs()[2:]

    def f(x, y):
        return program.loss(x, y, *others)

    def slope(x, y):
        return sg.sum(sg.grad(lambda y: f(x, y))(y) * v)

    def slope_forward(x, y):
        return sg.jvp(lambda y: f(x, y), (y,), (v,))[1]

    expected = [float(sg.jvp(slope, (x, x), (w, 0 * w))[1]) + float(sg.jvp(slope, (x, x), (0 * w, w))[1])]
    for inner in (slope, slope_forward):
        expected.append(float(sg.jvp(lambda x, inner=inner: inner(x, x), (x,), (w,))[1]))
        expected.append(float(sg.sum(sg.grad(lambda x, inner=inner: inner(x, x))(x) * w)))
    assert_allclose(expected, expected[0], **TIGHT)


@settings(max_examples=150)
@given(gated)
def test_a_derivative_ignores_what_another_level_records(program):
    """∂f/∂y of a constant y inside a derivative by x is the same as outside of it."""
    x, y = (np.random.default_rng(program.seed + i).uniform(-1.0, 1.0, (2, 3)) for i in (1, 2))
    others = program.inputs()[2:]
    innermost = any(one.name == "stop innermost" for one in program.instructions)

    def slope(x):
        return sg.grad(lambda y: program.loss(x, y, *others))(y)

    inside = sg.value_and_grad(lambda x: sg.sum(slope(x) ** 2))(x)[0]
    assert_allclose(float(inside), float(sg.sum(slope(x) ** 2)), **TIGHT)
    assert innermost or float(sg.sum(sg.grad(lambda z: sg.sum(slope(x)) + 0 * sg.sum(z))(x))) == 0.0


@settings(max_examples=150)
@given(mostly_gates)
@example(Program((Instruction("stop", 1, 0),), ((), (3,)), 0))
@example(Program((Instruction("no gradient", 1, 1), Instruction("tanh", 0, 0)), ((), (3,)), 0))
def test_the_policies_for_the_unconnected_agree(program):
    inputs = program.inputs()
    argnums = tuple(range(len(inputs)))
    zeros = sg.grad(program.loss, argnums, unconnected="zero")(*inputs)
    nones = sg.grad(program.loss, argnums, unconnected="none")(*inputs)
    for number, (zero, none, x) in enumerate(zip(zeros, nones, inputs, strict=True)):
        alone = sg.jvp(
            lambda one, number=number: program.loss(*inputs[:number], one, *inputs[number + 1 :]),
            (x,),
            (np.ones_like(x),),
            unconnected="none",
        )[1]
        assert zero.shape == x.shape
        assert zero.dtype == x.dtype
        assert (none is None) == (alone is None)
        if none is None:
            assert not zero.numpy().any()
            with pytest.raises(UnconnectedError, match="unconnected"):
                sg.grad(program.loss, number, unconnected="error")(*inputs)
        else:
            assert_allclose(none.numpy(), zero.numpy(), rtol=0, atol=0)
            assert_allclose(float(alone), float(np.sum(zero.numpy())), **TIGHT)
            sg.grad(program.loss, number, unconnected="error")(*inputs)


@settings(max_examples=100)
@given(programs(OPERATIONS, {"stop named": None, "open named": None}))
def test_gates_switched_by_name_are_as_if_they_were_written_otherwise(program):
    inputs = program.inputs()

    def with_gates(replace):
        changed = [one._replace(name=replace.get(one.name, one.name)) for one in program.instructions]
        return program._replace(instructions=tuple(changed)).loss

    def loss(*x):
        for name in ("named", "other"):  # to switch a gate that the program does not pass is an error
            sg.stop_gradient(x[0], name=name)
        return program.loss(*x)

    always = {"open named": "stop", "stop named": "stop"}
    never = {"open named": "multiply", "stop named": "multiply"}
    for stop, replace in (
        ({"named": False}, never),
        ({"named": False, "other": True}, {"stop named": "multiply", "open named": "stop"}),
        ({"other": True}, always),
        (None, {"stop named": "stop", "open named": "multiply"}),
    ):
        switched = sg.grads(loss, stop=stop)(*inputs)
        written = sg.grads(with_gates(replace))(*inputs)
        for one, other in zip(switched, written, strict=True):
            assert_allclose(one.numpy(), other.numpy(), **TIGHT)


@settings(max_examples=100)
@given(gated)
def test_gates_change_no_value(program):
    """Values with gates are, bit for bit, those without, also while derivatives are taken."""
    inputs = program.inputs()
    expected = program.run(*inputs, gates=VALUES).numpy().tobytes()
    assert program.run(*inputs).numpy().tobytes() == expected
    assert sg.vjp(program.run, *inputs)[0].numpy().tobytes() == expected
    assert sg.jvp(program.run, inputs, inputs)[0].numpy().tobytes() == expected
