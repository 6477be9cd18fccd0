"""Graph files: everything comes back bit for bit, the same graph gives the same bytes, what is no data is refused."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import stopgrad as sg
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphFileError, NonDifferentiableError
from stopgrad.core.graph import CONSTANT, ArrayParam, BaseGraph
from stopgrad.core.pytree import flatten
from stopgrad.graph.loading import HEAD, MAGIC, VERSION
from tests.fuzz.seeds import PROGRAMS, taken_apart
from tests.primitives.rows import Row
from tests.primitives.table import every_row, in_precision

# Their shapes, or which of their results there are, depend on values.
UNTRACEABLE = {"unique", "count_each", "argwhere"}


class Pair(NamedTuple):
    """What a function may take and return."""

    first: Any
    second: Any


def again(traced: Any, path: Path, **options: Any) -> Any:
    """Save, load and save; both files must be the same."""
    traced.save(path)
    loaded = sg.graph.load_traced(path, **options)
    copy = path.with_suffix(".copy")
    loaded.save(copy)
    assert copy.read_bytes() == path.read_bytes()
    return loaded


def same_bits(one: Any, other: Any) -> bool:
    """Whether two arrays are of one dtype, shape and pattern of bits."""
    first, second = np.asarray(one), np.asarray(other)
    return (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())


@every_row
def test_every_operation_comes_back(row: Row, tmp_path: Path) -> None:
    point = in_precision([*row.samples, *row.edges][0], np.float64)
    try:
        traced = sg.trace(row.call)(*point)
    except (sg.errors.TracedValueError, sg.errors.ShapeError):
        assert row.operation in UNTRACEABLE or "lstsq" in row.call.__code__.co_names
        return
    loaded = again(traced, tmp_path / "graph")
    assert str(loaded) == str(traced)
    results, expected = (flatten(one(*point))[0] for one in (loaded, traced))
    assert all(map(same_bits, results, expected))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_come_back(name: str, tmp_path: Path) -> None:
    program, argument = PROGRAMS[name]
    traced = sg.trace(program)(argument)
    loaded = again(traced, tmp_path / "graph")
    assert str(loaded) == str(traced)
    assert [one.source for one in loaded.graph] == [one.source for one in traced.graph]
    results, expected = (flatten(one(argument))[0] for one in (loaded, traced))
    assert all(map(same_bits, results, expected))


@pytest.mark.parametrize("transform", [lambda f: f, sg.grad, lambda f: sg.grad(sg.grad(f))], ids=["f", "grad", "grad²"])
def test_what_is_loaded_can_be_differentiated(transform: Callable[..., Any], tmp_path: Path) -> None:
    """Through loops, branches and gates, and with constants that the bodies' derivatives need."""
    traced = sg.trace(transform(PROGRAMS["loops"][0]))(1.5)
    loaded = again(traced, tmp_path / "graph")
    found = []
    for one in (traced, loaded):
        (derivative,) = sg.graph.add_gradients(one.graph, one.outputs, one.inputs)
        (tangent,) = sg.graph.add_tangents(one.graph, one.outputs, one.inputs)
        found.append(one.graph.run([derivative, tangent], {one.inputs[0]: 2.5}))
    assert all(map(same_bits, *found))


def test_gates_stay(tmp_path: Path) -> None:
    """x·stop(x) at 3 has the derivative 3; an open gate can be closed by name; masks and factors stay as they are."""

    def f(x: Any) -> Any:
        y = sg.stop_gradient(x, name="later", open=True) + sg.stop_gradient(x, where=x > 2.0)
        return x * sg.stop_gradient(x) + sg.scale_gradient(y, 0.5) + sg.clip_gradient(x, value=0.25)

    traced = sg.trace(f)(3.0)
    loaded = again(traced, tmp_path / "graph")
    for stops in ((), "later"):
        expected, found = (
            one.graph.run(sg.graph.add_gradients(one.graph, one.outputs, one.inputs, stop_gradients=stops)[0],
                          {one.inputs[0]: 3.0})
            for one in (traced, loaded)
        )  # fmt: skip
        assert float(found) == float(expected) == (3.75 if stops == () else 3.25)


