"""Batching rules of branches, whose bodies run for all examples by the same sweep; and what those of loops share.

Where examples take different branches all branches are computed, and each example takes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.batching.application import Application, Entry, Rules, in_front
from stopgrad.batching.sweep import mapped_among, run_batched
from stopgrad.control.branches import cond, switch
from stopgrad.control.rematerialise import checkpoint
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import Body


class BatchedBody:
    """A body to be run for all examples.

    Args:
        body: the program.
        size: how many examples.
        rules: the batching rules to run it by.
    """

    def __init__(self, body: Body, size: int, rules: Rules) -> None:
        self.body = body
        self.size = size
        self._rules = rules

    def mapped(self, inputs: Sequence[bool]) -> list[bool]:
        """Return which outputs may differ between examples if these inputs do."""
        given = [one for one, flag in zip(self.body.inputs, inputs, strict=True) if flag]
        return mapped_among(self.body.outputs, given)

    def run(self, values: Sequence[Any], inputs: Sequence[bool], outputs: Sequence[bool]) -> list[Tensor]:
        """Return the outputs for all examples; `inputs` and `outputs` say which have the axis of examples."""
        given = {one: Entry(*pair) for one, *pair in zip(self.body.inputs, values, inputs, strict=True)}
        entries = run_batched(self.body.outputs, given, self.size, self._rules)
        return [in_front(entry, flag, self.size) for entry, flag in zip(entries, outputs, strict=True)]


def each_its_own(mask: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return for each example the new tensor where its mask holds, else the old one."""
    return primitives.where(primitives.reshape(mask, (*mask.shape, *(1,) * (new.ndim - 1))), new, old)


def switch_rule(application: Application, rules: Rules) -> list[Entry]:
    """Rule of switch (selector, *operands; branches)."""
    selector, *operands = application.inputs
    by_example, *mapped = application.mapped
    branches = [BatchedBody(one, application.size, rules) for one in application.params[0]]
    flags = [by_example or any(some) for some in zip(*(one.mapped(mapped) for one in branches), strict=True)]

    def runs(branch: BatchedBody) -> Callable[..., list[Tensor]]:
        return lambda *values: branch.run(values, mapped, flags)

    functions = [runs(one) for one in branches]
    if by_example:
        number = primitives.clip(primitives.astype(selector, np.int64), 0, len(branches) - 1)
        results = functions[0](*operands)
        for k, function in enumerate(functions[1:], 1):
            results = [each_its_own(number == k, *pair) for pair in zip(function(*operands), results, strict=True)]
    elif "bool" in str(selector.dtype):
        results = cond(selector, functions[-1], functions[0], *operands)
    else:
        results = switch(selector, functions, *operands)
    return [Entry(*pair) for pair in zip(results, flags, strict=True)]


def checkpoint_rule(application: Application, rules: Rules) -> list[Entry]:
    """Rule of checkpoint (*operands; bodies)."""
    body = BatchedBody(application.params[0][0], application.size, rules)
    flags = body.mapped(application.mapped)
    results = checkpoint(lambda *values: body.run(values, application.mapped, flags))(*application.inputs)
    return [Entry(*pair) for pair in zip(results, flags, strict=True)]
