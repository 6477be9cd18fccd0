"""`vmap`: a function written for one example, applied to many along an axis of its arguments.

The function is traced once, for one example; then its graph is run with an axis of examples in front of whatever
differs between them (see `stopgrad.batching`). What that computes is recorded like anything else, so derivatives of a
mapped function, and mapped derivatives, are nothing special.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stopgrad.batching import ExampleGraph
from stopgrad.batching.application import Entry
from stopgrad.control.axes import axes_for
from stopgrad.control.rules import ALL_RULES
from stopgrad.core.arrays import is_array, is_numeric
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.pytree import flatten, is_number_list, paths, unflatten
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.axes import moveaxis
from stopgrad.primitives.inputs import to_integer, to_tensor
from stopgrad.primitives.shape import broadcast_to

Axes = Any
"""An axis, `None`, or a tree of them."""


def vmap(
    f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that applies `f` to every example along an axis of its arguments, all at once.

    `f` is written for one example: inside it, a mapped argument has no axis of examples. It is called once, with
    symbolic tensors, so Python's control flow cannot depend on values that differ between examples; arguments that are
    not mapped, and what `f` uses from outside, are what they are. Derivatives can be taken inside `f`, of the mapped
    function, or both, and every gate does for one example what it does without vmap: `clip_gradient(norm=)` clips the
    norm of each example.

    Args:
        f: function of pytrees of tensors that returns a pytree of tensors.
        in_axes: which axis of each positional argument to map over: an integer for all arguments, or a tuple with an
            entry an argument, each an integer, `None` (the argument is the same for all examples), or a tree of these
            like the argument or like its upper part. Keyword arguments are mapped over their first axis.
        out_axes: where the axis of examples is in the results: an integer, or a tree of them like the result or its
            upper part. `None` gives a result without it, which must not differ between examples.
        axis_size: how many examples; needed only if nothing is mapped.

    Returns:
        A function with the arguments of `f`, and the results of `f` with the axis of examples.

    Raises:
        ArgumentError: nothing is mapped, or a tree of axes does not fit.
        ShapeError: mapped arguments with different numbers of examples, or an axis out of range.
        TracedValueError: `f` asks for a value that differs between examples, with `if`, `float()` …

    Example:
        >>> import stopgrad as sg
        >>> norms = sg.vmap(sg.linalg.norm)
        >>> norms([[3.0, 4.0], [0.0, 2.0]]).numpy()
        array([5., 2.])

        Gradients of one loss for each example:

        >>> def loss(w, x, y):
        ...     return (x @ w - y) ** 2
        >>> x, y = sg.tensor([[1.0, 0.0], [1.0, 1.0]]), sg.tensor([1.0, 0.0])
        >>> sg.vmap(sg.grad(loss), in_axes=(None, 0, 0))(sg.tensor([1.0, 1.0]), x, y).numpy()
        array([[0., 0.],
               [4., 4.]])
    """
    if not callable(f):
        raise ArgumentTypeError(f"vmap: takes a function, got a {type(f).__name__}; write vmap(f)(x)")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    name = getattr(f, "__name__", "f")

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = flatten((args, kwargs), number_lists=True)
        axes = _axes_of_arguments(in_axes, args, kwargs, name)
        labels = _labels(args, kwargs)
        examples = [
            None if axis is None else _in_front(leaf, axis, label)
            for leaf, axis, label in zip(leaves, axes, labels, strict=True)
        ]
        graph = ExampleGraph(name, _size(examples, axes, labels, axis_size), ALL_RULES)
        try:
            with graph.tracing():
                given = [
                    _the_same(leaf) if example is None else graph.example_of(example)
                    for leaf, example in zip(leaves, examples, strict=True)
                ]
                own_args, own_kwargs = unflatten(treedef, given)
                results, out_tree = flatten(f(*own_args, **own_kwargs), number_lists=True)
                tensors = [to_tensor(one, f"vmap: the result of {name}") for one in results]
                outputs = graph.outputs_of(tensors)
            places = axes_for(out_axes, unflatten(out_tree, tensors), "out_axes", "the result")
            entries = graph.run(outputs)
        finally:
            graph.release()
        return unflatten(
            out_tree, [_placed(entry, axis, graph.size, name) for entry, axis in zip(entries, places, strict=True)]
        )

    return mapped


