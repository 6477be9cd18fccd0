"""`BaseGraph`: a program as a list of named operations, and `Output`, the symbolic array that stands for a result.

A tensor whose value is an `Output` computes nothing: `bind` finds it, and adds an operation to the graph instead of
running the kernel. So tracing, the gradient builder and hand-written graphs are one mechanism, and everything that
works on tensors works on symbolic ones. Each output has a node of the record, made from its operation with everything
kept (what is symbolic takes no memory), so the sweeps run over graphs as they run over what was computed eagerly.

Inputs of an operation are outputs of the same graph, or plain Python numbers, which stay what they are because their
type does not take part in promotion. A graph inside another (a loop's body) captures what it uses from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Shape, Spec, carries_derivative, spec_of
from stopgrad.core.builtin import LEAF, PROJECT
from stopgrad.core.errors import ArgumentError, TracedValueError
from stopgrad.core.marks import Mark, Origin, calling_line, mark_of, mark_operation, merge
from stopgrad.core.operation import Operation, nondifferentiable
from stopgrad.core.state import next_index, state
from stopgrad.core.tensor import Tensor


def _refuse_kernel(xp: Any, *_: Any) -> NoReturn:
    raise ArgumentError("a placeholder has no value of its own; feed it")


PLACEHOLDER = nondifferentiable("placeholder", _refuse_kernel, spec=lambda spec: spec)
"""placeholder(; spec): an input of the graph."""

CONSTANT = nondifferentiable("constant", lambda xp, array: array.value, spec=lambda array: array.spec)
"""constant(; array): a value that is part of the graph."""

VARIABLE = nondifferentiable("variable", lambda xp, cell: cell.variable.raw, spec=lambda cell: cell.spec)
"""variable(; cell): the value a variable has when the graph is run."""


class ArrayParam:
    """An array as a parameter of an operation, equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def spec(self) -> Spec:
        """Shape and dtype of the array."""
        return spec_of(self.value)

    def __repr__(self) -> str:
        return np.array2string(np.asarray(self.value), separator=",", threshold=6, edgeitems=2).replace("\n", "")


class VariableParam:
    """A variable as a parameter of an operation."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    @property
    def spec(self) -> Spec:
        """Shape and dtype of the variable."""
        return Spec(self.variable.shape, self.variable.dtype)

    def __repr__(self) -> str:
        return repr(self.variable.name)


class Output:
    """One result of an operation in a graph: a symbolic array of known shape and dtype.

    It can be used like a tensor; what is computed from it is added to its graph.
    """

    __slots__ = ("__weakref__", "dtype", "index", "node", "op", "shape", "spec")
    __array_priority__ = 1000.0
    is_symbolic = True

    def __init__(self, op: GraphOperation, index: int, spec: Spec) -> None:
        self.op = op
        self.index = index
        self.spec = spec
        self.shape: Shape = spec.shape
        self.dtype = spec.dtype
        self.node: Any = None

    @property
    def graph(self) -> BaseGraph:
        """The graph the operation belongs to."""
        return self.op.graph

    @property
    def name(self) -> str:
        """The operation's name and the number of the output, as `add:0`."""
        return f"{self.op.name}:{self.index}"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    def as_output(self) -> Output:
        """Return this output: it is an operand of operations."""
        return self

    def __tensor__(self) -> Tensor:
        """Return the tensor operations take this output for."""
        return Tensor(self)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return symbolic_namespace

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TracedValueError(self.op.graph.says_unknown(self))

    def __repr__(self) -> str:
        return f"<output {self.name} {self.spec}>"


