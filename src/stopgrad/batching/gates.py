"""Batching rules of gates. The gate stays, and what it remembers: its name, its line, for whom it stops.

The value a gate gives is one of its inputs as it is, so that one gets the axis of examples even where only the mask,
factor or target of the gate differs between them. Clipping by norm takes a norm an example.
"""

from __future__ import annotations

from typing import Any

from stopgrad.batching.application import Application
from stopgrad.gates.again import again


def entrywise_gate(application: Application) -> Any:
    """Rule of stop_where (x, mask), scale_gradient (x, factor), straight_through (x, y): the result is like x."""
    rank = application.rank(0)
    inputs = [application.full(0), application.lined_up(1, rank)]
    if application.operation.name == "straight_through":
        inputs[1] = application.full(1)
    return again(application.operation, inputs, application.params, application.source)


def gate(application: Application) -> Any:
    """A gate of one input that treats every entry alike."""
    return again(application.operation, application.inputs, application.params, application.source)


def clip_by_value(application: Application) -> Any:
    """Rule of clip_gradient_by_value (x; limit): also where x is the same for all, what each passes back is clipped."""
    return again(application.operation, [application.full(0)], application.params, application.source)


def clip_by_norm(application: Application) -> Any:
    """Rule of clip_gradient_by_norm (x; limit, leading axes that tell examples apart)."""
    limit, *leading = application.params
    return again(application.operation, [application.full(0)], (limit, 1 + sum(leading)), application.source)
