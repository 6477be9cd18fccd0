"""Pytrees: nested lists, tuples, dicts, named tuples and registered classes, flattened to their leaves and rebuilt.

The work is optree's. `None` is a container without leaves, as in JAX. Register own classes with
`optree.register_pytree_node(..., namespace="stopgrad")`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from stopgrad.core.errors import ArgumentError
from stopgrad.core.tensor import Tensor

TreeDef = optree.PyTreeSpec
_NAMESPACE = "stopgrad"


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree and its structure."""
    leaves, treedef = optree.tree_flatten(tree, namespace=_NAMESPACE)
    return leaves, treedef


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
    """Return, for each leaf, how to get at it, as Python would write it: `['w'][0]`."""
    return [
        "".join(f"[{part!r}]" for part in path) for path in optree.tree_paths(tree, namespace=_NAMESPACE)
    ]


def flatten_like(treedef: TreeDef, tree: Any, what: str) -> list[Any]:
    """Return the leaves of a tree that must have the given structure; `what` names it in the error."""
    leaves, other = flatten(tree)
    if other != treedef:
        raise ArgumentError(f"{what} must have the structure {treedef}, got {other}")
    return leaves
