"""`Subject`: one differentiable function under check, as a map of real vectors with its derivatives in both modes.

The user's function on the floating-point leaves of its arguments is one; so is its derivative, in either mode, whose
own derivatives are those of second order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from stopgrad.check.differences import Curve
from stopgrad.check.layout import Layout, Vector
from stopgrad.check.replay import Replay
from stopgrad.core.arrays import PYTHON_SCALARS, carries_derivative
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, GradientCheckError
from stopgrad.core.pytree import TreeDef, flatten, paths, unflatten
from stopgrad.core.record import coerce, leaf
from stopgrad.core.state import Level, state
from stopgrad.core.tensor import Tensor
from stopgrad.transforms.products import jvp, vjp

_EVEN, _UNEVEN = (0.5, 2.0), (0.7, 0.9, 1.1, 1.3)
"""Factors that round as 1 does, and factors that do not."""


def rounding_shown(linear: Callable[[float], Vector]) -> Vector:
    """Return how much rounding shows in what is linear in a factor: it changes with factors that are no powers of two.

    What changes with powers of two as well is not linear, and none of that is rounding.
    """
    here = linear(1.0)
    even, uneven = (
        np.max([np.nan_to_num(np.abs(linear(factor) / factor - here)) for factor in factors], axis=0)
        for factors in (_EVEN, _UNEVEN)
    )
    return np.where(even == 0, uneven, 0.0)


class FlatFunction:
    """A function of pytrees as one of floating-point leaves of some of its arguments, giving those of its result."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int]) -> None:
        self._f = f
        self._args = list(args)
        self._parts: list[tuple[int, TreeDef, list[Any], list[int]]] = []
        self._structure: TreeDef | None = None
        self.names: list[str] = []
        self.leaves: list[Any] = []
        self.result_names: list[str] = []
        for number in argnums:
            self._take_apart(number)

    def _take_apart(self, number: int) -> None:
        leaves, treedef = flatten(self._args[number], number_lists=True)
        places = []
        for place, (one, path) in enumerate(zip(leaves, paths(self._args[number]), strict=True)):
            value = _floating(one)
            if value is not None:
                places.append(place)
                self.names.append(f"argument {number}{path}")
                self.leaves.append(value)
        self._parts.append((number, treedef, leaves, places))

    def __call__(self, *leaves: Any) -> tuple[Tensor, ...]:
        """Return the floating-point leaves of the result."""
        arguments = list(self._args)
        given = iter(leaves)
        for number, treedef, entries, places in self._parts:
            entries = list(entries)
            for place in places:
                entries[place] = next(given)
            arguments[number] = unflatten(treedef, entries)
        result = self._f(*arguments)
        outputs, structure = flatten(result, number_lists=True)
        found = [
            ("result" + path, _as_tensor(output))
            for output, path in zip(outputs, paths(result), strict=True)
            if _floating(output) is not None
        ]
        names = [name for name, _ in found]
        if self._structure is None:
            if not found:
                raise ArgumentError(
                    "check_gradients: the function's result holds nothing that carries a derivative; return "
                    "floating-point tensors"
                )
            self._structure, self.result_names = structure, names
        elif structure != self._structure or names != self.result_names:
            raise GradientCheckError(
                f"check_gradients: the function returned {structure} near by, where at the given point it returned "
                f"{self._structure}; the structure of the result must not depend on values"
            )
        return tuple(tensor for _, tensor in found)


