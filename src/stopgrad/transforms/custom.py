"""`custom_gradient` and `custom_jvp`: a function's derivative said by hand, in one mode, for both modes.

The result becomes a node of its own whose rule calls the user's function. Only one direction is given; the other is its
transpose, and as either is linear the transpose is itself a derivative: Jv is the gradient of ⟨u, Jv⟩ = ⟨Jᵀu, v⟩ with
respect to u (the "double backward trick"), and Jᵀu that with respect to v.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import stopgrad.primitives as primitives
from stopgrad.batching.application import Application, Entry, in_front
from stopgrad.batching.linear import BatchedMap
from stopgrad.core.arrays import carries_derivative
from stopgrad.core.builtin import PROJECT
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from stopgrad.core.graph import Output
from stopgrad.core.marks import Mark, mark_here
from stopgrad.core.operation import ABSENT, ZERO, EveryInput, Operation, Slots
from stopgrad.core.pytree import TreeDef, flatten, unflatten
from stopgrad.core.record import INDEX, bind_many, leaf
from stopgrad.core.state import Level, next_index, state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor
from stopgrad.sweeps.path import find_path
from stopgrad.sweeps.reverse import reverse
from stopgrad.transforms.common import as_seed, check_function, ones_like, output_tensors, zeros_like

# Takes tensors (one for each output), gives a tensor or `None` for each input; or the other way round.
LinearMap = Callable[[list[Tensor]], Sequence[Tensor | None]]


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a derivative of your own, as a pullback. The form is TensorFlow's.

    Args:
        f: function that returns `(result, pullback)`. The result is a tensor or pytree; `pullback(*cotangents)` takes
            one cotangent for each tensor of the result and returns one for each positional argument: a tensor of its
            shape, a tree of them, or `None` where nothing is to pass. What it computes is differentiated again for
            higher orders, and transposed for forward mode, where it must be linear in the cotangents (pullbacks are).

    Returns:
        A function with the arguments of `f` that returns its result. Values `f` gets hold of otherwise than by
        argument count as stopped, under the name of the function.

    Raises:
        ArgumentTypeError: `f` did not return a pair, or the pullback the wrong number of cotangents.
        ShapeError: a cotangent of another shape than its argument.

    Example:
        >>> import stopgrad as sg
        >>> @sg.custom_gradient
        ... def log1pexp(x):
        ...     e = sg.exp(x)
        ...     return sg.log(1 + e), lambda cotangent: cotangent * (1 - 1 / (1 + e))
        >>> float(sg.grad(log1pexp)(100.0))
        1.0
    """
    check_function(f, "custom_gradient")

    @functools.wraps(f)
    def customised(*args: Any, **kwargs: Any) -> Any:
        returned = f(*args, **kwargs)
        if not isinstance(returned, tuple | list) or len(returned) != 2 or not callable(returned[1]):
            raise ArgumentTypeError(
                f"custom_gradient: {_name(f)} must return (result, pullback), the pullback a function of the result's "
                "cotangents"
            )
        result, pullback = returned
        inputs = _Inputs(args)

        def pull(cotangents: list[Tensor]) -> Sequence[Tensor | None]:
            return inputs.cotangents(pullback(*cotangents), f"custom_gradient: the pullback of {_name(f)}")

        mark = mark_here("custom_gradient", _name(f))
        outputs, treedef = output_tensors(result, _name(f))
        return unflatten(treedef, _with_rules(outputs, inputs.tensors, _Derivative(_name(f), mark, True, pull)))

    return customised


