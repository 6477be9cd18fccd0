"""`GradientTape`: record what a block of code computes, ask for derivatives afterwards. The semantics are TensorFlow's.

There is one record for all; a tape is a set of index intervals in it, those during which the tape was recording. So
stopping one tape (`stop_recording`) leaves the others as they are, and costs nothing while operations run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from stopgrad.core.arrays import carries_derivative
from stopgrad.core.errors import ArgumentTypeError, DTypeError, TapeError
from stopgrad.core.operation import ABSENT
from stopgrad.core.pytree import flatten, unflatten
from stopgrad.core.record import INDEX, Node, leaf
from stopgrad.core.state import Level, next_index, state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import taken_in, to_tensor
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import StopNames, Unconnected, check_unconnected, switches_of
from stopgrad.transforms.gradients import collect, is_variable, seeds_of, stop_indices
from stopgrad.transforms.jacobian import rows_of


class GradientTape:
    """Record operations in a `with` block, so that derivatives of what it computed can be asked for.

    Variables are watched by themselves; tensors from outside have to be named with `watch`. Tapes nest, and a gradient
    asked for inside another tape's block is itself recorded there. After its block a tape answers one call of
    `gradient` or `jacobian`, or any number if `persistent`.

    Args:
        persistent: answer more than once.
        watch_accessed_variables: watch variables that are read in the block; if false only those given to `watch`.
        stop: names of gates switched for this tape; see `grad`.

    Example:
        >>> import stopgrad as sg
        >>> x = sg.tensor(3.0)
        >>> with sg.GradientTape() as tape:
        ...     x = tape.watch(x)
        ...     y = x * sg.stop_gradient(x)
        >>> float(tape.gradient(y, x))
        3.0
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, *, stop: StopNames = None
    ) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._level = Level(switches_of(stop, "GradientTape"))
        self._intervals: list[tuple[int, int]] = []
        self._since: int | None = None  # index at which recording (re)started, None while it is not recording
        self._is_open = False
        # Watched tensors and variables by id, kept alive so that ids stay theirs, with the node derivatives stop at.
        self._watched: dict[int, tuple[Any, Node]] = {}
        # Tensors this tape made leaves of, or found another open tape had: undone when the last one's block ends.
        self._made_leaves: list[Tensor] = []
        self._used = False

    def __enter__(self) -> Self:
        if self._is_open:
            raise TapeError("GradientTape: this tape is recording already; make another one to nest")
        state.enter(self._level, self._level.begin)
        self._is_open = True
        self._since = next_index()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pause()
        _release_leaves(self._made_leaves)
        self._is_open = False
        state.leave(self._level)
        if kind is None:
            self._level.check_switches()

    def watch(self, tree: Any) -> Any:
        """Make derivatives with respect to a tensor possible; returns it.

        Args:
            tree: a tensor, variable or pytree of them. An array or number cannot be watched in place: use the tensor
                that is returned.

        Raises:
            TapeError: outside the tape's block.
            DTypeError: a dtype without derivative.
        """
        if not self._is_open:
            raise TapeError("GradientTape.watch: call it inside the tape's with block")
        leaves, treedef = flatten(tree)
        return unflatten(treedef, [self._watch(one) for one in leaves])

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected: Unconnected = "none",
        *,
        stop_gradients: Any = (),
    ) -> Any:
        """Return the gradients of the target with respect to the sources, in the structure of the sources.

        Args:
            target: tensor or pytree of tensors; what is not a single number is summed.
            sources: watched tensors or variables, or a pytree of them; tensors computed in the block from watched
                ones will do, too.
            output_gradients: cotangents, in the structure of the target; ones by default.
            unconnected: what stands for an unconnected source: "none", "zero" or "error".
            stop_gradients: tensors or variables nothing passes back through in this call.

        Raises:
            TapeError: a second call on a tape that is not persistent.
            UnconnectedError: with `unconnected="error"`; it names the gates that were met.
        """
        self._use("gradient")
        check_unconnected(unconnected, "GradientTape.gradient")
        targets, _ = flatten(target)
        sought, treedef = flatten(sources)
        found, mark = self._sweep(
            targets, seeds_of(targets, output_gradients, "GradientTape.gradient"), sought, stop_gradients
        )
        return unflatten(treedef, collect(found, sought, mark, unconnected, "GradientTape.gradient: source"))

    def jacobian(self, target: Any, sources: Any, unconnected: Unconnected = "none") -> Any:
        """Return the Jacobians of one tensor with respect to the sources, of shape target.shape + source.shape.

        Args:
            target: one tensor.
            sources: as for `gradient`.
            unconnected: as for `gradient`.
        """
        self._use("jacobian")
        check_unconnected(unconnected, "GradientTape.jacobian")
        output = to_tensor(target, "GradientTape.jacobian: target")
        sought, treedef = flatten(sources)
        nodes = [self._node_of(one) for one in sought]
        path = find_path([output.node], [n for n in nodes if n is not None], visible=self._visible())
        likes = [to_tensor(one, "GradientTape.jacobian: source") for one in sought]
        rows = rows_of(output, path, nodes, likes, self._level, unconnected, "GradientTape.jacobian: source")
        return unflatten(treedef, rows)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Let this tape not see what is computed in the block; other tapes and transformations still do.

        To stop all of them use `no_gradient`.
        """
        if self._since is None:
            raise TapeError("GradientTape.stop_recording: the tape is not recording")
        self._pause()
        since = next_index()
        try:
            yield
        finally:
            self._since = next_index()
            if state.graph is not None:
                state.graph.pauses.append((since, self._since, self._stopped_again))

    @contextlib.contextmanager
    def _stopped_again(self) -> Iterator[None]:
        """Do not see the block either in which what was traced while this tape was stopped is run, if it goes on."""
        if self._since is None:
            yield
        else:
            with self.stop_recording():
                yield

    def reset(self) -> None:
        """Forget what has been recorded and watched so far, and go on recording."""
        if self._since is None:
            raise TapeError("GradientTape.reset: call it inside the tape's with block, while it is recording")
        _release_leaves(self._made_leaves)
        self._watched.clear()
        self._intervals.clear()
        self._since = next_index()

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that were given to `watch`."""
        return tuple(one for one, _ in self._watched.values() if is_variable(one))

    def _watch(self, one: Any) -> Any:
        if is_variable(one):
            self._watched[id(one)] = (one, one.leaf_node)
            return one
        tensor = taken_in(one, "GradientTape.watch")
        if not carries_derivative(tensor.dtype):
            raise DTypeError(f"GradientTape.watch: {tensor.dtype} has no derivative; cast the tensor to a float first")
        value, node = tensor.value, tensor.node
        if isinstance(one, Tensor):
            tensor = one  # in the body of a loop or branch, the value in there may stand for one outside
        if _make_leaf(tensor, value, node):
            self._made_leaves.append(tensor)
        self._watched[id(tensor)] = (tensor, tensor.node)
        return tensor

    def _sweep(self, targets: Sequence[Any], seeds: Sequence[Any], sought: Sequence[Any], stops: Any) -> Any:
        wanted = [node for node in map(self._node_of, sought) if node is not None]
        outputs = [self._output_node(one) for one in targets]
        stopped = stop_indices(stops, self._node_of)
        path = find_path(outputs, wanted, stopped, self._visible())
        cotangents = reverse(
            path, list(zip(outputs, seeds, strict=True)), {node[INDEX] for node in wanted}, self._level, stopped
        )
        found = []
        for one in sought:
            node = self._node_of(one)
            found.append(ABSENT if node is None else cotangents.get(node[INDEX], ABSENT))
        return found, path.mark

    def _output_node(self, target: Any) -> Any:
        if is_variable(target):
            return self._node_of(target)
        return self._watched[id(target)][1] if id(target) in self._watched else getattr(target, "node", None)

    def _node_of(self, source: Any) -> Node | None:
        """Return the node at which derivatives for a source are to be found, `None` if this tape does not see it."""
        if id(source) in self._watched:
            return self._watched[id(source)][1]
        if is_variable(source):
            node: Node = source.leaf_node
            return node if self._watches_variables else None
        if not isinstance(source, Tensor):
            raise ArgumentTypeError(
                f"GradientTape: cannot differentiate with respect to a {type(source).__name__}; pass the tensor that "
                "was watched (tape.watch returns it) or a variable"
            )
        node = source.node
        if type(node) is not tuple or not any(a <= node[INDEX] < b for a, b in self._visible()):
            return None
        return node

    def _visible(self) -> list[tuple[int, int]]:
        return self._intervals if self._since is None else [*self._intervals, (self._since, next_index())]

    def _pause(self) -> None:
        if self._since is not None:
            self._intervals.append((self._since, next_index()))
            self._since = None

    def _use(self, what: str) -> None:
        if self._used and not self._persistent:
            raise TapeError(f"GradientTape.{what}: this tape has answered; make it with persistent=True to ask twice")
        self._used = True


# Tensors that open tapes of any thread have made leaves of, by id: (tensor, its value and node before, how many tapes).
_leaves: dict[int, tuple[Tensor, tuple[Any, Any], int]] = {}
_lock = threading.Lock()


def _make_leaf(tensor: Tensor, value: Any, node: Any) -> bool:
    """Make a leaf of a tensor, read as (value, node), that is not recorded.

    Return whether it is one only until the tapes' blocks end.
    """
    with _lock:
        known = _leaves.get(id(tensor))
        if known is not None:
            _leaves[id(tensor)] = (tensor, known[1], known[2] + 1)
            return True
        if type(node) is tuple:
            return False
        _leaves[id(tensor)] = (tensor, (tensor.value, tensor.node), 1)
        tensor.value, tensor.node = value, leaf(value).node
        return True


def _release_leaves(made: list[Tensor]) -> None:
    """Make tensors what they were before, but those that another open tape is watching."""
    with _lock:
        for tensor in made:
            _, before, count = _leaves.pop(id(tensor))
            if count > 1:
                _leaves[id(tensor)] = (tensor, before, count - 1)
            else:
                tensor.value, tensor.node = before
    made.clear()