def test_a_stop_of_the_innermost_level_stops_no_later_one(tmp_path: Path) -> None:
    f = sg.grad(lambda x: sg.grad(lambda y: y * sg.stop_gradient(y * y, level="innermost"))(x))
    traced = sg.trace(f)(3.0)
    loaded = again(traced, tmp_path / "graph")
    assert float(loaded(3.0)) == float(traced(3.0)) == float(f(3.0))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, 5e-324, *struct.unpack("<3d", bytes.fromhex(
    "010000000000f87f" "efcdab896745f1ff" "000000000000f0ff"))]  # fmt: skip
"""Zeros, infinities, the smallest number, NaNs with payloads, one of them signalling."""

DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32",
          "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_bit_for_bit(dtype: str, rng: np.random.Generator, tmp_path: Path) -> None:
    dtype_ = np.dtype(getattr(ml_dtypes, dtype, dtype))
    noise = rng.integers(0, 2 if dtype == "bool" else 256, 24 * dtype_.itemsize, np.uint8)
    array = np.frombuffer(noise.tobytes(), dtype_).reshape(2, 3, 4)
    arrays = [array, array[:, ::2].T, np.asfortranarray(array), array[0, 0, 0], np.asarray(array[1, 1, 1]), array[:0],
              np.broadcast_to(array[0, 0, 0], (3, 1, 5)), np.broadcast_to(array[:1], (3, 3, 4))]  # fmt: skip
    graph = sg.graph.Graph()
    for one in arrays:
        graph.constant(one)
    graph.save(tmp_path / "graph")
    loaded = [one.params[0].value for one in sg.graph.load(tmp_path / "graph")]
    assert all(map(same_bits, loaded, arrays))
    assert [isinstance(one, np.generic) for one in loaded] == [isinstance(one, np.generic) for one in arrays]


def test_big_endian_arrays_come_back_by_value(tmp_path: Path) -> None:
    graph = sg.graph.Graph()
    graph.add(CONSTANT, (), (ArrayParam(np.array([1.5, -2.5], ">f8")),))
    graph.save(tmp_path / "graph")
    (constant,) = sg.graph.load(tmp_path / "graph")
    assert constant.params[0].value.tolist() == [1.5, -2.5]


def test_a_repeated_entry_is_stored_once(tmp_path: Path) -> None:
    graph = sg.graph.Graph()
    graph.constant(np.broadcast_to(np.float64(7.0), (1 << 20, 1 << 19)))
    graph.save(tmp_path / "graph")
    (constant,) = sg.graph.load(tmp_path / "graph")
    assert (tmp_path / "graph").stat().st_size <= 256
    assert constant.params[0].value.shape == (1 << 20, 1 << 19)
    assert constant.params[0].value.strides == (0, 0)


@pytest.mark.parametrize("number", [*SPECIAL, 3, True, -(1 << 63), (1 << 53) + 1, complex(-0.0, np.nan)], ids=repr)
def test_plain_numbers_stay_plain_numbers(number: Any, tmp_path: Path) -> None:
    traced = sg.trace(lambda x: x * number)(np.complex128(1.0) if isinstance(number, complex) else np.float64(1.0))
    (loaded,) = [one for one in again(traced, tmp_path / "graph").graph if one.type == "multiply"]
    found = loaded.inputs[1]
    assert type(found) is type(number)
    assert same_bits(found, number)


@pytest.mark.parametrize(
    "tree",
    [None, (), [], {}, (1.0, [2.0, None]), {"b": 1.0, "a": {"x": (2.0,)}}, {1: 2.0, 0: 1.0}, {True: 1.0},
     OrderedDict(z=1.0, a=2.0), Pair(1.0, [2.0])],
    ids=repr,
)  # fmt: skip
def test_structures_come_back(tree: Any, tmp_path: Path) -> None:
    traced = sg.trace(lambda t: (t, 2.0))(tree)
    loaded = again(traced, tmp_path / "graph", types=[Pair])
    assert (loaded.in_tree, loaded.out_tree, loaded.name) == (traced.in_tree, traced.out_tree, traced.name)
    assert repr(loaded(tree)) == repr(traced(tree))


