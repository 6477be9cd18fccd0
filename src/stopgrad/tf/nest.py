"""`tf.nest`: nested lists, tuples, dicts and named tuples. `None` is a leaf here, and dicts are sorted by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import optree

from stopgrad.core.errors import ArgumentError, ArgumentTypeError
from stopgrad.tf.missing import message

_NAMESPACE = "stopgrad"


def is_nested(structure: Any) -> bool:
    """Whether this is a list, tuple, dict or the like (and no leaf).

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nest.is_nested([1]), tf.nest.is_nested("a")
        (True, False)
    """
    return not optree.tree_is_leaf(structure, none_is_leaf=True, namespace=_NAMESPACE)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves as a list; a leaf alone as a list of one.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nest.flatten({"b": 1, "a": [2, None]})
        [2, None, 1]
    """
    return _flatten(structure)[0]


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True, **kwargs: Any) -> Any:
    """Return the structure with a function applied to its leaves, or to corresponding leaves of several.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nest.map_structure(lambda a, b: a + b, {"x": 1}, {"x": 2})
        {'x': 3}
    """
    if not callable(func) or not structure:
        raise ArgumentTypeError("map_structure: takes a function and at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    leaves, treedef = _flatten(structure[0])
    rows = [leaves, *(_flatten(other)[0] for other in structure[1:])]
    return optree.tree_unflatten(treedef, [func(*row, **kwargs) for row in zip(*rows, strict=True)])


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Return a structure like another with the leaves of a flat list.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.nest.pack_sequence_as([[0, 0], 0], [1, 2, 3])
        [[1, 2], 3]
    """
    leaves, treedef = _flatten(structure)
    given = list(flat_sequence)
    if len(given) != len(leaves):
        raise ArgumentError(f"pack_sequence_as: the structure has {len(leaves)} leaves, the sequence {len(given)}")
    return optree.tree_unflatten(treedef, given)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise if two structures differ.

    Raises:
        ArgumentTypeError: they differ; with the kinds of containers compared, too.
    """
    first, second = _flatten(nest1)[1], _flatten(nest2)[1]
    if first != second:
        raise ArgumentTypeError(f"the two do not have the same nested structure: {first} and {second}")


def _flatten(structure: Any) -> tuple[list[Any], Any]:
    leaves, treedef = optree.tree_flatten(structure, none_is_leaf=True, namespace=_NAMESPACE)
    return leaves, treedef


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.nest", name, __all__))


__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
