"""`while_loop`, `fori_loop` and `scan`: loops whose carry is a pytree of tensors.

With values at hand they are Python loops, and every operation is recorded by itself. While a program is traced they add
one operation that holds the body, with derivatives in both modes at every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.control.looping import Draft
from stopgrad.control.scanning import emit_scan
from stopgrad.control.tracing import (
    Arguments,
    Traced,
    arguments,
    check_carry,
    is_known,
    result_of,
    scratch_graph,
    spec_of,
    to_predicate,
    traced,
    tracing_graph,
)
from stopgrad.control.whiling import emit_while
from stopgrad.core.arrays import Spec
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.graph import BaseGraph, Output
from stopgrad.core.pytree import TreeDef, flatten, unflatten
from stopgrad.core.tensor import Tensor
from stopgrad.graph.body import closed
from stopgrad.primitives.inputs import to_tensor
from stopgrad.transforms.common import release


def while_loop(
    cond_fn: Callable[[Any], Any],
    body_fn: Callable[[Any], Any],
    init: Any,
    *,
    max_iterations: int | None = None,
) -> Any:
    """Return what becomes of `init` by `carry = body_fn(carry)` for as long as `cond_fn(carry)` holds.

    Reverse mode works, though nobody knows beforehand how often the loop runs: while it does, those carries are kept
    that derivatives need. No derivative passes through the condition.

    Args:
        cond_fn: function of the carry that returns one boolean.
        body_fn: function of the carry that returns one of the same structure, shapes and dtypes.
        init: the first carry, a pytree of tensors. Python numbers count as arrays of NumPy's default dtype.
        max_iterations: stop after so many, whatever the condition says.

    Raises:
        ArgumentTypeError: `cond_fn` returns something that is not one boolean.
        ArgumentError: `body_fn` changes the structure, a shape or a dtype.

    Example:
        >>> import stopgrad as sg
        >>> halved = lambda x: sg.while_loop(lambda c: c > 1, lambda c: c * 0.5, x)
        >>> float(halved(6.0)), float(sg.grad(halved)(6.0)), float(sg.trace(sg.grad(halved))(1.0)(6.0))
        (0.75, 0.125, 0.125)
    """
    given = arguments(init, "while_loop: init")
    if max_iterations is not None and (isinstance(max_iterations, bool) or not hasattr(max_iterations, "__index__")):
        raise ArgumentTypeError(f"while_loop: max_iterations must be an integer or None, got {max_iterations!r}")
    limit = None if max_iterations is None else max(int(max_iterations), 0)
    outer = tracing_graph(given.tensors)
    if outer is not None:
        result = _while_traced(cond_fn, body_fn, given, limit, outer)
        if result is not None:
            return result.tree
    carry, count = given.tree, 0
    while limit is None or count < limit:
        predicate = to_predicate(cond_fn(carry), "while_loop: what cond_fn returns")
        if not predicate.value:
            break
        carry = body_fn(carry)
        if not count:
            check_carry("while_loop", given, arguments(carry, "while_loop: what body_fn returns"))
        count += 1
    return result_of(carry, "while_loop: what body_fn returns")


def _while_traced(
    cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], given: Arguments, limit: int | None, outer: BaseGraph
) -> Arguments | None:
    """Add the loop to the graph; `None` if nothing symbolic goes into it."""
    args = [(given.specs, given.treedef, "carry")]
    cond = traced(cond_fn, outer, args, "while_loop: what cond_fn returns")
    if len(cond.outputs) != 1 or cond.outputs[0].spec != Spec((), np.dtype(bool)):
        returned = ", ".join(map(str, cond.specs))
        raise ArgumentTypeError(
            f"while_loop: cond_fn must return one boolean, got {returned}; compare, or reduce with sg.all or sg.any"
        )
    body = traced(body_fn, outer, args, "while_loop: what body_fn returns")
    check_carry("while_loop", given, body)
    _, taken = closed([(cond.graph, cond.inputs[0], cond.outputs), (body.graph, body.inputs[0], body.outputs)])
    if is_known(given.tensors, taken):
        return None
    draft = Draft(body.graph, [], body.inputs[0], [], body.outputs, [], given.tensors, [])
    outs = emit_while(cond.graph, cond.inputs[0], cond.outputs, draft, limit)
    return Arguments(list(outs[: len(given.tensors)]), given.treedef)


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any) -> Any:
    """Return what becomes of `init` by `carry = body_fn(i, carry)` for i from `lower` up to, not including, `upper`.

    Args:
        lower: one integer.
        upper: one integer.
        body_fn: function of the number of the iteration, an int64 tensor, and the carry; see `while_loop`.
        init: the first carry, a pytree of tensors.

    Raises:
        ArgumentTypeError: a bound that is not one integer.
        ArgumentError: `body_fn` changes the structure, a shape or a dtype.

    Example:
        >>> import stopgrad as sg
        >>> power = lambda x: sg.fori_loop(0, 5, lambda i, c: c * x, 1.0)
        >>> float(power(2.0)), float(sg.grad(power)(2.0))
        (32.0, 80.0)
        >>> [operation.type for operation in sg.trace(power)(2.0).graph]
        ['placeholder', 'constant', 'constant', 'scan']
    """
    bounds = [_bound(lower, "lower"), _bound(upper, "upper")]
    given = arguments(init, "fori_loop: init")
    if any(type(one.value) is Output for one in bounds):
        start, end = (primitives.astype(one, np.int64) for one in bounds)
        _, carry = while_loop(
            lambda both: both[0] < end, lambda both: (both[0] + 1, body_fn(*both)), (start, given.tree)
        )
        return carry
    first, last = (int(one.value) for one in bounds)
    outer = tracing_graph(given.tensors)
    if outer is not None:
        result = _scan_traced(
            lambda carry, i: (body_fn(i, carry), None),
            given,
            arguments(np.arange(first, last), ""),
            max(last - first, 0),
            False,
            outer,
            "fori_loop",
            "body_fn",
        )
        if result is not None:
            return result[0]
    carry = given.tree
    for i in range(first, last):
        carry = body_fn(Tensor(np.asarray(i)), carry)
        if i == first:
            check_carry("fori_loop", given, arguments(carry, "fori_loop: what body_fn returns"))
    return result_of(carry, "fori_loop: what body_fn returns")


def _bound(value: Any, name: str) -> Tensor:
    tensor = to_tensor(value, f"fori_loop: {name}")
    if tensor.shape != () or not str(tensor.dtype).removeprefix("torch.").startswith(("int", "uint")):
        raise ArgumentTypeError(f"fori_loop: {name} must be one integer, got {spec_of(tensor)}")
    return tensor


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of `carry, y = f(carry, x)` along the first axis of `xs`.

    Args:
        f: function of the carry and a slice of `xs`; it returns the next carry, of the same structure, shapes and
            dtypes, and a pytree `y` (`None` if there is nothing to stack).
        init: the first carry, a pytree of tensors. Python numbers count as arrays of NumPy's default dtype.
        xs: a pytree of tensors with first axes of one size, or `None`; then `length` says how many iterations.
        length: number of iterations; with `xs` it must be the size of their first axes.
        reverse: run from the last slice to the first. What is stacked stands where its slice of `xs` stood.

    Returns:
        `(carry, ys)`.

    Raises:
        ArgumentTypeError: `f` does not return a pair.
        ArgumentError: `f` changes the carry's structure, a shape or a dtype, or neither `xs` nor `length` is given.
        ShapeError: first axes of different sizes.

    Example:
        >>> import stopgrad as sg
        >>> carry, sums = sg.scan(lambda c, x: (c + x, c + x), 0.0, [1.0, 2.0, 3.0])
        >>> float(carry), sums.numpy()
        (6.0, array([1., 3., 6.]))
        >>> f = lambda a: sg.scan(lambda c, _: (a * sg.stop_gradient(c), None), 2.0, length=5)[0]
        >>> float(sg.grad(f)(3.0)), float(sg.trace(sg.grad(f))(3.0)(3.0))
        (162.0, 162.0)
    """
    given = arguments(init, "scan: init")
    slices = arguments(xs, "scan: xs")
    count = _length(slices, length)
    outer = tracing_graph([*given.tensors, *slices.tensors])
    if outer is not None:
        result = _scan_traced(f, given, slices, count, reverse, outer, "scan", "f")
        if result is not None:
            return result
    return _scan_at_once(f, given, slices, count, reverse)


