"""The record: nodes, and `bind`, which runs an operation and appends its node if any input is recorded.

A node is a plain tuple (making one costs 40 ns, an object six times that), read through the names below:

    (index, operation, parents, kept, shape, dtype, params)

`index` grows with creation, so a sweep sorts instead of searching and never recurses. `parents[i]` is the node of input
i, or a `Mark` or `None` where that input is a constant. `kept` holds raw arrays for (*inputs, output), `None` where no
rule that can be asked needs one. Nodes point only backwards, so what nobody can reach any more is freed by Python.

This file is the hot path of the whole library; `python -m bench tape` measures it. Calls with an empty `*params` are
spelled out because the star alone costs a tenth of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import (
    NUMPY_TYPES,
    PYTHON_SCALARS,
    carries_derivative,
    is_array,
    is_numeric,
    is_numpy,
    namespace_of,
)
from stopgrad.core.builtin import LEAF, PROJECT, STACK, STOP
from stopgrad.core.errors import (
    ArgumentTypeError,
    BoundsError,
    DisposedError,
    LinearAlgebraError,
    ShapeError,
    StopgradError,
)
from stopgrad.core.graph import Output, emit
from stopgrad.core.marks import Mark, mark_operation, merge
from stopgrad.core.operation import Operation
from stopgrad.core.state import IN_BODY, next_index, state
from stopgrad.core.tensor import Disposed, Tensor, creation_observers

Node = tuple[Any, ...]
INDEX, OPERATION, PARENTS, KEPT, SHAPE, DTYPE, PARAMS = range(7)

_ndarray = np.ndarray
_READ_WITH_CARE = frozenset((Disposed, Output))
_IMMUTABLE = frozenset(("jax", "jaxlib", "dask"))  # libraries whose arrays cannot be written into
_new = object.__new__  # with the two fields set, half the price of calling the class


def bind1(operation: Operation, x: Any, params: tuple[Any, ...] = ()) -> Tensor:
    """Apply an operation of one input. Same as `bind(operation, (x,), params)`, with the usual case laid straight."""
    if type(x) is not Tensor:
        return bind(operation, (x,), params)
    value = x.value
    if type(value) is not _ndarray:
        return bind(operation, (x,), params)
    try:
        out = operation.numpy_kernel(value, *params) if params else operation.numpy_kernel(value)
    except Exception as error:
        raise explain(operation, (value,), error) from error
    node = x.node
    if type(node) is not tuple and state.block is None:
        return Tensor(out, node)
    if type(node) is not tuple or state.recording is not True or not operation.differentiable:
        return _unusual(operation, out, (node,), (x,), params)
    keep_input, keep_output = operation.keeps[1]
    kept = (value if keep_input else None, out if keep_output else None)
    if creation_observers:
        return Tensor(out, (next_index(), operation, (node,), kept, out.shape, out.dtype, params))
    result = _new(Tensor)
    result.value = out
    result.node = (next_index(), operation, (node,), kept, out.shape, out.dtype, params)
    return result


def bind2(operation: Operation, a: Any, b: Any, params: tuple[Any, ...] = ()) -> Tensor:
    """Apply an operation of two inputs. Same as `bind(operation, (a, b), params)`, the usual case laid straight."""
    if type(a) is Tensor:
        value_a = a.value
        node_a = a.node
    elif type(a) in PYTHON_SCALARS:
        value_a, node_a = a, None
    else:
        return bind(operation, (a, b), params)
    if type(b) is Tensor:
        value_b = b.value
        node_b = b.node
    elif type(b) in PYTHON_SCALARS:
        value_b, node_b = b, None
    else:
        return bind(operation, (a, b), params)
    if type(value_a) not in NUMPY_TYPES or type(value_b) not in NUMPY_TYPES:
        return bind(operation, (a, b), params)
    try:
        if params:
            out = operation.numpy_kernel(value_a, value_b, *params)
        else:
            out = operation.numpy_kernel(value_a, value_b)
    except Exception as error:
        raise explain(operation, (value_a, value_b), error) from error
    if type(node_a) is tuple:
        live = 3 if type(node_b) is tuple else 1
    elif type(node_b) is tuple:
        live = 2
    elif state.block is None:
        return Tensor(out, node_a if node_b is None else merge(node_a, node_b))
    else:
        return constant(operation, out, (node_a, node_b))
    if state.recording is not True or not operation.differentiable:
        return _unusual(operation, out, (node_a, node_b), (a, b), params)
    keep_a, keep_b, keep_out = operation.keeps[live]
    kept = (value_a if keep_a else None, value_b if keep_b else None, out if keep_out else None)
    if creation_observers:
        return Tensor(out, (next_index(), operation, (node_a, node_b), kept, out.shape, out.dtype, params))
    result = _new(Tensor)
    result.value = out
    result.node = (next_index(), operation, (node_a, node_b), kept, out.shape, out.dtype, params)
    return result


def bind(operation: Operation, inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> Tensor:
    """Run an operation on tensors, arrays or numbers and return the result, recorded if any input is.

    Args:
        operation: what to apply.
        inputs: its data, differentiated by position.
        params: its settings, hashable, passed to kernel and rules after the data.
    """
    values, parents, live = _unpack(operation, inputs)
    out = compute(operation, values, params, parents)
    if not live or not state.recording or not operation.differentiable:
        return constant(operation, out, parents)
    kept = operation.kept(_in_one_library(values), [type(parent) is tuple for parent in parents], out)
    return Tensor(out, (next_index(), operation, parents, kept, out.shape, out.dtype, params))


def bind_many(operation: Operation, inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> tuple[Tensor, ...]:
    """Like `bind`, for an operation whose kernel returns a tuple: one node for the operation, one for each output."""
    values, parents, live = _unpack(operation, inputs)
    outs = compute(operation, values, params, parents)
    gates = () if operation.gates is None else (operation.gates(*params),)
    if not live or not state.recording or not operation.differentiable:
        return tuple(constant(operation, out, (*parents, *gates)) for out in outs)
    kept = operation.kept(_in_one_library(values), [type(parent) is tuple for parent in parents], outs)
    if gates:
        parents, kept = (*parents, *gates), (*kept[:-1], None, kept[-1])
    return outputs_of((next_index(), operation, parents, kept, None, None, params), outs)


def _unusual(
    operation: Operation, out: Any, parents: tuple[Any, ...], inputs: tuple[Any, ...], params: tuple[Any, ...]
) -> Tensor:
    """Return a result that is not recorded; or, in a body, do it again with what is recorded outside taken in."""
    if state.recording is IN_BODY and any(type(parent) is tuple for parent in parents):
        return bind(operation, inputs, params)
    return constant(operation, out, parents)


def outputs_of(node: Node, outs: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return the outputs of an operation that has several as tensors, each with a node of its own.

    An output of integers carries no derivative; it has the mark of an operation without one.
    """
    return tuple(
        Tensor(out, (next_index(), PROJECT, (node,), (None, None), out.shape, out.dtype, (number,)))
        if carries_derivative(out.dtype)
        else Tensor(out, mark_operation(node[OPERATION].name))
        for number, out in enumerate(outs)
    )


