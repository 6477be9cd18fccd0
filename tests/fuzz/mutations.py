"""Files made wrong: heads that fit whatever follows, and records with parts of them exchanged for others."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

from stopgrad.graph.loading import HEAD, MAGIC, VERSION, padding

INTERESTING: list[Any] = [
    None, True, False, "", "*", "=", "add", "sum", "scan", "reshape", "a" * 300, 0, 1, 2, 3, 7, -1, -2, 255, 1 << 31,
    (1 << 40), (1 << 53) - 1, 1 << 60, 1 << 62, 1 << 64, 10**400, [], [[]], [0], [0, 1], ["unknown"], ["ellipsis"],
    ["tuple"], ["tuple", 1 << 40], ["tuple", 2, 3], ["float", "7ff8000000000001"], ["float", "x"], ["complex", "", ""],
    ["int", "18446744073709551615"], ["int", "9" * 60], ["scalar", "int8", "ff"], ["dtype", "float32"],
    ["type", "bfloat16"], ["python", "float"], ["spec", 0], ["array", 0], ["body", 0], ["body", 1], ["variable", 0],
    ["slice", 0, None, -1], ["geometry", 1, 2, 3, 4, 5, 6], ["=", ["float", "7ff0000000000000"]], ["=", 3], ["=", True],
    ["tuple", *[["body", 0]] * 40], [[[[[[[[1]]]]]]]],
]  # fmt: skip


def put_together(records: bytes, arrays: bytes) -> bytes:
    """Return a file whose head fits its contents."""
    body = records + bytes(padding(len(records))) + arrays
    return HEAD.pack(MAGIC, VERSION, zlib.crc32(body), len(records), len(arrays)) + body


def mutated(records: bytes, source: random.Random, times: int = 1) -> bytes:
    """Return records with some of their parts replaced, exchanged, doubled or left out."""
    lines = [json.loads(line) for line in records.splitlines()]
    for _ in range(times):
        if not lines:
            break
        number = source.randrange(len(lines))
        choice = source.random()
        if choice < 0.06:
            lines.insert(source.randrange(len(lines) + 1), lines[number])
        elif choice < 0.1:
            del lines[number]
        elif choice < 0.14:
            other = source.randrange(len(lines))
            lines[number], lines[other] = lines[other], lines[number]
        else:
            lines[number] = _changed(lines[number], lines, source)
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def _changed(value: Any, lines: list[Any], source: random.Random) -> Any:
    """Return a value with one of its parts, however deep, changed."""
    if type(value) is not list or not value or source.random() < 0.15:
        return _other(value, lines, source)
    entries = list(value)
    place = source.randrange(len(entries))
    choice = source.random()
    if choice < 0.1:
        del entries[place]
    elif choice < 0.2:
        entries.insert(place, _other(entries[place], lines, source))
    elif choice < 0.3:
        other = source.randrange(len(entries))
        entries[place], entries[other] = entries[other], entries[place]
    else:
        entries[place] = _changed(entries[place], lines, source)
    return entries


def _other(value: Any, lines: list[Any], source: random.Random) -> Any:
    """Return something else in place of a value: near it, of the same file, or known to make trouble."""
    choice = source.random()
    if type(value) is int and choice < 0.5:
        return value + source.choice((-1, 1, 2, 16, -value, 1 << 20))
    if choice < 0.7:
        line = source.choice(lines)
        return source.choice(line) if type(line) is list and line else line
    return source.choice(INTERESTING)
