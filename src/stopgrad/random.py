"""Random numbers: NumPy's generators, with tensors for results and gradients for parameters where those exist.

The functions of this module draw from one default generator (`seed` sets it); make a `Generator` of your own for a
stream that nobody else advances. Argument names are those of `numpy.random.Generator`. Where a distribution is a smooth
function of its parameters and of noise (`normal`, `uniform`, `exponential`, `gumbel`, …), the derivative passes to the
parameters (the reparametrisation trick; Kingma and Welling, 2014, arXiv:1312.6114). Elsewhere (`bernoulli`,
`categorical`, `integers`, …) samples are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import broadcast_shapes
from stopgrad.core.errors import ArgumentError
from stopgrad.core.marks import mark_operation
from stopgrad.core.pytree import map_leaves
from stopgrad.core.record import coerce
from stopgrad.core.tensor import Tensor

Size = int | Sequence[int] | None


class Generator:
    """A stream of random numbers.

    Args:
        seed: anything `numpy.random.default_rng` takes; `None` draws one from the operating system.

    Example:
        >>> import stopgrad as sg
        >>> rng = sg.random.Generator(0)
        >>> rng.normal(size=3).shape
        (3,)
    """

    def __init__(self, seed: Any = None) -> None:
        self._rng = np.random.default_rng(seed)

    @property
    def numpy_generator(self) -> np.random.Generator:
        """The NumPy generator that is drawn from."""
        return self._rng

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return normal samples, loc + scale · ε; derivatives pass to `loc` and `scale`."""
        noise = self._rng.standard_normal(_size("normal", size, loc, scale), dtype=_noise_dtype(dtype))
        return _affine(loc, scale, noise, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return uniform samples in [low, high); derivatives pass to the bounds."""
        noise = self._rng.random(_size("uniform", size, low, high), dtype=_noise_dtype(dtype))
        plain = type(low) in (int, float) and type(high) in (int, float)  # numbers do not widen the dtype asked for
        return _affine(low, high - low if plain else primitives.subtract(high, low), noise, dtype)

    def exponential(self, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return exponential samples of the given mean; derivatives pass to it."""
        noise = self._rng.standard_exponential(_size("exponential", size, scale), dtype=_noise_dtype(dtype))
        return _affine(0.0, scale, noise, dtype)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return Gumbel samples; derivatives pass to `loc` and `scale`."""
        return _affine(loc, scale, self._rng.gumbel(size=_size("gumbel", size, loc, scale)), dtype)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return Laplace samples; derivatives pass to `loc` and `scale`."""
        return _affine(loc, scale, self._rng.laplace(size=_size("laplace", size, loc, scale)), dtype)

    def truncated_normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return normal samples of which those beyond two standard deviations were drawn again."""
        noise = np.array(self._rng.standard_normal(_size("truncated_normal", size, loc, scale)))
        while (outside := np.abs(noise) > 2).any():
            noise[outside] = self._rng.standard_normal(int(outside.sum()))
        return _affine(loc, scale, noise, dtype)

    def bernoulli(self, p: Any = 0.5, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return ones with probability p, else zeros; no derivative passes."""
        probability = _raw(p)
        drawn = self._rng.random(_size("bernoulli", size, p)) < probability
        return _constant(
            drawn.astype(dtype) if isinstance(drawn, np.ndarray) else np.asarray(drawn, dtype), "bernoulli"
        )

    def categorical(self, logits: Any, size: Size = None) -> Tensor:
        """Return indices drawn by the softmax of the logits' last axis (the Gumbel-max trick); no derivative passes.

        Args:
            logits: unnormalised log probabilities, shape (..., k).
            size: shape of the result, which the leading shape of `logits` must broadcast to; that shape by default.
        """
        values = np.asarray(_raw(logits))
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ArgumentError(f"categorical: logits must have a last axis of classes, got shape {values.shape}")
        shape = values.shape[:-1] if size is None else _as_shape(size)
        noise = self._rng.gumbel(size=(*shape, values.shape[-1]))
        return _constant(np.argmax(values + noise, axis=-1), "categorical")

    def integers(self, low: int, high: int | None = None, size: Size = None, dtype: Any = np.int64) -> Tensor:
        """Return integers in [low, high), or in [0, low) if `high` is not given."""
        return Tensor(np.asarray(self._rng.integers(low, high, size=size, dtype=dtype)))

    def permutation(self, x: Any) -> Tensor:
        """Return a shuffled range (for an integer), or the rows of x in random order; derivatives pass to the rows."""
        if isinstance(x, int | np.integer):
            return Tensor(self._rng.permutation(x))
        tensor = x if isinstance(x, Tensor) else Tensor(*coerce(x, "permutation"))
        return primitives.take(tensor, self._rng.permutation(tensor.shape[0]), axis=0)

    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None) -> Tensor:
        """Return entries of `a` (or of its range, for an integer) drawn at random; derivatives pass to the entries."""
        count = int(a) if isinstance(a, int | np.integer) else len(a)
        weights = None if p is None else np.asarray(_raw(p), float)
        drawn = np.asarray(self._rng.choice(count, size=size, replace=replace, p=weights))
        return Tensor(drawn) if isinstance(a, int | np.integer) else primitives.take(a, drawn, axis=0)


