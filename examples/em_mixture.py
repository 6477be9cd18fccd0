"""EM for a mixture of Gaussians on iris (Dempster, Laird and Rubin, 1977), each M-step read off one gradient.

EM maximizes the expected log-density of points and components together. The responsibilities in it (how likely each
point is of each component) are those of the mixture so far and are held fixed: they are stopped. In natural parameters
the gradient is a sum of statistics (1, x, xxᵀ) over the points, less what the mixture expects of it. So the M-step, the
mixture at which the gradient is zero, has as expectations the old ones plus gradient / count.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import stopgrad as sg

TOLERANCE = 1e-10  # EM ends when a step raises the log-likelihood per point by less


class Mixture(NamedTuple):
    """Natural parameters: log weights, shape (k,), precision · mean (k, d) and -½ precision (k, d, d)."""

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
    off_with_gate: float
    off_without_gate: float
    differences: dict[str, float]
    moments: Moments
    plot: Path


def natural(moments: Moments) -> Mixture:
    precisions = np.linalg.inv(moments.covariances)
    return Mixture(np.log(moments.weights), (precisions @ moments.means[..., None])[..., 0], -0.5 * precisions)


def log_joint(mixture: Mixture, data: np.ndarray) -> sg.Tensor:
    """Return the log-density of each point together with each component, shape (k, n)."""
    precisions = -(mixture.quadratic + mixture.quadratic.mT)  # symmetric in whatever direction it is varied
    means = sg.linalg.solve(precisions, mixture.linear[..., None])[..., 0]
    offsets = data - means[:, None, :]
    distances = sg.sum((offsets @ precisions) * offsets, axis=-1)
    scales = sg.nn.log_softmax(mixture.logits) + 0.5 * sg.linalg.slogdet(precisions)[1]
    return scales[:, None] - 0.5 * distances - 0.5 * data.shape[1] * np.log(2 * np.pi)


def log_likelihood(mixture: Mixture, data: np.ndarray) -> sg.Tensor:
    """Return the log-density of all points, per point."""
    return sg.mean(sg.logsumexp(log_joint(mixture, data), axis=0))


def expected_log_joint(mixture: Mixture, believed: Mixture, data: np.ndarray) -> sg.Tensor:
    """Return what an M-step maximizes over `mixture`; the responsibilities are those of the mixture `believed`."""
    responsibilities = sg.stop_gradient(sg.nn.softmax(log_joint(believed, data), axis=0), name="responsibilities")
    return sg.sum(responsibilities * log_joint(mixture, data))


def m_step(moments: Moments, data: np.ndarray) -> Moments:
    """Return the mixture at which the gradient is zero, from the gradient at the mixture so far."""
    gradient = sg.grad(lambda mixture: expected_log_joint(mixture, mixture, data))(natural(moments))
    weights, means, covariances = moments
    counts = len(data) * weights + gradient.logits.numpy()
    new_means = means + gradient.linear.numpy() / counts[:, None]
    squares = covariances + outer(means) + gradient.quadratic.numpy() / counts[:, None, None]
    return Moments(counts / len(data), new_means, squares - outer(new_means))


def outer(vectors: np.ndarray) -> np.ndarray:
    return vectors[:, :, None] * vectors[:, None, :]


def flat(gradient: Mixture) -> np.ndarray:
    return np.concatenate([one.numpy().ravel() for one in gradient])


def gradient_left(moments: Moments, believed: Moments, data: np.ndarray) -> float:
    """Return the largest entry of the gradient that an M-step was to bring to zero."""
    fixed = natural(believed)
    gradient = sg.grad(lambda mixture: expected_log_joint(mixture, fixed, data))(natural(moments))
    return float(np.max(np.abs(flat(gradient))))


def gate_matters(moments: Moments, data: np.ndarray) -> tuple[float, float]:
    """Return how far the gradient is from that of the log-likelihood, relatively: with the gate, and with it open.

    With the responsibilities stopped the two are the same (Fisher's identity).
    """
    mixture = natural(moments)
    right = flat(sg.grad(lambda one: log_likelihood(one, data) * len(data))(mixture))
    stopped, opened = (
        sg.grad(lambda one: expected_log_joint(one, one, data), stop={"responsibilities": stops})(mixture)
        for stops in (True, False)
    )
    return relative(flat(stopped), right), relative(flat(opened), right)


def fit(data: np.ndarray, start: Moments, max_steps: int) -> tuple[Moments, list[float], float]:
    """Return the mixture EM ends at, the log-likelihoods on the way, and the largest gradient an M-step left."""
    moments, steepest = start, 0.0
    likelihoods = [float(log_likelihood(natural(start), data))]
    for _ in track(range(max_steps), "EM", disable=not sys.stdout.isatty()):
        before, moments = moments, m_step(moments, data)
        steepest = max(steepest, gradient_left(moments, before, data))
        likelihoods.append(float(log_likelihood(natural(moments), data)))
        if likelihoods[-1] - likelihoods[-2] < TOLERANCE:
            break
    return moments, likelihoods, steepest


def reference(data: np.ndarray, start: Moments, steps: int) -> tuple[Moments, float]:
    """Return the mixture scikit-learn finds in as many steps from the same start, and its log-likelihood."""
    model = GaussianMixture(
        len(start.weights),
        covariance_type="full",
        reg_covar=0.0,
        tol=0.0,
        max_iter=steps,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=np.linalg.inv(start.covariances),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is told when to end
        model.fit(data)
    return Moments(model.weights_, model.means_, model.covariances_), model.score(data)


def relative(ours: Any, theirs: Any) -> float:
    return float(np.max(np.abs(np.subtract(ours, theirs))) / np.max(np.abs(theirs)))


def main(components: int = 3, max_steps: int = 500, seed: int = 0, out: Path = Path("out")) -> Result:
    """Fit a mixture from a random start, compare it with scikit-learn's, and report."""
    data = load_iris().data
    rng = np.random.default_rng(seed)
    start = Moments(
        np.full(components, 1 / components),
        rng.choice(data, components, replace=False),
        np.repeat(np.cov(data.T)[None], components, axis=0),
    )
    moments, likelihoods, steepest = fit(data, start, max_steps)
    theirs, their_likelihood = reference(data, start, len(likelihoods) - 1)
    differences = {name: relative(getattr(moments, name), getattr(theirs, name)) for name in Moments._fields}
    differences["log-likelihood"] = relative(likelihoods[-1], their_likelihood)
    result = Result(
        likelihoods,
        float(np.min(np.diff(likelihoods))),
        steepest,
        *gate_matters(start, data),
        differences,
        moments,
        draw(data, moments, likelihoods, out),
    )
    report(result)
    return result


def draw(data: np.ndarray, moments: Moments, likelihoods: list[float], out: Path) -> Path:
    """Plot the log-likelihood, and the components over the sizes of the petals."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(likelihoods, "o-", markersize=3)
    left.set(xlabel="EM step", ylabel="log-likelihood per point", title="EM on iris")
    right.scatter(data[:, 2], data[:, 3], c="0.7", s=12)
    circle = np.stack([np.cos(angles := np.linspace(0, 2 * np.pi, 100)), np.sin(angles)])
    for mean, covariance in zip(moments.means, moments.covariances, strict=True):
        ellipse = mean[2:, None] + 2 * np.linalg.cholesky(covariance[2:, 2:]) @ circle
        right.plot(*ellipse)
    right.set(xlabel="petal length (cm)", ylabel="petal width (cm)", title="components, two standard deviations")
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "em_mixture.png")
    return out / "em_mixture.png"


def report(result: Result) -> None:
    """Print what was found."""
    first, last = result.log_likelihoods[0], result.log_likelihoods[-1]
    print(f"The log-likelihood rose in each of {len(result.log_likelihoods) - 1} steps, from {first:.6f} to {last:.6f}")
    print(f"per point, by {result.smallest_rise:.1e} at least.")
    print(f"Each M-step solved its equations: the largest gradient left was {result.gradient_after_m_step:.1e}.")
    print(f"The stopped gradient is that of the log-likelihood, to {result.off_with_gate:.1e}; with the gate open")
    print(f"it is off by {result.off_without_gate:.0%}.")
    print("From scikit-learn's fit from the same start it differs, relatively, by")
    for name, difference in result.differences.items():
        print(f"    {difference:.1e} in its {name}")
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
