"""Blocks of code in which nothing is recorded (`no_gradient`) or some variables stand still (`frozen`).

Both are context managers and decorators, and hold for everything in the block: every mode, every level.
A block belongs to its thread. A generator or coroutine suspended inside a `with` block leaves it open for whatever the
thread does meanwhile; one that is decorated has it open only while it runs.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Generator
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Self

from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.marks import mark_here
from stopgrad.core.pytree import flatten
from stopgrad.core.state import state


class _Block(ContextDecorator):
    """A block that, decorating a generator function or coroutine function, is open whenever that is running."""

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def __call__(self, function: Any) -> Any:
        """Decorate a function."""
        if inspect.isasyncgenfunction(function):
            raise ArgumentTypeError(
                f"{type(self).__name__}: cannot decorate the asynchronous generator {function.__name__}; use a with "
                "block inside it"
            )
        if inspect.iscoroutinefunction(function):
            run = types.coroutine(self._run)

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                return await run(function(*args, **kwargs))

            return coroutine
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from self._run(function(*args, **kwargs)))

            return generator
        return super().__call__(function)

    def _run(self, inner: Any) -> Generator[Any, Any, Any]:
        """Run a generator or coroutine to its end, inside the block whenever it has control."""
        resume: Callable[[Any], Any] = inner.send
        given: Any = None
        while True:
            try:
                with self:
                    item = resume(given)
            except StopIteration as end:
                return end.value
            try:
                given, resume = (yield item), inner.send
            except GeneratorExit:
                with self:
                    inner.close()
                raise
            except BaseException as error:  # whatever is thrown in is for the inner one to handle
                given, resume = error, inner.throw


class no_gradient(_Block):  # noqa: N801 - used like a function
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
        if callable(name):
            raise ArgumentTypeError("no_gradient: as a decorator it is written @no_gradient(), with parentheses")
        self._mark = mark_here("no_gradient", name)

    def __enter__(self) -> Self:
        state.enter(self, lambda _: {"recording": False, "block": self._mark})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.leave(self)


class frozen(_Block):  # noqa: N801 - used like a function
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
        own = {id(variable): self._mark for variable in self._variables}
        state.enter(self, lambda now: {"frozen": {**now.frozen, **own}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.leave(self)