def seed(value: Any) -> None:
    """Start the default generator anew.

    Example:
        >>> import stopgrad as sg
        >>> sg.random.seed(0)
        >>> a = sg.random.uniform(size=2)
        >>> sg.random.seed(0)
        >>> bool((a == sg.random.uniform(size=2)).all())
        True
    """
    _default._rng = np.random.default_rng(value)


_default = Generator()
normal = _default.normal
uniform = _default.uniform
exponential = _default.exponential
gumbel = _default.gumbel
laplace = _default.laplace
truncated_normal = _default.truncated_normal
bernoulli = _default.bernoulli
categorical = _default.categorical
integers = _default.integers
permutation = _default.permutation
choice = _default.choice


def dropout(x: Any, rate: float, generator: Generator | None = None) -> Any:
    """Return x with entries set to zero with probability `rate` and the others divided by 1 - rate.

    Srivastava et al., 2014. Takes a pytree; each leaf gets a mask of its own.

    Raises:
        ArgumentError: a rate outside [0, 1).

    Example:
        >>> import stopgrad as sg
        >>> sg.random.dropout(sg.ones(4), 0.0).numpy()
        array([1., 1., 1., 1.])
    """
    if not 0 <= rate < 1:
        raise ArgumentError(f"dropout: rate must be in [0, 1), got {rate}")
    rng = (_default if generator is None else generator).numpy_generator

    def drop(one: Any) -> Tensor:
        kept = rng.random(one.shape) >= rate
        return primitives.multiply(one, (kept / (1 - rate)).astype(one.dtype))

    return x if rate == 0 else map_leaves(drop, x)


def _raw(parameter: Any) -> Any:
    return coerce(parameter, "random")[0]


def _as_shape(size: int | Sequence[int]) -> tuple[int, ...]:
    return (int(size),) if isinstance(size, int | np.integer) else tuple(int(one) for one in size)


def _size(name: str, size: Size, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of the result: as given, or that of the parameters broadcast together."""
    shape = broadcast_shapes(name, *(np.shape(_raw(parameter)) for parameter in parameters))
    if size is None:
        return shape
    wanted = _as_shape(size)
    broadcast_shapes(name, wanted, shape)
    return wanted


def _noise_dtype(dtype: Any) -> Any:
    return np.float32 if np.dtype(dtype) == np.float32 else np.float64


def _affine(loc: Any, scale: Any, noise: Any, dtype: Any) -> Tensor:
    plain = type(loc) is float and type(scale) is float and loc == 0.0 and scale == 1.0
    drawn = Tensor(np.asarray(noise).astype(dtype, copy=False))
    return drawn if plain else primitives.add(loc, primitives.multiply(scale, drawn))


def _constant(value: Any, name: str) -> Tensor:
    return Tensor(value, mark_operation(f"random.{name}"))
