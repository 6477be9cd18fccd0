"""What is said when a name is asked for that this face does not have: what to type instead, or names like it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_INSTEAD = {
    "GradientTape.gradients": "tape.gradient(target, sources)",
    "Session": "nothing: everything runs at once, without graphs and sessions",
    "autodiff": "stopgrad.jvp for forward mode",
    "compat": "the names of TensorFlow 2, which are in stopgrad.tf itself",
    "config": "nothing: arrays stay where they are",
    "data": "any Python iterable",
    "detach": "tf.stop_gradient",
    "device": "nothing: arrays stay where they are",
    "function": "the function as it is, without the decorator: everything runs eagerly, and there is no compiler yet",
    "keras": "tf.train for optimizers, tf.losses for losses and tf.nn for layers' functions",
    "layers": "tf.nn for layers' functions",
    "no_grad": "tf.stop_gradient(x), or the block stopgrad.no_gradient()",
    "no_gradient": "tf.stop_gradient(x), or the block stopgrad.no_gradient()",
    "optimizers": "tf.train, for instance tf.train.adam(0.001)",
    "placeholder": "an argument of a function",
    "py_function": "the Python function as it is",
    "recompute_grad": "the function as it is",
    "sequential": "tf.nn for layers' functions",
    "while_loop": "a Python loop",
    "cond": "a Python if, or tf.where",
    "map_fn": "a Python loop and tf.stack",
    "vectorized_map": "a Python loop and tf.stack",
    "scan": "a Python loop and tf.stack",
    "foldl": "a Python loop",
    "foldr": "a Python loop",
    "stop_recording": "the block tape.stop_recording()",
    "string": "Python strings",
    "strings": "Python strings",
    "val_and_grad": "tf.value_and_grad",
    "enable_eager_execution": "nothing: everything runs eagerly",
    "disable_eager_execution": "nothing: everything runs eagerly",
    "Module": "any class, with its variables as attributes",
    "summary": "any plotting library",
    "saved_model": "stopgrad.train.save and load",
}


def message(module: str, name: str, known: Iterable[str]) -> str:
    """Return one line that says that a module has no such name, and what to type.

    Args:
        module: as users call it, such as "tf" or "tf.math".
        name: what was asked for.
        known: the names there are; those of submodules with a dot.
    """
    names = list(known)
    start = f"{module} has no {name!r}"
    if name in _INSTEAD:
        return f"{start}; use {_INSTEAD[name]}"
    spelled = _in_python(name)
    if spelled != name and spelled in names:
        return f"{start}; TensorFlow.js's names are spelled in Python's way: use {module}.{spelled}"
    elsewhere = [one for one in names if one.rpartition(".")[2] == spelled]
    if elsewhere:
        return f"{start}; use {module}.{elsewhere[0]}"
    near = difflib.get_close_matches(spelled, names, n=3, cutoff=0.6)
    if near:
        return f"{start}; near it are {', '.join(f'{module}.{one}' for one in near)}"
    return f"{start}; dir({module}) lists what there is, and stopgrad has more"


def _in_python(name: str) -> str:
    """Return a JavaScript name in Python's spelling: meanSquaredError → mean_squared_error."""
    if name[:1].isupper():
        return name
    return re.sub(r"(?<=[a-z0-9])([A-Z]+)", lambda found: "_" + found[1].lower(), name)
