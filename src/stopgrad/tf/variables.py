"""Variables, made TensorFlow's way and TensorFlow.js's. They are `stopgrad.Variable`s and mix with them."""

from __future__ import annotations

import weakref
from typing import Any, Self

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError
from stopgrad.core.tensor import Disposed
from stopgrad.tf.creation import js_numbers
from stopgrad.tf.values import as_tensor, holds_tensor, integers
from stopgrad.train import variable as ours

# The variables of this face that exist, weakly, by their names, which need not differ.
_by_name: dict[str, list[weakref.ref[Variable]]] = {}


class Variable(ours.Variable):
    """A value that training changes; float32 if it is made of Python floats.

    `trainable=False` blocks updates by optimizers, not gradients; only, `GradientTape` watches such a variable when it
    is told to. See `stopgrad.Variable`.

    Args:
        initial_value: number, list, array or tensor, or a function without arguments that returns one.
        trainable: whether optimizers may change the value.
        validate_shape: not used, as are `caching_device`, `variable_def`, `import_scope`, `constraint`,
            `synchronization` and `aggregation`: TensorFlow has them, so they may be given as `None`.
        name: what errors, reports and `variable_grads` call it.
        dtype: of the value; by default its own.
        shape: of the value; it must fit.

    Example:
        >>> import stopgrad.tf as tf
        >>> w = tf.Variable([1.0, 2.0], name="w")
        >>> w.assign_add([1.0, 1.0])
        Variable('w', [2., 3.], shape=(2,), dtype=float32)
    """

    __slots__ = ()

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = True,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        given = initial_value() if callable(initial_value) else initial_value
        value = as_tensor(given, "Variable", dtype)
        if shape is not None:
            value = p.reshape(value, integers(shape, "Variable: shape"))
        super().__init__(value, trainable=trainable is not False, name=name)
        namesakes = [one for one in _by_name.get(self.name, ()) if one() is not None]
        _by_name[self.name] = [*namesakes, weakref.ref(self)]

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, disposed)" if type(self.raw) is Disposed else super().__repr__()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Self:
        """Set the value; arrays and numbers are converted to the variable's dtype. Returns the variable."""
        return super().assign(_converted(value, self))

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self:
        """Add to the value. Returns the variable."""
        return super().assign_add(_converted(delta, self))

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self:
        """Subtract from the value. Returns the variable."""
        return super().assign_sub(_converted(delta, self))


def variable(initial_value: Any, trainable: bool = True, name: str | None = None, dtype: Any = None) -> Variable:
    """Return a variable; float32 if it is made of numbers. Of TensorFlow.js.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.variable(tf.tensor1d([1, 2, 3]), name="x")
        Variable('x', [1., 2., 3.], shape=(3,), dtype=float32)
    """
    value = js_numbers(initial_value, "variable") if dtype is None else as_tensor(initial_value, "variable", dtype)
    return Variable(value, trainable=trainable, name=name)


def variable_named(name: str, where: str) -> Variable:
    """Return the one variable of this face that has a name, or raise."""
    found = [one for one in (reference() for reference in _by_name.get(name, ())) if one is not None]
    if len(found) != 1:
        problem = "there is no variable" if not found else "more than one variable is"
        raise ArgumentError(f"{where}: {problem} named {name!r}; pass pairs (gradient, variable)")
    return found[0]


def _converted(value: Any, variable: ours.Variable) -> Any:
    """Return a value for a variable, its dtype taken on by what is no tensor (TensorFlow converts arrays, too)."""
    return value if holds_tensor(value) else as_tensor(value, f"Variable {variable.name!r}", variable.dtype)
