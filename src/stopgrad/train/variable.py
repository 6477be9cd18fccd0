"""`Variable`: a value that training changes, and one leaf of the record for its whole life.

Reading a variable gives an immutable snapshot; assigning replaces the array and never writes into it. So a tensor read
earlier keeps its values, and derivatives recorded with them stay right, whatever is assigned later.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Self

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Shape, carries_derivative, is_numpy, namespace_of
from stopgrad.core.builtin import LEAF
from stopgrad.core.errors import ArgumentTypeError, DTypeError, ReadOnlyError, ShapeError
from stopgrad.core.record import coerce
from stopgrad.core.state import next_index, state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.casting import dtype_for
from stopgrad.primitives.methods import install

_automatic_names = itertools.count().__next__


class _Reads(threading.local):
    """Who wants to know which variables this thread reads."""

    def __init__(self) -> None:
        self.logs: tuple[dict[int, Variable], ...] = ()


_reads = _Reads()


@contextmanager
def reads() -> Iterator[dict[int, Variable]]:
    """Collect the variables that are read in the block, by id, in the order of their first reading."""
    log: dict[int, Variable] = {}
    _reads.logs = (*_reads.logs, log)
    try:
        yield log
    finally:
        _reads.logs = tuple(one for one in _reads.logs if one is not log)  # blocks may end in any order


class Variable:
    """A value that can be assigned to, and that derivatives can be taken for wherever it is read.

    It can be used like a tensor: operators, methods and functions read it. What is read is a snapshot; a later `assign`
    does not change it. Every reading leads back to the same place in the record (`leaf_node`), so the gradient for a
    variable sums over all its uses, assigned to in between or not, as in TensorFlow. Assigning is not differentiated.

    Inside `frozen(variable)` reading gives a constant and assigning does nothing. `trainable=False` is another thing:
    it tells optimizers to leave the value alone, while derivatives for it can still be had. Two variables are equal
    keys of a dict only if they are one object; `==` compares values, entry by entry.

    Reading is safe from any thread; threads that assign have to agree among themselves.

    Args:
        value: number, (nested) list, array of any array library, tensor or variable. It is copied.
        trainable: whether optimizers may change the value.
        name: what reports, errors and checkpoints call it; "variable", "variable_1" … if not given.
        dtype: dtype of the value, by default its own. Integers and booleans can be held, but carry no derivative.

    Raises:
        ArgumentTypeError: a value that cannot be made a tensor.

    Example:
        >>> import stopgrad as sg
        >>> w = sg.Variable([1.0, 2.0], name="w")
        >>> before = w.value()
        >>> w.assign_add([10.0, 10.0])
        Variable('w', [11., 12.], shape=(2,), dtype=float64)
        >>> before.numpy(), (w * 2).numpy()
        (array([1., 2.]), array([22., 24.]))
    """

    __slots__ = ("__weakref__", "_value", "leaf_node", "name", "trainable")
    __array_priority__ = 1000.0

    leaf_node: Any
    """The node derivatives for this variable are found at; `None` for a dtype that carries none."""

    def __init__(self, value: Any, *, trainable: bool = True, name: str | None = None, dtype: Any = None) -> None:
        self.trainable = bool(trainable)
        self.name = _automatic_name() if name is None else str(name)
        self._value = _private_copy(coerce(value, f"Variable {self.name!r}")[0], dtype, self.name)
        self.leaf_node = None
        if carries_derivative(self._value.dtype):
            self.leaf_node = (next_index(), LEAF, (None,), (None, None), self.shape, self._value.dtype, ())

    def __tensor__(self) -> Tensor:
        """Return what operations take this variable for: its value now, and where derivatives for it go."""
        for log in _reads.logs:
            log[id(self)] = self
        if state.frozen:
            mark = state.frozen.get(id(self))
            if mark is not None:
                return Tensor(self._value, mark)
        return Tensor(self._value, self.leaf_node if state.recording else state.block)

    def value(self) -> Tensor:
        """Return a snapshot of the value as a tensor, recorded as a reading of this variable."""
        return self.__tensor__()

    def read_value(self) -> Tensor:
        """Return a snapshot of the value as a tensor; the same as `value`."""
        return self.__tensor__()

    def numpy(self) -> np.ndarray:
        """Return the values as a read-only NumPy array, which later assignments do not change."""
        return Tensor(self._value).numpy()

    def assign(self, value: Any) -> Self:
        """Set the value; inside `frozen` of this variable, do nothing.

        Args:
            value: anything tensor-like of the variable's shape. An array or tensor must have the variable's dtype;
                numbers and lists of them are converted to it. No derivative passes from the value to the variable.

        Returns:
            The variable.

        Raises:
            ShapeError: another shape.
            DTypeError: another dtype.
        """
        if id(self) not in state.frozen:
            self.replace(_private_copy(matching(self, value, "assign"), None, self.name))
        return self

    def assign_add(self, delta: Any) -> Self:
        """Add to the value; see `assign`."""
        if id(self) not in state.frozen:
            self.replace(self._value + matching(self, delta, "assign_add"))
        return self

    def assign_sub(self, delta: Any) -> Self:
        """Subtract from the value; see `assign`."""
        if id(self) not in state.frozen:
            self.replace(self._value - matching(self, delta, "assign_sub"))
        return self

    def replace(self, value: Any) -> None:
        """Take over an array as the new value, unchecked and without a copy: for optimizers, which have just made it.

        Nobody may write into the array afterwards; a NumPy array is made read-only.
        """
        if is_numpy(value):
            value = np.asarray(value)
            value.flags.writeable = False
        self._value = value

    @property
    def raw(self) -> Any:
        """The array held now. Reading it so is not recorded, and it must not be written into."""
        return self._value

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return tuple(self._value.shape)

    @property
    def dtype(self) -> Any:
        """The value's dtype, which assignments keep."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._value.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        size: int = Tensor(self._value).size
        return size

    def item(self) -> Any:
        """Return the only entry as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the entries as nested Python lists."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.__tensor__().__array__(dtype, copy)

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __index__(self) -> int:
        return self.numpy().__index__()

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        return len(Tensor(self._value))

    def __repr__(self) -> str:
        head = f"Variable({self.name!r}, "
        text = np.array2string(self.numpy(), separator=", ", prefix=head)
        frozen = "" if self.trainable else ", trainable=False"
        return f"{head}{text}, shape={self.shape}, dtype={self.dtype}{frozen})"

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise ReadOnlyError(
            f"variable {self.name!r}: w[index] = value is not possible, since tensors may hold the array; write "
            "w.assign(w.at_set(index, value))"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies (`copy.deepcopy` of a model, say) are variables of their own, with the same value and name."""
        return _copy_of, (self._value, self.trainable, self.name)


