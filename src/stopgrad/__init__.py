"""stopgrad: automatic differentiation in which where gradients stop is first-class.

    import stopgrad as sg

    sg.grad(f)(x)                     # derivatives of functions: grad, vjp, jvp, jacobian, hessian, …
    with sg.GradientTape() as tape:   # … or of what a block of code computed
    sg.stop_gradient(x)               # gates: where derivatives stop, or pass changed
    sg.cond, sg.scan, sg.while_loop   # branches and loops, at once or traced
    sg.exp(x), sg.sum(x), x @ w       # NumPy's functions, on tensors; np.exp(t) works too

Submodules: `nn`, `linalg`, `special`, `random`, `numpy` (all functions under NumPy's names), `train` (variables,
optimizers, losses, checkpoints), `check` (derivatives against differences), `tf` (the names of TensorFlow
and TensorFlow.js).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stopgrad import primitives
from stopgrad.core import errors
from stopgrad.core.arrays import Spec
from stopgrad.core.tensor import Tensor
from stopgrad.gates import (
    clip_gradient,
    frozen,
    no_gradient,
    prevent_gradient,
    reverse_gradient,
    scale_gradient,
    stop_gradient,
    straight_through,
)
from stopgrad.primitives import *  # noqa: F403 - the list is primitives.__all__
from stopgrad.primitives import methods as _methods  # gives Tensor its operators
from stopgrad.transforms import (
    GradientTape,
    custom_gradient,
    custom_jvp,
    grad,
    gradients,
    grads,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)

if TYPE_CHECKING:
    from stopgrad import check, graph, interchange, linalg, nn, numpy, random, special, tf, train
    from stopgrad.control import associative_scan, checkpoint, cond, fori_loop, remat, scan, switch, vmap, while_loop
    from stopgrad.graph import trace
    from stopgrad.train import Variable

__version__ = "0.1.0"

_OWN = [
    "GradientTape",
    "Spec",
    "Tensor",
    "Variable",
    "associative_scan",
    "check",
    "checkpoint",
    "clip_gradient",
    "cond",
    "custom_gradient",
    "custom_jvp",
    "errors",
    "fori_loop",
    "frozen",
    "grad",
    "gradients",
    "grads",
    "graph",
    "hessian",
    "hvp",
    "interchange",
    "jacobian",
    "jvp",
    "linalg",
    "nn",
    "no_gradient",
    "numpy",
    "prevent_gradient",
    "random",
    "remat",
    "reverse_gradient",
    "scale_gradient",
    "scan",
    "special",
    "stop_gradient",
    "straight_through",
    "switch",
    "tf",
    "trace",
    "train",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
__all__ = [*_OWN, *primitives.__all__]  # noqa: PLE0604

# Loaded when first asked for, so that `import stopgrad` stays light.
_SUBMODULES = frozenset(("check", "graph", "interchange", "linalg", "nn", "numpy", "random", "special", "tf", "train"))

_CONTROL = ("associative_scan", "checkpoint", "cond", "fori_loop", "remat", "scan", "switch", "vmap", "while_loop")
_LAZY = {"Variable": "stopgrad.train", "trace": "stopgrad.graph", **dict.fromkeys(_CONTROL, "stopgrad.control")}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"stopgrad.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'stopgrad' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    instead = {
        "Tape": "GradientTape",
        "backward": "grad or GradientTape",
        "detach": "stop_gradient",
        "no_grad": "no_gradient",
        "stopgrad": "stop_gradient",
        "inference_mode": "no_gradient",
        "jit": "grad and GradientTape as they are; compilation is not there yet",
    }.get(name)
    return "" if instead is None else f"; use {instead}"


def __dir__() -> list[Any]:
    return sorted(__all__)
