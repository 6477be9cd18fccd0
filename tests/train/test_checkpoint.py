"""Checkpoints: bit for bit, whole or not at all, data only; and what a damaged or hostile file does: nothing."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import array_api_strict
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import torch

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, CheckpointError, DTypeError
from stopgrad.gates import frozen
from stopgrad.train import SGD, Adam, Momentum, Variable, load, load_arrays, save
from stopgrad.train.archive import read_arrays
from tests.train.optimizer_table import ENTRIES

SUFFIXES = pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
EACH = pytest.mark.parametrize("name", list(ENTRIES))
AWKWARD = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, np.frombuffer(b"\x01\x02\x03\x04\x05\x06\xf8\x7f")[0]])


def model(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "layers": [{"w": Variable(rng.normal(size=(2, 3))), "b": Variable(rng.normal(size=3))}],
        "scale": Variable(rng.normal()),
        "late": Variable(rng.normal(size=2)),
    }


def step(optimizer: Any, model: dict[str, Any], late: bool) -> None:
    layer = model["layers"][0]
    x = np.array([[1.0, -2.0], [0.5, 0.25]])

    def loss():
        total = p.sum(p.tanh(x @ layer["w"] + layer["b"]) ** 2) * model["scale"] ** 2
        return total + p.sum(model["late"] ** 2) if late else total

    optimizer.minimize(loss)


def bits(model: dict[str, Any]) -> list[bytes]:
    layer = model["layers"][0]
    return [one.numpy().tobytes() for one in (layer["w"], layer["b"], model["scale"], model["late"])]


@SUFFIXES
@EACH
def test_training_goes_on_as_if_not_interrupted(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    through, optimizer = model(0), ENTRIES[name].make(lambda step: 0.1 / (1 + step))
    for _ in range(3):
        step(optimizer, through, late=False)
    save(path, through, optimizer)
    for _ in range(2):
        step(optimizer, through, late=True)
    # Another model and optimizer, which have gone elsewhere before they load.
    resumed, other = model(1), ENTRIES[name].make(lambda step: 0.1 / (1 + step))
    step(other, resumed, late=True)
    load(path, resumed, other)
    assert other.iterations == 3
    assert other.count_of(resumed["late"]) == 0
    for _ in range(2):
        step(other, resumed, late=True)
    assert bits(resumed) == bits(through)


@SUFFIXES
def test_values_come_back_bit_for_bit(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"values{suffix}"
    values = {
        "float64": AWKWARD,
        "float32": np.array([[1.5, -0.0]], np.float32),
        "float16": np.array([1.5, 65504], np.float16),
        "complex64": np.array([1 + 2j], np.complex64),
        "int": np.array([[1], [-2]], np.int32),
        "bool": np.array([True, False]),
        "zero-d": np.array(3.5),
        "empty": np.zeros((0, 3)),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "ünïcode/with/slashes": np.array([1.0]),
        "file": np.array([2.0]),
    }
    saved = {name: Variable(value) for name, value in values.items()}
    save(path, saved)
    loaded = {name: Variable(np.zeros_like(value)) for name, value in values.items()}
    load(path, loaded)
    for name, value in values.items():
        assert loaded[name].numpy().tobytes() == value.tobytes()
        assert (loaded[name].shape, loaded[name].dtype) == (value.shape, value.dtype)
    arrays = load_arrays(path)
    assert {name: array.tobytes() for name, array in arrays.items()} == {n: v.tobytes() for n, v in values.items()}
    loaded["float64"].assign_add(np.ones(6))


def test_bfloat16_in_safetensors(tmp_path: Path) -> None:
    w = Variable(np.array([1.5, -2.0], ml_dtypes.bfloat16))
    save(tmp_path / "w.safetensors", [w])
    twin = Variable(np.zeros(2, ml_dtypes.bfloat16), name=w.name)
    load(tmp_path / "w.safetensors", [twin])
    assert twin.numpy().tobytes() == w.numpy().tobytes()
    with pytest.raises(DTypeError, match=r"bfloat16.*\.safetensors"):
        save(tmp_path / "w.npz", [w])


def test_complex128_in_npz(tmp_path: Path) -> None:
    z = Variable(np.array([1 + 2j]))
    save(tmp_path / "z.npz", [z], Adam())
    with pytest.raises(DTypeError, match=r"complex128.*\.npz"):
        save(tmp_path / "z.safetensors", [z])


def test_other_libraries_read_what_is_saved(tmp_path: Path) -> None:
    w = Variable([1.0, 2.0], name="w")
    save(tmp_path / "w.safetensors", [w])
    save(tmp_path / "w.npz", [w])
    assert safetensors.numpy.load_file(tmp_path / "w.safetensors")["w"].tolist() == [1.0, 2.0]
    with np.load(tmp_path / "w.npz", allow_pickle=False) as file:
        assert file["w"].tolist() == [1.0, 2.0]


def test_what_other_libraries_save_is_read(tmp_path: Path) -> None:
    value = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez_compressed(tmp_path / "w.npz", w=value, big_endian=value.astype(">f8"))
    safetensors.numpy.save_file({"w": value.copy("C")}, tmp_path / "w.safetensors", metadata={"made": "elsewhere"})
    for suffix in (".npz", ".safetensors"):
        w = Variable(np.zeros((2, 3)))
        variables = {"w": w, "big_endian": Variable(np.zeros((2, 3)))} if suffix == ".npz" else {"w": w}
        load(tmp_path / f"w{suffix}", variables)
        for variable in variables.values():
            assert variable.tolist() == value.tolist()


@SUFFIXES
def test_arrays_of_other_libraries(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"other{suffix}"
    for make in (array_api_strict.asarray, lambda value: torch.tensor(value, dtype=torch.float64)):
        w, optimizer = Variable(make([1.0, 2.0]), name="w"), Adam(0.1)
        optimizer.minimize(lambda w=w: p.sum(w * w))
        save(path, [w], optimizer)
        twin, other = Variable(make([0.0, 0.0]), name="w"), Adam(0.1)
        load(path, [twin], other)
        optimizer.minimize(lambda w=w: p.sum(w * w))
        other.minimize(lambda twin=twin: p.sum(twin * twin))
        assert type(twin.raw) is type(w.raw)
        assert twin.tolist() == w.tolist()


@SUFFIXES
def test_weights_can_be_loaded_without_the_optimizer(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    w, optimizer = Variable([1.0, 2.0], name="w"), Adam(0.1)
    optimizer.minimize(lambda: p.sum(w * w))
    save(path, [w], optimizer)
    twin = Variable([0.0, 0.0], name="w")
    load(path, [twin])
    assert twin.tolist() == w.tolist()


def test_several_optimizers_by_name(tmp_path: Path) -> None:
    path = tmp_path / "gan.npz"
    g, d = Variable([1.0], name="g"), Variable([1.0], name="d")
    optimizers = {"generator": Momentum(0.1), "critic": Adam(0.1)}
    optimizers["generator"].apply_gradients({g: [1.0]})
    for _ in range(2):
        optimizers["critic"].apply_gradients({d: [1.0]})
    save(path, [g, d], optimizers)
    fresh = {"critic": Adam(0.1), "generator": Momentum(0.1)}
    load(path, [g, d], fresh)
    assert (fresh["generator"].iterations, fresh["critic"].count_of(d)) == (1, 2)
    assert fresh["generator"].slots_of(g)["momentum"].tolist() == [1.0]
    with pytest.raises(CheckpointError, match="optimizer/critic"):
        load(path, [g, d], {"generator": Momentum(0.1)})


@SUFFIXES
@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (lambda: {"w": Variable([0.0, 0.0])}, "unexpected entry 'b'"),
        (lambda: {"w": Variable([0.0, 0.0]), "b": Variable([0.0]), "c": Variable(0.0)}, "missing entry 'c'"),
        (lambda: {"w": Variable([0.0]), "b": Variable([0.0])}, r"entry 'w' is float64 of shape \(2,\).*\(1,\)"),
        (lambda: {"w": Variable([0, 0]), "b": Variable([0.0])}, "entry 'w' is float64 .* here int64"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_loaded(
    suffix: str, variables: Any, text: str, tmp_path: Path
) -> None:
    path = tmp_path / f"run{suffix}"
    save(path, {"w": Variable([1.0, 2.0]), "b": Variable([3.0])})
    into = variables()
    with pytest.raises(CheckpointError, match=text) as caught:
        load(path, into)
    assert str(path) in str(caught.value)
    assert all(not variable.numpy().any() for variable in into.values())


@pytest.mark.parametrize("make", [SGD, Momentum, lambda rate: Adam(rate, amsgrad=True)])
def test_another_optimizer_is_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    w, adam = Variable([1.0], name="w"), Adam(0.1)
    adam.apply_gradients({w: [1.0]})
    save(path, [w], adam)
    w.assign([5.0])
    other = make(0.1)
    with pytest.raises(CheckpointError, match=r"entry 'optimizer/w/\w+'"):
        load(path, [w], other)
    assert w.tolist() == [5.0]
    assert other.iterations == 0


@pytest.mark.parametrize("entry", ["optimizer/iterations", "optimizer/w/count"])
def test_impossible_counts_are_refused(entry: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    w, adam = Variable([1.0], name="w"), Adam(0.1)
    adam.apply_gradients({w: [1.0]})
    save(path, [w], adam)
    np.savez(path, **{**load_arrays(path), "w": np.array([7.0]), entry: np.array(-3)})
    with pytest.raises(CheckpointError):
        load(path, [w], adam)
    assert w.tolist() != [7.0]


@SUFFIXES
def test_truncated_anywhere_nothing_is_loaded(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    save(path, {"w": Variable([1.0, 2.0]), "b": Variable([3.0])})
    whole = path.read_bytes()
    w, b = Variable([0.0, 0.0]), Variable([0.0])
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            load(path, {"w": w, "b": b})
    assert (w.tolist(), b.tolist()) == ([0.0, 0.0], [0.0])


def test_a_flipped_bit_in_npz_data_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    save(path, {"w": Variable(np.full(100, 1.25))})
    data = bytearray(path.read_bytes())
    data[data.index(np.float64(1.25).tobytes()) + 400] ^= 1
    path.write_bytes(data)
    w = Variable(np.zeros(100))
    with pytest.raises(CheckpointError, match="damaged"):
        load(path, {"w": w})
    assert not w.numpy().any()


def npy_bytes(header: str) -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(entries: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


class Boom:
    """Unpickling this would leave a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("unpickled",)


