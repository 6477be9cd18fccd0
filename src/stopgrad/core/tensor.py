"""`Tensor`: an immutable array together with the operation that made it.

`value` is an array (or NumPy scalar) of any array API library. `node` is the record of the operation that made it (see
`stopgrad.core.record`), or a `Mark` saying which gate cut it off, or `None` for a plain constant. Operators and
methods are attached by `stopgrad.primitives.methods`, which stands above the operations they call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from stopgrad.core.arrays import Shape, is_numpy
from stopgrad.core.errors import ArgumentTypeError, DisposedError, ReadOnlyError
from stopgrad.core.operators import Operators
from stopgrad.core.state import state

# Called with every new tensor while it is not empty: how `tidy` learns what was made inside it.
creation_observers: list[Callable[[Tensor], None]] = []


class Disposed:
    """Stands in for the value of a disposed tensor; any use of it says so."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        raise DisposedError(
            "this tensor has been disposed (by dispose() or at the end of a tidy block) and holds no values any more; "
            "return it from the tidy block or call keep() on it to use it later"
        )


class Tensor(Operators):
    """An immutable array that remembers how it was computed, so that derivatives can be taken through it.

    Make one with `stopgrad.tensor`; operations return them. `np.asarray(t)` and `t.numpy()` give a read-only view.

    Example:
        >>> import stopgrad as sg
        >>> t = sg.tensor([1.0, 2.0])
        >>> t.shape, str(t.dtype)
        ((2,), 'float64')
        >>> (t * 2 + 1).numpy()
        array([3., 5.])
    """

    __slots__ = ("__weakref__", "node", "value")
    __array_priority__ = 1000.0

    value: Any
    node: Any

    def __init__(self, value: Any, node: Any = None) -> None:
        self.value = value
        self.node = node
        if creation_observers:
            for observer in creation_observers:
                observer(self)

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        shape: Shape = self.value.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The array's dtype."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.value.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.value.shape)  # PyTorch's size is a method

    @property
    def is_disposed(self) -> bool:
        """Whether the values have been given up by `dispose` or `tidy`."""
        return type(self.value) is Disposed

    def numpy(self) -> np.ndarray:
        """Return the values as a read-only NumPy array; a view where the value is NumPy's, else a copy."""
        value = self.value
        if type(value) is np.ndarray:
            view = value.view()
        else:
            view = np.asarray(value) if is_numpy(value) else np.asarray(_to_host(value))
            view = view.view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if type(self.node) is tuple and state.recording:
            # A list of tensors given to a NumPy function comes here, too, and its gradient would be lost silently.
            raise ArgumentTypeError(
                "a recorded tensor was to become a NumPy array, which would lose its gradient; use a function of "
                "stopgrad (or stack a list of tensors first), or t.numpy() for the values alone"
            )
        view = self.numpy()
        if copy:
            return view.astype(dtype if dtype is not None else view.dtype, copy=True)
        return view if dtype is None or dtype == view.dtype else view.astype(dtype)

    def item(self) -> Any:
        """Return the only entry as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the entries as nested Python lists."""
        return self.numpy().tolist()

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
        if not self.value.shape:
            raise TypeError("len() of a tensor without axes; use .size, or reshape it to one axis first")
        return int(self.value.shape[0])

    def __repr__(self) -> str:
        if self.is_disposed:
            return "Tensor(disposed)"
        if getattr(self.value, "is_symbolic", False):
            return f"Tensor({self.value})"
        text = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        return f"Tensor({text}, shape={self.shape}, dtype={self.dtype})"

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise ReadOnlyError(
            "tensors are immutable: t[index] = value is not possible; write t = t.at_set(index, value) for a changed "
            "copy that gradients flow through, or compute with where()"
        )

    def __delitem__(self, index: object) -> NoReturn:
        raise ReadOnlyError("tensors are immutable: del t[index] is not possible; select what to keep, t[mask]")

    def __reduce__(self) -> tuple[Any, ...]:
        if type(self.node) is tuple:
            raise ArgumentTypeError(
                "a tensor that is recorded cannot be pickled, as its gradient would be lost; pickle t.numpy() or "
                "stop_gradient(t)"
            )
        return Tensor, (self.value, self.node)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: object) -> Tensor:
        return self


def _to_host(value: Any) -> Any:
    """Return an array of another library as something NumPy can take."""
    if hasattr(value, "detach"):  # a PyTorch array refuses NumPy while it requires grad or lives on a device
        return value.detach().cpu()
    if hasattr(value, "get") and type(value).__module__.startswith("cupy"):
        return value.get()
    return value
