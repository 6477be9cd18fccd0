"""From users' functions to bodies: arguments read, the function traced, and what it returns checked.

Everything is a pytree of tensors. A loop's carry must come back with the structure, shapes and dtypes it went in with,
and branches must agree; what differs is named by its place in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stopgrad.core.arrays import Spec, is_bool
from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.core.graph import CONSTANT, BaseGraph, Output
from stopgrad.core.pytree import TreeDef, flatten, paths, unflatten
from stopgrad.core.record import coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import BodyGraph
from stopgrad.graph.graph import Graph
from stopgrad.primitives.inputs import to_tensor
from stopgrad.transforms.common import release


class Arguments(NamedTuple):
    """A pytree of tensors, flattened. Python numbers have become arrays of NumPy's default dtype."""

    tensors: list[Tensor]
    treedef: TreeDef

    @property
    def tree(self) -> Any:
        """The pytree."""
        return unflatten(self.treedef, list(self.tensors))

    @property
    def specs(self) -> list[Spec]:
        """Shapes and dtypes of the leaves."""
        return [spec_of(one) for one in self.tensors]


def arguments(tree: Any, where: str) -> Arguments:
    """Return a pytree of anything tensor-like as tensors."""
    leaves, treedef = flatten(tree, number_lists=True)
    return Arguments([to_tensor(one, where) for one in leaves], treedef)


def result_of(tree: Any, where: str) -> Any:
    """Return what a user's function returned as tensors; in a `no_gradient` block they are constants in any case."""
    return release(arguments(tree, where).tree)


def spec_of(tensor: Tensor) -> Spec:
    """Return shape and dtype of a tensor."""
    return Spec(tuple(tensor.shape), tensor.dtype)


def tracing_graph(tensors: Iterable[Tensor]) -> BaseGraph | None:
    """Return the graph that what is computed from these tensors goes to; `None` if nothing is being traced."""
    if state.graph is not None:
        graph: BaseGraph = state.graph
        return graph
    return next((one.value.op.graph for one in tensors if type(one.value) is Output), None)


class Traced(NamedTuple):
    """A function that was traced: its graph, its placeholders by argument, and what it returned."""

    graph: BodyGraph
    inputs: list[list[Output]]
    outputs: list[Output]
    treedef: TreeDef

    @property
    def specs(self) -> list[Spec]:
        """Shapes and dtypes of what it returned."""
        return [one.spec for one in self.outputs]


def traced(
    f: Callable[..., Any], outer: BaseGraph, args: Sequence[tuple[Sequence[Spec], TreeDef, str]], where: str
) -> Traced:
    """Trace a function into a graph of its own inside `outer`.

    Args:
        f: function of as many arguments.
        outer: the graph around.
        args: of each argument, the specs of its leaves, its structure, and a name for its placeholders.
        where: whose error it is if the function returns something that is no tensor.
    """
    graph = BodyGraph(outer)
    with graph.written(traced=True):
        inputs = [[graph.placeholder(spec, name) for spec in specs] for specs, _, name in args]
        result = f(
            *(unflatten(tree, [Tensor(one) for one in ones]) for ones, (_, tree, _) in zip(inputs, args, strict=True))
        )
        leaves, treedef = flatten(result, number_lists=True)
        outputs = []
        for leaf in leaves:
            value, _ = coerce(leaf, where)
            outputs.append(graph.imported(np.asarray(value) if not hasattr(value, "shape") else value))
    return Traced(graph, inputs, outputs, treedef)


def is_known(operands: Iterable[Tensor], taken: Iterable[Tensor]) -> bool:
    """Whether nothing symbolic goes into an operation: neither its operands nor what its bodies use from outside."""
    return not any(type(one.value) is Output for one in operands) and all(
        type(one.value) is Output and one.value.op.operation is CONSTANT and type(one.node) is not tuple
        for one in taken
    )


def scratch_graph() -> BaseGraph:
    """Return a graph to trace into for shapes and dtypes alone."""
    return Graph()


def to_predicate(value: Any, where: str) -> Tensor:
    """Return a condition as a tensor, checked to be one boolean."""
    tensor = to_tensor(value, where)
    if tensor.shape != () or not is_bool(tensor.dtype):
        raise ArgumentTypeError(
            f"{where} must be one boolean, got {spec_of(tensor)}; compare, or reduce with sg.all or sg.any"
        )
    return tensor


def check_same(
    where: str,
    given: Arguments | Traced,
    returned: Arguments | Traced,
    names: tuple[str, str],
    remedy: str,
) -> None:
    """Raise unless two pytrees have the same structure, shapes and dtypes, saying which leaf differs and how.

    Args:
        where: the function the user called.
        given: what it has to be.
        returned: what it is.
        names: what to call the two.
        remedy: what to do.
    """
    if given.treedef != returned.treedef:
        raise ArgumentError(
            f"{where}: {names[0]} has the structure {_shown(given)}, but {names[1]} {_shown(returned)}; {remedy}"
        )
    for path, before, after in zip(_paths(given), given.specs, returned.specs, strict=True):
        if before != after:
            leaf = f" at {path}" if path else ""
            raise ArgumentError(f"{where}: {names[0]}{leaf} is {before}, but {names[1]}{leaf} is {after}; {remedy}")


def check_carry(where: str, given: Arguments, returned: Arguments | Traced) -> None:
    """Raise unless a loop's carry came back as it went in."""
    remedy = "a carry must keep its structure, shapes and dtypes: start with what the body returns, or cast there"
    check_same(where, given, returned, ("the carry", "what the body makes of it"), remedy)


def _shown(tree: Arguments | Traced) -> str:
    return str(unflatten(tree.treedef, list(map(str, tree.specs)))).replace("'", "")


def _paths(tree: Arguments | Traced) -> list[str]:
    return paths(unflatten(tree.treedef, list(map(str, tree.specs))))