class GraphOperation:
    """One operation of a graph: what is applied, to which inputs, under which name, at which line."""

    __slots__ = ("graph", "index", "inputs", "name", "operation", "outputs", "params", "single", "source")

    def __init__(
        self,
        graph: BaseGraph,
        name: str,
        operation: Operation,
        inputs: tuple[Any, ...],
        params: tuple[Any, ...],
        specs: Spec | tuple[Spec, ...],
        source: tuple[str, int] | None,
    ) -> None:
        self.graph = graph
        self.name = name
        self.operation = operation
        self.inputs = inputs
        self.params = params
        self.source = source
        self.index = next_index()
        # Whether it gives an array, rather than a tuple of them (which may be of one).
        if isinstance(specs, Spec):
            self.single = True
            self.outputs: tuple[Output, ...] = (Output(self, 0, specs),)
        else:
            self.single = False
            self.outputs = tuple([Output(self, number, spec) for number, spec in enumerate(specs)])

    @property
    def type(self) -> str:
        """The name of the primitive that is applied."""
        return self.operation.name

    def output(self, index: int = 0) -> Output:
        """Return one of the outputs, the first by default."""
        if not 0 <= index < len(self.outputs):
            raise ArgumentError(f"{self.name} has {len(self.outputs)} outputs, there is no output {index}")
        return self.outputs[index]

    def __repr__(self) -> str:
        return f"<operation {self.name} ({self.type})>"


