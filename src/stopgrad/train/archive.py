"""Files of named arrays, in the safetensors or the npz format: data only, never code, whole or not at all.

A file is written beside its place and then moved there, so what has been there stays whole if writing fails. Reading
checks everything the file says of itself before believing it, and lets a caller look at names, shapes and dtypes before
any array is made.
"""

from __future__ import annotations

import math
import os
import secrets
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import ArgumentError, CheckpointError, DTypeError
from stopgrad.core.lazy import ml_dtypes, safetensors

SAFETENSORS, NPZ = ".safetensors", ".npz"

_SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to a file, replacing it as a whole or not at all.

    Args:
        path: ends in .safetensors or .npz, which says the format.
        arrays: by name.

    Raises:
        ArgumentError: another ending.
        DTypeError: a dtype the format cannot hold.
    """
    target = Path(path)
    suffix = _suffix(target)
    contents = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in contents.items():
        _check_writable(suffix, name, array.dtype)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as file:
            if suffix == SAFETENSORS:
                file.write(safetensors().numpy.save(contents))
            else:
                _write_npz(file, contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def read_arrays(
    path: str | os.PathLike[str], check: Callable[[dict[str, Spec]], None] | None = None
) -> dict[str, np.ndarray]:
    """Return the arrays in a file, by name; they are read-only.

    Args:
        path: ends in .safetensors or .npz.
        check: called with what the file says it holds before any array is made; raises to refuse it.

    Raises:
        ArgumentError: another ending.
        CheckpointError: the file is damaged, or no such file at all.
        OSError: the file cannot be opened.
    """
    target = Path(path)
    suffix = _suffix(target)
    with open(target, "rb") as file:
        try:
            return _read_safetensors(file, check) if suffix == SAFETENSORS else _read_npz(file, check)
        except CheckpointError as error:
            raise CheckpointError(f"{target}: {error}") from error
        except Exception as error:  # whatever a damaged or hostile file makes the parsers raise
            raise CheckpointError(f"{target} is damaged, or not a {suffix} file: {error}") from error


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype of any array library, without the library and the byte order."""
    return dtype.newbyteorder("=").name if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


def _suffix(path: Path) -> str:
    if path.suffix not in (SAFETENSORS, NPZ):
        raise ArgumentError(f"{path}: the file's name must end in {SAFETENSORS} or {NPZ}, which says the format")
    return path.suffix


def _check_writable(suffix: str, name: str, dtype: np.dtype) -> None:
    if suffix == SAFETENSORS and dtype_name(dtype) not in _SAFETENSORS_DTYPES.values():
        raise DTypeError(f"a {suffix} file cannot hold {dtype} (entry {name!r}); use {NPZ}")
    if suffix == NPZ and dtype.kind not in "biufc":
        raise DTypeError(f"an {suffix} file cannot hold {dtype} (entry {name!r}); use {SAFETENSORS}")


def _write_npz(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _read_safetensors(file: IO[bytes], check: Callable[[dict[str, Spec]], None] | None) -> dict[str, np.ndarray]:
    entries = dict(safetensors().deserialize(file.read()))
    specs = {}
    for name, entry in entries.items():
        if entry["dtype"] not in _SAFETENSORS_DTYPES:
            raise CheckpointError(f"entry {name!r} is of dtype {entry['dtype']}, which is not supported")
        if entry["dtype"] == "BF16":
            ml_dtypes()  # teaches NumPy the name
        specs[name] = Spec(tuple(entry["shape"]), np.dtype(_SAFETENSORS_DTYPES[entry["dtype"]]))
    if check is not None:
        check(specs)
    return {name: _array_of(entries[name]["data"], spec, "C") for name, spec in specs.items()}


def _read_npz(file: IO[bytes], check: Callable[[dict[str, Spec]], None] | None) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        entries: dict[str, tuple[zipfile.ZipInfo, int, Spec, bool]] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in entries:
                raise CheckpointError(f"entry {name!r} is there twice")
            with archive.open(info) as entry:
                spec, fortran_order = _npy_header(entry, name)
                start = entry.tell()
            if info.file_size - start != math.prod(spec.shape) * spec.dtype.itemsize:
                raise CheckpointError(f"entry {name!r} does not hold as much as its header says ({spec})")
            entries[name] = (info, start, spec, fortran_order)
        if check is not None:
            check({name: spec for name, (_, _, spec, _) in entries.items()})
        arrays = {}
        for name, (info, start, spec, fortran_order) in entries.items():
            with archive.open(info) as entry:
                entry.read(start)
                arrays[name] = _array_of(entry.read(), spec, "F" if fortran_order else "C")
        return arrays


def _npy_header(entry: IO[bytes], name: str) -> tuple[Spec, bool]:
    version = np.lib.format.read_magic(entry)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(entry)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(entry)
    else:
        raise CheckpointError(f"entry {name!r} is of npy version {version}, which is not supported")
    if dtype.kind not in "biufc":
        raise CheckpointError(f"entry {name!r} is of dtype {dtype}; only numbers are read")
    return Spec(shape, dtype), fortran_order


def _array_of(data: Any, spec: Spec, order: Any) -> np.ndarray:
    array = np.frombuffer(data, dtype=spec.dtype).reshape(spec.shape, order=order)
    return array.astype(spec.dtype.newbyteorder("="), copy=False)
