"""TensorFlow.js's memory management: `tidy`, `keep`, `dispose`, `memory`.

Python frees a tensor when nothing refers to it any more, so nobody needs these; programs written with them run, and a
tensor that has been disposed of says so when it is used. What a tape or a transformation has recorded is not touched:
it holds arrays of its own, never the tensors.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from stopgrad.core.arrays import is_numpy
from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.pytree import flatten
from stopgrad.core.tensor import Disposed, Tensor, creation_observers
from stopgrad.train.variable import Variable

_SURELY_NONE = frozenset((bool, int, float, complex, str, bytes, type(None)))


class Record(dict[str, Any]):
    """A dict whose entries can be read as attributes, as of a JavaScript object."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is {', '.join(map(repr, self))}, but no {name!r}") from None


class _Scope:
    """The tensors made since a `tidy` or `untracked` block began, weakly: those nobody holds are gone by themselves."""

    def __init__(self) -> None:
        self.made: dict[int, weakref.ref[Tensor]] = {}

    def add(self, tensor: Tensor) -> None:
        """Take note of a tensor."""
        number, made = id(tensor), self.made

        def forget(dead: weakref.ref[Tensor]) -> None:
            if made.get(number) is dead:
                del made[number]

        made[number] = weakref.ref(tensor, forget)

    def living(self) -> list[Tensor]:
        """Return the tensors that still exist."""
        found = [reference() for reference in list(self.made.values())]
        return [tensor for tensor in found if tensor is not None]

    def alias(self, x: Any) -> Any:
        """Return another tensor of the same value, unknown to any surrounding block, for a tensor; else x itself."""
        return Tensor(x.value, x.node) if type(x) is Tensor and _stack.scopes and not x.is_disposed else x

    def adopt(self, result: Any) -> Any:
        """Hand those of the result's tensors that were made here over to the surrounding block."""
        outer = _stack.scopes[-2] if len(_stack.scopes) > 1 else None
        for tensor in tensors_in(result):
            if self.made.pop(id(tensor), None) is not None and outer is not None:
                outer.add(tensor)
        return result


class _Stack(threading.local):
    """The open blocks of this thread, innermost last."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []


class _Observer:
    """Puts new tensors into the innermost block of the thread that made them, while any thread has a block open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open_blocks = 0

    def __call__(self, tensor: Tensor) -> None:
        if _stack.scopes:
            _stack.scopes[-1].add(tensor)

    def begin(self) -> None:
        """Observe from now on, if nobody did."""
        with self._lock:
            self._open_blocks += 1
            if self._open_blocks == 1:
                creation_observers.append(self)

    def end(self) -> None:
        """Observe no longer, if nobody else wants to."""
        with self._lock:
            self._open_blocks -= 1
            if self._open_blocks == 0:
                creation_observers.remove(self)


_stack = _Stack()
_observer = _Observer()


@contextmanager
def _scope() -> Iterator[_Scope]:
    """Observe, in this thread, which tensors are made in the block."""
    scope = _Scope()
    _observer.begin()
    _stack.scopes.append(scope)
    try:
        yield scope
    finally:
        _stack.scopes.pop()
        _observer.end()


@contextmanager
def untracked() -> Iterator[_Scope]:
    """Let surrounding `tidy` blocks not dispose of what is made in the block; `adopt` hands some of it to them."""
    if not _stack.scopes:
        yield _Scope()
        return
    with _scope() as scope:
        yield scope


def tidy(name_or_fn: Any, fn: Callable[[], Any] | None = None) -> Any:
    """Call a function, and dispose of all tensors it made but those it returns (in any nesting) or keeps.

    Variables are never disposed of. If the function raises, what it made is disposed of, too.

    Args:
        name_or_fn: function without arguments, or a name and then the function.
        fn: the function, if a name was given.

    Returns:
        What the function returns. Its tensors belong to the surrounding `tidy`, if there is one.

    Example:
        >>> import stopgrad.tf as tf
        >>> made = []
        >>> def program():
        ...     made.append(tf.tensor1d([1, 2, 3]))
        ...     return made[0].square()
        >>> tf.tidy(program).numpy(), made[0].is_disposed
        (array([1., 4., 9.], dtype=float32), True)
    """
    function = name_or_fn if fn is None else fn
    if not callable(function):
        raise ArgumentTypeError(f"tidy: takes a function, or a name and a function, got {function!r:.60}")
    with _scope() as scope:
        try:
            result = function()
            if inspect.isawaitable(result):
                raise ArgumentTypeError("tidy: the function must not be asynchronous: what it makes later is not seen")
            scope.adopt(result)
        finally:
            for tensor in scope.living():
                _dispose(tensor)
    return result