def constant(operation: Operation, out: Any, parents: tuple[Any, ...]) -> Tensor:
    """Return a result that is not recorded, with the mark of whatever cut it off."""
    mark: Mark | None = None
    for parent in parents:
        if type(parent) is tuple:
            if not operation.differentiable:
                mark = merge(mark, mark_operation(operation.name))
        elif parent is not None:
            mark = merge(mark, parent)
    if state.block is not None:
        mark = merge(mark, state.block)
        if type(out) is Output:
            out = emit(STOP, (out,), ("no_gradient",))
        elif state.gate_observer is not None:
            out = state.gate_observer("no_gradient", out, lambda now, frozen: frozen)
    return Tensor(out, mark)


def leaf(value: Any, parent: Any = None) -> Tensor:
    """Return a tensor that derivatives can be taken for: a new node, fed by the given one if that is recorded too."""
    return Tensor(value, (next_index(), LEAF, (parent,), (None, None), value.shape, value.dtype, ()))


def coerce(x: Any, name: str = "an operation") -> tuple[Any, Any]:
    """Return (value, node) of anything that can be an operation's input."""
    if isinstance(x, Tensor):
        if type(x.value) is Disposed:
            raise DisposedError(f"{name}: its input has been disposed; keep() it or return it from the tidy block")
        return _at_hand(x.value, x.node)
    if type(x) in PYTHON_SCALARS:
        return x, None
    if isinstance(x, np.ndarray):
        if not is_numeric(x.dtype):
            raise ArgumentTypeError(
                f"{name}: cannot compute with an array of dtype {x.dtype}; convert it to a numeric dtype first"
            )
        return private(x, name), None
    if hasattr(x, "__tensor__"):  # variables, and whatever else stands for a tensor
        read = x.__tensor__()
        return _at_hand(read.value, read.node)
    if is_array(x):
        return private(x, name), None
    if isinstance(x, list | tuple):
        return _stack_nested(x, name)
    raise ArgumentTypeError(
        f"{name}: cannot use a {type(x).__name__} ({x!r:.60}) as a tensor; pass a number, a (nested) list of numbers, "
        "an array or a Tensor"
    )


