"""`Optimizer`: what all optimizers have in common, from the loss function to the updated variables and their state.

A particular one says only what it keeps for a variable (`slot_names`, `start`) and what one update does (`update`); see
`stopgrad.train.algorithms`. Law 7 is kept here, for all of them: a variable without a gradient is not looked at.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np

from stopgrad.core.arrays import Spec, is_complex, namespace_of
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, CheckpointError, UnconnectedWarning
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.train.clipping import clip_by_norm, clip_by_value
from stopgrad.train.gradients import Evaluation, evaluate
from stopgrad.train.schedules import Schedule
from stopgrad.train.variable import Variable, matching
from stopgrad.transforms.common import StopNames, unconnected_message

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Clipping(TypedDict, total=False):
    """How an optimizer clips gradients; see `Optimizer`."""

    clip_norm: float | None
    clip_value: float | None


class Common(Clipping, total=False):
    """What every optimizer takes by keyword; see `Optimizer`."""

    weight_decay: float


@dataclass(slots=True)
class _Kept:
    """What an optimizer keeps for one variable: how often it has been updated, and its slots."""

    count: int
    slots: tuple[Any, ...]


class Optimizer:
    """Base of all optimizers.

    A variable is updated only if it got a gradient, is trainable and is not frozen. Any other variable stays as it is,
    bit for bit, and so does all that is kept for it: no decay, no momentum, no share in the clipping norm, no old
    gradient. Slots are made at a variable's first update. Where a method corrects for its start (Adam), the count is
    that of the variable's own updates, so one that was frozen for a while is treated as it should be.

    Gradients are clipped first, then weight decay is added. A NaN or infinity in a gradient is applied as it is, to
    the variable it belongs to. Complex variables are updated as pairs of real numbers, along the steepest descent.

    Args:
        learning_rate: a number, or a function from the number of steps done to one; see `stopgrad.train.schedules`.
        weight_decay: λ of the decay. `AdamW` shrinks the value itself by learning_rate · λ (decoupled, Loshchilov and
            Hutter, 2017, arXiv:1711.05101); all others add λ · value to the gradient (L2).
        clip_norm: if the Euclidean norm of all gradients of a step together exceeds this, they are scaled down to it.
        clip_value: entries of gradients are clipped to [-clip_value, clip_value]. Give at most one of the two.

    Raises:
        ArgumentError: a setting out of its range, or both ways of clipping.
    """

    slot_names: tuple[str, ...] = ()
    """Names of the arrays that are kept for each variable, each of its shape and dtype."""
    decoupled: ClassVar[bool] = False
    """Whether `update` does the weight decay itself."""

    def __init__(self, learning_rate: float | Schedule, **common: Unpack[Common]) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = self._number("weight_decay", common.pop("weight_decay", 0.0), 0.0)
        norm, value = common.pop("clip_norm", None), common.pop("clip_value", None)
        if norm is not None and value is not None:
            raise ArgumentError(f"{self._name}: give at most one of clip_norm= and clip_value=")
        if common:
            known = [name for name in inspect.signature(type(self)).parameters if name != "common"]
            known += [name for name in Common.__annotations__ if name not in known]
            raise ArgumentTypeError(
                f"{self._name}: unknown arguments: {', '.join(sorted(common))}; it takes {', '.join(known)}"
            )
        self.clip_norm = None if norm is None else self._number("clip_norm", norm, 0.0)
        self.clip_value = None if value is None else self._number("clip_value", value, 0.0)
        self.iterations = 0
        self._kept: dict[Variable, _Kept] = {}

    def start(self, xp: Any, value: Any) -> tuple[Any, ...]:
        """Return the slots of a variable that has not been updated yet: zeros."""
        return tuple(xp.zeros_like(value) for _ in self.slot_names)

    def update(
        self, xp: Any, value: Any, gradient: Any, slots: tuple[Any, ...], rate: float, count: int
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return (new value, new slots).

        Args:
            xp: namespace of the arrays.
            value: the variable's array, not to be written into: tensors may hold it.
            gradient: likewise.
            slots: arrays that nobody else holds, to be written into where the library allows it.
            rate: the learning rate of this step.
            count: number of this update of this variable, from 1.
        """
        raise NotImplementedError

    @property
    def learning_rate(self) -> float | Schedule:
        """The learning rate: a number, or a function from the number of steps done to one. Can be set."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | Schedule) -> None:
        self._learning_rate = (
            learning_rate if callable(learning_rate) else self._number("learning_rate", learning_rate, 0.0)
        )

    def minimize(
        self,
        loss_function: Callable[[], Any],
        variables: Any = None,
        return_cost: bool = False,
        *,
        stop: StopNames = None,
    ) -> Tensor | None:
        """Run the loss function, and make one step that lessens its result.

        Where no variable at all is connected, nothing changes, neither variables nor anything kept for them, and a
        warning names the gates that stand in the way.

        Args:
            loss_function: function without arguments that returns a single number.
            variables: a variable or pytree of variables to update; by default the trainable ones that the function
                reads.
            return_cost: return the loss, computed before the step.
            stop: names of gates to switch for this call; see `grad`.

        Returns:
            The loss as a tensor with `return_cost`, else `None`.

        Warns:
            UnconnectedWarning: no variable was changed.

        Example:
            >>> import stopgrad as sg
            >>> w = sg.Variable(3.0)
            >>> float(sg.train.SGD(0.1).minimize(lambda: w * w, return_cost=True))
            9.0
            >>> round(float(w), 12)
            2.4
        """
        where = f"{self._name}.minimize"
        evaluation = evaluate(loss_function, variables, where, stop=stop, recorded=False)
        if not self._apply([(variable, one) for variable, one in evaluation.gradients.items()], where):
            _warn(f"{where} changed nothing: {_why(evaluation)}")
        return evaluation.loss if return_cost else None

    def compute_gradients(
        self, loss_function: Callable[[], Any], variables: Any = None, *, stop: StopNames = None
    ) -> tuple[Tensor, dict[Variable, Tensor | None]]:
        """Return the loss and a dict from variable to its gradient, `None` where it is unconnected; change nothing.

        See `minimize` for the arguments, and `variable_gradients` for the policy on unconnected variables.

        Example:
            >>> import stopgrad as sg
            >>> w = sg.Variable(3.0)
            >>> sgd = sg.train.SGD(0.1)
            >>> loss, gradients = sgd.compute_gradients(lambda: w * w)
            >>> float(gradients[w])
            6.0
            >>> sgd.apply_gradients(gradients)
            >>> round(float(w), 12)
            2.4
        """
        evaluation = evaluate(
            loss_function, variables, f"{self._name}.compute_gradients", stop=stop, recorded=bool(state.recording)
        )
        return evaluation.loss, evaluation.gradients

    def apply_gradients(self, gradients: Mapping[Variable, Any] | Iterable[tuple[Any, Variable]]) -> None:
        """Make one step with given gradients. All of them are checked before any variable changes.

        Args:
            gradients: a dict from variable to gradient, or pairs (gradient, variable) as TensorFlow has them. A
                gradient is anything tensor-like of the variable's shape and dtype, or `None`: that variable is left
                alone.

        Raises:
            ArgumentTypeError: something that is not such a pair.
            ArgumentError: the same variable twice.
            ShapeError: a gradient of another shape than its variable's.
            DTypeError: likewise for the dtype.

        Warns:
            UnconnectedWarning: no variable got a gradient, so nothing changed.
        """
        where = f"{self._name}.apply_gradients"
        if not self._apply(_pairs(gradients, where), where):
            _warn(
                f"{where} changed nothing: no gradient that is not None was given for a variable that is trainable and "
                "not frozen"
            )

    def slots_of(self, variable: Variable) -> dict[str, np.ndarray]:
        """Return copies of what is kept for a variable, by name; empty if it has never been updated."""
        kept = self._kept.get(variable)
        if kept is None:
            return {}
        return {name: Tensor(slot).numpy().copy() for name, slot in zip(self.slot_names, kept.slots, strict=True)}

    def count_of(self, variable: Variable) -> int:
        """Return how often this optimizer has updated a variable."""
        return self._kept[variable].count if variable in self._kept else 0

    def state_entries(self, variables: Mapping[str, Variable]) -> dict[str, np.ndarray]:
        """Return all that training has changed in the optimizer, for a checkpoint: arrays by name.

        Args:
            variables: those to include, by the name they have in the checkpoint.
        """
        entries = {"iterations": np.asarray(self.iterations, np.int64)}
        for name, variable in variables.items():
            if variable in self._kept:
                entries[f"{name}/count"] = np.asarray(self.count_of(variable), np.int64)
                entries |= {f"{name}/{slot}": array for slot, array in self.slots_of(variable).items()}
        return entries

    def state_specs(self, variables: Mapping[str, Variable], present: Iterable[str]) -> dict[str, Spec]:
        """Return which entries a checkpoint with these entries present has to have for this optimizer.

        A variable that had not been updated when it was saved has none; else it has them all.
        """
        found = set(present)
        number = Spec((), np.dtype(np.int64))
        specs = {"iterations": number}
        for name, variable in variables.items():
            names = [f"{name}/{slot}" for slot in self.slot_names]
            if found.intersection((f"{name}/count", *names)):
                kept = _real_form(variable.raw)
                specs[f"{name}/count"] = number
                specs |= dict.fromkeys(names, Spec(tuple(kept.shape), kept.dtype))
        return specs

    def prepare_state(self, variables: Mapping[str, Variable], entries: Mapping[str, np.ndarray]) -> Callable[[], None]:
        """Return a function that takes over what `state_entries` returned, and cannot fail.

        Names, shapes and dtypes of the entries must be those of `state_specs`.

        Raises:
            CheckpointError: numbers of steps that make no sense.
        """
        counts = {name: int(entries[f"{name}/count"]) for name in variables if f"{name}/count" in entries}
        iterations = int(entries["iterations"])
        if iterations < 0 or any(not 1 <= count <= iterations for count in counts.values()):
            raise CheckpointError(f"{self._name}: {iterations} steps, but updates of variables are {counts}")
        kept = {variable: one for variable, one in self._kept.items() if variable not in set(variables.values())}
        for name, count in counts.items():
            xp = namespace_of(variables[name].raw)
            slots = tuple(xp.asarray(np.array(entries[f"{name}/{slot}"])) for slot in self.slot_names)
            kept[variables[name]] = _Kept(count, slots)

        def take_over() -> None:
            self._kept, self.iterations = kept, iterations

        return take_over

    def __repr__(self) -> str:
        shown = {"learning_rate": self.learning_rate, **vars(self)}
        hidden = ("iterations", "slot_names")
        settings = ", ".join(
            f"{name}={value!r}" for name, value in shown.items() if name not in hidden and not name.startswith("_")
        )
        return f"{self._name}({settings})"

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _number(self, name: str, value: Any, low: float, below: float = math.inf) -> float:
        """Return a setting as a float in [low, below)."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
            raise ArgumentTypeError(f"{self._name}: {name} must be a number, got {value!r}")
        if not low <= value < below:
            most = "and finite" if math.isinf(below) else f"and less than {below:g}"
            raise ArgumentError(f"{self._name}: {name} must be at least {low:g} {most}, got {value!r}")
        return float(value)

    def _rate(self) -> float:
        if not callable(self._learning_rate):
            return self._learning_rate
        return self._number("the learning rate of the schedule", float(self._learning_rate(self.iterations)), 0.0)

    def _apply(self, pairs: Sequence[tuple[Variable, Any]], where: str) -> bool:
        """Make one step and return whether any variable was updated."""
        checked = [(variable, matching(variable, one, where)) for variable, one in pairs if one is not None]
        chosen = [(one, gradient) for one, gradient in checked if one.trainable and id(one) not in state.frozen]
        if not chosen:
            return False
        rate = self._rate()
        with np.errstate(all="ignore"):
            gradients: Sequence[Any] = [_real_form(gradient, conjugate=True) for _, gradient in chosen]
            if self.clip_value is not None:
                gradients = clip_by_value(gradients, self.clip_value)
            if self.clip_norm is not None:
                gradients = clip_by_norm(gradients, self.clip_norm)
            for (variable, _), gradient in zip(chosen, gradients, strict=True):
                self._update_variable(variable, gradient, rate)
        self.iterations += 1
        return True

    def _update_variable(self, variable: Variable, gradient: Any, rate: float) -> None:
        own = variable.raw
        value = _real_form(own)
        xp = namespace_of(value)
        kept = self._kept.get(variable)
        if kept is None:
            kept = self._kept[variable] = _Kept(0, self.start(xp, value))
        if self.weight_decay and not self.decoupled:
            gradient = gradient + self.weight_decay * value
        kept.count += 1
        value, kept.slots = self.update(xp, value, gradient, kept.slots, rate, kept.count)
        variable.replace(_complex_form(xp, value, own.dtype) if is_complex(own.dtype) else value)


