"""`checkpoint`: a function whose inside is not kept for derivatives, but computed again when they are taken.

At once, it records a single node that keeps the arguments. A sweep that comes to it runs the function again, recorded,
and sweeps over that. While a program is traced it adds one operation that holds the function as a body.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stopgrad.control.branching import CHECKPOINT
from stopgrad.control.joint import add_to_graph
from stopgrad.control.tracing import arguments, is_known, result_of, spec_of, traced, tracing_graph
from stopgrad.core.arrays import Shape, carries_derivative, is_array
from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.operation import ABSENT, ZERO, EveryInput, Operation, Slots
from stopgrad.core.pytree import TreeDef, flatten, unflatten
from stopgrad.core.record import INDEX, PARENTS, leaf, outputs_of
from stopgrad.core.state import next_index, state
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import closed
from stopgrad.primitives.inputs import to_tensor
from stopgrad.sweeps.forward import forward
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `f` of which derivatives keep only the arguments; its inside is computed once more.

    Also called rematerialisation. It costs one more run of `f` for each derivative and saves the memory of everything
    in between. The derivative is that of `f`, gates inside included, in both modes and at every order.

    Args:
        f: function of pytrees of tensors (and of settings by keyword) that returns a pytree of tensors. It must compute
            the same when it is run again, so give it its random numbers as arguments, and do not assign to variables it
            reads before the derivative is taken.

    Returns:
        A function with the arguments of `f`.

    Raises:
        ArgumentError: when a derivative is taken, if `f` computed something else this time.

    Example:
        >>> import stopgrad as sg
        >>> layer = sg.checkpoint(lambda x: sg.sin(sg.exp(x)) * x)
        >>> float(sg.grad(layer)(0.0)) == float(sg.sin(1.0))
        True
    """
    if not callable(f):
        raise ArgumentTypeError(f"checkpoint: takes a function, got a {type(f).__name__}")

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        function = functools.partial(f, **kwargs) if kwargs else f
        leaves, treedef = flatten(args, number_lists=True)
        places = [
            i for i, one in enumerate(leaves) if isinstance(one, Tensor) or hasattr(one, "__tensor__") or is_array(one)
        ]
        tensors = [to_tensor(leaves[i], "checkpoint: an argument") for i in places]
        call = _Call(function, leaves, treedef, places)
        outer = tracing_graph(tensors)
        if outer is not None:
            return call.in_graph(tensors, outer)
        if state.recording:
            return call.recorded(tensors)
        return result_of(function(*args), "checkpoint: what the function returns")

    return checkpointed


remat = checkpoint


