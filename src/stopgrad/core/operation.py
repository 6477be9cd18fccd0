"""`Operation`: everything the library knows about one primitive, and the few ways to define one.

A definition gives the kernel and its derivative as array API programs over a namespace `xp`, so that the same text runs
on raw arrays (a first-order sweep) and on tensors (a sweep that is itself recorded, for higher orders).

A **rule** is called `rule(xp, t, *inputs, out, *params)` and returns what becomes of `t`: for `vjps[i]` a cotangent of
the output becomes one of input i; for `jvps[i]` a tangent of input i becomes one of the output. **What a node keeps is
read off the rule's parameter names**: an input or output whose name begins with an underscore is not kept, and the rule
gets `None` in its place. Nobody else has to bring a cotangent to its input's shape and dtype: the sweep does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from stopgrad.core.arrays import PYTHON_SCALARS, Spec, broadcast_shapes
from stopgrad.core.errors import NonDifferentiableError

Rule = Callable[..., Any]


class _Singleton:
    """A named object that is only ever compared by identity."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = _Singleton("ABSENT")
"""What a gate's rule returns when nothing passes: the path is not there."""
ZERO: Final = _Singleton("ZERO")
"""A cotangent or tangent that is zero though the path is there, such as through `sign`; no array is made for it."""


class Slots(dict[int, Any]):
    """Cotangents (or tangents) of an operation with several outputs, by output number; a missing one is absent.

    `together` is for rules that find the cotangents of all inputs at once and are asked for one after the other.
    """

    together: Mapping[int, Any] | None = None

    def __add__(self, other: Slots) -> Slots:
        total = Slots(self)
        for number, cotangent in other.items():
            known = total.get(number, ZERO)
            total[number] = cotangent if known is ZERO else known if cotangent is ZERO else known + cotangent
        return total


operations: dict[str, Operation] = {}
"""Every operation the definers below have defined, by name."""


class Operation:
    """One primitive. Instances are made by the definers below and never changed."""

    __slots__ = (
        "behind",
        "bilinear",
        "customised",
        "differentiable",
        "elementwise",
        "fixed_arity",
        "gates",
        "jvps",
        "keeps",
        "kernel",
        "masks",
        "name",
        "needs",
        "numpy_kernel",
        "passes_masks",
        "reach",
        "run_some",
        "singular",
        "spec",
        "vjps",
    )

    def __init__(
        self,
        name: str,
        kernel: Rule,
        *,
        vjps: Sequence[Rule] | EveryInput = (),
        jvps: Sequence[Rule] | EveryInput = (),
        spec: Callable[..., Any] | None,
        numpy_kernel: Rule | None = None,
        elementwise: bool = False,
        differentiable: bool = True,
        masks: bool = False,
        passes_masks: bool | None = None,
        behind: Rule | None = None,
        bilinear: bool = False,
        run_some: Callable[[Sequence[bool], Sequence[Any], tuple[Any, ...]], tuple[Any, ...]] | None = None,
        gates: Callable[..., Any] | None = None,
        customised: Any = None,
        reach: Callable[..., Sequence[int]] | None = None,
    ) -> None:
        self.name = name
        self.kernel = kernel
        self.numpy_kernel: Rule = numpy_kernel if numpy_kernel is not None else partial(kernel, np)
        self.vjps: Any = vjps
        self.jvps: Any = jvps
        # spec(*input_specs, *params) -> Spec of the output (a tuple of them for several outputs).
        self.spec = spec
        self.elementwise = elementwise
        # False: every output is a constant (comparisons, argmax, rounding to integers).
        self.differentiable = differentiable
        # True: cotangents passed back hold zeros at entries that were not selected (where, max, indexing …).
        self.masks = masks
        # True: such zeros stay zeros at the same or moved places on the way through.
        self.passes_masks = elementwise if passes_masks is None else passes_masks
        # behind(xp, zeros, *params): for nonlinear operations along axes, given for each entry of the output whether
        # its cotangent is zero, for each entry of the input whether all are that it has a part in.
        self.behind = behind
        # A product whose rules multiply by the other input: an entry is left out if all it was multiplied into are.
        self.bilinear = bilinear
        # run_some(wanted, inputs, params): the outputs, `None` for those not wanted, which are not computed.
        self.run_some = run_some
        # gates(*params): for operations whose settings hold programs, the mark of the gates in those, or `None`.
        self.gates = gates
        # For a customised function in a graph: its derivative as a function of tensors, to be run anew with the graph.
        self.customised = customised
        # reach(*params): for such operations, the inputs that a derivative of each output may pass to, as bits.
        self.reach = reach
        self.fixed_arity = not isinstance(vjps, EveryInput)
        if differentiable and not isinstance(vjps, EveryInput) and not isinstance(jvps, EveryInput):
            arity = len(vjps)
            self.needs = tuple(_needs(vjp, jvp, arity) for vjp, jvp in zip(vjps, jvps, strict=True))
            self.keeps = tuple(_union(self.needs, live, arity) for live in range(2**arity))
        else:
            self.needs = ()
            self.keeps = ()
        # Whether multiplying by the partial can make a NaN out of a masked zero: only if the partial depends on data.
        self.singular = elementwise and any(any(need) for need in self.needs)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def kept(self, values: Sequence[Any], live: Sequence[bool], out: Any) -> tuple[Any, ...]:
        """Return what a node of this operation holds: (*inputs, output), `None` where no live input's rule needs it."""
        if not self.fixed_arity:
            keep_inputs, keep_output = self.vjps.keep_inputs, self.vjps.keep_output
            if callable(keep_inputs):
                kept_inputs = tuple(value if keep_inputs(i) else None for i, value in enumerate(values))
            else:
                kept_inputs = tuple(values) if keep_inputs else (None,) * len(values)
            return (*kept_inputs, out if keep_output else None)
        keeps = self.keeps[sum(1 << i for i, one in enumerate(live) if one)]
        return tuple(value if keep else None for value, keep in zip((*values, out), keeps, strict=True))