def test_named_tuples_need_their_class(tmp_path: Path) -> None:
    class Other(NamedTuple):
        first: Any

    Other.__name__ = "Pair"
    sg.trace(lambda pair: pair.first)(Pair(1.0, 2.0)).save(tmp_path / "graph")
    with pytest.raises(GraphFileError, match=r"'Pair' with the fields.*types="):
        sg.graph.load_traced(tmp_path / "graph")
    with pytest.raises(GraphFileError, match="has the fields"):
        sg.graph.load_traced(tmp_path / "graph", types=[Other])
    assert len(sg.graph.load(tmp_path / "graph")) == 2


def test_results_of_the_library_need_no_class(tmp_path: Path) -> None:
    traced = sg.trace(sg.linalg.qr)(np.eye(2))
    assert type(again(traced, tmp_path / "graph")(np.eye(2))) is type(traced(np.eye(2)))


def test_names_and_scopes_go_on_where_they_stopped(tmp_path: Path) -> None:
    traced = sg.trace(lambda x: sg.sin(sg.sin(x)))(1.0)
    sg.graph.add_gradients(traced.graph, traced.outputs, traced.inputs)
    loaded = again(traced, tmp_path / "graph")
    for one in (traced, loaded):
        (dx,) = sg.graph.add_gradients(one.graph, one.outputs, one.inputs)
        assert dx.name.startswith("gradients_1/")
    assert [one.name for one in loaded.graph] == [one.name for one in traced.graph]


def test_a_constant_is_not_added_again_after_loading(tmp_path: Path) -> None:
    array = np.arange(3.0)
    traced = sg.trace(lambda x: x * array + array)(array)
    graph = again(traced, tmp_path / "graph").graph
    value = next(one.params[0].value for one in graph if one.type == "constant")
    assert graph.constant(value).op in graph.operations
    assert len([one for one in graph if one.type == "constant"]) == 1


def test_sources_can_be_left_out(tmp_path: Path) -> None:
    traced = sg.trace(lambda x: x * x)(1.0)
    traced.save(tmp_path / "graph", sources=False)
    assert b"test_files" not in (tmp_path / "graph").read_bytes()
    assert {one.source for one in sg.graph.load(tmp_path / "graph")} == {None}


def _with_variables(*variables: Any) -> BaseGraph:
    graph = sg.graph.Graph()
    for one in variables:
        graph.variable(one)
    return graph


def test_variables_come_back_with_their_values(tmp_path: Path) -> None:
    w, b = sg.Variable([1.0, -0.0], name="w"), sg.Variable(3, name="b", trainable=False)
    _with_variables(w, b).save(tmp_path / "graph")
    first, second = (one.params[0].variable for one in sg.graph.load(tmp_path / "graph"))
    assert same_bits(first.numpy(), w.numpy())
    assert (first.name, first.trainable, second.name, second.trainable) == ("w", True, "b", False)
    first.assign([5.0, 6.0])


def test_graphs_with_variables_run_and_differentiate(tmp_path: Path) -> None:
    graph = sg.graph.Graph()
    w = graph.variable(sg.Variable([1.0, 2.0], name="w"))
    y = sg.sum(w * w)
    (dw,) = sg.graph.add_gradients(graph, y, w)
    graph.save(tmp_path / "graph")
    loaded = sg.graph.load(tmp_path / "graph")
    for one in (graph, loaded):
        assert one.run(one.operation(dw.op.name).output()).tolist() == [2.0, 4.0]
    loaded.operation("w").params[0].variable.assign([3.0, 5.0])
    assert loaded.run(loaded.operation(dw.op.name).output()).tolist() == [6.0, 10.0]