def private(array: Any, name: str) -> Any:
    """Return an array that nobody else can write into: a copy, unless this is one already.

    Tensors never change: their values may be kept for derivatives, and results may be views of them.
    """
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentTypeError(
                f"{name}: a masked array has no derivative; pass array.filled(value), and choose entries with where()"
            )
        owner: Any = array
        while isinstance(owner, np.ndarray):
            if owner.flags.writeable:
                return _copied(array)
            owner = owner.base
        return np.asarray(array)
    if isinstance(array, np.generic) or type(array).__module__.partition(".")[0] in _IMMUTABLE:
        return array
    return _copied(array)


def _copied(array: Any) -> Any:
    """Return a copy; while a program is traced the one that its graph has already, if it still is one."""
    graph = state.graph
    known = None if graph is None else graph.copies.get(id(array))
    if known is not None and _same(known[0], known[1]):
        return known[1]
    copy = np.array(array) if isinstance(array, np.ndarray) else namespace_of(array).asarray(array, copy=True)
    if graph is not None:
        graph.copies[id(array)] = (array, copy)
    return copy


def _same(array: Any, copy: Any) -> bool:
    """Whether nobody has written into the array since the copy was taken."""
    if array.shape != copy.shape or array.dtype != copy.dtype:
        return False
    if isinstance(array, np.ndarray):
        return array.tobytes() == copy.tobytes()
    return bool(namespace_of(array).all(array == copy))


def _at_hand(value: Any, node: Any) -> tuple[Any, Any]:
    """Return value and node of a tensor as the graph that is being traced takes them, if one is."""
    graph = state.graph
    if graph is None:
        return value, node
    if (type(value) is Output and value.op.graph is not graph) or (type(node) is tuple and state.recording is IN_BODY):
        taken: tuple[Any, Any] = graph.taken_in(value, node)
        return taken
    return value, node


def _stack_nested(x: list[Any] | tuple[Any, ...], name: str) -> tuple[Any, Any]:
    if _holds_tensor(x):
        stacked = bind(STACK, [_as_tensor(entry, name) for entry in x], (0,))
        return stacked.value, stacked.node
    try:
        array = np.asarray(x)
    except ValueError as error:
        if "maximum number of dimension" in str(error):
            raise ShapeError(f"{name}: the list is nested deeper than the 64 axes an array can have") from error
        raise ShapeError(f"{name}: the nested list is ragged; give every row the same length") from error
    if not is_numeric(array.dtype):
        raise ArgumentTypeError(f"{name}: cannot make a tensor of {x!r:.60}; pass numbers")
    return array, None


def _as_tensor(x: Any, name: str) -> Tensor:
    if type(x) is Tensor:
        return x
    value, node = coerce(x, name)
    return Tensor(np.asarray(value) if type(value) in PYTHON_SCALARS else value, node)