class EveryInput:
    """Rules for an operation of any number of inputs: `self[i]` is `rule(i, xp, t, inputs, out, *params)` for input i.

    `keep_inputs` says whether a node keeps its inputs, for all of them or as a function of the input's number.
    """

    __slots__ = ("keep_inputs", "keep_output", "param_count", "rule")

    def __init__(
        self, rule: Rule, param_count: int, *, keep_inputs: bool | Callable[[int], bool], keep_output: bool = False
    ) -> None:
        self.rule = rule
        self.param_count = param_count
        self.keep_inputs = keep_inputs
        self.keep_output = keep_output

    def bound(self, kept: tuple[Any, ...], params: tuple[Any, ...]) -> BoundRules:
        """Return the rules of one node: `bound(...)[i](xp, t)`, at a cost that does not grow with the inputs."""
        return BoundRules(self.rule, kept[:-1], kept[-1], params)

    def __getitem__(self, i: int) -> Rule:
        rule, param_count = self.rule, self.param_count

        def rule_of_input(xp: Any, t: Any, *kept_and_params: Any) -> Any:
            end = len(kept_and_params) - param_count
            return rule(i, xp, t, kept_and_params[: end - 1], kept_and_params[end - 1], *kept_and_params[end:])

        return rule_of_input


class BoundRules:
    """The rules of an operation of any number of inputs, with what a node keeps and its parameters filled in."""

    __slots__ = ("_inputs", "_out", "_params", "_rule")

    def __init__(self, rule: Rule, inputs: tuple[Any, ...], out: Any, params: tuple[Any, ...]) -> None:
        self._rule = rule
        self._inputs = inputs
        self._out = out
        self._params = params

    def __getitem__(self, i: int) -> Rule:
        return lambda xp, t: self._rule(i, xp, t, self._inputs, self._out, *self._params)


def _needs(vjp: Rule, jvp: Rule, arity: int) -> tuple[bool, ...]:
    """Read off two rules' parameter names which of (*inputs, output) they use."""
    pairs = zip(_used(vjp, arity), _used(jvp, arity), strict=True)
    return tuple(by_vjp or by_jvp for by_vjp, by_jvp in pairs)


def _used(rule: Rule, arity: int) -> Iterator[bool]:
    if isinstance(rule, partial):
        rule = rule.func
    names = rule.__code__.co_varnames[: rule.__code__.co_argcount][2 : arity + 3]
    if len(names) != arity + 1:
        raise TypeError(f"a rule takes (xp, t, *inputs, out, *params); {rule} does not for {arity} inputs")
    return (not name.startswith("_") for name in names)


def _union(needs: Sequence[tuple[bool, ...]], live: int, arity: int) -> tuple[bool, ...]:
    chosen = [need for i, need in enumerate(needs) if live >> i & 1]
    return tuple(any(need[j] for need in chosen) for j in range(arity + 1))


def _kernel_arity(kernel: Rule) -> int:
    return int(kernel.__code__.co_argcount) - 1


def _register(operation: Operation) -> Operation:
    if operation.name in operations:
        raise ValueError(f"an operation named {operation.name!r} is defined already")
    operations[operation.name] = operation
    return operation


