"""`tf.random`, and TensorFlow.js's `random_normal` …: stopgrad's generators under their names, float32 by default.

The numbers are not TensorFlow's for the same seed. `set_seed` starts everything anew; a function given a `seed` of its
own draws from a stream that belongs to that seed, and goes on with it at every call, as in TensorFlow. TensorFlow.js's
functions, given a seed, return the same numbers at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

import stopgrad.primitives as p
from stopgrad import random as ours
from stopgrad.core.errors import ArgumentError, ShapeError
from stopgrad.core.marks import mark_operation
from stopgrad.core.tensor import Tensor
from stopgrad.tf.dtypes import as_dtype, float32, int32, int64
from stopgrad.tf.missing import message
from stopgrad.tf.values import as_floats, as_tensor, integers, operands, python_int


class Generator:
    """A stream of random numbers of its own. Make one with `from_seed`.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.random.Generator.from_seed(1).normal([2, 3]).shape
        (2, 3)
    """

    def __init__(self, stream: ours.Generator) -> None:
        self._stream = stream

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """Return the stream that belongs to a seed; `alg` is not used."""
        return cls(ours.Generator(_seed_words(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a stream that is different every time."""
        return cls(ours.Generator())

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Return normal samples."""
        return _normal(self._stream.normal, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Return normal samples of which those beyond two standard deviations were drawn again."""
        return _normal(self._stream.truncated_normal, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Return uniform samples from minval up to but without maxval (1 for floats)."""
        return _uniform(self._stream, shape, minval, maxval, dtype)

    def split(self, count: int = 1) -> list[Generator]:
        """Return further streams, independent of this one and of each other."""
        return [type(self)(ours.Generator(child)) for child in self._stream.numpy_generator.spawn(count)]


class _Streams:
    """The streams the functions of this module draw from: one by default, and one for each seed that was given."""

    def __init__(self) -> None:
        self._start: int | None = None
        self._default = ours.Generator()
        self._seeded: dict[int, ours.Generator] = {}

    def restart(self, seed: int) -> None:
        """Start all streams anew."""
        self._start = seed
        self._default = ours.Generator(_seed_words(seed))
        self._seeded = {}

    def of(self, seed: Any) -> ours.Generator:
        """Return the stream for a function's `seed` argument."""
        if seed is None:
            return self._default
        number = python_int(seed, "random: seed")
        if number not in self._seeded:
            self._seeded[number] = ours.Generator(_seed_words(0 if self._start is None else self._start, number))
        return self._seeded[number]


_streams = _Streams()


def set_seed(seed: int) -> None:
    """Start all random numbers anew, those of `stopgrad.random` too.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.random.set_seed(1)
        >>> a = tf.random.normal([2])
        >>> tf.random.set_seed(1)
        >>> bool(tf.reduce_all(a == tf.random.normal([2])))
        True
    """
    number = python_int(seed, "set_seed: seed")
    _streams.restart(number)
    ours.seed(_seed_words(number))


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: Any = None, name: str | None = None
) -> Tensor:
    """Return normal samples; derivatives pass to mean and standard deviation.

    Example:
        >>> import stopgrad.tf as tf
        >>> x = tf.random.normal([2, 3])
        >>> x.shape, x.dtype.name
        ((2, 3), 'float32')
    """
    return _normal(_streams.of(seed).normal, shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: Any = None, name: str | None = None
) -> Tensor:
    """Return normal samples of which those beyond two standard deviations were drawn again."""
    return _normal(_streams.of(seed).truncated_normal, shape, mean, stddev, dtype)


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, seed: Any = None, name: str | None = None
) -> Tensor:
    """Return uniform samples from minval up to but without maxval (1 for floats; integers must say it)."""
    return _uniform(_streams.of(seed), shape, minval, maxval, dtype)


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = float32, seed: Any = None, name: str | None = None
) -> Tensor:
    """Return, for each entry of alpha and beta, gamma samples of a shape; derivatives pass to beta alone."""
    form, rate = operands("gamma", as_tensor(alpha, "gamma", dtype), 1.0 if beta is None else beta)
    size = (*integers(shape, "gamma: shape"), *np.broadcast_shapes(form.shape, rate.shape))
    numbers = form.numpy()
    drawn = _streams.of(seed).draw(lambda rng, lead: rng.standard_gamma(numbers, (*lead, *size)))
    return p.divide(_constant(drawn, dtype, "gamma"), rate)


def poisson(shape: Any, lam: Any, dtype: Any = float32, seed: Any = None, name: str | None = None) -> Tensor:
    """Return, for each entry of lam, Poisson samples of a shape. They carry no derivative."""
    mean = as_floats(lam, "poisson").numpy()
    size = (*integers(shape, "poisson: shape"), *mean.shape)
    drawn = _streams.of(seed).draw(lambda rng, lead: rng.poisson(mean, (*lead, *size)))
    return _constant(drawn, dtype, "poisson")


def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None) -> Tensor:
    """Return numbers of classes drawn by unnormalised log probabilities, a row of them for each row of logits.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.random.categorical([[0.0, 1000.0]], 3).numpy()
        array([[1, 1, 1]])
    """
    return _categorical(_streams.of(seed), logits, num_samples, int64 if dtype is None else dtype)


