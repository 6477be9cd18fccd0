"""Graphs of many operations: built, differentiated, saved and loaded in steps that grow with them and no faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stopgrad as sg


def chain(length: int) -> Callable[[Any], Any]:
    """Return a function of this many operations, one after the other."""

    def f(x: Any) -> Any:
        y = x
        for _ in range(length // 4):
            y = sg.sin(y) * 0.5 + x
            y = y - sg.stop_gradient(x)
        return y

    return f


def round_trip(length: int, path: Path) -> Any:
    """Build, differentiate, save, load and save again; return the loaded graph."""
    traced = sg.trace(chain(length))(1.5)
    assert len(traced.graph) > length
    (dx,) = sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    traced.graph.save(path)
    loaded = sg.graph.load(path)
    loaded.save(path.with_suffix(".copy"))
    assert path.read_bytes() == path.with_suffix(".copy").read_bytes()
    values = [
        graph.run(graph.operation(dx.op.name).output(), {graph.operation("input").output(): 2.5})
        for graph in (traced.graph, loaded)
    ]
    assert values[0].item() == values[1].item()
    return loaded


def calls_of(f: Callable[[], Any]) -> int:
    """Return how many functions are called, Python's and C's."""
    count = 0

    def observe(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(observe)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


def test_work_grows_with_the_graph_and_no_faster(tmp_path: Path) -> None:
    round_trip(40, tmp_path / "graph")  # what is worked out once and remembered
    once, twice, four_times = (
        calls_of(lambda length=length: round_trip(length, tmp_path / "graph")) for length in (500, 1000, 2000)
    )
    assert four_times - twice == pytest.approx(2 * (twice - once), rel=0.02)


def test_nothing_recurses_along_a_long_graph(tmp_path: Path) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        loaded = round_trip(45_000, tmp_path / "graph")
    finally:
        sys.setrecursionlimit(before)
    assert len(loaded) > 100_000


def test_one_operation_of_many_inputs_is_one_step(tmp_path: Path) -> None:
    traced = sg.trace(lambda *xs: sg.stack(xs))(*np.arange(3000.0))
    traced.save(tmp_path / "graph")
    assert len(sg.graph.load_traced(tmp_path / "graph").inputs) == 3000


def test_gates_of_many_names_are_told_apart_in_linear_work() -> None:
    """Each has an origin of its own, and what proves unconnected names them all."""

    def f(x: Any) -> Any:
        total = 0.0
        for number in range(3000):
            total = total + sg.stop_gradient(x, name=f"gate {number}")
        return total

    traced = sg.trace(f)(1.0)
    with pytest.raises(sg.errors.UnconnectedError, match="gate"):
        sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs, unconnected="error")
