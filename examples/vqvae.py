"""A vector-quantised autoencoder on digits (VQ-VAE; van den Oord et al., 2017, arXiv:1711.00937).

The encoder makes eight vectors of an image, each is replaced by the nearest of a codebook, and of those the decoder
makes the image again. Choosing the nearest has no derivative, so nothing would reach the encoder. Three gates help: the
cotangent passes straight through the choice; one loss moves chosen codes towards vectors, which are stopped in it; and
another keeps vectors near codes, which are stopped in that.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import stopgrad as sg

TEST_IMAGES = 500
BATCH_SIZE = 64
LEARNING_RATE = 2e-3
PIECES, CODES, SIZE = 8, 32, 4  # vectors an image is made of, vectors in the codebook, entries of each
COMMITMENT = 0.25

Layers = list[tuple[sg.Variable, sg.Variable]]


class Model(NamedTuple):
    """The three parts."""

    encoder: Layers
    codebook: sg.Variable
    decoder: Layers


class Losses(NamedTuple):
    """Mean squares: of what is lost of images, of codes towards vectors, and of vectors towards codes."""

    reconstruction: sg.Tensor
    codebook: sg.Tensor
    commitment: sg.Tensor


class Result(NamedTuple):
    """What was found.

    Errors are mean squares on test images, before training and after each epoch. `reach` says for each loss and part of
    the model whether one reaches the other, and if not, what is in the way.
    """

    errors: list[float]
    codes_used: int
    reach: dict[tuple[str, str], str]
    plot: Path


def make_layers(name: str, rng: np.random.Generator, *sizes: int) -> Layers:
    return [
        (
            sg.Variable(rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)), name=f"{name}/weight{number}"),
            sg.Variable(np.zeros(outputs), name=f"{name}/bias{number}"),
        )
        for number, (inputs, outputs) in enumerate(pairwise(sizes), start=1)
    ]


def apply(layers: Layers, features: np.ndarray | sg.Tensor) -> sg.Tensor:
    *hidden, (last_weight, last_bias) = layers
    for weight, bias in hidden:
        features = sg.nn.relu(features @ weight + bias)
    return features @ last_weight + last_bias


def encode(model: Model, images: np.ndarray) -> sg.Tensor:
    """Return the vectors of each image, shape (n, PIECES, SIZE)."""
    return sg.reshape(apply(model.encoder, images), (len(images), PIECES, SIZE))


def quantise(model: Model, vectors: sg.Tensor) -> sg.Tensor:
    """Return the nearest code of each vector; a derivative reaches the codebook, but not the vectors."""
    distances = sg.sum((vectors[..., None, :] - model.codebook) ** 2, axis=-1)
    return sg.take(model.codebook, sg.argmin(distances, axis=-1), axis=0)


def decode(model: Model, codes: sg.Tensor) -> sg.Tensor:
    return sg.nn.sigmoid(apply(model.decoder, sg.reshape(codes, (-1, PIECES * SIZE))))


def losses(model: Model, images: np.ndarray, straight: bool = True) -> Losses:
    """Return the three losses; `straight=False` leaves out the straight-through gate, for comparison."""
    vectors = encode(model, images)
    codes = quantise(model, vectors)
    chosen = sg.straight_through(lambda _: codes)(vectors) if straight else codes
    return Losses(
        sg.mean((decode(model, chosen) - images) ** 2),
        sg.mean((codes - sg.stop_gradient(vectors, name="vectors")) ** 2),
        sg.mean((vectors - sg.stop_gradient(codes, name="codes")) ** 2),
    )


def total(model: Model, images: np.ndarray) -> sg.Tensor:
    reconstruction, codebook, commitment = losses(model, images)
    return reconstruction + codebook + COMMITMENT * commitment


def reach(model: Model, images: np.ndarray) -> dict[tuple[str, str], str]:
    """Say for each loss whether it reaches the encoder and the codebook, and if not, what is in the way."""
    rows = {name: (number, True) for number, name in enumerate(Losses._fields)}
    rows["reconstruction, gate left out"] = (0, False)
    parts = {"encoder": model.encoder[0][0], "codebook": model.codebook}
    found = {}
    for (loss, (number, straight)), (part, variable) in product(rows.items(), parts.items()):
        try:
            sg.train.variable_gradients(
                lambda number=number, straight=straight: losses(model, images, straight)[number],
                variable,
                unconnected="error",
            )
            found[loss, part] = "yes"
        except sg.errors.UnconnectedError as error:
            found[loss, part] = "no, cut by " + str(error).partition("there is ")[2].replace(os.getcwd() + os.sep, "")
    return found


def main(epochs: int = 30, seed: int = 0, out: Path = Path("out")) -> Result:
    """Train an autoencoder, ask which loss reaches which part, and report."""
    images, _ = load_digits(return_X_y=True)
    train_images, test_images = train_test_split(images / 16, test_size=TEST_IMAGES, random_state=seed)
    rng = np.random.default_rng(seed)
    model = Model(
        make_layers("encoder", rng, 64, 128, PIECES * SIZE),
        sg.Variable(rng.normal(0, 0.5, (CODES, SIZE)), name="codebook"),
        make_layers("decoder", rng, PIECES * SIZE, 128, 64),
    )
    optimizer = sg.train.Adam(LEARNING_RATE)
    errors = [float(losses(model, test_images).reconstruction)]
    for _ in track(range(epochs), "training", disable=not sys.stdout.isatty()):
        for rows in np.array_split(rng.permutation(len(train_images)), len(train_images) // BATCH_SIZE):
            optimizer.minimize(lambda rows=rows: total(model, train_images[rows]))
        errors.append(float(losses(model, test_images).reconstruction))
    codes = quantise(model, encode(model, test_images)).numpy()
    used = len(np.unique(codes.reshape(-1, SIZE), axis=0))
    result = Result(errors, used, reach(model, test_images), draw(model, test_images, errors, out))
    report(result)
    return result


def draw(model: Model, images: np.ndarray, errors: list[float], out: Path) -> Path:
    """Plot the errors, some digits and what comes out for them."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(errors, "o-")
    left.set(xlabel="epoch", ylabel="mean square on test images", title="reconstruction error", ylim=0)
    made = decode(model, quantise(model, encode(model, images[:8]))).numpy()
    right.imshow(np.vstack([np.hstack(some.reshape(8, 8, 8)) for some in (images[:8], made)]), cmap="gray_r")
    right.set(title=f"test digits, and the same out of {PIECES} codes each")
    right.set_axis_off()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "vqvae.png")
    return out / "vqvae.png"


def report(result: Result) -> None:
    """Print what was found."""
    print(f"The reconstruction error on test images fell from {result.errors[0]:.4f} to {result.errors[-1]:.4f};")
    print(f"{result.codes_used} of {CODES} codes are in use.")
    table = Table("loss", "part", Column("does the loss reach it?", overflow="fold"))
    for (loss, part), how in result.reach.items():
        table.add_row(loss, part, how)
    Console().print(table)
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