def test_variables_can_be_given(tmp_path: Path) -> None:
    _with_variables(sg.Variable([1.0, 2.0], name="w")).save(tmp_path / "graph", variable_values=False)
    mine = sg.Variable([5.0, 6.0], name="mine")
    (loaded,) = sg.graph.load(tmp_path / "graph", {"w": mine})
    assert loaded.params[0].variable is mine
    with pytest.raises(ArgumentError, match="'w' is not in the file"):
        sg.graph.load(tmp_path / "graph")
    with pytest.raises(ArgumentError, match="'w' is float64"):
        sg.graph.load(tmp_path / "graph", {"w": sg.Variable(1.0)})
    with pytest.raises(ArgumentError, match="no variable named 'v'"):
        sg.graph.load(tmp_path / "graph", {"w": mine, "v": mine})


def test_variables_need_names_of_their_own(tmp_path: Path) -> None:
    graph = _with_variables(sg.Variable(1.0, name="w"), sg.Variable(2.0, name="w"))
    with pytest.raises(ArgumentError, match="two variables are named 'w'"):
        graph.save(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


def test_what_is_no_data_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "graph").write_bytes(b"as it was")
    wide = sg.trace(lambda x: x)(np.zeros(2, np.longdouble))
    with pytest.raises(DTypeError, match=r"convert them with astype"):
        wide.save(tmp_path / "graph")
    large = sg.trace(lambda x: x * 10**30)(1.0)
    with pytest.raises(ArgumentTypeError, match="64 bits"):
        large.save(tmp_path / "graph")
    odd = sg.trace(lambda x: {(1, 2): x})(1.0)
    with pytest.raises(ArgumentTypeError, match="keys"):
        odd.save(tmp_path / "graph")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("graph", b"as it was")]


def test_a_traced_function_is_asked_for_where_there_is_none(tmp_path: Path) -> None:
    sg.graph.Graph().save(tmp_path / "graph")
    with pytest.raises(GraphFileError, match="no traced function"):
        sg.graph.load_traced(tmp_path / "graph")
    assert len(sg.graph.load(tmp_path / "graph")) == 0


def test_a_file_is_what_the_documentation_says(tmp_path: Path) -> None:
    """Head, records and arrays of the smallest graph with everything, as a reader of another make would see them."""
    traced = sg.trace(lambda x: x * np.array([1.0, 2.0]))(np.zeros(2))
    traced.save(tmp_path / "graph", sources=False)
    data = (tmp_path / "graph").read_bytes()
    magic, version, _, records, arrays = HEAD.unpack(data[:32])
    assert (magic, version, arrays) == (MAGIC, VERSION, 16)
    lines = [json.loads(line) for line in data[32 : 32 + records].splitlines()]
    assert lines == [
        ["type", "placeholder"],
        ["spec", "float64", [2]],
        [0, "input", [], 0, [["spec", 0]]],
        ["type", "constant"],
        ["array", "float64", [2], "full"],
        [1, "constant", [], 0, [["array", 0]]],
        ["type", "multiply"],
        [2, "multiply", [0, 1], 0, []],
        ["traced", "<lambda>", [0], [2], ["tuple", "*"], "*"],
    ]
    assert taken_apart(tmp_path / "graph")[1] == np.array([1.0, 2.0]).tobytes()


def test_derivatives_given_by_hand_are_not_in_a_file(tmp_path: Path) -> None:
    """Added before saving they are operations like others."""

    @sg.custom_gradient
    def double(x: Any) -> Any:
        return x * 1.0, lambda cotangent: cotangent * 2

    traced = sg.trace(double)(3.0)
    loaded = again(traced, tmp_path / "graph")
    assert float(loaded(3.0)) == 3.0
    if any(one.type == "double" for one in loaded.graph):
        with pytest.raises(NonDifferentiableError, match="double is Python code"):
            sg.graph.add_gradients(loaded.graph, loaded.outputs, loaded.inputs)
    derivative = again(sg.trace(sg.grad(double))(3.0), tmp_path / "graph")
    assert float(derivative(3.0)) == 2.0