def hostile_npz() -> dict[str, bytes]:
    objects, plain = io.BytesIO(), io.BytesIO()
    np.save(objects, np.array([Boom()], dtype=object), allow_pickle=True)
    np.save(plain, np.array([1.0, 2.0]))
    row = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
    return {
        "an array of objects": zipped([("w.npy", objects.getvalue())]),
        "a pickle": pickle.dumps(Boom()),
        "a pickle in a zip": zipped([("w.npy", pickle.dumps(Boom()))]),
        "a shape that is too large": zipped([("w.npy", npy_bytes(row % "(10**12,)"))]),
        "a large shape": zipped([("w.npy", npy_bytes(row % "(1000000000000,)"))]),
        "a negative shape": zipped([("w.npy", npy_bytes(row % "(-2,)"))]),
        "code for a header": zipped([("w.npy", npy_bytes("__import__('os').mkdir('unpickled')"))]),
        "a deep header": zipped([("w.npy", npy_bytes("(" * 9000))]),
        "records": zipped([("w.npy", npy_bytes(row.replace("'<f8'", "[('a', '<f8')]") % "(2,)") + bytes(16))]),
        "a bomb": zipped([("w.npy", npy_bytes(row % "(1000000,)") + bytes(8_000_000))]),
        "no arrays": zipped([("w.txt", b"hello")]),
        "twice": zipped([("w.npy", plain.getvalue()), ("w", plain.getvalue())]),
        "too much data": zipped([("w.npy", plain.getvalue() + bytes(8))]),
        "nothing": b"",
        "text": b"not a zip file at all",
    }