def _length(slices: Arguments, length: int | None) -> int:
    if length is not None and (isinstance(length, bool) or not hasattr(length, "__index__")):
        raise ArgumentTypeError(f"scan: length must be an integer or None, got {length!r}")
    sizes = set()
    for one in slices.tensors:
        if not one.shape:
            raise ShapeError("scan: xs must have a first axis to run along, but a leaf is a single number")
        sizes.add(one.shape[0])
    if length is not None:
        sizes.add(int(length))
    if len(sizes) > 1:
        told = "" if length is None else f" and length={length}"
        found = ", ".join(str(one.shape[0]) for one in slices.tensors)
        raise ShapeError(f"scan: the first axes of xs must have one size, got {found}{told}")
    if not sizes:
        raise ArgumentError("scan: give xs to run along, or length= to say how many iterations")
    return max(sizes.pop(), 0)


def _scan_at_once(
    f: Callable[[Any, Any], Any], given: Arguments, slices: Arguments, count: int, reverse: bool
) -> tuple[Any, Any]:
    if not count:
        return release(given.tree), _nothing_stacked(f, given, slices)
    carry = given.tree
    rows = [_rows(one) for one in slices.tensors]
    row = rows[0] if slices.treedef.is_leaf() else lambda number: unflatten(slices.treedef, [r(number) for r in rows])
    ys: list[Any] = []
    for number in range(count - 1, -1, -1) if reverse else range(count):
        carry, y = _pair(f(carry, row(number)))
        if not ys:
            check_carry("scan", given, arguments(carry, "scan: the carry f returns"))
        ys.append(y)
    if reverse:
        ys.reverse()
    return result_of(carry, "scan: the carry f returns"), _stacked(ys)


