"""Marks: what a value remembers of the gates and non-differentiable operations it came through.

A value without a derivative path carries either nothing or a `Mark`, an immutable, shared, interned set of `Origin`s
(a gate with its name, file and line, or an operation that has no derivative). Marks hold no arrays and no nodes, so
remembering costs nothing in memory; they exist only so that "unconnected" can be explained.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Collection
from typing import Any, NamedTuple

from stopgrad.core.errors import ArgumentTypeError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_own_files: set[str] = set()
"""Files of this package that were met, as looking them up is quicker than comparing how they begin."""


class Origin(NamedTuple):
    """Why a path ended: `kind` is "stop_gradient", "no_gradient", "frozen", … or the name of an operation."""

    kind: str
    name: str | None
    file: str | None
    line: int | None

    def __str__(self) -> str:
        what = self.kind if self.name is None else f"{self.kind} {self.name!r}"
        return what if self.file is None else f"{what} at {self.file}:{self.line}"


class Mark:
    """An interned set of origins. Compare with `is`."""

    __slots__ = ("__weakref__", "origins")

    def __init__(self, origins: frozenset[Origin]) -> None:
        self.origins = origins

    def __reduce__(self) -> tuple[Any, ...]:
        return mark_of, (self.origins,)

    def __repr__(self) -> str:
        return f"Mark({', '.join(sorted(map(str, self.origins)))})"


_marks: weakref.WeakValueDictionary[frozenset[Origin], Mark] = weakref.WeakValueDictionary()


def mark_of(origins: frozenset[Origin]) -> Mark:
    """Return the one mark that stands for these origins."""
    mark = _marks.get(origins)
    if mark is None:
        mark = _marks.setdefault(origins, Mark(origins))
    return mark


def merge(first: Mark | None, second: Mark | None) -> Mark | None:
    """Return the mark of a value computed from values with these marks."""
    if second is None or first is second:
        return first
    if first is None:
        return second
    return mark_of(first.origins | second.origins)


def merge_all(marks: Collection[Mark]) -> Mark | None:
    """Return the mark of all these together, in time linear in what they hold."""
    if len(marks) <= 1:
        return next(iter(marks), None)
    return mark_of(frozenset().union(*[mark.origins for mark in marks]))


def calling_line() -> tuple[str, int]:
    """Return file and line of the nearest caller outside this package."""
    frame = sys._getframe(1)
    while (name := frame.f_code.co_filename) in _own_files or name.startswith(_PACKAGE):
        _own_files.add(name)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return name, frame.f_lineno


def mark_here(kind: str, name: str | None = None) -> Mark:
    """Return a mark for a gate of this kind at the line of the user's code that called us."""
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"{kind}: name must be a string, got {name!r:.60}")
    return _mark_at(kind, name, *calling_line())


# A gate passed again and again would make and free its mark each time, the dearest part of passing it.
@functools.lru_cache(maxsize=1024)
def _mark_at(kind: str, name: str | None, file: str, line: int) -> Mark:
    return mark_of(frozenset((Origin(kind, name, file, line),)))


@functools.cache
def mark_operation(name: str) -> Mark:
    """Return a mark for an operation that has no derivative (it carries no line: taking one costs on every call)."""
    return mark_of(frozenset((Origin(name, None, None, None),)))
