"""`check_gradients`: compare a function's derivatives, in both modes and to any order, with differences.

For each function under check (the user's, then its derivatives) a few random directions decide; entries are gone
through one by one (`stopgrad.check.locate`) only when a direction fails, to say which of them differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from stopgrad.check.comparison import Comparison
from stopgrad.check.layout import Layout, Vector
from stopgrad.check.probe import Tolerance
from stopgrad.check.replay import undisturbed
from stopgrad.check.subject import FlatFunction, Subject
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientCheckError
from stopgrad.transforms.common import positions

Mode = Literal["forward", "reverse"]
_ORDINALS = {1: "first", 2: "second", 3: "third"}


def check_gradients(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 2,
    modes: Sequence[Mode] = ("forward", "reverse"),
    atol: float | None = None,
    rtol: float | None = None,
    step: float | None = None,
    argnums: int | Sequence[int] | None = None,
    seed: int = 0,
) -> None:
    """Raise unless the derivatives of `f` at `args` agree with differences, and the modes with each other.

    Gates are respected: while the arguments are moved a little, what a gate stops is held at its value at `args`
    (*frozen replay*) and what another gate scales moves by as much, so this is right beside gates, where plain
    differences are not. One gate has no value to compare with: where `clip_gradient` clips, the check fails.

    Args:
        f: function of pytrees that returns a pytree of tensors. It must give the same result each time.
        args: tuple of its positional arguments. Leaves that carry no derivative stay as they are; so do entries that
            are not finite, and entries of the result that are not finite are not checked.
        order: 1 to check derivatives; 2 to check theirs as well, in every mix of the modes; and so on.
        modes: "forward" (`jvp`), "reverse" (`vjp`) or both; with both, ⟨u, Jv⟩ = ⟨Jᵀu, v⟩ is checked, too.
        atol: absolute tolerance; by default only the estimated error of the differences is allowed for.
        rtol: relative tolerance besides; by default 8√ε of the least precise dtype that goes in or out: 1.2e-7 in
            float64, 2.8e-3 in float32.
        step: the largest step, in units of the larger of 1 and the entry; by default good steps are searched for.
        argnums: which positional arguments to differentiate; by default all that can be.
        seed: of the random directions.

    Raises:
        GradientCheckError: a derivative differs; the text says of which entry, and whether a kink (a tie) is near.
        ArgumentError: an order, mode, tolerance or argnums that makes no sense; a result without anything to check.
        ArgumentTypeError: `f` is no function, or `args` no tuple.
        DTypeError: nothing in the arguments carries a derivative.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.check import check_gradients
        >>> check_gradients(lambda x: x * sg.stop_gradient(sg.exp(x)), (1.5,))
    """
    chosen, wanted = _validated(f, args, order, modes, argnums)
    for name, number, least in (("atol", atol, 0.0), ("rtol", rtol, 0.0), ("step", step, math.ulp(0.0))):
        if number is not None and not least <= number < math.inf:
            raise ArgumentError(f"check_gradients: {name} must be a positive number or None, got {number!r}")
    with undisturbed():
        flat = FlatFunction(f, args, chosen)
        if not flat.leaves:
            raise DTypeError(
                "check_gradients: the arguments hold nothing a derivative can be taken for; pass floating-point values"
            )
        subject = Subject(flat, Layout(flat.names, flat.leaves), lambda: flat.result_names)
        tolerance = Tolerance.of(subject.epsilon, atol, rtol, step)
        _check(subject, order, wanted, tolerance, np.random.default_rng(seed))


def _validated(f: Any, args: Any, order: Any, modes: Any, argnums: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    if not callable(f):
        raise ArgumentTypeError(f"check_gradients: takes a function, got a {type(f).__name__}")
    if not isinstance(args, tuple | list):
        raise ArgumentTypeError(
            f"check_gradients: args is a tuple of the function's arguments, got a {type(args).__name__}; for one "
            "argument write (x,)"
        )
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_gradients: order must be 1, 2 or more, got {order!r}")
    wanted = (modes,) if isinstance(modes, str) else tuple(modes)
    if not wanted or any(mode not in ("forward", "reverse") for mode in wanted):
        raise ArgumentError(f"check_gradients: modes must be 'forward', 'reverse' or both, got {modes!r}")
    if argnums is None:
        return tuple(range(len(args))), wanted
    return positions(argnums, len(args), "check_gradients"), wanted


def _check(
    subject: Subject, order: int, modes: tuple[str, ...], tolerance: Tolerance, random: np.random.Generator
) -> None:
    """Check a subject's first derivatives, then its derivatives as subjects of their own, up to the order."""
    directions = _directions(subject, random)
    weights = np.where(subject.comparable, _short_numbers(random, subject.outputs.size), 0.0)
    lines = Comparison(subject, modes, directions, weights, tolerance).lines()
    if lines:
        raise GradientCheckError("\n".join((_title(subject), *(f"  {line}" for line in lines), *_hints(subject))))
    if order > 1:
        for mode in modes:
            seed = directions[0] if mode == "forward" else weights
            _check(subject.derived(mode, seed), order - 1, modes, tolerance, random)


def _directions(subject: Subject, random: np.random.Generator) -> list[Vector]:
    """Return two directions: as large as the larger of 1 and the entry, and as large as the entry."""
    size = np.where(subject.movable, np.abs(subject.point), 0.0)
    scales = (np.maximum(size, 1.0), np.where(size > 0, size, 1.0))
    return [
        np.where(subject.movable, _short_numbers(random, subject.inputs.size) * 2.0 ** np.floor(np.log2(scale)), 0.0)
        for scale in scales
    ]


def _short_numbers(random: np.random.Generator, size: int) -> Vector:
    """Return numbers of size about 1 and either sign with so few digits that steps along them add up exactly."""
    return random.choice((-1.0, 1.0), size) * random.integers(8, 25, size) / 16


def _title(subject: Subject) -> str:
    order = len(subject.path) + 1
    ordinal = _ORDINALS.get(order, f"{order}th")
    of = f", those of {' over '.join(subject.path)} mode," if subject.path else ""
    return f"check_gradients: {ordinal} derivatives{of} do not agree"


def _hints(subject: Subject) -> list[str]:
    if "clip_gradient" in subject.replay.kinds:
        return ["  (there is a clip_gradient gate: where it clips, its derivative is not that of any value)"]
    return []