class CustomJvp(Protocol):
    """A function whose derivative is to be given with `defjvp`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function."""

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register `rule(primals, tangents) -> (result, tangent)`; returns the rule."""


def custom_jvp(f: Callable[..., Any]) -> CustomJvp:
    """Give a function a derivative of your own, as a map of tangents. The form is JAX's.

    Args:
        f: function of positional arguments.

    Returns:
        A function with the values of `f` and a decorator `defjvp`, which takes `rule(primals, tangents)`: both tuples
        with an entry an argument; it returns the result and its tangent. The rule must be linear in the tangents; for
        reverse mode it is transposed.

    Raises:
        ArgumentError: the function is called before `defjvp`.

    Example:
        >>> import stopgrad as sg
        >>> @sg.custom_jvp
        ... def cube(x):
        ...     return x**3
        >>> @cube.defjvp
        ... def cube_jvp(primals, tangents):
        ...     (x,), (dx,) = primals, tangents
        ...     return cube(x), 3 * x**2 * dx
        >>> float(sg.grad(cube)(2.0)), float(sg.jvp(cube, (2.0,), (1.0,))[1])
        (12.0, 12.0)
    """
    check_function(f, "custom_jvp")
    rules: list[Callable[..., Any]] = []

    @functools.wraps(f)
    def customised(*args: Any, **kwargs: Any) -> Any:
        if not rules:
            raise ArgumentError(f"custom_jvp: {_name(f)} has no rule yet; give it one with @{_name(f)}.defjvp")
        result = f(*args, **kwargs)
        inputs = _Inputs(args)

        def push(tangents: list[Tensor]) -> Sequence[Tensor | None]:
            returned = rules[-1](args, inputs.as_arguments(tangents))
            if not isinstance(returned, tuple | list) or len(returned) != 2:
                raise ArgumentTypeError(f"custom_jvp: the rule of {_name(f)} must return (result, tangent)")
            return output_tensors(returned[1], f"custom_jvp: the tangent of {_name(f)}")[0]

        mark = mark_here("custom_jvp", _name(f))
        outputs, treedef = output_tensors(result, _name(f))
        return unflatten(treedef, _with_rules(outputs, inputs.tensors, _Derivative(_name(f), mark, False, push)))

    def defjvp(rule: Callable[..., Any]) -> Callable[..., Any]:
        rules.append(rule)
        return rule

    function: Any = customised
    function.defjvp = defjvp
    return function


class _Inputs:
    """The positional arguments of a customised function: their leaves that carry derivatives, as tensors."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.trees: list[tuple[list[Any], TreeDef]] = [flatten(arg, number_lists=True) for arg in args]
        self.tensors: list[Tensor] = []
        self.places: list[tuple[int, int]] = []
        for a, (leaves, _) in enumerate(self.trees):
            for k, one in enumerate(leaves):
                if isinstance(one, Tensor) or hasattr(one, "__tensor__") or hasattr(one, "dtype"):
                    tensor = to_tensor(one, "a customised function's argument")
                    if carries_derivative(tensor.dtype):
                        self.tensors.append(tensor)
                        self.places.append((a, k))

    def as_arguments(self, values: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return these values in the structure of the arguments, zeros at numbers, `None` at the other leaves."""
        rows: list[list[Any]] = [
            [0.0 if isinstance(one, float) else None for one in leaves] for leaves, _ in self.trees
        ]
        for (a, k), value in zip(self.places, values, strict=True):
            rows[a][k] = value
        return tuple(unflatten(treedef, row) for (_, treedef), row in zip(self.trees, rows, strict=True))

    def cotangents(self, returned: Any, what: str) -> list[Tensor | None]:
        """Return, for each tensor, what a pullback returned for it, checked."""
        by_argument = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(self.trees) == 1 and isinstance(returned, list) and len(returned) != 1:
            by_argument = [returned]
        if len(by_argument) != len(self.trees):
            raise ArgumentTypeError(f"{what} returned {len(by_argument)} cotangents for {len(self.trees)} arguments")
        results: list[Tensor | None] = []
        for (a, k), tensor in zip(self.places, self.tensors, strict=True):
            if by_argument[a] is None:
                results.append(None)
                continue
            leaves, _ = flatten(by_argument[a])
            if len(leaves) != len(self.trees[a][0]):
                raise ArgumentTypeError(f"{what} returned {len(leaves)} tensors for the leaves of argument {a}")
            cotangent = to_tensor(leaves[k], what)
            if cotangent.shape != tensor.shape:
                raise ShapeError(
                    f"{what} returned shape {cotangent.shape} for argument {a}, which has shape {tensor.shape}"
                )
            results.append(cotangent)
        return results


class _Derivative(NamedTuple):
    """The derivative of a customised function, in one direction, as a linear map.

    `map` takes cotangents of the outputs if it `pulls`, else tangents of the inputs.
    """

    name: str
    mark: Mark
    pulls: bool
    map: LinearMap


def _with_rules(outputs: list[Tensor], inputs: list[Tensor], derivative: _Derivative) -> list[Tensor]:
    """Return the outputs as those of one node with this derivative, if any input is recorded."""
    name, mark, pulls, linear = derivative
    parents = tuple(tensor.node for tensor in inputs)
    symbolic = any(type(tensor.value) is Output for tensor in (*inputs, *outputs))
    if not state.recording and not symbolic:
        return outputs
    if not symbolic and not any(type(parent) is tuple for parent in parents):
        return [Tensor(output.value, mark) for output in outputs]
    out_values = [output.value for output in outputs]
    in_values = [tensor.value for tensor in inputs]
    pull_map = _remember_last(linear if pulls else _transpose(linear, in_values))
    push_map = _transpose(linear, out_values) if pulls else linear
    count = len(inputs)

    def vjp_rule(i: int, xp: Any, t: Slots, _inputs: Any, _out: Any) -> Any:
        if i >= count:
            return ABSENT
        return _entry(pull_map(i, t, lambda: _filled(t, out_values, xp))[i], xp)

    def jvp_rule(i: int, xp: Any, t: Any, _inputs: Any, _out: Any) -> Any:
        if i >= count:
            return ABSENT
        tangents = push_map([_as_tensor(one) for one in _filled(Slots({i: t}), in_values, xp)])
        return Slots({k: one for k, tangent in enumerate(tangents) if (one := _entry(tangent, xp)) is not ABSENT})

    operation = Operation(
        name,
        lambda xp, *values: values[count:],
        vjps=EveryInput(vjp_rule, 0, keep_inputs=False),
        jvps=EveryInput(jvp_rule, 0, keep_inputs=False),
        spec=lambda *specs: specs[count:],
        gates=lambda: mark,
        customised=_Customised(derivative, count),
    )
    if symbolic:  # an operation of the graph: the outputs as they are, reached by way of the inputs only
        return list(bind_many(operation, (*inputs, *map(Tensor, out_values))))
    # The last parent is no input: it says, if something proves unconnected, that this function stood in the way.
    base = (next_index(), operation, (*parents, mark), (None,) * (len(parents) + 2), None, None, ())
    return [
        Tensor(value, (next_index(), PROJECT, (base,), (None, None), value.shape, value.dtype, (number,)))
        if carries_derivative(value.dtype)
        else Tensor(value)
        for number, value in enumerate(out_values)
    ]


class _Customised:
    """What a graph's operation holds of a customised function, so that it can be run for many examples."""

    def __init__(self, derivative: _Derivative, count: int) -> None:
        self._derivative = derivative
        self.pulls = derivative.pulls
        self.map = derivative.map
        self.count = count

    def batched(self, application: Application, run: BatchedMap | None) -> list[Entry]:
        """Return the outputs for all examples; `run` is the derivative for them, `None` if nobody can ask for it."""
        mapped, count, size = application.mapped, self.count, application.size
        inputs = [to_tensor(one, self._derivative.name) for one in application.inputs]
        by_example = any(mapped)
        outputs = [application.full(i) if by_example else inputs[i] for i in range(count, len(inputs))]
        if run is None:
            return [Entry(one, by_example) for one in outputs]

        def linear(vectors: list[Tensor]) -> list[Tensor | None]:
            if not self.pulls:
                found = run([Entry(*pair) for pair in zip(vectors, mapped[:count], strict=True)])
                return [None if one is None else in_front(one, by_example, size) for one in found]
            found = run([Entry(one, by_example) for one in vectors])
            cotangents = [None if one is None else in_front(one, by_example, size) for one in found]
            return [
                one if one is None or own or not by_example else primitives.sum(one, axis=0)
                for one, own in zip(cotangents, mapped[:count], strict=True)
            ]

        derivative = self._derivative._replace(map=linear)
        return [Entry(one, by_example) for one in _with_rules(outputs, inputs[:count], derivative)]


def _transpose(linear: LinearMap, like: Sequence[Any]) -> LinearMap:
    """Return the transpose of a linear map; `like` are values in the space the given map starts from."""

    def transposed(vectors: list[Tensor]) -> list[Tensor | None]:
        level = Level()
        probes = [leaf(zeros_like(value)) for value in like]
        with state.differentiate(level):
            images = linear(list(probes))
            products = [
                primitives.sum(image * vector)
                for image, vector in zip(images, vectors, strict=True)
                if image is not None
            ]
        nodes = [product.node for product in products]
        path = find_path(nodes, [probe.node for probe in probes])
        seeds = [as_seed(Tensor(ones_like(product.value)), product.value) for product in products]
        found = reverse(path, list(zip(nodes, seeds, strict=True)), {probe.node[INDEX] for probe in probes}, level)
        results: list[Tensor | None] = []
        for probe in probes:
            one = found.get(probe.node[INDEX], ABSENT)
            raw = zeros_like(probe.value) if one is ZERO else one
            results.append(None if one is ABSENT else raw if isinstance(raw, Tensor) else Tensor(raw))
        return results

    return transposed


def _remember_last(linear: LinearMap) -> Callable[[int, Slots, Callable[[], list[Any]]], Sequence[Tensor | None]]:
    """Call a pullback once for all rules of a node: a sweep asks them in a row, by growing i, with the same slots."""
    last: list[tuple[int, Slots, Sequence[Tensor | None]] | None] = [None]

    def remembered(i: int, slots: Slots, vectors: Callable[[], list[Any]]) -> Sequence[Tensor | None]:
        known = last[0]
        if known is None or known[1] is not slots or i <= known[0]:
            known = (i, slots, linear([_as_tensor(one) for one in vectors()]))
        last[0] = (i, slots, known[2])
        return known[2]

    return remembered


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


def _filled(slots: Slots, like: Sequence[Any], xp: Any) -> list[Any]:
    """Return a cotangent for every slot, zeros for those that are absent, raw or tensors as the sweep goes."""
    full = []
    for number, value in enumerate(like):
        one = slots.get(number, ABSENT)
        if one is ABSENT or one is ZERO:
            one = Tensor(zeros_like(value)) if xp is primitives else zeros_like(value)
        full.append(one)
    return full


def _entry(tensor: Tensor | None, xp: Any) -> Any:
    if tensor is None:
        return ABSENT
    return tensor if xp is primitives else tensor.value


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)
