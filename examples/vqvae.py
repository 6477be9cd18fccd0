"""A vector-quantised autoencoder on digits (VQ-VAE; van den Oord et al., 2017, arXiv:1711.00937).

The encoder makes eight vectors of an image; each is replaced by the nearest of a codebook, and from those the decoder makes
the image again. Choosing the nearest has no derivative, so nothing would reach the encoder. Three gates repair that: the
cotangent passes straight through the choice, one loss moves chosen codes towards vectors that are stopped, and
another keeps vectors near codes that are stopped.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track
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


class Result(NamedTuple):
    """What was found. Errors are mean squares on test images, one an epoch, the first before training."""

    errors: list[float]
    mean_error: float
    codes_used: int
    reached_straight_through: bool
    cut_without: str
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


def nearest(model: Model, vectors: sg.Tensor) -> sg.Tensor:
    """Return for each vector the number of the nearest code."""
    return sg.argmin(sg.sum((vectors[..., None, :] - model.codebook) ** 2, axis=-1), axis=-1)


def quantise(model: Model, vectors: sg.Tensor) -> sg.Tensor:
    """Return the nearest code of each vector; a derivative reaches the codebook, but not the vectors."""
    return sg.take(model.codebook, nearest(model, vectors), axis=0)


def decode(model: Model, vectors: sg.Tensor) -> sg.Tensor:
    return sg.nn.sigmoid(apply(model.decoder, sg.reshape(vectors, (-1, PIECES * SIZE))))


def reconstruction_loss(model: Model, images: np.ndarray, straight: bool = True) -> sg.Tensor:
    """Return the mean square by which decoded images differ; `straight=False` takes the gate away."""

    def choose(vectors: sg.Tensor) -> sg.Tensor:
        return quantise(model, vectors)

    through = sg.straight_through(choose) if straight else choose
    return sg.mean((decode(model, through(encode(model, images))) - images) ** 2)


def vq_loss(model: Model, images: np.ndarray) -> sg.Tensor:
    """Return the loss of training: reconstruction, codes towards vectors, vectors towards codes."""
    vectors = encode(model, images)
    codes = quantise(model, vectors)
    towards_vectors = sg.mean((codes - sg.stop_gradient(vectors, name="vectors")) ** 2)
    towards_codes = sg.mean((vectors - sg.stop_gradient(codes, name="codes")) ** 2)
    chosen = sg.straight_through(lambda _: codes)(vectors)
    return sg.mean((decode(model, chosen) - images) ** 2) + towards_vectors + COMMITMENT * towards_codes
