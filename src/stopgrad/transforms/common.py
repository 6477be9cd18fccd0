"""What all transforms do alike: make leaves of arguments, release results, apply the `unconnected` policy, stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import carries_derivative, is_complex, is_numpy, namespace_of
from stopgrad.core.builtin import STOP
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnconnectedError
from stopgrad.core.graph import Output, emit
from stopgrad.core.marks import Mark, Origin, merge
from stopgrad.core.operation import ABSENT, ZERO
from stopgrad.core.pytree import TreeDef, flatten, map_leaves, paths, unflatten
from stopgrad.core.record import INDEX, Node, leaf
from stopgrad.core.state import NO_SWITCHES, state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import taken_in, to_tensor

Unconnected = Literal["zero", "none", "error"]
StopNames = str | Iterable[str] | Mapping[str, bool] | None


def check_unconnected(unconnected: str, where: str) -> None:
    """Raise unless this is one of the three policies."""
    if unconnected not in ("zero", "none", "error"):
        raise ArgumentError(f"{where}: unconnected must be 'zero', 'none' or 'error', got {unconnected!r}")


def switches_of(stop: StopNames, where: str) -> Mapping[str, bool]:
    """Return a gradient call's `stop=` as a mapping from the name of a gate to whether it stops."""
    if stop is None:
        return NO_SWITCHES
    if isinstance(stop, str):
        return {stop: True}
    if isinstance(stop, Mapping):
        switches = dict(stop)
    elif isinstance(stop, Iterable):
        switches = dict.fromkeys(stop, True)
    else:
        switches = {stop: True}
    for name, stops in switches.items():
        if not isinstance(name, str) or not isinstance(stops, bool | np.bool):
            raise ArgumentTypeError(
                f"{where}: stop= takes names of gates, or a dict from names to True (stop) or False (let pass), got "
                f"{name!r}: {stops!r}; for tensors use gradients(..., stop_gradients=[...])"
            )
    return switches


def check_function(f: Any, where: str) -> None:
    """Raise unless this can be called."""
    if not callable(f):
        raise ArgumentTypeError(f"{where}: takes a function, got a {type(f).__name__} ({f!r:.60})")


