"""Random programs, with gates, loops and branches, mapped over examples: equal to one example after the other.

Derivatives are taken inside the mapped function, of it, and both, and all of it at once and traced. More of them on
demand: `STOPGRAD_EXAMPLES=10000 pytest tests/control/test_vmap_programs.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import stopgrad as sg
from tests.property.programs import CONTROL, GATES, OPERATIONS, Program, programs

MANY = int(os.environ.get("STOPGRAD_EXAMPLES", "40"))
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
SIZE = 3
PASSING = {**GATES, "clip by norm": lambda a, b: sg.clip_gradient(a, norm=0.3) * b}
KINDS = {"gates": programs(OPERATIONS, PASSING), "control": programs(OPERATIONS, PASSING, CONTROL, CONTROL, length=6)}
every_kind = pytest.mark.parametrize("kind", KINDS)


class Case:
    """A program, and arguments for it of which some are mapped."""

    def __init__(self, program: Program, mapped: Sequence[bool]) -> None:
        self.program = program
        count = len(program.shapes)
        self.axes = [0 if mapped[i % len(mapped)] or i == 0 else None for i in range(count)]
        self.argnums = tuple(range(count))
        random = np.random.default_rng(program.seed)
        self.arguments = [self._drawn(random, i) for i in range(count)]
        self.v, self.w = ([self._drawn(random, i) for i in range(count)] for _ in range(2))

    def _drawn(self, random: np.random.Generator, i: int) -> np.ndarray:
        shape = self.program.shapes[i]
        return random.uniform(-1.2, 1.2, shape if self.axes[i] is None else (SIZE, *shape))

    def run(self, *x: Any) -> Any:
        """Return the program's result."""
        return self.program.run(*x, gates=PASSING)

    def loss(self, *x: Any) -> Any:
        """Return one number."""
        return sg.sum(sg.tanh(self.run(*x)) * np.linspace(0.5, 1.5, 6).reshape(2, 3))

    def example(self, arguments: Sequence[Any], number: int) -> list[Any]:
        """Return the arguments of one example."""
        return [one if axis is None else one[number] for one, axis in zip(arguments, self.axes, strict=True)]

    def everything(self, *arguments: Any) -> tuple[Any, ...]:
        """Return values and derivatives of one example, of its arguments and two directions."""
        count = len(self.argnums)
        x, v, w = arguments[:count], arguments[count : 2 * count], arguments[2 * count :]
        gradient = sg.grad(self.loss, self.argnums)
        return (
            self.run(*x),
            *gradient(*x),
            sg.jvp(self.run, x, v)[1],
            *sg.grad(lambda *y: sg.jvp(self.loss, y, v)[1], self.argnums)(*x),
            *sg.jvp(gradient, x, w)[1],
        )


cases = st.lists(st.booleans(), min_size=1, max_size=3)


def agree(ours: Sequence[Any], others: Sequence[Any]) -> None:
    """Compare, one by one."""
    for one, other in zip(ours, others, strict=True):
        assert_allclose(np.asarray(one), np.asarray(other), **CLOSE)


def checked(kind: str, check: Callable[[Case], None]) -> None:
    """Run a check on random cases."""

    @settings(max_examples=MANY)
    @given(KINDS[kind], cases)
    def on(program: Program, mapped: list[bool]) -> None:
        check(Case(program, mapped))

    on()


@every_kind
def test_derivatives_inside_are_those_of_each_example(kind: str) -> None:
    def check(case: Case) -> None:
        given_to = [*case.arguments, *case.v, *case.w]
        mapped = sg.vmap(case.everything, in_axes=tuple(case.axes * 3))
        each = [
            case.everything(*(one for group in (case.arguments, case.v, case.w) for one in case.example(group, number)))
            for number in range(SIZE)
        ]
        expected = [np.stack([one.numpy() for one in ones]) for ones in zip(*each, strict=True)]
        agree(mapped(*given_to), expected)
        agree(sg.trace(mapped)(*given_to)(*given_to), expected)

    checked(kind, check)


@every_kind
def test_derivatives_of_the_mapped_function_are_those_of_a_loop(kind: str) -> None:
    def check(case: Case) -> None:
        weights = np.linspace(0.5, 2.0, SIZE)

        def in_loop(*x: Any) -> Any:
            return sum(case.loss(*case.example(x, number)) * weights[number] for number in range(SIZE))

        def mapped(*x: Any) -> Any:
            return sg.sum(sg.vmap(case.loss, in_axes=tuple(case.axes))(*x) * weights)

        def derivatives(f: Any) -> Any:
            def of(*x: Any) -> tuple[Any, ...]:
                gradient = sg.grad(f, case.argnums)
                return (
                    f(*x),
                    *gradient(*x),
                    sg.jvp(f, x, case.v)[1],
                    *sg.grad(lambda *y: sg.jvp(f, y, case.v)[1], case.argnums)(*x),
                    *sg.jvp(gradient, x, case.w)[1],
                )

            return of

        expected = derivatives(in_loop)(*case.arguments)
        agree(derivatives(mapped)(*case.arguments), expected)
        agree(sg.trace(derivatives(mapped))(*case.arguments)(*case.arguments), expected)

    checked(kind, check)


@every_kind
def test_derivatives_of_mapped_derivatives_are_those_of_a_loop(kind: str) -> None:
    """A derivative by each example's arguments, and by all arguments of what those give together."""

    def check(case: Case) -> None:
        def slope(*x: Any) -> Any:
            parts = sg.grad(case.loss, case.argnums)(*x)
            return sum(sg.sum(sg.sin(one)) for one in parts)

        def in_loop(*x: Any) -> Any:
            return sum(slope(*case.example(x, number)) for number in range(SIZE))

        def mapped(*x: Any) -> Any:
            return sg.sum(sg.vmap(slope, in_axes=tuple(case.axes))(*x))

        expected = (
            *sg.grad(in_loop, case.argnums)(*case.arguments),
            sg.jvp(in_loop, case.arguments, case.v)[1],
        )
        agree((*sg.grad(mapped, case.argnums)(*case.arguments), sg.jvp(mapped, case.arguments, case.v)[1]), expected)

    checked(kind, check)


@every_kind
def test_a_map_in_a_map_is_two_loops(kind: str) -> None:
    def check(case: Case) -> None:
        first, *rest = case.arguments
        outer = np.stack([first, first * 0.5])

        def pair(x: Any, *others: Any) -> tuple[Any, ...]:
            return (case.run(x, *others), *sg.grad(case.loss, case.argnums)(x, *others))

        inner = sg.vmap(pair, in_axes=tuple(case.axes))
        mapped = sg.vmap(lambda x: inner(x, *rest))(outer)
        for number in range(2):
            agree([one[number] for one in mapped], inner(outer[number], *rest))

    checked(kind, check)


@every_kind
def test_the_unconnected_is_that_of_each_example(kind: str) -> None:
    def check(case: Case) -> None:
        def reached(f: Any, *x: Any) -> list[bool]:
            return [one is not None for one in sg.grad(f, case.argnums, unconnected="none")(*x)]

        def mapped(*x: Any) -> Any:
            return sg.sum(sg.vmap(case.loss, in_axes=tuple(case.axes))(*x))

        each = [reached(case.loss, *case.example(case.arguments, number)) for number in range(SIZE)]
        found = reached(mapped, *case.arguments)
        if kind == "gates":
            assert found == each[0]
        else:  # where examples take different branches, what some branch reaches is reached
            assert all(one or not any(ones) for one, ones in zip(found, zip(*each, strict=True), strict=True))

    checked(kind, check)