class _Call:
    """One call of the function: what it was called with, but for the tensors, and what was going on."""

    def __init__(self, f: Callable[..., Any], leaves: list[Any], treedef: TreeDef, places: list[int]) -> None:
        self.f = f
        self.rest = [None if i in places else one for i, one in enumerate(leaves)]
        self.treedef = treedef
        self.places = places
        self.levels, self.frozen, self.block = state.levels, state.frozen, state.block
        self.parents: tuple[Any, ...] = ()
        self.fingerprints: list[Any] = []
        # What a derivative check made of the values at gates (see `core.state`): the same when run again.
        self.gated: list[Any] = []

    def result(self, tensors: Sequence[Tensor]) -> Any:
        """Call the function with these tensors among the arguments."""
        leaves = list(self.rest)
        for i, tensor in zip(self.places, tensors, strict=True):
            leaves[i] = tensor
        return self.f(*unflatten(self.treedef, leaves))

    def in_graph(self, tensors: list[Tensor], outer: Any) -> Any:
        """Add the call to a graph as one operation."""
        _, structure = flatten(list(tensors))
        made = traced(
            lambda inner: self.result(inner),
            outer,
            [([spec_of(one) for one in tensors], structure, "argument")],
            "checkpoint: what the function returns",
        )
        bodies, taken = closed([(made.graph, made.inputs[0], made.outputs)])
        if is_known(tensors, taken):
            return self.recorded(tensors)
        outs = add_to_graph(CHECKPOINT, (*taken, *tensors), (tuple(bodies),), bodies[0])
        return unflatten(made.treedef, list(outs))

    def recorded(self, tensors: list[Tensor]) -> Any:
        """Run the function and record one node for all of it."""
        since = next_index()
        inner = [leaf(one.value) if carries_derivative(one.dtype) else one for one in tensors]
        with self._gates_noted():
            result = arguments(self.result(inner), "checkpoint: what the function returns")
        outer_nodes, seen = _met([one.node for one in result.tensors], since)
        # An argument that no result depends on, or only through a gate, is no parent.
        own = tuple(
            one.node if type(fresh.node) is tuple and fresh.node[INDEX] in seen else None
            for one, fresh in zip(tensors, inner, strict=True)
        )
        self.parents = (*own, *outer_nodes)
        live = [one for one in result.tensors if type(one.node) is tuple]
        if not live or not any(type(one) is tuple for one in self.parents):
            values = [Tensor(one.value, None if type(one.node) is tuple else one.node) for one in result.tensors]
            return unflatten(result.treedef, values)
        self.fingerprints = [_fingerprint(one.value) for one in result.tensors]
        operation = Operation(
            "checkpointed",
            lambda xp, *_: None,
            vjps=EveryInput(self._vjp, 0, keep_inputs=False),
            jvps=EveryInput(self._jvp, 0, keep_inputs=False),
            spec=None,
        )
        nothing = (None,) * (len(outer_nodes) + 1)
        kept = (*(one.value for one in tensors), *nothing)
        node = (next_index(), operation, self.parents, kept, None, None, ())
        outs = outputs_of(node, [one.value for one in result.tensors])
        return unflatten(
            result.treedef,
            [
                out if type(one.node) is tuple else Tensor(one.value, one.node)
                for out, one in zip(outs, result.tensors, strict=True)
            ],
        )

    def _vjp(self, i: int, xp: Any, t: Slots, inputs: Sequence[Any], _out: Any) -> Any:
        if t.together is None:
            t.together = self._pull(t, inputs)
        return t.together.get(i, ABSENT)

    def _pull(self, t: Slots, inputs: Sequence[Any]) -> Mapping[int, Any]:
        nodes, outs = self._again(inputs)
        wanted = {i: node for i, node in nodes.items() if self.parents[i][INDEX] in state.live}
        stops = frozenset(node[INDEX] for node in nodes.values())
        path = find_path([outs[number].node for number in t], list(wanted.values()), stops)
        seeds = [(outs[number].node, cotangent) for number, cotangent in t.items()]
        found = reverse(path, seeds, {node[INDEX] for node in wanted.values()}, state.sweeping_for, stops)
        return {i: found[node[INDEX]] for i, node in wanted.items() if node[INDEX] in found}

    def _jvp(self, i: int, xp: Any, t: Any, inputs: Sequence[Any], _out: Any) -> Any:
        tangents = {
            k: state.tangents[parent[INDEX]]
            for k, parent in enumerate(self.parents)
            if type(parent) is tuple and state.tangents.get(parent[INDEX], ZERO) is not ZERO
        }
        if min(tangents) < i:
            return ABSENT  # said already, when asked for that input
        nodes, outs = self._again(inputs)
        seeds = [(node, tangents[k]) for k, node in nodes.items() if k in tangents]
        wanted = [one.node for one in outs]
        path = find_path(wanted, [node for node, _ in seeds])
        given = {node[INDEX] for node, _ in seeds}
        path = path._replace(nodes=[node for node in path.nodes if node[INDEX] not in given])
        found = forward(path, seeds, wanted, state.sweeping_for)
        return Slots(
            {
                number: found[one.node[INDEX]]
                for number, one in enumerate(outs)
                if type(one.node) is tuple and one.node[INDEX] in found
            }
        )

    def _again(self, inputs: Sequence[Any]) -> tuple[dict[int, Any], list[Tensor]]:
        """Run the function once more; return the nodes that stand for the parents, and what it returned."""
        given = []
        nodes: dict[int, Any] = {}
        for i, one in enumerate(inputs[: len(self.places)]):
            tensor = one if isinstance(one, Tensor) else Tensor(one)
            if carries_derivative(tensor.dtype):
                tensor = leaf(tensor.value, tensor.node)
                if type(self.parents[i]) is tuple:
                    nodes[i] = tensor.node
            given.append(tensor)
        for i in range(len(self.places), len(self.parents)):
            nodes[i] = self.parents[i]
        with self._as_it_was():
            outs = arguments(self.result(given), "checkpoint").tensors
        if len(outs) != len(self.fingerprints) or not all(map(_fits, map(_value, outs), self.fingerprints)):
            name = getattr(self.f, "__name__", "the function")
            raise ArgumentError(
                f"checkpoint: {name} computed something else when it was run again for the derivative; give it its "
                "random numbers as arguments, and do not assign to a variable it reads before the derivative is taken"
            )
        return nodes, outs

    @contextmanager
    def _gates_noted(self) -> Iterator[None]:
        """Note the values that a derivative check that is going on gives to gates in the block."""
        observer = state.gate_observer
        if observer is None:
            yield
            return

        def noted(kind: str, value: Any, surrogate: Callable[[Any, Any], Any]) -> Any:
            self.gated.append(observer(kind, value, surrogate))
            return self.gated[-1]

        state.gate_observer = noted
        try:
            yield
        finally:
            state.gate_observer = observer

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """Restore what was going on when the function was called first."""
        before = state.recording, state.levels, state.frozen, state.block, state.gate_observer
        state.recording, state.levels, state.frozen, state.block = True, self.levels, self.frozen, self.block
        gated = iter(self.gated)
        state.gate_observer = (lambda _kind, value, _surrogate: next(gated, value)) if self.gated else None
        try:
            yield
        finally:
            state.recording, state.levels, state.frozen, state.block, state.gate_observer = before


def _met(nodes: Sequence[Any], since: int) -> tuple[list[Any], set[int]]:
    """Return the nodes older than an index that younger ones lead to directly, and the indices of the younger ones."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    pending = [node for node in nodes if type(node) is tuple]
    while pending:
        node = pending.pop()
        if node[INDEX] < since:
            found[node[INDEX]] = node
        elif node[INDEX] not in seen:
            seen.add(node[INDEX])
            pending.extend(parent for parent in node[PARENTS] if type(parent) is tuple)
    return [found[index] for index in sorted(found)], seen


def _value(tensor: Tensor) -> Any:
    return tensor.value


def _fingerprint(value: Any) -> tuple[Shape, Any]:
    """Return the shape of an array and, of NumPy's, a few of its entries, by which to see whether it is the same."""
    shape = tuple(value.shape)
    if not isinstance(value, np.ndarray | np.generic):
        return shape, None
    entries = np.asarray(value).reshape(-1)
    return shape, entries[:: max(1, entries.size // 8)].copy()


def _fits(value: Any, fingerprint: tuple[Shape, Any]) -> bool:
    shape, entries = _fingerprint(value)
    if entries is None or fingerprint[1] is None or shape != fingerprint[0]:
        return shape == fingerprint[0]
    return bool(np.allclose(entries, fingerprint[1], rtol=1e-3, atol=1e-6, equal_nan=True))