install(Variable)


def matching(variable: Variable, given: Any, where: str) -> Any:
    """Return something tensor-like as an array that fits the variable, or raise.

    Args:
        variable: whose shape, dtype and array library the result has.
        given: anything tensor-like. Python numbers and lists have no dtype of their own and are converted.
        where: what is being done, for errors.

    Raises:
        ShapeError: the shape differs.
        DTypeError: the dtype differs, or the numbers cannot be converted without losing their nature.
        ArgumentTypeError: an array of another library than the variable's.
    """
    what = f"{where} of variable {variable.name!r}"
    value, _ = coerce(given, what)
    own = variable.raw
    if type(value) in PYTHON_SCALARS:
        value = np.asarray(value)
    if value.shape != own.shape:
        raise ShapeError(
            f"{what}: the variable has shape {variable.shape}, what was given {tuple(value.shape)}; reshape or "
            "reduce it"
        )
    if is_numpy(value) and not is_numpy(own):
        value = namespace_of(own).asarray(value, dtype=own.dtype if _has_no_dtype(given) else None)
    elif is_numpy(own) and not is_numpy(value):
        raise ArgumentTypeError(
            f"{what}: the variable holds a NumPy array, what was given is a {type(value).__name__}; convert it, or "
            "make the variable from an array of that library"
        )
    if value.dtype != own.dtype:
        if not _has_no_dtype(given) or not np.can_cast(value.dtype, own.dtype, "same_kind"):
            raise DTypeError(
                f"{what}: the variable is {own.dtype}, what was given {value.dtype}; convert it with "
                f"astype, or make the variable with dtype={str(value.dtype)!r}"
            )
        value = value.astype(own.dtype)
    return value


def _has_no_dtype(given: Any) -> bool:
    return type(given) in PYTHON_SCALARS or isinstance(given, list | tuple)


def _private_copy(value: Any, dtype: Any, name: str) -> Any:
    """Return a copy nobody else has; read-only if it is NumPy's."""
    if not is_numpy(value):
        wanted = None if dtype is None else dtype_for(value, dtype, f"Variable {name!r}")
        return namespace_of(value).asarray(value, dtype=wanted, copy=True)
    copy = np.array(value)
    if dtype is not None:
        wanted = dtype_for(copy, dtype, f"Variable {name!r}")
        if not np.can_cast(copy.dtype, wanted, "same_kind"):
            raise DTypeError(f"Variable {name!r}: the value is {copy.dtype}; convert it to {wanted} with astype first")
        copy = copy.astype(wanted)
    copy.flags.writeable = False
    return copy


def _automatic_name() -> str:
    number = _automatic_names()
    return f"variable_{number}" if number else "variable"


def _copy_of(value: Any, trainable: bool, name: str) -> Variable:
    return Variable(value, trainable=trainable, name=name)
