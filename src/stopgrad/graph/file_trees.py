"""Pytree structures in graph files: nested lists, tuples, dicts and named tuples as JSON, and back.

Classes are not stored, only their names: a named tuple is read by a class of the library, or one that the caller gives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from stopgrad.core.errors import ArgumentTypeError
from stopgrad.core.pytree import TreeDef, flatten, unflatten
from stopgrad.graph.file_values import MAX_DEPTH, integer, listed, refuse, shown, text
from stopgrad.primitives.decompositions import EighResult, QRResult, SVDResult
from stopgrad.primitives.determinants import SlogdetResult

LEAF = "*"
_KEYS = (str, int, bool)
_OWN: dict[str, Any] = {one.__name__: one for one in (EighResult, QRResult, SVDResult, SlogdetResult)}


def tree_to_json(tree: TreeDef, depth: int = 0) -> Any:
    """Return what stands for a structure.

    Raises:
        ArgumentTypeError: a container other than those a file can hold.
    """
    if depth > MAX_DEPTH // 2:
        raise ArgumentTypeError("a graph file cannot hold a structure nested that deep")
    kind = tree.type
    if kind is None:
        return LEAF
    if kind is type(None):
        return None
    children = [tree_to_json(one, depth + 1) for one in tree.children()]
    if kind in (tuple, list):
        return [kind.__name__, *children]
    if kind in (dict, OrderedDict):
        by_key = dict(zip(tree.entries(), children, strict=True))
        keys = list(unflatten(tree, [None] * tree.num_leaves))  # in the order they were put in, unlike entries
        if any(type(key) not in _KEYS or (type(key) is int and abs(key) >= 1 << 53) for key in keys):
            raise ArgumentTypeError("a graph file holds dicts whose keys are strings, small integers and booleans only")
        return ["dict" if kind is dict else "ordered", keys, *[by_key[key] for key in keys]]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return ["named", kind.__name__, list(kind._fields), *children]
    raise ArgumentTypeError(
        f"a graph file cannot hold a {kind.__name__} as a container; use tuples, lists, dicts and named tuples"
    )


class TreeReader:
    """Turns JSON into structures.

    Args:
        classes: named tuple classes by name; `None` if structures are only to be checked.
    """

    def __init__(self, classes: Mapping[str, Any] | None) -> None:
        self._classes = classes

    def read(self, value: Any) -> TreeDef:
        """Return the structure that a value stands for."""
        return flatten(self._example(value))[1]

    def _example(self, value: Any) -> Any:
        """Return a tree of the structure, with an object at every leaf."""
        if value is None:
            return None
        if value == LEAF and type(value) is str:
            return object()
        entries = listed(value, "a structure")
        tag = entries[0] if entries else None
        if tag in ("tuple", "list"):
            children = [self._example(one) for one in entries[1:]]
            return tuple(children) if tag == "tuple" else children
        if tag in ("dict", "ordered") and len(entries) >= 2:
            keys = listed(entries[1], "the keys of a dict")
            for key in keys:
                if type(key) is int:
                    integer(key, 1 - (1 << 53), (1 << 53) - 1, "a key")
                elif type(key) is not bool:
                    text(key, "a key")
            children = [self._example(one) for one in entries[2:]]
            found = dict(zip(keys, children, strict=False))
            if len(found) == len(keys) == len(children):
                return found if tag == "dict" else OrderedDict(found)
        if tag == "named" and len(entries) >= 3:
            name, fields = text(entries[1], "a class", least=1), listed(entries[2], "fields")
            return self._named(name, fields, [self._example(one) for one in entries[3:]])
        refuse(f"there is no structure {shown(value)}")

    def _named(self, name: str, fields: list[Any], children: list[Any]) -> Any:
        if len(fields) != len(children) or any(type(one) is not str for one in fields):
            refuse(f"the named tuple {shown(name)} does not have as many fields as entries")
        if self._classes is None:
            return tuple(children)
        known = self._classes.get(name, _OWN.get(name))
        if known is None:
            refuse(f"it takes a named tuple {shown(name)} with the fields {shown(fields)}; give its class in types=")
        if list(known._fields) != fields:
            refuse(f"the named tuple {shown(name)} has the fields {list(known._fields)}, in the file {shown(fields)}")
        return known(*children)
