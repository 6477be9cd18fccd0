"""Contrastive divergence of a restricted Boltzmann machine on digits (Hinton, 2002, doi:10.1162/089976602760128018).

The machine is trained to give data a lower free energy than what it makes of the data in one step of Gibbs sampling.
The energy of what it makes is differentiated, what it makes is not: it depends on the parameters, but stands for a
sample, so it is stopped. What is left of the gradient is the learning rule vᵀh - v'ᵀh' that Hinton wrote down.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track
from sklearn.datasets import load_digits

import stopgrad as sg

BATCH_SIZE = 50
LEARNING_RATE = 0.1


class Machine(NamedTuple):
    """Parameters: weights, shape (visible, hidden), and the biases of both kinds of units."""

    weights: Any
    visible_bias: Any
    hidden_bias: Any


class Result(NamedTuple):
    """What a run found. Errors are mean squares, one an epoch, the first before training."""

    errors: list[float]
    distance_to_closed_form: float
    off_without_stop: float
    plot: Path


def hidden_probabilities(machine: Machine, visible: Any) -> sg.Tensor:
    return sg.nn.sigmoid(visible @ machine.weights + machine.hidden_bias)


def visible_probabilities(machine: Machine, hidden: Any) -> sg.Tensor:
    return sg.nn.sigmoid(hidden @ sg.matrix_transpose(machine.weights) + machine.visible_bias)


def free_energy(machine: Machine, visible: Any) -> sg.Tensor:
    """Return -log of the unnormalised probability of each visible state, hidden units summed out."""
    hidden = sg.nn.softplus(visible @ machine.weights + machine.hidden_bias)
    return -(visible @ machine.visible_bias) - sg.sum(hidden, axis=1)


def reconstruct(machine: Machine, visible: Any, rng: sg.random.Generator) -> sg.Tensor:
    """Return what the machine makes of visible states: probabilities, given a sample of the hidden units."""
    hidden = rng.bernoulli(hidden_probabilities(machine, visible))
    return visible_probabilities(machine, hidden)


def contrast(machine: Machine, visible: np.ndarray, rng: sg.random.Generator) -> tuple[sg.Tensor, sg.Tensor]:
    """Return the loss, how much lower the data's free energy should be, and what the machine made of the data."""
    made = sg.stop_gradient(reconstruct(machine, visible, rng), name="sample")
    return sg.mean(free_energy(machine, visible) - free_energy(machine, made)), made


def closed_form(machine: Machine, visible: np.ndarray, made: np.ndarray) -> Machine:
    """Return the gradient as the learning rule has it."""

    def statistics(states: np.ndarray) -> Machine:
        hidden = 1 / (1 + np.exp(-(states @ machine.weights + machine.hidden_bias)))
        return Machine(states.T @ hidden, states.sum(axis=0), hidden.sum(axis=0))

    pairs = zip(statistics(visible), statistics(made), strict=True)
    return Machine(*(-(of_data - of_made) / len(visible) for of_data, of_made in pairs))


def largest_distance(one: Machine, other: Machine) -> float:
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) for a, b in zip(one, other, strict=True))


def reconstruction_error(machine: Machine, images: np.ndarray) -> float:
    """Return the mean square of what is lost on the way to the hidden units and back, without sampling."""
    return float(np.mean((visible_probabilities(machine, hidden_probabilities(machine, images)).numpy() - images) ** 2))


def main(epochs: int = 20, hidden_units: int = 64, seed: int = 0, out: Path = Path("out")) -> Result:
    """Train a machine, compare each gradient with the closed form, and report."""
    rng = sg.random.Generator(seed)
    images = (load_digits().data > 7).astype(float)
    machine = Machine(
        rng.normal(0.0, 0.01, (images.shape[1], hidden_units)).numpy(),
        np.zeros(images.shape[1]),
        np.zeros(hidden_units),
    )
    gradient_of = sg.grad(contrast, has_aux=True)
    errors, distance = [reconstruction_error(machine, images)], 0.0
    for _ in track(range(epochs), "training", disable=not sys.stdout.isatty()):
        order = rng.permutation(len(images)).numpy()
        for rows in np.array_split(order, len(images) // BATCH_SIZE):
            gradient, made = gradient_of(machine, images[rows], rng)
            distance = max(distance, largest_distance(gradient, closed_form(machine, images[rows], made.numpy())))
            machine = Machine(
                *(parameter - LEARNING_RATE * slope.numpy() for parameter, slope in zip(machine, gradient, strict=True))
            )
        errors.append(reconstruction_error(machine, images))
    result = Result(errors, distance, off_without_stop(machine, images, seed), draw(machine, images, errors, out))
    report(result)
    return result


def off_without_stop(machine: Machine, images: np.ndarray, seed: int) -> float:
    """Return how far the weights' gradient goes astray with the gate open, relatively."""
    stopped, opened = (
        sg.grad(contrast, has_aux=True, stop={"sample": stops})(machine, images, sg.random.Generator(seed))[0]
        for stops in (True, False)
    )
    return float(np.linalg.norm(opened.weights - stopped.weights) / np.linalg.norm(stopped.weights))


def draw(machine: Machine, images: np.ndarray, errors: list[float], out: Path) -> Path:
    """Plot the errors, some digits and what the machine makes of them."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(errors, "o-")
    left.set(xlabel="epoch", ylabel="mean square", title="reconstruction error", ylim=0)
    made = visible_probabilities(machine, hidden_probabilities(machine, images[:8])).numpy()
    rows = [np.hstack(some.reshape(8, 8, 8)) for some in (images[:8], made)]
    right.imshow(np.vstack(rows), cmap="gray_r")
    right.set(title="digits, and what the machine makes of them")
    right.set_axis_off()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "rbm.png")
    return out / "rbm.png"


def report(result: Result) -> None:
    """Print what was found."""
    print(f"The reconstruction error fell from {result.errors[0]:.4f} to {result.errors[-1]:.4f}.")
    print(f"In no step was the gradient further than {result.distance_to_closed_form:.1e} from vᵀh - v'ᵀh'.")
    print(f"With the gate open, the gradient of the weights is off by {result.off_without_stop:.0%}.")
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