class BaseGraph:
    """A list of operations, each after those it depends on; users see its subclass `stopgrad.graph.Graph`.

    Args:
        outer: the graph around this one, if it is the body of a loop or branch.
    """

    is_body = False
    """Whether it takes in what it uses from outside together with its place in the record."""

    def __init__(self, outer: BaseGraph | None = None) -> None:
        self.outer = outer
        self.operations: list[GraphOperation] = []
        # What the body uses from outside: an output of the outer graph, and the placeholder that stands for it here.
        self.captures: dict[Output, Output] = {}
        self._names: dict[str, GraphOperation] = {}
        self._next_suffix: dict[str, int] = {}
        # While which operations, by index, a tape was not to see what is recorded: (first, last, how to stop it again).
        self.pauses: list[tuple[int, int, Callable[[], AbstractContextManager[None]]]] = []
        # File and line to note for operations that are added; `None` for the caller's.
        self.source: tuple[str, int] | None = None
        self._prefix = ""
        self._constants: dict[int, Output] = {}
        # Arrays of the user's that were copied for this graph, by id, with the copy.
        self.copies: dict[int, tuple[Any, Any]] = {}
        self._variables: dict[int, Output] = {}

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[GraphOperation]:
        return iter(self.operations)

    def operation(self, name: str) -> GraphOperation:
        """Return the operation of this name."""
        try:
            return self._names[name]
        except KeyError:
            raise ArgumentError(f"the graph has no operation named {name!r}") from None

    @contextmanager
    def scope(self, prefix: str) -> Iterator[None]:
        """Name the operations added in the block under `prefix`, which is taken as it is, inside no other one."""
        before = self._prefix
        self._prefix = prefix
        try:
            yield
        finally:
            self._prefix = before

    def unique_scope(self, name: str) -> str:
        """Return a scope under the current one that no operation's name is in: `name`, `name_1`, …"""
        full = f"{self._prefix}/{name}" if self._prefix else name
        number = self._next_suffix.get(f"{full}/", 0)
        self._next_suffix[f"{full}/"] = number + 1
        return full if number == 0 else f"{full}_{number}"

    def scope_counts(self) -> list[tuple[str, int]]:
        """Return the scopes there are, each with how many times its name was asked for."""
        return [(key[:-1], count) for key, count in self._next_suffix.items() if key.endswith("/")]

    def set_scope_count(self, name: str, count: int) -> None:
        """Say how many times the name of a scope was asked for."""
        self._next_suffix[f"{name}/"] = count

    @property
    def names(self) -> Mapping[str, GraphOperation]:
        """The operations by name."""
        return self._names

    @property
    def prefix(self) -> str:
        """The scope that operations are being added under."""
        return self._prefix

    def unique_name(self, base: str) -> str:
        """Return a name under the current scope that no operation has: `base`, `base_1`, …"""
        full = f"{self._prefix}/{base}" if self._prefix else base
        if full not in self._names:
            return full
        number = self._next_suffix.get(full, 1)
        while f"{full}_{number}" in self._names:
            number += 1
        self._next_suffix[full] = number + 1
        return f"{full}_{number}"

    def rename(self, operation: GraphOperation, name: str) -> None:
        """Give an operation another name, which must be free."""
        if name in self._names:
            raise ArgumentError(f"the graph has an operation named {name!r} already")
        del self._names[operation.name]
        operation.name = name
        self._names[name] = operation

    def add(
        self,
        operation: Operation,
        values: Sequence[Any] = (),
        params: tuple[Any, ...] = (),
        name: str | None = None,
        source: tuple[str, int] | None = None,
        nodes: Sequence[Any] = (),
    ) -> GraphOperation:
        """Add an operation; its inputs are outputs, arrays (which become constants) or Python numbers.

        `nodes` are those of the tensors the values belong to, for a graph that keeps what it captures connected.
        """
        if nodes:
            inputs = tuple([self.imported(value, node) for value, node in zip(values, nodes, strict=True)])
        else:
            inputs = tuple([self.imported(value) for value in values])
        specs = operation.spec(*[one.spec if type(one) is Output else one for one in inputs], *params)  # type: ignore[misc]
        unique = self.unique_name(operation.name if name is None else name)
        if source is None:
            source = self.source or calling_line()
        return self.put(operation, inputs, params, unique, specs, source)

    def put(
        self,
        operation: Operation,
        inputs: tuple[Any, ...],
        params: tuple[Any, ...],
        name: str,
        specs: Spec | tuple[Spec, ...],
        source: tuple[str, int] | None,
    ) -> GraphOperation:
        """Add an operation whose inputs are this graph's, whose name is free and whose results are known."""
        added = GraphOperation(self, name, operation, inputs, params, specs, source)
        _give_nodes(added)
        self.operations.append(added)
        self._names[added.name] = added
        return added

    def placeholder(self, spec: Spec, name: str | None = None) -> Output:
        """Add an input of the graph."""
        return self.add(PLACEHOLDER, (), (spec,), name).outputs[0]

    def constant(self, value: Any, name: str | None = None) -> Output:
        """Add an array as part of the graph; the same array twice is added once."""
        known = self._constants.get(id(value))
        if known is not None and name is None:
            return known
        added = self.add(CONSTANT, (), (ArrayParam(value),), name).outputs[0]
        self._constants[id(value)] = added
        return added

    def variable(self, variable: Any) -> Output:
        """Return what stands for a variable in this graph, added when it is first asked for."""
        if id(variable) not in self._variables:
            added = self.add(VARIABLE, (), (VariableParam(variable),), variable.name)
            self._variables[id(variable)] = added.outputs[0]
        return self._variables[id(variable)]

    def note_constant(self, added: GraphOperation) -> None:
        """Remember a constant that was put here, so that its array is not added again."""
        self._constants.setdefault(id(added.params[0].value), added.outputs[0])

    def note_variable(self, added: GraphOperation) -> bool:
        """Remember a reading of a variable that was put here; return whether there was one already."""
        key = id(added.params[0].variable)
        return self._variables.setdefault(key, added.outputs[0]) is not added.outputs[0]

    def imported(self, value: Any, node: Any = None) -> Any:
        """Return a value as an input of this graph's operations; `node` is that of its tensor, if it has one."""
        if type(value) is Output:
            return value if value.op.graph is self else self._captured(value)
        return value if type(value) in PYTHON_SCALARS else self.constant(value)

    def taken_in(self, value: Any, node: Any) -> tuple[Any, Any]:
        """Return the value and node by which this graph's operations take a tensor from outside: its own."""
        return value, node

    def _captured(self, value: Output) -> Output:
        if value in self.captures:
            return self.captures[value]
        if self.outer is None:
            raise ArgumentError(f"{value} belongs to another graph; an operation takes outputs of its own graph only")
        inner = self.placeholder(value.spec, "captured")
        self.captures[self.outer.imported(value)] = inner
        return inner

    def by_example(self, value: Any, node: Any) -> Any:
        """Return what stands for a recorded value in this graph, if it is traced for one of many examples."""
        return value

    def draw(self, sample: Callable[[Shape], Any], home: BaseGraph | None) -> Any:
        """Return random numbers drawn while this graph is traced, a constant of it; see `draw`."""
        return sample(()) if self.outer is None or self is home else self.outer.draw(sample, home)

    def says_unknown(self, output: Output) -> str:
        """Return what the error says when something asks for the value of an output."""
        return (
            f"the value of {output} is not known while the program is traced, but something asks for it (float(), "
            "bool(), an `if` or `while`, np.asarray, .numpy() or printing its entries); use cond, while_loop or where "
            "for what depends on values, or pass the value in as a constant"
        )


