"""What stands above and is loaded only when a file asks for it: operations defined late, and variables.

A graph file may name an operation whose module nobody has imported yet. The names of those modules stand here, so that
files are read by what the library can do, not by what a program happens to have imported.
"""

from __future__ import annotations

import importlib
from typing import Any

from stopgrad.core.operation import Operation, operations

_DEFINED_IN = ("stopgrad.primitives", "stopgrad.gates", "stopgrad.control")


def operation_named(name: str) -> Operation | None:
    """Return the operation of this name, `None` if there is none."""
    if name not in operations:
        for module in _DEFINED_IN:
            importlib.import_module(module)
    return operations.get(name)


def new_variable(value: Any, name: str, trainable: bool) -> Any:
    """Return a new variable that holds an array."""
    return importlib.import_module("stopgrad.train.variable").Variable(value, name=name, trainable=trainable)
