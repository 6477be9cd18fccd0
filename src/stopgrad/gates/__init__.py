"""Gates: the identity forward, and a say in what passes backward."""

from stopgrad.gates.blocks import frozen, no_gradient
from stopgrad.gates.passing import (
    clip_gradient,
    prevent_gradient,
    reverse_gradient,
    scale_gradient,
    straight_through,
)
from stopgrad.gates.stop import stop_gradient

__all__ = [
    "clip_gradient",
    "frozen",
    "no_gradient",
    "prevent_gradient",
    "reverse_gradient",
    "scale_gradient",
    "stop_gradient",
    "straight_through",
]