def split_aux(result: Any, has_aux: bool, where: str) -> tuple[Any, Any]:
    """Return (result, aux) of a function called with `has_aux`."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ArgumentTypeError(f"{where}: with has_aux=True the function must return (result, aux)")
    return result[0], result[1]


def one_number(result: Any, where: str) -> Tensor:
    """Return what a function to be differentiated returned as a tensor, checked to be one real number."""
    if result is None:
        raise ArgumentTypeError(f"{where}: the function returned None; return the number to differentiate")
    if isinstance(result, tuple | list | dict):
        raise ArgumentTypeError(
            f"{where}: the function returned a {type(result).__name__}; return one number (value_and_grad takes "
            "has_aux=True to return more besides, jacobian and vjp are for several outputs)"
        )
    number = to_tensor(result, f"{where}: the function's result")
    if number.shape != ():
        raise ShapeError(
            f"{where}: the function must return one number, got shape {number.shape}; reduce it with sum or mean, or "
            "use jacobian or vjp"
        )
    if is_complex(number.dtype) or not carries_derivative(number.dtype):
        raise DTypeError(
            f"{where}: the function returned {number.dtype}; return a real floating-point number (abs of a complex one)"
        )
    return number


class Leaves:
    """Arguments of a function made ready for differentiation: their differentiable leaves replaced by fresh nodes.

    To be made before the level starts, so that a leaf is fed by an outer level's node only if that is recording.
    """

    def __init__(self, tree: Any, where: str, argument: str) -> None:
        given, self.treedef = flatten(tree, number_lists=True)
        self.argument = argument
        self.names = [argument + path for path in paths(tree)] if len(given) != 1 else [argument]
        self.entries: list[Any] = []
        for one, name in zip(given, self.names, strict=True):
            self.entries.append(self._entry(one, where, name, alone=len(given) == 1))
        if not self.nodes:
            raise DTypeError(
                f"{where}: {argument} holds nothing a derivative can be taken for; pass floating-point values"
            )

    def _entry(self, given: Any, where: str, name: str, alone: bool) -> Any:
        try:
            tensor = taken_in(given, f"{where}: {name}")
        except ArgumentTypeError:
            if alone:
                raise
            return given
        if not carries_derivative(tensor.dtype):
            if alone:
                raise DTypeError(
                    f"{where}: {name} is {tensor.dtype}, which has no derivative; pass floats, for instance "
                    f"{_float_spelling(given)}"
                )
            return given
        return leaf(tensor.value, tensor.node if state.recording else None)

    @property
    def tree(self) -> Any:
        """The arguments to call the function with."""
        return unflatten(self.treedef, self.entries)

    @property
    def nodes(self) -> list[Node]:
        """The fresh nodes, in order."""
        return [entry.node for entry in self.entries if is_leaf(entry)]

    @property
    def tensors(self) -> list[Tensor]:
        """The fresh leaves, in order."""
        return [entry for entry in self.entries if is_leaf(entry)]

    @property
    def fresh(self) -> list[bool]:
        """For each entry, whether it was made a leaf."""
        return [is_leaf(entry) for entry in self.entries]

    def collect(self, found: Mapping[int, Any], mark: Mark | None, unconnected: Unconnected, where: str) -> Any:
        """Return the tree of derivatives: `None` for leaves that cannot have one, the policy for unconnected ones."""
        results: list[Any] = []
        for entry, name in zip(self.entries, self.names, strict=True):
            if is_leaf(entry):
                derivative = found.get(entry.node[INDEX], ABSENT)
                results.append(finished(derivative, entry, mark, unconnected, f"{where}: {name}"))
            else:
                results.append(None)
        return unflatten(self.treedef, results)


def is_leaf(entry: Any) -> bool:
    """Whether this entry was made a leaf (and not passed as it was)."""
    return type(entry) is Tensor and type(entry.node) is tuple


def finished(derivative: Any, like: Tensor, mark: Mark | None, unconnected: Unconnected, what: str) -> Tensor | None:
    """Return what a user gets for a derivative a sweep found: a tensor, or what the policy says if it is absent."""
    if derivative is ABSENT:
        if unconnected == "none":
            return None
        if unconnected == "error":
            raise UnconnectedError(unconnected_message(what, mark))
        return Tensor(zeros_like(like.value), mark)
    if derivative is ZERO:
        return Tensor(zeros_like(like.value))
    if isinstance(derivative, Tensor):
        return derivative if state.block is None else _release_leaf(derivative)
    return Tensor(derivative) if state.block is None else _blocked(derivative, None)


def unconnected_message(what: str, mark: Mark | None) -> str:
    """Say that something is unconnected, and which gates and non-differentiable operations were met on the way."""
    if mark is None:
        return f"{what} is unconnected: the result does not depend on it"
    origins = sorted(mark.origins, key=lambda one: (one.file is None, one.file or "", one.line or 0, one.kind))
    met = ", ".join(_origin_text(origin) for origin in origins)
    return f"{what} is unconnected: no path without a stop leads to it; on the way back there is {met}"


def _origin_text(origin: Origin) -> str:
    return str(origin) if origin.file is not None else f"the operation {origin.kind}, which has no derivative"


def zeros_like(value: Any) -> Any:
    """Return zeros like a raw value of any array library."""
    return namespace_of(value).zeros_like(value)


def ones_like(value: Any) -> Any:
    """Return ones like a raw value of any array library."""
    return namespace_of(value).ones_like(value)


def as_seed(derivative: Tensor, like: Any) -> Any:
    """Return a cotangent or tangent as a sweep starts with it: in the value's dtype, raw unless recorded or traced.

    While tracing, what lies on the path may be symbolic though neither its start nor its end is.
    """
    if is_complex(derivative.dtype) and not is_complex(like.dtype):
        raise DTypeError(
            f"a {derivative.dtype} cotangent or tangent was given for a {like.dtype} value; pass its real part, "
            "real(...), if the imaginary one is not to count"
        )
    if (
        is_numpy(derivative.value)
        and not is_numpy(like)
        and type(like) is not Output
        and type(derivative.node) is not tuple
    ):
        xp = namespace_of(like)
        value = xp.asarray(derivative.value, dtype=like.dtype, device=getattr(like, "device", None))
        derivative = Tensor(value, derivative.node)
    elif derivative.dtype != like.dtype:
        derivative = primitives.astype(derivative, like.dtype)
    if state.recording or state.graph is not None or type(like) is Output or type(derivative.value) is Output:
        return derivative
    return derivative.value


def release(tree: Any) -> Any:
    """Return results as they leave a transform: still recorded if an outer one is recording, else constants."""
    if state.recording:
        return tree
    return map_leaves(_release_leaf, tree)


def _release_leaf(x: Any) -> Any:
    if type(x) is not Tensor or (type(x.node) is not tuple and state.block is None):
        return x
    mark = None if type(x.node) is tuple else x.node
    return Tensor(x.value, mark) if state.block is None else _blocked(x.value, mark)


def _blocked(value: Any, mark: Mark | None) -> Tensor:
    """Return a result as it leaves a transform inside a `no_gradient` block: the block is a gate for it, too."""
    if type(value) is Output:
        value = emit(STOP, (value,), ("no_gradient",))
    elif state.gate_observer is not None:
        value = state.gate_observer("no_gradient", value, lambda now, frozen: frozen)
    return Tensor(value, merge(mark, state.block))


def output_tensors(result: Any, where: str) -> tuple[list[Tensor], TreeDef]:
    """Return a function's outputs as tensors, with their structure."""
    leaves, treedef = flatten(result, number_lists=True)
    return [to_tensor(one, f"{where}: the function's result") for one in leaves], treedef


def positions(argnums: int | Sequence[int], count: int, where: str) -> tuple[int, ...]:
    """Return `argnums` as positions counted from the front, or raise."""
    wanted = (argnums,) if not isinstance(argnums, tuple | list) else tuple(argnums)
    for number in wanted:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise ArgumentTypeError(f"{where}: argnums must be an integer or a tuple of them, got {argnums!r}")
        if not -count <= number < count:
            raise ArgumentError(f"{where}: argnums {number} is out of range: {count} positional arguments were given")
    found = tuple(number % count for number in wanted)
    if len(set(found)) != len(found):
        raise ArgumentError(f"{where}: argnums {argnums!r} names an argument twice")
    return found


def _float_spelling(given: Any) -> str:
    return f"{float(given)!r}" if type(given) is int else "x.astype(float)"