def elementwise_spec(name: str, kernel: Rule) -> Callable[..., Spec]:
    """Return the shape rule of an elementwise kernel: shapes broadcast, the dtype is what the kernel gives for ones."""
    dtypes: dict[Any, Any] = {}

    def spec(*inputs_and_params: Any) -> Spec:
        # A Python number among the inputs counts by its type: it does not take part in promotion.
        key = tuple(
            [
                one.dtype if type(one) is Spec else type(one) if type(one) in PYTHON_SCALARS else one
                for one in inputs_and_params
            ]
        )
        dtype = dtypes.get(key)
        if dtype is None:
            examples = (np.ones((), one.dtype) if type(one) is Spec else one for one in inputs_and_params)
            with np.errstate(all="ignore"):
                dtype = dtypes[key] = kernel(np, *examples).dtype
        return Spec(broadcast_shapes(name, *[one.shape for one in inputs_and_params if type(one) is Spec]), dtype)

    return spec


def elementwise(
    name: str,
    kernel: Rule,
    *scales: Rule,
    numpy_kernel: Rule | None = None,
    masks: bool = False,
) -> Operation:
    """Define an operation that works entry by entry, with broadcasting.

    `scales[i]` is `rule(xp, t, *inputs, out, *params)` and returns t · ∂out/∂inputs[i]. As the Jacobian is diagonal,
    the one rule serves both directions.
    """
    return _register(
        Operation(
            name,
            kernel,
            vjps=scales,
            jvps=scales,
            spec=elementwise_spec(name, kernel),
            numpy_kernel=numpy_kernel,
            elementwise=True,
            masks=masks,
        )
    )


def nondifferentiable(
    name: str,
    kernel: Rule,
    *,
    spec: Callable[..., Any] | None = None,
    numpy_kernel: Rule | None = None,
) -> Operation:
    """Define an operation whose result never carries a derivative; without `spec` it works entry by entry."""
    return _register(
        Operation(
            name,
            kernel,
            spec=elementwise_spec(name, kernel) if spec is None else spec,
            numpy_kernel=numpy_kernel,
            elementwise=spec is None,
            differentiable=False,
        )
    )


def general(
    name: str,
    kernel: Rule,
    *,
    vjps: Sequence[Rule] | EveryInput,
    jvps: Sequence[Rule] | EveryInput,
    spec: Callable[..., Any],
    numpy_kernel: Rule | None = None,
    masks: bool = False,
    passes_masks: bool = False,
    behind: Rule | None = None,
    bilinear: bool = False,
    run_some: Callable[[Sequence[bool], Sequence[Any], tuple[Any, ...]], tuple[Any, ...]] | None = None,
    gates: Callable[..., Any] | None = None,
    reach: Callable[..., Sequence[int]] | None = None,
) -> Operation:
    """Define an operation by both its rules, for those that are neither elementwise nor linear in one input."""
    return _register(
        Operation(
            name,
            kernel,
            vjps=vjps,
            jvps=jvps,
            spec=spec,
            numpy_kernel=numpy_kernel,
            masks=masks,
            passes_masks=passes_masks or bilinear or behind is not None,
            behind=behind,
            bilinear=bilinear,
            run_some=run_some,
            gates=gates,
            reach=reach,
        )
    )


def linear(
    name: str,
    kernel: Rule,
    adjoint: Rule,
    *,
    spec: Callable[..., Spec],
    numpy_kernel: Rule | None = None,
    tangent: Rule | None = None,
    masks: bool = False,
    passes_masks: bool = False,
) -> Operation:
    """Define an operation linear in its one input: `kernel(xp, x, *params)` and `adjoint(xp, t, *params)`.

    A tangent goes through the kernel itself; give `tangent(xp, t, *params)` where the kernel's text does not run on
    tensors.
    """
    forward = kernel if tangent is None else tangent
    return _register(
        Operation(
            name,
            kernel,
            vjps=(lambda xp, t, _x, _out, *params: adjoint(xp, t, *params),),
            jvps=(lambda xp, t, _x, _out, *params: forward(xp, t, *params),),
            spec=spec,
            numpy_kernel=numpy_kernel,
            masks=masks,
            passes_masks=passes_masks,
        )
    )


def no_derivative(name: str, direction: str) -> Rule:
    """Return a rule that raises: the operation has no derivative in this direction."""

    def rule(*_: Any) -> Any:
        raise NonDifferentiableError(f"{name} has no derivative in {direction} mode")

    return rule
