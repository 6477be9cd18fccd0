"""Files that are damaged, or made to do harm: one error, nothing else, in little time and memory.

Beyond these runs a fuzzer, tests/fuzz/fuzz_graph_files.py.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stopgrad as sg
from stopgrad.core.errors import GraphFileError
from stopgrad.graph.loading import HEAD
from tests.fuzz.mutations import mutated, put_together
from tests.fuzz.seeds import PROGRAMS, taken_apart, write_seed

MUTATIONS = 100
"""For each program."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a file is put."""
    return tmp_path / "graph"


def load_if_good(path: Path, data: bytes) -> bool:
    """Load a file, which must give a graph that can be saved, or the one error; return whether it did."""
    path.write_bytes(data)
    try:
        graph = sg.graph.load(path)
    except GraphFileError as error:
        assert_expected(error, path)
        return False
    graph.save(path)
    first = path.read_bytes()
    sg.graph.load(path).save(path)
    assert path.read_bytes() == first
    return True


def assert_expected(error: BaseException | None, path: Path) -> None:
    """Fail if an error does not name the file, or was something else at first, which nothing had foreseen."""
    assert str(path) in str(error)
    assert len(str(error)) < 1000
    while error is not None:
        assert isinstance(error, GraphFileError)
        error = error.__cause__


def contents(path: Path, name: str) -> tuple[bytes, bytes]:
    """Return records and arrays of a program's file."""
    write_seed(name, path)
    return taken_apart(path)


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    write_seed("small", path)
    data = path.read_bytes()
    assert not any(load_if_good(path, data[:size]) for size in range(len(data)))
    assert not load_if_good(path, data + b"\0")
    assert load_if_good(path, data)


def test_a_bit_flipped_anywhere_is_noticed(path: Path) -> None:
    write_seed("small", path)
    data = path.read_bytes()
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        assert not load_if_good(path, bytes(flipped))


@pytest.mark.parametrize(("name", "step"), [("small", 2), ("loops", 11)])
def test_a_bit_flipped_under_a_good_checksum_does_no_harm(path: Path, name: str, step: int) -> None:
    records, arrays = contents(path, name)
    for place in range(0, len(records), step):
        flipped = bytearray(records)
        flipped[place] ^= 1 << place % 8
        load_if_good(path, put_together(bytes(flipped), arrays))
        load_if_good(path, put_together(records[:place], arrays))


@pytest.mark.parametrize("name", PROGRAMS)
def test_records_with_parts_exchanged_do_no_harm(path: Path, name: str) -> None:
    records, arrays = contents(path, name)
    source = random.Random(5)
    good = 0
    tracemalloc.start()
    try:
        for number in range(MUTATIONS):
            good += load_if_good(path, put_together(mutated(records, source, 1 + number % 3), arrays))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert 0 < good < MUTATIONS


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda head: (b"PK\3\4\0\0\0\0", *head[1:]), "no graph file"),
        (lambda head: (head[0], 2, *head[2:]), "version 2"),
        (lambda head: (*head[:2], head[2] ^ 1, *head[3:]), "checksum"),
        (lambda head: (*head[:3], (1 << 64) - 1, head[4]), "bytes long"),
        (lambda head: (*head[:4], (1 << 64) - 1), "bytes long"),
        (lambda head: (*head[:3], 0, head[3] + head[4]), "bytes long"),
    ],
)
def test_heads_are_checked(path: Path, change: Callable[[Any], Any], complaint: str) -> None:
    write_seed("loops", path)
    data = path.read_bytes()
    path.write_bytes(HEAD.pack(*change(HEAD.unpack(data[: HEAD.size]))) + data[HEAD.size :])
    with pytest.raises(GraphFileError, match=complaint):
        sg.graph.load(path)


BASE: list[Any] = [
    ["type", "placeholder"],
    ["spec", "float64", [2]],
    [0, "x", [], 0, [["spec", 0]]],
    ["type", "sin"],
    ["type", "reshape"],
    ["type", "constant"],
]
"""A placeholder x, operation 0; type 1 is sin, type 2 reshape, type 3 constant."""

