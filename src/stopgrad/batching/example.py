"""`ExampleGraph`: where a function of one example is traced, for many examples to be run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopgrad.batching.application import Entry, Rules
from stopgrad.batching.capturing import CapturingGraph
from stopgrad.batching.sweep import run_batched
from stopgrad.core.arrays import Shape
from stopgrad.core.graph import BaseGraph, Output
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor


class ExampleGraph(CapturingGraph):
    """The graph of a function of one example.

    Args:
        name: of the function, for errors.
        size: how many examples there are.
        rules: batching rules to run it with.
    """

    def __init__(self, name: str, size: int, rules: Rules) -> None:
        super().__init__(name, state.graph)
        self.size = size
        self._rules = rules

    def example_of(self, tensor: Tensor) -> Tensor:
        """Return what stands for one example of a tensor that has the axis of examples in front."""
        return Tensor(self.standing_for(Entry(tensor, True), "example"))

    def run(self, outputs: Sequence[Any]) -> list[Entry]:
        """Return for all examples what outputs of this graph are for one."""
        return run_batched(outputs, self.entries, self.size, self._rules)

    def draw(self, sample: Callable[[Shape], Any], home: BaseGraph | None) -> Any:
        """Return one example's part of random numbers drawn for each example."""
        if self is home:
            return sample(())
        if self.outer is None:
            drawn = sample((self.size,))
        else:
            drawn = self.outer.draw(lambda lead: sample((*lead, self.size)), home)
        return self.example_of(drawn if isinstance(drawn, Tensor) else Tensor(drawn))

    def says_unknown(self, output: Output) -> str:
        """Return what the error says when something asks for a value."""
        return (
            f"the value of {output} is that of one example: {self.name} is traced once for all {self.size} examples of "
            "vmap, between which the value differs, but something asks for it (float(), bool(), an `if` or `while`, "
            "np.asarray, .numpy() or printing its entries); use where, cond or while_loop for what depends on values, "
            "or in_axes=None for what is the same for all examples"
        )