def _pairs(gradients: Any, where: str) -> list[tuple[Variable, Any]]:
    """Return what was given to `apply_gradients` as pairs (variable, gradient)."""
    if isinstance(gradients, Mapping):
        pairs = list(gradients.items())
    else:
        given = list(gradients)
        for one in given:
            if not isinstance(one, tuple | list) or len(one) != 2:
                raise ArgumentTypeError(f"{where}: takes pairs (gradient, variable) or a dict, got {one!r:.60}")
        pairs = [(variable, gradient) for gradient, variable in given]
    seen: set[int] = set()
    for variable, _ in pairs:
        if not isinstance(variable, Variable):
            raise ArgumentTypeError(
                f"{where}: a {type(variable).__name__} stands where a variable should; pass pairs (gradient, variable) "
                "or a dict from variable to gradient"
            )
        if id(variable) in seen:
            raise ArgumentError(f"{where}: variable {variable.name!r} is given twice; add its gradients up first")
        seen.add(id(variable))
    return pairs


def _real_form(value: Any, conjugate: bool = False) -> Any:
    """Return a complex array as two real ones along a new first axis, and a real one as it is.

    The gradient of a real function with respect to z = x + iy, as `grad` gives it, is ∂/∂x - i ∂/∂y.
    """
    if not is_complex(value.dtype):
        return value
    xp = namespace_of(value)
    imaginary = xp.imag(value)
    return xp.stack([xp.real(value), -imaginary if conjugate else imaginary])


def _complex_form(xp: Any, value: Any, dtype: Any) -> Any:
    return xp.astype(value[0, ...], dtype) + 1j * xp.astype(value[1, ...], dtype)


def _why(evaluation: Evaluation) -> str:
    """Say for every variable that a step might have changed why it did not."""
    reasons = []
    cut = [variable.name for variable, gradient in evaluation.gradients.items() if gradient is None]
    if cut:
        names = ", ".join(map(repr, cut))
        what = f"variable {names}" if len(cut) == 1 else f"each of the variables {names}"
        reasons.append(unconnected_message(what, evaluation.mark))
    concerned = {id(variable): variable for variable in (*evaluation.gradients, *evaluation.read)}
    for variable in concerned.values():
        if not variable.trainable:
            reasons.append(f"variable {variable.name!r} has trainable=False")
        elif variable.leaf_node is None:
            reasons.append(f"variable {variable.name!r} is {variable.dtype}, which has no derivative")
        elif id(variable) in state.frozen:
            reasons.append(f"variable {variable.name!r} is inside a frozen block")
    return "; ".join(reasons) or "the loss function reads no variable"


def _warn(message: str) -> None:
    """Warn at the line of the nearest caller outside this package."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, UnconnectedWarning, stacklevel=depth)
