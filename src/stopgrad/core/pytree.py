"""Pytrees: nested lists, tuples, dicts, named tuples and registered classes, flattened to their leaves and rebuilt.

The work is optree's. `None` is a container without leaves, as in JAX. Register own classes with
`optree.register_pytree_node(..., namespace="stopgrad")`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from stopgrad.core.arrays import PYTHON_SCALARS
from stopgrad.core.errors import ArgumentError
from stopgrad.core.tensor import Tensor

TreeDef = optree.PyTreeSpec
_NAMESPACE = "stopgrad"


def flatten(
    tree: Any, *, number_lists: bool = False, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree and its structure.

    With `number_lists` a (nested) list of nothing but Python numbers is one leaf, as it stands for an array wherever a
    tensor is expected; transforms read their arguments so. `is_leaf` may name further leaves.
    """
    if number_lists:
        further = is_leaf
        is_leaf = is_number_list if further is None else lambda one: is_number_list(one) or further(one)
    leaves, treedef = optree.tree_flatten(tree, is_leaf=is_leaf, namespace=_NAMESPACE)
    return leaves, treedef


def is_number_list(x: Any) -> bool:
    """Whether this is a list, nested or not, of Python numbers and nothing else; an empty list is not."""
    if type(x) is not list or not x:
        return False
    pending = list(x)
    while pending:
        one = pending.pop()
        if type(one) is list:
            pending.extend(one)
        elif type(one) not in PYTHON_SCALARS:
            return False
    return True


def unflatten(treedef: TreeDef, leaves: list[Any]) -> Any:
    """Return a tree of the given structure with these leaves."""
    return optree.tree_unflatten(treedef, leaves)


def map_leaves(function: Callable[..., Any], tree: Any) -> Any:
    """Return the tree with the function applied to each leaf."""
    if type(tree) is Tensor:
        return function(tree)
    leaves, treedef = flatten(tree)
    return unflatten(treedef, [function(leaf) for leaf in leaves])


def paths(tree: Any) -> list[str]:
    """Return, for each leaf, how to get at it, as Python would write it: `['w'][0]`; number lists are leaves."""
    found = optree.tree_paths(tree, is_leaf=is_number_list, namespace=_NAMESPACE)
    return ["".join(f"[{part!r}]" for part in path) for path in found]


def flatten_like(treedef: TreeDef, tree: Any, what: str, *, number_lists: bool = False) -> list[Any]:
    """Return the leaves of a tree that must have the given structure; `what` names it in the error."""
    leaves, other = flatten(tree, number_lists=number_lists)
    if other != treedef and number_lists:
        leaves = _up_to(treedef, tree)
        other = treedef if leaves else other
    if other != treedef:
        raise ArgumentError(f"{what} must have the structure {treedef}, got {other}")
    return leaves


def children(tree: Any, *, number_lists: bool = False) -> list[tuple[Any, Any]] | None:
    """Return (key, part) for each part of a container, in the order of its leaves; `None` for a leaf.

    With `number_lists` a list of numbers is a leaf, as in `flatten`.
    """
    if (number_lists and is_number_list(tree)) or optree.tree_is_leaf(tree, namespace=_NAMESPACE):
        return None
    parts, _, keys, _ = optree.tree_flatten_one_level(tree, namespace=_NAMESPACE)
    return list(zip(keys, parts, strict=True))


def _up_to(treedef: TreeDef, tree: Any) -> list[Any]:
    """Return what stands where the structure has leaves, if it is numbers, lists of them or tensors; else nothing.

    So `[1.0, 2.0]` fits the structure `[*, *]`, too, and not only `*`.
    """
    try:
        found: list[Any] = treedef.flatten_up_to(tree)
    except ValueError:
        return []
    return found if all(is_number_list(one) or optree.tree_is_leaf(one, namespace=_NAMESPACE) for one in found) else []