def hostile_safetensors() -> dict[str, bytes]:
    def file(header: Any, data: bytes = b"") -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    return {
        "a header longer than the file": struct.pack("<Q", 2**63) + b"{}",
        "no header": b"\x00" * 4,
        "not JSON": file(b"{'w'"),
        "not a dict": file([1, 2]),
        "data beyond the end": file({"w": {**entry, "data_offsets": [0, 1 << 60]}}, bytes(16)),
        "backwards": file({"w": {**entry, "data_offsets": [16, 0]}}, bytes(16)),
        "a shape that overflows": file({"w": {**entry, "shape": [2**62, 4]}}, bytes(16)),
        "a negative shape": file({"w": {**entry, "shape": [-2]}}, bytes(16)),
        "less data than the shape": file({"w": {**entry, "data_offsets": [0, 8]}}, bytes(8)),
        "a hole": file({"w": {**entry, "data_offsets": [8, 24]}}, bytes(24)),
        "more data than the entries": file({"w": entry}, bytes(24)),
        "an unknown dtype": file({"w": {**entry, "dtype": "F6"}}, bytes(16)),
        "a dtype that NumPy lacks": file({"w": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, bytes(2)),
        "a pickle": pickle.dumps(Boom()),
        "nothing": b"",
    }


HOSTILE = [(".npz", name) for name in hostile_npz()] + [(".safetensors", name) for name in hostile_safetensors()]


@pytest.mark.parametrize(("suffix", "name"), HOSTILE, ids=[f"{name} {suffix}" for suffix, name in HOSTILE])
def test_hostile_files_do_nothing(suffix: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"hostile{suffix}"
    path.write_bytes((hostile_npz() if suffix == ".npz" else hostile_safetensors())[name])
    w = Variable([0.0, 0.0], name="w")
    with pytest.raises(CheckpointError) as caught:
        load(path, [w])
    assert path.name in str(caught.value)
    assert w.tolist() == [0.0, 0.0]
    assert os.listdir(tmp_path) == [path.name]


def test_what_a_file_says_is_checked_before_its_data_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.npz"
    save(path, {"w": Variable(np.zeros(100))})
    seen = []

    def refuse(specs: Any) -> None:
        seen.append({name: (spec.shape, str(spec.dtype)) for name, spec in specs.items()})
        raise CheckpointError("refused")

    with pytest.raises(CheckpointError, match=r"large\.npz: refused"):
        read_arrays(path, refuse)
    assert seen == [{"w": ((100,), "float64")}]


@SUFFIXES
def test_a_failed_save_leaves_the_old_file_and_no_other(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"run{suffix}"
    w = Variable([1.0], name="w")
    save(path, [w])
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    w.assign([2.0])
    with pytest.raises(OSError, match="no space left"):
        save(path, [w])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_files_and_names_that_make_no_sense(tmp_path: Path) -> None:
    w = Variable([1.0], name="w")
    with pytest.raises(ArgumentError, match=r"\.safetensors or \.npz"):
        save(tmp_path / "run.pkl", [w])
    with pytest.raises(ArgumentError, match="two variables are named 'w'"):
        save(tmp_path / "run.npz", [w, Variable([2.0], name="w")])
    with pytest.raises(ArgumentError, match="optimizer/"):
        save(tmp_path / "run.npz", {"optimizer": {"w": w}})
    with pytest.raises(ArgumentTypeError, match="float at 'a/0'"):
        save(tmp_path / "run.npz", {"a": [1.0]})
    with pytest.raises(ArgumentTypeError, match="optimizers holds a str"):
        save(tmp_path / "run.npz", [w], {"adam": "adam"})
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.npz", [w])
    assert os.listdir(tmp_path) == []


def test_loading_into_a_frozen_variable_is_refused(tmp_path: Path) -> None:
    w = Variable([1.0], name="w")
    save(tmp_path / "w.npz", [w])
    with frozen(w), pytest.raises(ArgumentError, match="'w' is frozen"):
        load(tmp_path / "w.npz", [w])


def test_names_come_from_keys_and_places_or_from_the_variables(tmp_path: Path) -> None:
    a, b = Variable(1.0, name="a"), Variable(2.0, name="b")
    save(tmp_path / "one.npz", {"net": {"layers": [a, b]}, 3: a})
    assert set(load_arrays(tmp_path / "one.npz")) == {"net/layers/0", "net/layers/1", "3"}
    save(tmp_path / "two.npz", [a, b])
    assert set(load_arrays(tmp_path / "two.npz")) == {"a", "b"}
    save(tmp_path / "three.npz", a)
    assert set(load_arrays(tmp_path / "three.npz")) == {"a"}
