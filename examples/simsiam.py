"""A Siamese network without negative pairs on digits: stop or collapse (SimSiam; Chen and He, 2020, arXiv:2011.10566).

Two views of an image are embedded by the same network, and from one embedding the other is predicted. Nothing pushes
different images apart, so mapping all of them to one point would be perfect, and without a stop that is where training
goes. With the embedding that is to be predicted stopped, it is not. Both are shown, by opening the gate by its name.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import stopgrad as sg

TEST_IMAGES = 500
BATCH_SIZE = 128
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.2, 0.9, 3e-3

Layers = list[tuple[sg.Variable, sg.Variable]]


class Model(NamedTuple):
    """The network that embeds, and the one that predicts one view's embedding from the other's."""

    encoder: Layers
    predictor: Layers


class Run(NamedTuple):
    """A training run; spread[e] after e epochs is √d times the standard deviation of normalised embeddings."""

    spread: list[float]
    loss: float
    accuracy: float


class Result(NamedTuple):
    """What was found; accuracies are those of a linear classifier of embeddings, or of pixels, on test images.

    A spread of 1 means that embeddings point in all directions, 0 that they all are the same.
    """

    stopped: Run
    opened: Run
    pixel_accuracy: float
    plot: Path


def make_layers(rng: np.random.Generator, *sizes: int) -> Layers:
    return [
        (sg.Variable(rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs))), sg.Variable(np.zeros(outputs)))
        for inputs, outputs in pairwise(sizes)
    ]


def apply(layers: Layers, features: np.ndarray | sg.Tensor) -> sg.Tensor:
    """Return what layers make of features; hidden ones are normalised over the batch."""
    *hidden, (last_weight, last_bias) = layers
    for weight, bias in hidden:
        features = sg.nn.relu(sg.standardize(features @ weight, axis=0) + bias)
    return features @ last_weight + last_bias


def normalised(vectors: sg.Tensor) -> sg.Tensor:
    return vectors / sg.sqrt(sg.sum(vectors**2, axis=1, keepdims=True) + 1e-12)


def view(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the images moved by up to one pixel, each in its own direction, and with noise."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    down, right = rng.integers(3, size=(2, len(images)))
    moved = windows[np.arange(len(images)), down, right].reshape(-1, 64)
    return moved + rng.normal(0, 0.1, moved.shape)


def siamese_loss(model: Model, one: np.ndarray, other: np.ndarray) -> sg.Tensor:
    """Return minus how alike each view's prediction is to the other view's embedding: from -1, the same, to 1."""
    embedded = [apply(model.encoder, images) for images in (one, other)]
    goals = sg.stop_gradient([normalised(vectors) for vectors in embedded], name="goal")
    predicted = [normalised(apply(model.predictor, vectors)) for vectors in embedded]
    return -(alikeness(predicted[0], goals[1]) + alikeness(predicted[1], goals[0])) / 2


def alikeness(one: sg.Tensor, other: sg.Tensor) -> sg.Tensor:
    return sg.mean(sg.sum(one * other, axis=1))


def embed(model: Model, images: np.ndarray) -> np.ndarray:
    return normalised(apply(model.encoder, images)).numpy()


def train(
    images: np.ndarray, test_images: np.ndarray, epochs: int, seed: int, stopped: bool
) -> tuple[Model, list[float], float]:
    """Return a model, the spread of its embeddings of test images before and after each epoch, and the loss."""
    rng = np.random.default_rng(seed)
    model = Model(make_layers(rng, 64, 256, 64), make_layers(rng, 64, 32, 64))
    optimizer = sg.train.Momentum(LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY)
    spreads, loss = [spread(embed(model, test_images))], 0.0
    what = "training, goal stopped" if stopped else "training, gate open"
    for _ in track(range(epochs), what, disable=not sys.stdout.isatty()):
        for rows in np.array_split(rng.permutation(len(images)), len(images) // BATCH_SIZE):
            one, other = view(images[rows], rng), view(images[rows], rng)
            value = optimizer.minimize(
                lambda one=one, other=other: siamese_loss(model, one, other), return_cost=True, stop={"goal": stopped}
            )
            loss = float(value)
        spreads.append(spread(embed(model, test_images)))
    return model, spreads, loss


def spread(embeddings: np.ndarray) -> float:
    return float(np.mean(np.std(embeddings, axis=0)) * np.sqrt(embeddings.shape[1]))


def main(epochs: int = 60, seed: int = 0, out: Path = Path("out")) -> Result:
    """Train with the goal stopped and with the gate open, classify by the embeddings, and report."""
    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images / 16, labels, test_size=TEST_IMAGES, random_state=seed, stratify=labels
    )

    def accuracy(train_features: np.ndarray, test_features: np.ndarray) -> float:
        classifier = LogisticRegression(max_iter=1000).fit(train_features, train_labels)
        return float(classifier.score(test_features, test_labels))

    runs = []
    for stopped in (True, False):
        model, spreads, loss = train(train_images, test_images, epochs, seed, stopped)
        runs.append(Run(spreads, loss, accuracy(embed(model, train_images), embed(model, test_images))))
    result = Result(*runs, accuracy(train_images, test_images), draw(*runs, out))
    report(result)
    return result


def draw(stopped: Run, opened: Run, out: Path) -> Path:
    """Plot how far the embeddings are spread, epoch by epoch."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="epoch", ylabel="spread of embeddings", title="SimSiam on digits", ylim=(0, 1))
    axes.plot(stopped.spread, label="goal stopped")
    axes.plot(opened.spread, label="gate open")
    axes.legend()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "simsiam.png")
    return out / "simsiam.png"


def report(result: Result) -> None:
    """Print what was found."""
    for what, run in (("With the goal stopped", result.stopped), ("With the gate open", result.opened)):
        print(f"{what} the spread of embeddings goes from {run.spread[0]:.3f} to {run.spread[-1]:.3f}, the loss to")
        print(f"{run.loss:.3f}; a linear classifier of the embeddings is right for {run.accuracy:.1%} of test images.")
    print(f"(For one in ten by chance, for {result.pixel_accuracy:.1%} with pixels in place of embeddings.)")
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