def _holds_tensor(x: Any) -> bool:
    pending = [x]
    while pending:
        one = pending.pop()
        if isinstance(one, Tensor) or hasattr(one, "__tensor__"):
            return True
        if isinstance(one, list | tuple):
            pending.extend(one)
    return False


def compute(operation: Operation, values: Sequence[Any], params: tuple[Any, ...], nodes: Sequence[Any] = ()) -> Any:
    """Run an operation's kernel on raw values in the namespace they belong to, or add it to a graph.

    `nodes` are those of the tensors the values belong to; only a graph looks at them.
    """
    for value in values:
        if type(value) not in NUMPY_TYPES:
            if any(type(one) is Output for one in values):
                return _emitted(operation, values, params, nodes)
            xp = namespace_of(*values)
            break
    else:
        xp = np
    try:
        if xp is np:
            return operation.numpy_kernel(*values, *params)
        return operation.kernel(xp, *(_in_namespace(xp, value) for value in values), *params)
    except Exception as error:
        raise explain(operation, values, error) from error


def _emitted(operation: Operation, values: Sequence[Any], params: tuple[Any, ...], nodes: Sequence[Any]) -> Any:
    try:
        return emit(operation, values, params, nodes)
    except Exception as error:
        raise explain(operation, values, error) from error


def run(operation: Operation, *values: Any, params: tuple[Any, ...] = ()) -> Any:
    """Apply an operation inside a rule: on raw arrays it gives a raw array, on tensors a tensor.

    For rules whose text is another operation (the adjoint of take is scatter-add) rather than a function of `xp`.
    """
    if any(isinstance(value, Tensor) for value in values):
        return bind(operation, values, params)
    return compute(operation, values, params)


def explain(operation: Operation, values: Sequence[Any], error: Exception) -> Exception:
    """Return the error to raise for a kernel that failed: named after the operation, with the shapes it was given."""
    if isinstance(error, StopgradError):
        return error
    shown = " and ".join(f"{getattr(v, 'dtype', type(v).__name__)}{list(getattr(v, 'shape', ()))}" for v in values)
    if isinstance(error, ValueError | IndexError) and "broadcast" in str(error):
        shapes = " and ".join(str(tuple(getattr(v, "shape", ()))) for v in values)
        return ShapeError(
            f"{operation.name}: shapes {shapes} do not broadcast together; sizes must be equal or 1, counted from the "
            "last axis (use reshape or expand_dims to line them up)"
        )
    text = f"{operation.name} of {shown}: {error}"
    if isinstance(error, np.linalg.LinAlgError):
        return LinearAlgebraError(text)
    if isinstance(error, IndexError):
        return BoundsError(text)
    if isinstance(error, ValueError):
        return ShapeError(text)
    if isinstance(error, TypeError):
        return ArgumentTypeError(text)
    return error


def _unpack(operation: Operation, inputs: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...], bool]:
    values: list[Any] = []
    parents: list[Any] = []
    live = False
    for x in inputs:
        if type(x) is Tensor:
            value, node = x.value, x.node
            if type(value) in _READ_WITH_CARE:
                value, node = coerce(x, operation.name)
        else:
            value, node = coerce(x, operation.name)
        values.append(value)
        parents.append(node)
        live = live or type(node) is tuple
    if live and state.recording is IN_BODY:
        taken = [_at_hand(*one) for one in zip(values, parents, strict=True)]
        values, parents = [value for value, _ in taken], [node for _, node in taken]
        live = any(type(node) is tuple for node in parents)
    return values, tuple(parents), live


def _in_one_library(values: list[Any]) -> list[Any]:
    """Return values that a rule can compute with: beside an array of another library NumPy's become that library's."""
    for value in values:
        if type(value) not in NUMPY_TYPES:
            if any(type(one) is Output for one in values):
                return values
            xp = namespace_of(*values)
            return values if xp is np else [_in_namespace(xp, one) for one in values]
    return values


def _in_namespace(xp: Any, value: Any) -> Any:
    if type(value) in PYTHON_SCALARS or not is_numpy(value):
        return value
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()  # PyTorch warns of arrays that are not to be written to
    return xp.asarray(value)