def keep(result: Any) -> Any:
    """Keep a tensor (or all in a container) from being disposed of by the `tidy` blocks around; returns it.

    Example:
        >>> import stopgrad.tf as tf
        >>> kept = []
        >>> _ = tf.tidy(lambda: kept.append(tf.keep(tf.scalar(1))))
        >>> float(kept[0])
        1.0
    """
    for tensor in tensors_in(result):
        for scope in _stack.scopes:
            scope.made.pop(id(tensor), None)
    return result


def dispose(container: Any) -> None:
    """Give up the values of a tensor, a variable, or all in a container; any use of them says so from now on.

    Other tensors that share the array keep it. Disposing again does nothing.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.scalar(1)
        >>> tf.dispose(x)
        >>> x + 1
        Traceback (most recent call last):
        ...
        stopgrad.core.errors.DisposedError: ...
    """
    for tensor in tensors_in(container, variables=True):
        if isinstance(tensor, Variable):
            tensor.replace(Disposed())
        else:
            _dispose(tensor)


def memory() -> Record:
    """Return how many tensors there are, and how many bytes their arrays take, shared ones counted once.

    Variables count as tensors. A diagnostic: all objects of the program are looked through. Arrays that only a tape or
    a transformation holds are not counted.

    Returns:
        `num_tensors`, `num_data_buffers`, `num_bytes`, and `unreliable`, which says whether arrays of other libraries
        than NumPy are among them, whose sharing is not known. Each as entry and as attribute.

    Example:
        >>> import stopgrad.tf as tf
        >>> before = tf.memory()
        >>> x = tf.zeros([10])
        >>> after = tf.memory()
        >>> after.num_tensors - before.num_tensors, after.num_bytes - before.num_bytes
        (1, 40)
    """
    gc.collect()
    values = [one.raw if isinstance(one, Variable) else one.value for one in _all_tensors()]
    buffers: dict[int, int] = {}
    unreliable = False
    for value in values:
        owner = _owner(value)
        unreliable = unreliable or not is_numpy(value)
        buffers[id(owner)] = int(getattr(owner, "nbytes", 0))
    return Record(
        num_tensors=len(values),
        num_data_buffers=len(buffers),
        num_bytes=sum(buffers.values()),
        unreliable=unreliable,
    )


def tensors_in(container: Any, *, variables: bool = False) -> list[Any]:
    """Return the tensors (and variables) in nested lists, tuples, sets, dicts, pytrees and dataclasses, each once."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    pending = [container]
    while pending:
        one = pending.pop()
        if isinstance(one, Tensor) or (variables and isinstance(one, Variable)):
            found[id(one)] = one
        elif type(one) in _SURELY_NONE or id(one) in seen or isinstance(one, np.ndarray | Variable):
            continue
        else:
            seen.add(id(one))
            pending.extend(_parts(one))
    return list(found.values())


def _parts(one: Any) -> list[Any]:
    if isinstance(one, Mapping):
        return list(one.values())
    if isinstance(one, list | tuple | set | frozenset):
        return list(one)
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return [getattr(one, field.name, None) for field in dataclasses.fields(one)]
    leaves, _ = flatten(one)
    return [leaf for leaf in leaves if leaf is not one]


def _dispose(tensor: Tensor) -> None:
    if not tensor.is_disposed:
        tensor.value, tensor.node = Disposed(), None


def _all_tensors() -> list[Any]:
    """Return all tensors and variables of the program that hold values."""
    found = []
    for one in gc.get_objects():
        kind = type(one)
        if issubclass(kind, Tensor):
            value = getattr(one, "value", None)
        elif issubclass(kind, Variable):
            value = one.raw
        else:
            continue
        if value is not None and type(value) is not Disposed:
            found.append(one)
    return found


def _owner(value: Any) -> Any:
    """Return the array that owns the memory of an array."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value
