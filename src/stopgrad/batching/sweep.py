"""The batching sweep: a graph of one example run for all of them, operation by operation, on tensors.

What differs between the examples has the axis of examples in front, the rest is as it is. Results are ordinary tensors,
so whoever is recording or tracing outside records every step, and derivatives of the whole are derivatives as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import numpy as np

from stopgrad.batching.application import Application, Entry, Rule, Rules, entry_by_entry, one_by_one
from stopgrad.batching.linear import BatchedMap, LinearProgram, traced_derivative
from stopgrad.batching.table import RULES
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import CONSTANT, PLACEHOLDER, VARIABLE, GraphOperation, Output
from stopgrad.core.operation import Operation
from stopgrad.core.order import needed, uses_of
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.gates.again import CLIPPING, GATES, again

_NOTHING = nullcontext()


def run_batched(outputs: Sequence[Any], given: Mapping[Output, Entry], size: int, rules: Rules = RULES) -> list[Entry]:
    """Return what outputs of a graph are for all examples, given that for its placeholders.

    Args:
        outputs: outputs of the graph, or plain numbers.
        given: an entry for each placeholder the outputs depend on.
        size: how many examples.
        rules: batching rules, those of `stopgrad.batching.table` and perhaps further ones.
    """
    order, derivatives = _order(outputs, given)
    uses = uses_of(order, [*outputs, *(one for program in derivatives.values() for one in program.used)])
    entries = dict(given)
    outer = state.graph
    source = None if outer is None else outer.source
    try:
        with np.errstate(all="ignore"):  # derivatives compute with inf and NaN at entries that are then not selected
            for operation in order:
                if outer is not None:
                    outer.source = operation.source
                inputs = [entries[one] if type(one) is Output else Entry(one, False) for one in operation.inputs]
                application = _application(operation, inputs, size, tuple(out in uses for out in operation.outputs))
                with _as_tapes_saw(operation):
                    if operation.operation.customised is None:
                        results = _applied(operation, application, rules)
                    else:
                        results = _customised(application, derivatives.get(operation), entries, rules)
                for out, entry in zip(operation.outputs, results, strict=True):
                    if out in uses:
                        entries[out] = entry
                for one in operation.inputs:
                    if type(one) is Output:
                        uses[one] -= 1
                        if not uses[one]:
                            del entries[one]
    finally:
        if outer is not None:
            outer.source = source
    return [entries[one] if type(one) is Output else Entry(one, False) for one in outputs]


def _as_tapes_saw(operation: GraphOperation) -> AbstractContextManager[Any]:
    """Stop the tapes in the block that were stopped when the operation was traced."""
    pauses = [stop for first, last, stop in operation.graph.pauses if first < operation.index < last]
    if not pauses:
        return _NOTHING
    stack = ExitStack()
    for stop in pauses:
        stack.enter_context(stop())
    return stack


def mapped_among(outputs: Sequence[Any], mapped: Iterable[Output]) -> list[bool]:
    """Return which outputs of a graph may differ between examples if these do, placeholders or others on the way."""
    found = set(mapped)
    for operation in needed(outputs):
        differs = operation.operation in CLIPPING
        if differs or any(type(one) is Output and one in found for one in operation.inputs):
            found.update(operation.outputs)
    return [type(one) is Output and one in found for one in outputs]


def _order(
    outputs: Sequence[Any], given: Mapping[Output, Entry]
) -> tuple[list[GraphOperation], dict[GraphOperation, LinearProgram]]:
    """Return the operations to run, and the derivatives of the customised functions among them, if any may be asked."""
    order = needed(outputs, given)
    derivatives: dict[GraphOperation, LinearProgram] = {}
    if not state.recording and state.graph is None:
        return order, derivatives
    while pending := [one for one in order if one.operation.customised is not None and one not in derivatives]:
        derivatives |= {one: traced_derivative(one) for one in pending}
        order = needed([*outputs, *(used for program in derivatives.values() for used in program.used)], given)
    return order, derivatives


def _application(
    operation: GraphOperation, inputs: Sequence[Entry], size: int, wanted: tuple[bool, ...]
) -> Application:
    return Application(
        operation.operation,
        [entry.value for entry in inputs],
        [entry.mapped for entry in inputs],
        operation.params,
        size,
        tuple(out.spec for out in operation.outputs),
        operation.single,
        operation.source,
        wanted,
    )


def _customised(
    application: Application, derivative: LinearProgram | None, entries: Mapping[Output, Entry], rules: Rules
) -> list[Entry]:
    """Return the outputs of a customised function, its derivative run by the same rules."""
    run: BatchedMap | None = None
    if derivative is not None:
        given = derivative.given(entries)

        def run(seeds: Sequence[Entry]) -> list[Entry | None]:
            there = {**given, **dict(zip(derivative.seeds, seeds, strict=True))}
            found = iter(run_batched([o for o in derivative.outputs if o is not None], there, application.size, rules))
            return [None if one is None else next(found) for one in derivative.outputs]

    results: list[Entry] = application.operation.customised.batched(application, run)
    return results


def _applied(operation: GraphOperation, application: Application, rules: Rules) -> list[Entry]:
    """Return the outputs of one operation for all examples."""
    primitive = operation.operation
    if primitive is CONSTANT:
        return [Entry(Tensor(operation.params[0].value), False)]
    if primitive is VARIABLE:
        return [Entry(operation.params[0].variable.__tensor__(), False)]
    if primitive is PLACEHOLDER:
        raise ArgumentError(f"{operation.outputs[0]} has no value: it was not given")
    # What clips does so for each example, also if all get the same; what holds programs may hold anything.
    mapped = any(application.mapped) or primitive in CLIPPING
    if mapped or (primitive.gates is not None and primitive.name in rules):
        result = _rule_of(primitive, application.size, rules)(application)
        if isinstance(result, list):
            return result
    elif primitive in GATES:
        result = again(primitive, application.inputs, operation.params, operation.source)
    else:
        result = application.bound(application.inputs)
    return [Entry(one, mapped) for one in ((result,) if operation.single else result)]


def _rule_of(operation: Operation, size: int, rules: Rules) -> Rule:
    if size == 0 and operation.gates is None:
        return one_by_one
    return rules.get(operation.name) or (entry_by_entry if operation.elementwise else one_by_one)