def _axes_of_arguments(in_axes: Axes, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> list[int | None]:
    """Return an axis (or `None`) for each leaf of the arguments, those given by keyword last."""
    each = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    if len(each) != len(args):
        raise ArgumentError(
            f"vmap: in_axes has {len(each)} entries, but {name} was called with {len(args)} positional arguments; give "
            "an entry for each, or one integer for all"
        )
    axes = [axes_for(one, arg, "in_axes", f"argument {i}") for i, (one, arg) in enumerate(zip(each, args, strict=True))]
    return [axis for found in (*axes, axes_for(0, kwargs, "in_axes", "keywords")) for axis in found]


def _labels(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return how to call each leaf of the arguments in errors."""
    named = [(f"argument {i}", arg) for i, arg in enumerate(args)]
    named += [(f"keyword {key!r}", kwargs[key]) for key in sorted(kwargs)]
    return [label + path for label, arg in named for path in paths(arg)]


def _in_front(leaf: Any, axis: int, label: str) -> Tensor:
    """Return a mapped argument with the axis of examples in front."""
    try:
        tensor = to_tensor(leaf, f"vmap: {label}")
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}; with in_axes=None it is passed on as it is") from error
    if not -tensor.ndim <= axis < tensor.ndim:
        shown = f"axis {axis} is out of range for {label}, of shape {tensor.shape}"
        raise ShapeError(f"vmap: {shown}; to give it to all examples as it is, set its in_axes to None")
    return tensor if axis in (0, -tensor.ndim) else moveaxis(tensor, axis, 0)


def _size(
    examples: Sequence[Tensor | None], axes: Sequence[int | None], labels: Sequence[str], axis_size: int | None
) -> int:
    """Return how many examples there are, or raise naming the arguments that disagree."""
    sizes = {
        label: (example.shape[0], axis)
        for example, axis, label in zip(examples, axes, labels, strict=True)
        if example is not None
    }
    if axis_size is None and not sizes:
        raise ArgumentError(
            "vmap: nothing is mapped, so there is no telling how many examples there are; give an argument an axis in "
            "in_axes, or axis_size="
        )
    size = next(iter(sizes.values()))[0] if axis_size is None else to_integer("vmap", "axis_size", axis_size)
    if any(one != size for one, _ in sizes.values()):
        listed = ", ".join(f"{label} {one} along axis {axis}" for label, (one, axis) in sizes.items())
        wanted = "" if axis_size is None else f"axis_size is {size}, but "
        raise ShapeError(f"vmap: {wanted}the numbers of examples differ: there are in {listed}")
    return size


def _the_same(leaf: Any) -> Any:
    """Return an argument that is not mapped as the function gets it: arrays and number lists as tensors."""
    is_strange = isinstance(leaf, np.ndarray) and not is_numeric(leaf.dtype)
    return to_tensor(leaf, "vmap") if is_number_list(leaf) or (is_array(leaf) and not is_strange) else leaf


def _placed(entry: Entry, axis: int | None, size: int, name: str) -> Tensor:
    """Return a result with the axis of examples where it belongs."""
    tensor = to_tensor(entry.value, "vmap")
    if axis is None:
        if entry.mapped:
            raise ArgumentError(
                f"vmap: out_axes is None for a result of {name} that differs between examples; give it an axis"
            )
        return tensor
    if not entry.mapped:
        tensor = broadcast_to(tensor, (size, *tensor.shape))
    if not -tensor.ndim <= axis < tensor.ndim:
        raise ShapeError(
            f"vmap: out_axes has axis {axis}, which is out of range for a result of {name} that has {tensor.ndim} axes "
            "with that of examples"
        )
    return tensor if axis in (0, -tensor.ndim) else moveaxis(tensor, 0, axis)
