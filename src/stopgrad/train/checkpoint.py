"""Saving a training run and taking it up again: variables, and what optimizers keep for them, bit for bit.

Entries are named after the variables; those of optimizers stand below "optimizer/". Settings (learning rates, betas)
are code and not saved. Loading checks every entry before it changes anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from stopgrad.core.arrays import Spec
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, CheckpointError
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.train.archive import dtype_name, read_arrays, write_arrays
from stopgrad.train.optimizer import Optimizer
from stopgrad.train.variable import Variable, matching

Optimizers = Optimizer | Mapping[str, Optimizer] | None
_OPTIMIZER = "optimizer/"
_SHOWN = 5


def save(path: str | os.PathLike[str], variables: Any, optimizers: Optimizers = None) -> None:
    """Save variables, and what optimizers keep for them, to a .safetensors or .npz file.

    The file holds data only, and replaces an older one as a whole or not at all.

    Args:
        path: where to; its ending says the format.
        variables: dict (nested, with lists in it as you like), whose keys joined by "/" name the entries; or a list of
            variables, which are then named by their own names.
        optimizers: an optimizer, or a dict of them by name. State that one keeps for other variables is not saved.

    Raises:
        ArgumentError: two variables with one name, a name that begins with "optimizer/", or another ending.
        DTypeError: a dtype the format cannot hold.

    Example:
        >>> import os, tempfile
        >>> import stopgrad as sg
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> w = sg.Variable([1.0, 2.0], name="w")
        >>> sg.train.save(path, {"w": w})
        >>> w.assign([0.0, 0.0])
        Variable('w', [0., 0.], shape=(2,), dtype=float64)
        >>> sg.train.load(path, {"w": w})
        >>> w.numpy()
        array([1., 2.])
    """
    named = _named(variables, "save")
    entries = {name: Tensor(variable.raw).numpy() for name, variable in named.items()}
    for prefix, optimizer in _prefixed(optimizers, "save").items():
        entries |= {prefix + name: array for name, array in optimizer.state_entries(named).items()}
    write_arrays(path, entries)


def load(path: str | os.PathLike[str], variables: Any, optimizers: Optimizers = None) -> None:
    """Load what `save` saved into the same variables and optimizers, or into others of the same make.

    Training goes on as if it had not been interrupted. Nothing changes unless everything fits.

    Args:
        path: the file.
        variables: as for `save`: the same names, shapes and dtypes.
        optimizers: as for `save`: the same names, and the same kinds of optimizers. Without any, what was saved of them
            is left aside.

    Raises:
        CheckpointError: the file is damaged; or an entry is missing, not expected, or of another shape or dtype. The
            text names it.
        ArgumentError: a variable is frozen, or the arguments as in `save`.
        OSError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> import stopgrad as sg
        >>> path = os.path.join(tempfile.mkdtemp(), "run.npz")
        >>> w, adam = sg.Variable(3.0, name="w"), sg.train.Adam(0.1)
        >>> adam.minimize(lambda: w * w)
        >>> sg.train.save(path, [w], adam)
        >>> resumed, fresh = sg.Variable(0.0, name="w"), sg.train.Adam(0.1)
        >>> sg.train.load(path, [resumed], fresh)
        >>> float(resumed) == float(w), fresh.iterations
        (True, 1)
    """
    named = _named(variables, "load")
    prefixed = _prefixed(optimizers, "load")
    for name, variable in named.items():
        if id(variable) in state.frozen:
            raise ArgumentError(f"load: variable {name!r} is frozen here; load outside the frozen block")
    arrays = read_arrays(path, lambda present: _compare(_expected(named, prefixed, present), present))
    values = {name: matching(variable, np.array(arrays[name]), "load") for name, variable in named.items()}
    steps = [
        optimizer.prepare_state(
            named, {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        )
        for prefix, optimizer in prefixed.items()
    ]
    for name, variable in named.items():
        variable.replace(values[name])
    for take_over in steps:
        take_over()


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return everything in a .safetensors or .npz file as read-only arrays by name, whatever it was saved from.

    Raises:
        CheckpointError: the file is damaged.
        OSError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> import stopgrad as sg
        >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
        >>> sg.train.save(path, {"layer": {"w": sg.Variable([1.0, 2.0])}})
        >>> sg.train.load_arrays(path)
        {'layer/w': array([1., 2.])}
    """
    return read_arrays(path)


def _named(variables: Any, where: str) -> dict[str, Variable]:
    named: dict[str, Variable] = {}
    pending: list[tuple[str, Any]] = [("", variables)]
    while pending:
        path, one = pending.pop(0)
        if isinstance(one, Variable):
            name = path or one.name
            if name in named:
                raise ArgumentError(f"{where}: two variables are named {name!r}; pass a dict with a key for each")
            if name.startswith(_OPTIMIZER):
                raise ArgumentError(
                    f"{where}: the name {name!r} begins with {_OPTIMIZER!r}, which is kept for optimizers"
                )
            named[name] = one
        elif isinstance(one, Mapping):
            pending += [(f"{path}/{key}" if path else str(key), value) for key, value in one.items()]
        elif isinstance(one, list | tuple):
            pending += [
                ("" if not path and isinstance(value, Variable) else f"{path}/{number}".removeprefix("/"), value)
                for number, value in enumerate(one)
            ]
        else:
            raise ArgumentTypeError(
                f"{where}: takes variables and dicts and lists of them, got a {type(one).__name__} at {path!r}"
            )
    return named


def _prefixed(optimizers: Optimizers, where: str) -> dict[str, Optimizer]:
    if optimizers is None:
        return {}
    given = optimizers if isinstance(optimizers, Mapping) else {"": optimizers}
    for one in given.values():
        if not isinstance(one, Optimizer):
            raise ArgumentTypeError(
                f"{where}: optimizers holds a {type(one).__name__}; pass an optimizer or a dict of them"
            )
    return {f"{_OPTIMIZER}{name}/" if name else _OPTIMIZER: one for name, one in given.items()}


def _expected(
    named: Mapping[str, Variable], prefixed: Mapping[str, Optimizer], present: Mapping[str, Spec]
) -> dict[str, Spec]:
    specs = {name: Spec(variable.shape, variable.dtype) for name, variable in named.items()}
    for prefix, optimizer in prefixed.items():
        own = [name.removeprefix(prefix) for name in present if name.startswith(prefix)]
        specs |= {prefix + name: spec for name, spec in optimizer.state_specs(named, own).items()}
    return specs


def _compare(expected: Mapping[str, Spec], present: Mapping[str, Spec]) -> None:
    """Raise `CheckpointError` if the file does not hold exactly what is expected.

    What optimizers kept is left aside if no optimizer is to be loaded.
    """
    if not any(name.startswith(_OPTIMIZER) for name in expected):
        present = {name: spec for name, spec in present.items() if not name.startswith(_OPTIMIZER)}
    faults = [f"missing entry {name!r}" for name in expected if name not in present]
    faults += [f"unexpected entry {name!r}" for name in present if name not in expected]
    for name, spec in expected.items():
        found = present.get(name)
        if found is not None and (found.shape != spec.shape or dtype_name(found.dtype) != dtype_name(spec.dtype)):
            faults.append(f"entry {name!r} is {_text(found)} in the file, here {_text(spec)}")
    if faults:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise CheckpointError(f"does not fit: {'; '.join(faults[:_SHOWN])}{more}; nothing was loaded")


def _text(spec: Spec) -> str:
    return f"{dtype_name(spec.dtype)} of shape {tuple(spec.shape)}"
