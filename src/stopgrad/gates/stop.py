"""`stop_gradient`: the gate that lets nothing pass.

Its result is a constant that remembers the gate (a `Mark`), so what is computed from it alone is never recorded: a
stopped branch costs what a plain forward costs. Only a stop that depends on who asks (named and switched, or of the
innermost level among several) stays in the record, as `conditional_stop`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from stopgrad.core.builtin import STOP
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.graph import Output, emit
from stopgrad.core.marks import Mark, mark_here, merge
from stopgrad.core.pytree import TreeDef, flatten, flatten_like, unflatten
from stopgrad.core.record import bind, coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.gates.operations import CONDITIONAL_STOP, STOP_WHERE
from stopgrad.primitives.selection import WHERE


def stop_gradient(
    tree: Any,
    *,
    where: Any = None,
    name: str | None = None,
    level: Literal["all", "innermost"] = "all",
    open: bool = False,
) -> Any:
    """Return the tree unchanged, as far as values go; no derivative passes, in any mode, at any order.

    What is behind the gate is *unconnected* through it: the path is absent, not multiplied by zero, so no NaN or inf
    there can leak, and nothing computed only for it is kept. The gate stops the path, not the tensor: the same tensor
    used elsewhere still gets its gradient.

    Args:
        tree: a tensor, or any pytree of them. Leaves that are no tensors (arrays, numbers, strings, `None`) carry no
            derivative and pass untouched.
        where: booleans; the gate stops only the entries where it is true. One mask for all leaves or a tree of the
            same structure; each must broadcast to the shape of its leaf.
        name: what to call this gate. Reports and errors show it, and `grad(..., stop={name: False})` lets pass what
            it stops, for that one gradient call.
        level: "all" stops every derivative; "innermost" only those of the innermost `grad`, `vjp`, `jvp` or tape that
            is recording where the gate stands, and lets the outer ones pass.
        open: let everything pass, unless a gradient call names the gate in its `stop=`. Needs a name.

    Returns:
        A tree of the same structure; values, shape, dtype and array library are those of the input, without a copy.

    Raises:
        ArgumentError: an unknown level, or `open` without a name.
        ArgumentTypeError: a name that is not a string.
        ShapeError: `where` does not broadcast to its leaf.

    Example:
        >>> import stopgrad as sg
        >>> float(sg.grad(lambda x: x * sg.stop_gradient(x))(3.0))
        3.0
        >>> mask = [False, True, True]
        >>> sg.grad(lambda x: sg.sum(sg.stop_gradient(x, where=mask)))([1.0, float("inf"), 2.0]).numpy()
        array([1., 0., 0.])
    """
    if level not in ("all", "innermost"):
        raise ArgumentError(f"stop_gradient: level must be 'all' or 'innermost', got {level!r}")
    if open and name is None:
        raise ArgumentError("stop_gradient: open=True needs a name, by which a gradient call can close the gate")
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"stop_gradient: name must be a string, got {name!r:.60}")
    state.meet_gate(name)
    mark = mark_here("stop_gradient", name)
    if type(tree) is Tensor and where is None:
        return _stop(tree, mark, name, level, open)
    leaves, treedef = flatten(tree)
    masks = _masks(where, len(leaves), treedef)
    return unflatten(
        treedef, [_stop_leaf(leaf, mark, mask, name, level, open) for leaf, mask in zip(leaves, masks, strict=True)]
    )


def _stop_leaf(x: Any, mark: Mark, mask: Any, name: str | None, level: str, open: bool) -> Any:
    if not isinstance(x, Tensor) and not hasattr(x, "__tensor__"):
        return x
    tensor = x if type(x) is Tensor else Tensor(*coerce(x, "stop_gradient"))
    if mask is None:
        return _stop(tensor, mark, name, level, open)
    mask_value, _ = coerce(mask, "stop_gradient: where")
    mask_value = np.asarray(mask_value) if type(mask_value) is bool else mask_value
    if str(mask_value.dtype).removeprefix("torch.") != "bool":
        raise ArgumentError(f"stop_gradient: where must be boolean, got {mask_value.dtype}; compare to make a mask")
    try:
        fits = np.broadcast_shapes(tuple(mask_value.shape), tensor.shape) == tensor.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"stop_gradient: where has shape {tuple(mask_value.shape)}, which does not broadcast to {tensor.shape}, "
            "the shape of the value it gates"
        )
    if type(tensor.value) is not Output and (type(tensor.node) is not tuple or not state.recording):
        return _stop(tensor, mark, name, level, open)
    if level == "all" and name is None and (state.gate_observer is None or type(tensor.value) is Output):
        return bind(STOP_WHERE, (tensor, mask_value))
    return bind(WHERE, (mask_value, _stop(tensor, mark, name, level, open), tensor))


def _stop(x: Tensor, mark: Mark, name: str | None, level: str, open: bool) -> Tensor:
    if type(x.value) is Output or (type(x.node) is tuple and state.recording):
        switched = name is not None and any(name in one.switches for one in state.levels)
        # A graph may be differentiated again after the levels that are going on now.
        inner_only = level == "innermost" and len(state.levels) > (0 if type(x.value) is Output else 1)
        if open or switched or inner_only:
            return bind(CONDITIONAL_STOP, (x,), (name, not open, state.levels[-1].number if inner_only else None))
    return stopped(x, mark, name)


def stopped(x: Tensor, mark: Mark, name: str | None) -> Tensor:
    """Return a tensor as a constant that remembers the gate; in a graph as the result of a stop."""
    value, node = x.value, x.node
    if type(value) is Output:
        value = emit(STOP, (value,), (name,))
    elif type(node) is tuple and state.recording and state.gate_observer is not None:
        value = state.gate_observer("stop_gradient", value, lambda now, frozen: frozen)
    return Tensor(value, mark if type(node) is tuple else merge(node, mark))


def _masks(where: Any, count: int, treedef: TreeDef) -> list[Any]:
    """Return a mask (or `None`) for each leaf; `where` is one mask unless it has the structure of the tree."""
    if where is None:
        return [None] * count
    masks, structure = flatten(where)
    if count != 1 and structure == treedef:
        return masks
    if isinstance(where, dict):
        return flatten_like(treedef, where, "stop_gradient: where")
    return [where] * count