def _stacked(ys: list[Any]) -> Any:
    """Return pytrees, one for each iteration, as one pytree of stacked tensors."""
    if all(type(y) is Tensor for y in ys):
        return primitives.stack(ys, axis=0)
    if all(y is None for y in ys):
        return None
    flat = [flatten(y, number_lists=True) for y in ys]
    treedef = flat[0][1]
    for _, other in flat:
        if other != treedef:
            raise ArgumentError(f"scan: f returned y with the structure {treedef} at first, then with {other}")
    return unflatten(treedef, [primitives.stack(ones, axis=0) for ones in zip(*(one for one, _ in flat), strict=True)])


def _rows(tensor: Tensor) -> Callable[[int], Tensor]:
    """Return a function that gives the slices of a tensor."""
    if type(tensor.node) is tuple:
        return lambda number: primitives.getitem(tensor, number)
    value, node = tensor.value, tensor.node
    return lambda number: Tensor(value[number], node)


def _pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise ArgumentTypeError("scan: f must return a pair (carry, y); return (carry, None) if nothing is stacked")
    return returned[0], returned[1]


def _slice_specs(slices: Arguments) -> list[Spec]:
    return [Spec(one.shape[1:], one.dtype) for one in slices.specs]


def _nothing_stacked(f: Callable[[Any, Any], Any], given: Arguments, slices: Arguments) -> Any:
    """Return what a scan of no slices stacks: empty arrays, whose shapes only tracing can tell."""
    args = [(given.specs, given.treedef, "carry"), (_slice_specs(slices), slices.treedef, "x")]
    made = traced(lambda carry, x: _pair(f(carry, x))[1], scratch_graph(), args, "scan: the y f returns")
    return unflatten(made.treedef, [Tensor(np.zeros((0, *one.shape), one.dtype)) for one in made.specs])


def _scan_traced(
    f: Callable[[Any, Any], Any],
    given: Arguments,
    slices: Arguments,
    count: int,
    reverse: bool,
    outer: BaseGraph,
    where: str,
    function: str,
) -> tuple[Any, Any] | None:
    """Add the loop to the graph; `None` if nothing symbolic goes into it."""
    trees: list[TreeDef] = []

    def both(carry: Any, x: Any) -> list[Any]:
        carry, y = _pair(f(carry, x))
        first, second = arguments(carry, f"{where}: the carry {function} returns"), arguments(y, f"{where}: y")
        trees.extend((first.treedef, second.treedef))
        return [first.tensors, second.tensors]

    args = [(given.specs, given.treedef, "carry"), (_slice_specs(slices), slices.treedef, "x")]
    made = traced(both, outer, args, f"{where}: what {function} returns")
    count_carries = trees[0].num_leaves
    check_carry(where, given, Traced(made.graph, made.inputs, made.outputs[:count_carries], trees[0]))
    carries, xs = made.inputs
    (_,), taken = closed([(made.graph, [*carries, *xs], made.outputs)])
    if is_known([*given.tensors, *slices.tensors], taken):
        return None
    outs = emit_scan(
        Draft(made.graph, [], carries, xs, made.outputs, [], given.tensors, slices.tensors), count, None, reverse
    )
    stacked = outs[count_carries : len(made.outputs)]
    return unflatten(given.treedef, list(outs[:count_carries])), unflatten(trees[1], list(stacked))
