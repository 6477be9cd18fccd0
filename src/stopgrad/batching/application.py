"""`Application`: one operation to be applied for many examples at once, as batching rules are handed it.

A rule takes an application, at least one of whose inputs is *mapped* (it has the axis of examples in front), and
returns the operation's result, or a tuple of them, with the axis of examples in front; or a list of entries, each of
which says whether it has it. `one_by_one` is the rule that is right for every operation: each example by itself, and
the results stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Spec
from stopgrad.core.builtin import STACK
from stopgrad.core.operation import Operation
from stopgrad.core.record import bind, bind_many
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.indexing import getitem
from stopgrad.primitives.inputs import to_tensor
from stopgrad.primitives.shape import broadcast_to, reshape


class Entry(NamedTuple):
    """What an output of a graph is for all examples: a tensor (or number), and whether it has their axis in front."""

    value: Any
    mapped: bool


def in_front(entry: Entry, mapped: bool, size: int) -> Tensor:
    """Return an entry's tensor, with the axis of examples if it is to be mapped."""
    tensor = to_tensor(entry.value, "vmap")
    return broadcast_to(tensor, (size, *tensor.shape)) if mapped and not entry.mapped else tensor


class Application(NamedTuple):
    """An operation, its inputs (tensors or Python numbers) with a flag whether each is mapped, and its settings."""

    operation: Operation
    inputs: list[Any]
    mapped: list[bool]
    params: tuple[Any, ...]
    size: int
    """How many examples."""
    outputs: tuple[Spec, ...]
    """What one example gives."""
    single: bool
    """Whether it gives an array, rather than a tuple of them."""
    source: tuple[str, int] | None
    """File and line of the program it comes from."""
    wanted: tuple[bool, ...]
    """Which outputs are used."""

    def rank(self, i: int) -> int:
        """Return how many axes input i has for one example."""
        x = self.inputs[i]
        return 0 if type(x) in PYTHON_SCALARS else len(x.shape) - self.mapped[i]

    def shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of input i for one example."""
        x = self.inputs[i]
        return () if type(x) in PYTHON_SCALARS else tuple(x.shape[self.mapped[i] :])

    def full(self, i: int) -> Tensor:
        """Return input i with the axis of examples, repeated along it if it is not mapped."""
        x = self.inputs[i]
        return x if self.mapped[i] else broadcast_to(x, (self.size, *self.shape(i)))

    def lined_up(self, i: int, rank: int) -> Any:
        """Return input i such that it broadcasts, as it did for one example, against mapped inputs of that rank."""
        x = self.inputs[i]
        missing = rank - self.rank(i)
        if not self.mapped[i] or missing <= 0:
            return x
        return reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))

    def bound(self, inputs: Sequence[Any], params: tuple[Any, ...] | None = None) -> Any:
        """Return the operation's result on these inputs."""
        binder = bind if self.single else bind_many
        return binder(self.operation, inputs, self.params if params is None else params)


Rule = Callable[[Application], Any]
Rules = Mapping[str, Rule]
"""Batching rules by the name of the operation."""


def one_by_one(application: Application) -> Any:
    """Apply the operation to each example by itself and stack what it gives."""
    if application.size == 0:
        empty = tuple(Tensor(np.zeros((0, *spec.shape), spec.dtype)) for spec in application.outputs)
        return empty[0] if application.single else empty
    results = []
    for number in range(application.size):
        inputs = [
            getitem(x, number) if mapped else x
            for x, mapped in zip(application.inputs, application.mapped, strict=True)
        ]
        results.append(application.bound(inputs))
    if application.single:
        return bind(STACK, results, (0,))
    return tuple(bind(STACK, parts, (0,)) for parts in zip(*results, strict=True))


def entry_by_entry(application: Application) -> Any:
    """Apply an elementwise operation: the axes of one example are lined up, as broadcasting counts from the last."""
    rank = max(map(application.rank, range(len(application.inputs))))
    return application.bound([application.lined_up(i, rank) for i in range(len(application.inputs))])
