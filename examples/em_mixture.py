"""EM for a mixture of Gaussians on iris (Dempster, Laird and Rubin, 1977), each M-step read off one gradient.

EM maximizes, over the mixture, the expected log-density of points and components together, where the responsibilities
(how likely each point is of each component) are those of the mixture so far and are held fixed: they are stopped. In the
natural parameters of a Gaussian that gradient is the sum of its statistics less what the mixture expects of them, so the
mixture at which it is zero, the M-step, is the old expectation plus gradient / count. No formula of EM is written out.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import Progress
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import stopgrad as sg


class Mixture(NamedTuple):
    """Natural parameters: of the weights, shape (k,), and of the Gaussians, precision · mean (k, d), -½ precision (k, d, d)."""

    logits: Any
    linear: Any
    quadratic: Any


class Moments(NamedTuple):
    """The same mixture by its weights (k,), means (k, d) and covariances (k, d, d)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class Result(NamedTuple):
    """What a run found. Differences are relative; log-likelihoods are per point."""

    log_likelihoods: list[float]
    smallest_rise: float
    gradient_after_m_step: float
    likelihoods_unstopped: list[float]
    differences: dict[str, float]
    moments: Moments
    plot: Path


def natural(moments: Moments) -> Mixture:
    precisions = np.linalg.inv(moments.covariances)
    return Mixture(np.log(moments.weights), (precisions @ moments.means[..., None])[..., 0], -0.5 * precisions)


def log_joint(mixture: Mixture, data: np.ndarray) -> sg.Tensor:
    """Return the log-density of each point together with each component, shape (k, n)."""
    precisions = -2 * mixture.quadratic
    means = sg.linalg.solve(precisions, mixture.linear[..., None])[..., 0]
    offsets = data - means[:, None, :]
    distances = sg.sum((offsets @ precisions) * offsets, axis=-1)
    scales = sg.nn.log_softmax(mixture.logits) + 0.5 * sg.linalg.slogdet(precisions)[1]
    return scales[:, None] - 0.5 * distances - 0.5 * data.shape[1] * np.log(2 * np.pi)


def log_likelihood(mixture: Mixture, data: np.ndarray) -> sg.Tensor:
    return sg.mean(sg.logsumexp(log_joint(mixture, data), axis=0))


def expected_log_joint(mixture: Mixture, believed: Mixture, data: np.ndarray) -> sg.Tensor:
    """Return what an M-step maximizes over `mixture`; the responsibilities are those of the mixture `believed`."""
    responsibilities = sg.stop_gradient(sg.nn.softmax(log_joint(believed, data), axis=0), name="responsibilities")
    return sg.sum(responsibilities * log_joint(mixture, data))


def m_step(moments: Moments, data: np.ndarray, stopped: bool = True) -> Moments:
    """Return the mixture at which the gradient is zero; with `stopped=False` the gate is open, for comparison."""
    gradient = sg.grad(lambda mixture: expected_log_joint(mixture, mixture, data), stop={"responsibilities": stopped})(
        natural(moments)
    )
    weights, means, covariances = moments
    counts = len(data) * weights + gradient.logits.numpy()
    new_means = means + gradient.linear.numpy() / counts[:, None]
    squares = covariances + outer(means) + gradient.quadratic.numpy() / counts[:, None, None]
    return Moments(counts / len(data), new_means, squares - outer(new_means))


def outer(vectors: np.ndarray) -> np.ndarray:
    return vectors[:, :, None] * vectors[:, None, :]


def steepness(mixture: Mixture, believed: Mixture, data: np.ndarray) -> float:
    """Return the largest entry of the gradient that an M-step brings to zero."""
    gradient = sg.grad(lambda one: expected_log_joint(one, believed, data))(mixture)
    return max(float(sg.max(abs(one))) for one in gradient)


def fit(data: np.ndarray, start: Moments, max_steps: int, tolerance: float) -> tuple[Moments, list[float], float]:
    """Return the mixture EM ends at, the log-likelihoods on the way and the largest gradient an M-step left."""
    moments, steepest = start, 0.0
    likelihoods = [float(log_likelihood(natural(moments), data))]
    with Progress(disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task("EM", total=max_steps)
        while len(likelihoods) <= max_steps:
            before, moments = moments, m_step(moments, data)
            steepest = max(steepest, steepness(natural(moments), natural(before), data))
            likelihoods.append(float(log_likelihood(natural(moments), data)))
            progress.update(task, advance=1, description=f"EM, log-likelihood {likelihoods[-1]:.6f}")
            if likelihoods[-1] - likelihoods[-2] < tolerance:
                break
    return moments, likelihoods, steepest


def fit_unstopped(data: np.ndarray, start: Moments, steps: int) -> list[float]: ...