def shuffle(value: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor's slices along the first axis in random order; derivatives go back to where they came from."""
    return _streams.of(seed).permutation(as_tensor(value, "shuffle"))


def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Return the normal samples that belong to a seed, a pair of integers."""
    return _normal(_of_pair(seed).normal, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Return the truncated normal samples that belong to a seed, a pair of integers."""
    return _normal(_of_pair(seed).truncated_normal, shape, mean, stddev, dtype)


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Return the uniform samples that belong to a seed, a pair of integers."""
    return _uniform(_of_pair(seed), shape, minval, maxval, dtype)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Return the numbers of classes that belong to a seed, a pair of integers; see `categorical`."""
    return _categorical(_of_pair(seed), logits, num_samples, dtype)


def random_normal(shape: Any, mean: Any = 0.0, std_dev: Any = 1.0, dtype: Any = float32, seed: Any = None) -> Tensor:
    """Return normal samples. Of TensorFlow.js."""
    return _normal(_js_stream(seed).normal, shape, mean, std_dev, dtype)


def random_uniform(shape: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = float32, seed: Any = None) -> Tensor:
    """Return uniform samples from minval up to but without maxval. Of TensorFlow.js."""
    return _uniform(_js_stream(seed), shape, minval, maxval, dtype)


def random_gamma(shape: Any, alpha: Any, beta: Any = 1, dtype: Any = float32, seed: Any = None) -> Tensor:
    """Return gamma samples. Of TensorFlow.js."""
    size = integers(shape, "random_gamma: shape")
    drawn = _js_stream(seed).draw(lambda rng, lead: rng.gamma(alpha, 1 / beta, (*lead, *size)))
    return _constant(drawn, dtype, "random_gamma")


def multinomial(logits: Any, num_samples: Any, seed: Any = None, normalized: bool = False) -> Tensor:
    """Return int32 numbers of classes drawn by log probabilities (probabilities if `normalized`). Of TensorFlow.js."""
    scores = as_floats(logits, "multinomial")
    if scores.ndim not in (1, 2):
        raise ShapeError(f"multinomial: logits must have one or two axes, got shape {scores.shape}")
    rows = p.expand_dims(scores, 0) if scores.ndim == 1 else scores
    drawn = _categorical(_js_stream(seed), p.log(rows) if normalized else rows, num_samples, int32)
    return p.squeeze(drawn, 0) if scores.ndim == 1 else drawn


def _js_stream(seed: Any) -> ours.Generator:
    return _streams.of(None) if seed is None else ours.Generator(_seed_words(seed))


def _of_pair(seed: Any) -> ours.Generator:
    words = integers(seed, "random: seed")
    if len(words) != 2:
        raise ArgumentError(f"random: a stateless function takes a pair of integers as its seed, got {seed!r}")
    return ours.Generator(_seed_words(*words))


def _seed_words(*numbers: Any) -> list[int]:
    """Return integers of either sign as what NumPy takes for a seed."""
    return [int(number) & 0xFFFF_FFFF_FFFF_FFFF for number in numbers]


def _normal(draw: Any, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    found = as_dtype(dtype)
    parameters = [one if type(one) in (int, float) else as_tensor(one, "normal", found) for one in (mean, stddev)]
    drawn: Tensor = draw(*map(_plain, parameters), integers(shape, "normal: shape"), found)
    return drawn


def _uniform(stream: ours.Generator, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    found, size = as_dtype(dtype), integers(shape, "uniform: shape")
    if found.kind in "iu":
        if maxval is None:
            raise ArgumentError(f"uniform: give maxval for integers (dtype={found})")
        low, high = (as_tensor(bound, "uniform").numpy() for bound in (minval, maxval))
        drawn = stream.draw(lambda rng, lead: rng.integers(low, high, (*lead, *size)))
        return p.astype(drawn, found)
    lowest = as_tensor(minval, "uniform", found)
    return stream.uniform(lowest, as_tensor(1 if maxval is None else maxval, "uniform", found), size, found)


def _plain(parameter: Any) -> Any:
    return float(parameter) if type(parameter) is int else parameter


def _categorical(stream: ours.Generator, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    scores = as_floats(logits, "categorical")
    if scores.ndim != 2:
        raise ShapeError(f"categorical: logits must have the shape (rows, classes), got {scores.shape}")
    size = (scores.shape[0], python_int(num_samples, "categorical: num_samples"))
    return p.astype(stream.categorical(p.expand_dims(scores, 1), size), as_dtype(dtype))


def _constant(drawn: Any, dtype: Any, name: str) -> Tensor:
    return Tensor(p.astype(drawn, as_dtype(dtype)).value, mark_operation(f"random.{name}"))


def dropout_mask(shape: Sequence[int], rate: float, seed: Any) -> Any:
    """Return booleans, false with probability `rate`."""
    return _streams.of(seed).draw(lambda rng, lead: np.asarray(rng.random((*lead, *shape)) >= rate))


def __getattr__(name: str) -> NoReturn:
    """Say of a name that is not there what to type instead."""
    raise AttributeError(message("tf.random", name, __all__))


__all__ = [
    "Generator",
    "categorical",
    "gamma",
    "multinomial",
    "normal",
    "poisson",
    "random_gamma",
    "random_normal",
    "random_uniform",
    "set_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]