def draw(sample: Callable[[Shape], Any], home: BaseGraph | None = None) -> Any:
    """Return random numbers: what `sample(())` gives, or, for one example of many, a part of what it gives for all.

    Args:
        sample: draws an array with the given shape in front of its own.
        home: the graph that was being traced when the source of the numbers was made. It is made for one example then,
            and gives every example the same.
    """
    graph: BaseGraph | None = state.graph
    return sample(()) if graph is None else graph.draw(sample, home)


def emit(operation: Operation, values: Sequence[Any], params: tuple[Any, ...], nodes: Sequence[Any] = ()) -> Any:
    """Add an operation to the graph that is being built and return its output, or a tuple of them if it has several.

    The graph is the one being traced in this thread, else the one the values belong to. `nodes`: see `BaseGraph.add`.
    """
    graph = state.graph
    if graph is None:
        graph = next(value for value in values if type(value) is Output).op.graph
    added = graph.add(operation, values, params, nodes=nodes)
    return added.outputs[0] if added.single else added.outputs


def _give_nodes(added: GraphOperation) -> None:
    """Give the outputs their nodes of the record, everything kept.

    Every floating-point output gets one, also that of a stop or a constant, so that derivatives can be asked for there;
    what is behind an operation without derivative appears among the parents as its mark. Other outputs get the mark.
    """
    operation, params = added.operation, added.params
    if operation is PLACEHOLDER or operation is VARIABLE:
        operation, params = LEAF, ()
        parents: tuple[Any, ...] = (None,)
        kept: tuple[Any, ...] = (None, None)
    else:
        parents = tuple([one.node if type(one) is Output else None for one in added.inputs])
        kept = (*added.inputs, added.outputs[0] if added.single else added.outputs)
    if operation.gates is not None:
        parents, kept = (*parents, operation.gates(*params)), (*kept[:-1], None, kept[-1])
    if not operation.differentiable and any(type(parent) is tuple for parent in parents):
        file, line = added.source if added.source is not None else (None, None)
        name = params[0] if operation.name == "stop_gradient" else None
        mark = mark_of(frozenset((Origin(operation.name, name, file, line),)))
        parents = tuple(mark if type(parent) is tuple else parent for parent in parents)
    if added.single:
        (out,) = added.outputs
        if carries_derivative(out.dtype):
            out.node = (added.index, operation, parents, kept, out.shape, out.dtype, params)
        else:
            out.node = _merged(parents, operation)
        return
    base = (added.index, operation, parents, kept, None, None, params)
    for out in added.outputs:
        if carries_derivative(out.dtype):
            out.node = (next_index(), PROJECT, (base,), (None, None), out.shape, out.dtype, (out.index,))
        else:
            out.node = _merged(parents, operation)


def _merged(parents: Sequence[Any], operation: Operation) -> Mark | None:
    mark: Mark | None = None
    for parent in parents:
        mark = merge(mark, mark_operation(operation.name) if type(parent) is tuple else parent)
    return mark


class _SymbolicNamespace:
    """The few array functions that are asked of an output's namespace: those that make constants like it."""

    @staticmethod
    def _full(x: Any, dtype: Any, number: float) -> Any:
        return np.broadcast_to(np.asarray(number, x.dtype if dtype is None else dtype), x.shape)

    def zeros_like(self, x: Any, dtype: Any = None) -> Any:
        """Return zeros of the shape of x, a view of a single one."""
        return self._full(x, dtype, 0)

    def ones_like(self, x: Any, dtype: Any = None) -> Any:
        """Return ones of the shape of x, a view of a single one."""
        return self._full(x, dtype, 1)

    def full_like(self, x: Any, fill_value: Any, dtype: Any = None) -> Any:
        """Return an array of the shape of x, a view of a single entry."""
        return self._full(x, dtype, fill_value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(np, name)
        return function


symbolic_namespace = _SymbolicNamespace()
