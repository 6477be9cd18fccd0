"""A fuzzer of graph files: `python -m tests.fuzz.fuzz_graph_files [libFuzzer's options]`; needs `pip install atheris`.

What it makes up is the contents of a file, with a head put before it that fits, so that it gets beyond the checksum.
Loading has to succeed, and then saving and loading again to give the same, or to raise `GraphFileError`. libFuzzer
itself watches time and memory. Try `-timeout=10 -rss_limit_mb=2048 -max_len=20000`.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["stopgrad.graph", "stopgrad.control"]):
    import stopgrad as sg
    import stopgrad.control
    import stopgrad.graph

from tests.fuzz.mutations import mutated, put_together
from tests.fuzz.seeds import PROGRAMS, taken_apart, write_seed

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))


def split(data: bytes) -> tuple[bytes, bytes]:
    """Return the records, up to the last newline, and the arrays behind them."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Change parts of records most of the time, bytes now and then."""
    records, arrays = split(data)
    if seed % 4:
        try:
            return (mutated(records, random.Random(seed), 1 + seed % 3) + arrays)[:max_size]
        except ValueError:
            pass
    return atheris.Mutate(data, max_size)


def try_file(data: bytes) -> None:
    """Load what the fuzzer made; if that works, save it and load it once more."""
    path, again = FOLDER / "a", FOLDER / "b"
    path.write_bytes(data if data.startswith(b"\x93") else put_together(*split(data)))
    try:
        graph = sg.graph.load(path)
    except sg.errors.ArgumentError:
        return
    except sg.errors.GraphFileError as error:
        cause = error.__cause__
        while cause is not None:
            if not isinstance(cause, sg.errors.GraphFileError):
                raise cause  # noqa: B904 - nothing had foreseen it
            cause = cause.__cause__
        return
    graph.save(again)
    kept = again.read_bytes()
    sg.graph.load(again).save(again)
    assert again.read_bytes() == kept
    str(graph)


def main() -> None:
    """Write the seeds and fuzz."""
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for name in PROGRAMS:
        write_seed(name, FOLDER / "seed")
        (corpus / name).write_bytes(b"".join(taken_apart(FOLDER / "seed")))
    atheris.Setup([*sys.argv, str(corpus)], try_file, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
