"""Adversarial training on digits, against FGSM (arXiv:1412.6572) and PGD (arXiv:1706.06083).

An attack changes an image a little, along the gradient of the loss with respect to the image, so that the network errs;
the network is trained on attacked images. Both ask for derivatives of the same network, one inside the other. The
training step does not pass through the attack: an attacked image is data, so it is stopped. The weights then get, bit
for bit, the gradient they get if the attacked images come as an array.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import stopgrad as sg

TEST_IMAGES = 500
RADIUS = 0.15  # how far each pixel, from 0 to 1, may be moved
BATCH_SIZE = 64
LEARNING_RATE = 2e-3
TRAINING = {"nothing": 0, "FGSM": 1, "PGD": 7}  # steps of the attack that is trained against
TESTING = {"nothing": 0, "FGSM": 1, "PGD": 20}

Network = list[tuple[sg.Variable, sg.Variable]]


class Result(NamedTuple):
    """What a run found: accuracy[trained against][attacked by] on test images, and whether the gate held."""

    accuracy: dict[str, dict[str, float]]
    same_gradient_as_from_data: bool
    cut: str
    plot: Path


def make_network(rng: np.random.Generator, sizes: tuple[int, ...] = (64, 64, 64, 10)) -> Network:
    """Return layers (weight, bias), with the start of He et al., 2015."""
    return [
        (
            sg.Variable(rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)), name=f"weight{number}"),
            sg.Variable(np.zeros(outputs), name=f"bias{number}"),
        )
        for number, (inputs, outputs) in enumerate(pairwise(sizes), start=1)
    ]


def logits(network: Network, images: sg.Tensor | np.ndarray) -> sg.Tensor:
    *hidden, (last_weight, last_bias) = network
    for weight, bias in hidden:
        images = sg.nn.relu(images @ weight + bias)
    return images @ last_weight + last_bias


def loss(network: Network, images: sg.Tensor | np.ndarray, labels: np.ndarray) -> sg.Tensor:
    return sg.train.losses.sparse_softmax_cross_entropy(labels, logits(network, images))


def attack(network: Network, images: sg.Tensor | np.ndarray, labels: np.ndarray, steps: int) -> sg.Tensor:
    """Return the images moved to raise the loss, no pixel by more than the radius; one step is FGSM, more are PGD."""
    size = RADIUS if steps == 1 else 2.5 * RADIUS / max(steps, 1)
    attacked = sg.tensor(images)
    for _ in range(steps):
        slope = sg.grad(lambda moved: loss(network, moved, labels))(attacked)
        attacked = sg.clip(attacked + size * sg.sign(slope), images - RADIUS, images + RADIUS)
        attacked = sg.clip(attacked, 0.0, 1.0)
    return attacked


def robust_loss(network: Network, images: sg.Tensor | np.ndarray, labels: np.ndarray, steps: int) -> sg.Tensor:
    """Return the loss on attacked images."""
    attacked = sg.stop_gradient(attack(network, images, labels, steps), name="attack")
    return loss(network, attacked, labels)


def accuracy(network: Network, images: np.ndarray, labels: np.ndarray, steps: int) -> float:
    """Return which part of the images is recognised after an attack."""
    scores = logits(network, attack(network, images, labels, steps)).numpy()
    return float(np.mean(np.argmax(scores, axis=1) == labels))


def train(images: np.ndarray, labels: np.ndarray, steps: int, epochs: int, seed: int, what: str) -> Network:
    """Return a network trained on attacked images."""
    rng = np.random.default_rng(seed)
    network = make_network(rng)
    optimizer = sg.train.Adam(LEARNING_RATE)
    for _ in track(range(epochs), f"training against {what}", disable=not sys.stdout.isatty()):
        for rows in np.array_split(rng.permutation(len(images)), len(images) // BATCH_SIZE):
            optimizer.minimize(lambda rows=rows: robust_loss(network, images[rows], labels[rows], steps))
    return network


def gate_holds(network: Network, images: np.ndarray, labels: np.ndarray) -> tuple[bool, str]:
    """Return whether the attack is mere data to the weights, and what cuts the original images off from the loss."""
    attacked = attack(network, images, labels, TRAINING["PGD"]).numpy()
    _, inside = sg.train.variable_gradients(lambda: robust_loss(network, images, labels, TRAINING["PGD"]))
    _, from_data = sg.train.variable_gradients(lambda: loss(network, attacked, labels))
    same = all(inside[one].numpy().tobytes() == from_data[one].numpy().tobytes() for layer in network for one in layer)
    try:
        sg.grad(lambda x: robust_loss(network, x, labels, TRAINING["PGD"]), unconnected="error")(images)
        return same, "nothing"
    except sg.errors.UnconnectedError as error:
        return same, str(error).partition("there is ")[2].replace(os.getcwd() + os.sep, "")


def main(epochs: int = 30, seed: int = 0, out: Path = Path("out")) -> Result:
    """Train three networks, attack each in three ways, and report."""
    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images / 16, labels, test_size=TEST_IMAGES, random_state=seed, stratify=labels
    )
    networks = {what: train(train_images, train_labels, steps, epochs, seed, what) for what, steps in TRAINING.items()}
    table = {
        what: {how: accuracy(network, test_images, test_labels, steps) for how, steps in TESTING.items()}
        for what, network in networks.items()
    }
    held = gate_holds(networks["PGD"], test_images, test_labels)
    result = Result(table, *held, draw(networks, table, test_images, test_labels, out))
    report(result)
    return result


def draw(
    networks: dict[str, Network], table: dict[str, dict[str, float]], images: np.ndarray, labels: np.ndarray, out: Path
) -> Path:
    """Plot the accuracies, and some digits before and after an attack on each network."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (what, row) in enumerate(table.items()):
        left.bar(np.arange(len(row)) + 0.25 * place, list(row.values()), 0.25, label=what)
    left.set_xticks(np.arange(len(TESTING)) + 0.25, list(TESTING))
    left.set(xlabel="attacked by", ylabel="accuracy on test images", ylim=(0, 1))
    left.legend(title="trained against")
    attacked = [attack(network, images[:8], labels[:8], TESTING["PGD"]).numpy() for network in networks.values()]
    right.imshow(np.vstack([np.hstack(some.reshape(8, 8, 8)) for some in (images[:8], *attacked)]), cmap="gray_r")
    right.set(title="digits; the same attacked by PGD,\nfor networks trained against " + ", ".join(networks))
    right.set_axis_off()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "adversarial.png")
    return out / "adversarial.png"


def report(result: Result) -> None:
    """Print what was found."""
    table = Table("trained against", *(f"attacked by {how}" for how in TESTING), title="accuracy on test images")
    for what, row in result.accuracy.items():
        table.add_row(what, *(f"{value:.1%}" for value in row.values()))
    Console().print(table)
    same = "bit for bit the same" if result.same_gradient_as_from_data else "NOT the same"
    print(f"The weights' gradient is {same} as if the attacked images came as data;")
    print(f"the original images are cut off from the loss by {result.cut}.")
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
