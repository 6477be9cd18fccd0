"""Decorators that turn the kernel of an elementwise operation into the public function users call.

    @unary(np.exp, lambda xp, t, _x, out: t * out)
    def exp(xp, x):
        \"\"\"Exponential, eˣ.\"\"\"
        return xp.exp(x)

makes the operation "exp" (see `stopgrad.core.operation` for rules and what they keep) and a function `exp(x)` that
takes anything tensor-like and returns a `Tensor`; the operation is its attribute `operation`. What every such function
has in common is added to its docstring here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from stopgrad.core.operation import Operation, Rule, elementwise, nondifferentiable
from stopgrad.core.record import bind1, bind2
from stopgrad.core.tensor import Tensor

Kernel = Callable[..., Any]

_UNARY_DOC = """

Args:
    x: tensor, array or number, of any shape.

Returns:
    Tensor of the shape of x, in the dtype NumPy gives.
"""
_BINARY_DOC = """

Args:
    {0}: tensor, array or number.
    {1}: likewise; the shapes broadcast together.

Returns:
    Tensor of the broadcast shape, in the dtype NumPy promotes to.

Raises:
    ShapeError: the shapes do not broadcast.
"""


class Unary(Protocol):
    """A public elementwise function of one tensor."""

    operation: Operation

    def __call__(self, x: Any, /) -> Tensor:
        """Apply the operation."""


class Binary(Protocol):
    """A public elementwise function of two tensors."""

    operation: Operation

    def __call__(self, a: Any, b: Any, /) -> Tensor:
        """Apply the operation."""


def unary(numpy_kernel: Rule | None, scale: Rule | None, *, masks: bool = False) -> Callable[[Kernel], Unary]:
    """Make an elementwise function of one input.

    Args:
        numpy_kernel: NumPy's ufunc for it, the fast way; `None` to run the kernel itself on NumPy.
        scale: the rule t · ∂out/∂x, or `None` if the result carries no derivative.
        masks: whether the rule's zeros mean "not selected" (see `stopgrad.sweeps.reverse`).
    """

    def define(kernel: Kernel) -> Unary:
        name = kernel.__name__
        if scale is None:
            operation = nondifferentiable(name, kernel, numpy_kernel=numpy_kernel)
        else:
            operation = elementwise(name, kernel, scale, numpy_kernel=numpy_kernel, masks=masks)

        def function(x: Any, /) -> Tensor:
            return bind1(operation, x)

        return _dress(function, operation, kernel, _UNARY_DOC)

    return define


def binary(numpy_kernel: Rule | None, *scales: Rule, masks: bool = False) -> Callable[[Kernel], Binary]:
    """Make an elementwise function of two inputs; `scales` are the rules for either, none if it has no derivative."""

    def define(kernel: Kernel) -> Binary:
        name = kernel.__name__
        if not scales:
            operation = nondifferentiable(name, kernel, numpy_kernel=numpy_kernel)
        else:
            operation = elementwise(name, kernel, *scales, numpy_kernel=numpy_kernel, masks=masks)

        def function(a: Any, b: Any, /) -> Tensor:
            return bind2(operation, a, b)

        return _dress(function, operation, kernel, _BINARY_DOC)

    return define


def _dress(function: Any, operation: Operation, kernel: Kernel, common: str) -> Any:
    """Give the function its kernel's name, documentation and parameters (less `xp`)."""
    names = list(inspect.signature(kernel).parameters)[1:]
    head, _, tail = inspect.cleandoc(kernel.__doc__ or "").partition("\n\n")
    function.__doc__ = head + common.format(*names) + (f"\n{tail}\n" if tail else "")
    function.__name__ = function.__qualname__ = kernel.__name__
    function.__module__ = kernel.__module__
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=Any) for name in names],
        return_annotation=Tensor,
    )
    function.operation = operation
    return function
