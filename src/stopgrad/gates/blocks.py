"""Blocks of code in which nothing is recorded (`no_gradient`) or some variables stand still (`frozen`).

Both are context managers and decorators, and hold for everything in the block: every mode, every level.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Self

from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.marks import mark_here
from stopgrad.core.pytree import flatten
from stopgrad.core.state import state


class no_gradient(ContextDecorator):  # noqa: N801 - used like a function
    """Everything computed in the block is a constant: for every tape, transformation and order that is going on.

    A derivative that is itself taken inside the block works, and its results are constants outside.

    Args:
        name: what to call the block in reports and errors.

    Example:
        >>> import stopgrad as sg
        >>> def f(x):
        ...     with sg.no_gradient():
        ...         c = x * x
        ...     return x * c
        >>> float(sg.grad(f)(3.0))
        9.0
    """

    def __init__(self, name: str | None = None) -> None:
        self._mark = mark_here("no_gradient", name)

    def __enter__(self) -> Self:
        state.entered.append((state.recording, state.block))
        state.recording, state.block = False, self._mark
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.recording, state.block = state.entered.pop()


class frozen(ContextDecorator):  # noqa: N801 - used like a function
    """In the block the given variables are constants and keep their values; what flows through them goes on.

    Reading one gives its value without a derivative path to it, assigning to it does nothing, and an optimizer leaves
    it alone. Derivatives with respect to *other* inputs pass through the computation as ever: that is the difference
    from `stop_gradient`, which stops the path.

    Args:
        *variables: variables, or pytrees of them.

    Raises:
        ArgumentTypeError: a leaf that is not a variable.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable([2.0], name="w")
        >>> def loss(x):
        ...     with sg.frozen(w):
        ...         return sg.sum(w * x)
        >>> sg.grad(loss)([5.0]).numpy()
        array([2.])
    """

    def __init__(self, *variables: Any) -> None:
        leaves, _ = flatten(variables)
        for leaf in leaves:
            if not hasattr(leaf, "assign"):
                raise ArgumentTypeError(
                    f"frozen: takes variables, got a {type(leaf).__name__}; to stop the gradient of a value, use "
                    "stop_gradient"
                )
        self._variables = leaves
        self._mark = mark_here("frozen")

    def __enter__(self) -> Self:
        state.entered.append(state.frozen)
        state.frozen = {**state.frozen, **{id(variable): self._mark for variable in self._variables}}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.frozen = state.entered.pop()