HOSTILE: list[tuple[list[Any], str]] = [
    ([{"a": 1}], "no record"),
    ([[]], "no record"),
    ([["pickle", "x"]], "no record 'pickle'"),
    ([["type", "os.system"]], "no operation 'os.system'"),
    ([["type", "leaf"]], "no operation 'leaf'"),
    ([["type", "x" * 70000]], "string of 0 to 65536"),
    ([["spec", "object", []]], "no dtype 'object'"),
    ([["spec", "V8", []]], "no dtype"),
    ([["spec", "float64", [0] * 65]], "at most 64 axes"),
    ([["spec", "float64", [1 << 60]]], "a size must be"),
    ([["spec", "float64", [-2]]], "a size must be"),
    ([["spec", "float64", [True]]], "a size must be"),
    ([["spec", "float64", [1.5]]], "no integer"),
    ([[1, "y", [1], 0, []]], "no operation before this 1"),
    ([[1, "y", [-1], 0, []]], "no operation before this -1"),
    ([[1, "y", [[0, 1]], 0, []]], "number of an output"),
    ([[1, "y", [["=", "0"]], 0, []]], "no operand"),
    ([[1, "x", [0], 0, []]], "one is already"),
    ([[1, "", [0], 0, []]], "string of 1"),
    ([[99, "y", [0], 0, []]], "no type 99"),
    ([[1, "y", [0], 7, []]], "no spec 7"),
    ([[1, "y", [0], [0], []]], "does not give what the file says"),
    ([["spec", "float32", [2]], [1, "y", [0], 1, []]], "does not give what the file says"),
    ([[1, "y", [0, 0], 0, []]], "does not take 2 inputs"),
    ([[1, "y", [0], 0, [1]]], "does not take 1 inputs and 1 settings"),
    ([[2, "y", [0], 0, ["shape", "before"]]], "does not give"),
    ([[2, "y", [0], 0, [["eval", "1"], None]]], "no setting"),
    ([[2, "y", [0], 0, [["tuple", 1 << 63], None]]], "an integer must be"),
    ([[3, "y", [], 0, [["array", 0]]]], "no array 0"),
    ([["array", "float64", [1 << 40], "full"]], "does not fit into what is left"),
    ([["array", "float64", [1 << 59] * 60, "full"]], "does not fit into what is left"),
    ([["array", "float64", [2], "scalar"]], "cannot be 'scalar'"),
    ([["array", "float64", [-1], "full"]], "does not fit|cannot be|negative"),
    ([["in", 1]], "no graph 1"),
    ([["graph", 1]], "no graph 1"),
    ([["graph", 0], ["body", 1, [0], [0]]], "outputs of its graph"),
    ([["body", 0, [0], [0]]], "not the whole"),
    ([["graph", 0], ["in", 1], [1, "y", [0], 0, []]], "belongs to another graph"),
    ([["traced", "f", [0], [0], "*", ["tuple"]]], "as many leaves"),
    ([["traced", "f", [0], [0], "*", "*"], ["type", "cos"]], "nothing may follow"),
    ([["traced", "f", [0], [0], ["set", "*"], "*"]], "no structure"),
    ([["variable", "w", 0, True, None], ["variable", "w", 0, True, None]], "is there twice|not in the file"),
]


@pytest.mark.parametrize(("records", "complaint"), HOSTILE, ids=range(len(HOSTILE)))
def test_records_are_checked(path: Path, records: list[Any], complaint: str) -> None:
    lines = "".join(json.dumps(one) + "\n" for one in (*BASE, *records))
    path.write_bytes(put_together(lines.encode(), b""))
    with pytest.raises((GraphFileError, sg.errors.ArgumentError), match=complaint):
        sg.graph.load(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"[" * 100_000 + b"\n", "64 deep"),
        (b"[" * 100_000 + b"]" * 100_000 + b"\n", "64 deep"),
        (b'["type", "' + b"[" * 1000 + b'"]\n', "no operation"),
        (b'["type",\xff]\n', "no JSON"),
        (b'["type",NaN]\n', "no integer"),
        (b'["type",1' + b"0" * 10_000 + b"]\n", "no JSON"),
        (b'["type","sin"]', "newline"),
        (b"\n", "no JSON"),
        ('["type","sin"]\n'.encode("utf-16"), "no JSON"),
    ],
    ids=range(9),
)
def test_lines_are_checked(path: Path, line: bytes, complaint: str) -> None:
    path.write_bytes(put_together(line, b""))
    with pytest.raises(GraphFileError, match=complaint):
        sg.graph.load(path)


def test_bodies_cannot_make_loading_a_square_of_the_file(path: Path) -> None:
    """A long chain, and as many bodies that each need all of it."""
    lines = [["type", "placeholder"], ["spec", "float64", []], ["graph", 0], ["in", 1], [0, "x", [], 0, [["spec", 0]]]]
    lines += [["type", "sin"], *([1, f"y{i}", [i], 0, []] for i in range(2000))]
    lines += [["body", 1, [0], [2000]]] * 2000
    path.write_bytes(put_together("".join(json.dumps(one) + "\n" for one in lines).encode(), b""))
    with pytest.raises(GraphFileError, match="share more than programs do"):
        sg.graph.load(path)


def test_sizes_that_no_machine_holds_cost_nothing(path: Path) -> None:
    """Shape rules only compute shapes, so that a graph for which there is no memory can be read and printed."""

    def f(x: Any, i: Any) -> Any:
        y = x[i, :, i]
        return sg.sum(sg.diagonal(x)) + sg.sum(y) + sg.sum(x @ x.T) + sg.sum(sg.broadcast_to(x, (2, *x.shape)))

    specs = sg.Spec((1 << 20, 1 << 20, 1 << 20), "float64"), sg.Spec((1 << 20,), "int64")
    tracemalloc.start()
    try:
        traced = sg.trace(f)(*specs)
        traced.save(path)
        assert str(sg.graph.load_traced(path)) == str(traced)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