class Subject:
    """A function of raw arrays under check at one point.

    Args:
        apply: takes as many tensors as there are leaves, returns a tuple of tensors.
        inputs: the point: names and values of the leaves.
        output_names: called after the first run, returns a name for each of the tensors returned.
        path: the modes of the derivatives that `apply` itself takes, outermost first.
        seeds: how many of the leaves, the last ones, `apply` is linear in.
        magnitude: size of the function whose derivative `apply` is: of what may have cancelled in it.
    """

    def __init__(
        self,
        apply: Callable[..., tuple[Tensor, ...]],
        inputs: Layout,
        output_names: Callable[[], Sequence[str]],
        path: tuple[str, ...] = (),
        seeds: int = 0,
        magnitude: float = 0.0,
    ) -> None:
        self.apply = apply
        self.inputs = inputs
        self.path = path
        self._seeds, self._magnitude = seeds, magnitude
        self.point = inputs.vector(inputs.leaves)
        self.movable = np.isfinite(self.point)
        self.replay = Replay()
        with self.replay.recorded():
            results = self._run(inputs.leaves)
        self.outputs = Layout(output_names(), [result.value for result in results])
        self.value = self.outputs.vector(results)
        self.comparable = np.isfinite(self.value)
        self._largest = max(magnitude, float(np.max(np.abs(self.value), initial=0.0, where=self.comparable)))
        self.epsilon = max(self.inputs.epsilon, self.outputs.epsilon)

    def _run(self, leaves: Sequence[Any]) -> tuple[Tensor, ...]:
        """Run the function as it runs when it is differentiated: gates only show where something is recorded."""
        with state.differentiate(Level()), np.errstate(all="ignore"):
            return self.apply(*(leaf(value) for value in leaves))

    def evaluate(self, vector: Vector) -> Vector:
        """Return the result, as a vector, at another point, with gates held at what they were at the first."""
        with self.replay.replayed():
            results = self._run(self.inputs.arrays(vector))
        if len(results) != len(self.outputs.names):
            raise GradientCheckError("check_gradients: the number of results must not depend on values")
        return np.where(self.comparable, self.outputs.vector(results, what="near by, the result"), 0.0)

    @cached_property
    def rounding(self) -> Vector:
        """Rounding in a derivative that moving the point need not show: it changes with the size of the seeds."""
        if not self._seeds:
            return np.zeros_like(self.value)
        ends = self.inputs.size - sum(places for places in self.inputs.places[-self._seeds :])
        linear = np.arange(self.inputs.size) >= ends
        shown = rounding_shown(lambda factor: self.evaluate(np.where(linear, self.point * factor, self.point)))
        return shown + self.epsilon * self._magnitude

    def along(self, direction: Vector) -> Curve:
        """Return the function along a direction from the point; entries that are not finite stay where they are."""
        moving = self.movable & (direction != 0)
        step = np.where(moving, direction, 0.0)
        return lambda t: self.evaluate(np.where(moving, self.point + t * step, self.point))

    def forward(self, direction: Vector, leaves: Sequence[Any] | None = None) -> Vector:
        """Return the derivative along a direction, by forward mode; at other leaves than the point's, if given."""
        tangents = self.inputs.arrays(direction)
        derivatives = jvp(self.apply, tuple(leaves or self.inputs.leaves), tuple(tangents))[1]
        return self.outputs.vector(derivatives, what="forward mode's derivative")

    def reverse(self, weights: Vector, leaves: Sequence[Any] | None = None) -> Vector:
        """Return the gradient of the result's entries added up with these weights, by reverse mode."""
        _, pullback = vjp(self.apply, *(leaves or self.inputs.leaves))
        cotangents = pullback(tuple(self.outputs.arrays(weights, dual=True)))
        return self.inputs.vector(cotangents, dual=True, what="reverse mode's derivative")

    def derived(self, mode: str, seed: Vector) -> Subject:
        """Return this subject's own derivative as a subject: a function of the point and of the seed.

        Args:
            mode: "forward" or "reverse".
            seed: the direction for forward mode, the weights for reverse mode.
        """
        apply, count = self.apply, len(self.inputs.leaves)

        def pushed(*leaves: Any) -> Any:
            return jvp(apply, leaves[:count], leaves[count:])[1]

        def pulled(*leaves: Any) -> Any:
            _, pullback = vjp(apply, *leaves[:count])
            return pullback(leaves[count:])

        if mode == "forward":
            seeds, seed_names = self.inputs.arrays(seed), [f"the tangent of {name}" for name in self.inputs.names]
            derivative_names = [f"the derivative of {name}" for name in self.outputs.names]
        else:
            seeds = self.outputs.arrays(seed, dual=True)
            seed_names = [f"the cotangent of {name}" for name in self.outputs.names]
            derivative_names = [f"the gradient by {name}" for name in self.inputs.names]
        inputs = Layout((*self.inputs.names, *seed_names), (*self.inputs.leaves, *seeds))
        apply_derivative = pushed if mode == "forward" else pulled
        return Subject(
            apply_derivative, inputs, lambda: derivative_names, (mode, *self.path), len(seeds), self._largest
        )


def _floating(x: Any) -> Any:
    """Return the raw value of a leaf that carries a derivative, `None` for any other."""
    if type(x) in (float, complex):
        return np.asarray(x)
    try:
        value, _ = coerce(x, "check_gradients")
    except ArgumentTypeError:
        return None
    if type(value) in PYTHON_SCALARS or not carries_derivative(value.dtype):
        return None
    return value


def _as_tensor(x: Any) -> Tensor:
    if type(x) is Tensor:
        return x
    value, node = coerce(x, "check_gradients: the function's result")
    return Tensor(np.asarray(value) if type(value) in PYTHON_SCALARS else value, node)
