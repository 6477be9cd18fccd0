"""Random numbers: NumPy's generators, with tensors for results and gradients for parameters where those exist.

The functions of this module draw from one default generator (`seed` sets it); make a `Generator` of your own for a
stream that nobody else advances. Argument names are those of `numpy.random.Generator`. Where a distribution is a smooth
function of its parameters and of noise (`normal`, `uniform`, `exponential`, `gumbel`, …), the derivative passes to the
parameters (the reparametrisation trick; Kingma and Welling, 2014, arXiv:1312.6114). Elsewhere (`bernoulli`,
`categorical`, `integers`, …) samples are constants. Under `vmap` every example gets numbers of its own, except from a
generator that is made or seeded inside the mapped function: that starts anew for each example, as it would in a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stopgrad.primitives as primitives
from stopgrad.core.arrays import PYTHON_SCALARS, Shape, broadcast_shapes, spec_of
from stopgrad.core.errors import ArgumentError
from stopgrad.core.graph import draw
from stopgrad.core.marks import mark_operation
from stopgrad.core.pytree import map_leaves
from stopgrad.core.record import coerce
from stopgrad.core.state import state
from stopgrad.core.tensor import Tensor
from stopgrad.primitives.inputs import to_tensor

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
        self._start(seed)

    def _start(self, seed: Any) -> None:
        self._rng = np.random.default_rng(seed)
        self._graph = state.graph

    @property
    def numpy_generator(self) -> np.random.Generator:
        """The NumPy generator that is drawn from."""
        return self._rng

    def draw(self, sample: Callable[[np.random.Generator, Shape], Any]) -> Any:
        """Return an array of numbers drawn by a function of NumPy's generator; for one example of many, a tensor.

        Args:
            sample: takes the generator and a shape, and draws an array with that shape in front of its own. Under
                `vmap` it is asked for the numbers of all examples at once.
        """
        return draw(lambda lead: sample(self._rng, lead), self._graph)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return normal samples, loc + scale · ε; derivatives pass to `loc` and `scale`."""
        shape, kind = _size("normal", size, loc, scale), _noise_dtype(dtype)
        noise = self.draw(lambda rng, lead: rng.standard_normal((*lead, *shape), dtype=kind))
        return _affine(loc, scale, noise, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return uniform samples in [low, high); derivatives pass to the bounds."""
        shape, kind = _size("uniform", size, low, high), _noise_dtype(dtype)
        noise = self.draw(lambda rng, lead: rng.random((*lead, *shape), dtype=kind))
        plain = type(low) in (int, float) and type(high) in (int, float)  # numbers do not widen the dtype asked for
        return _affine(low, high - low if plain else primitives.subtract(high, low), noise, dtype)

    def exponential(self, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return exponential samples of the given mean; derivatives pass to it."""
        shape, kind = _size("exponential", size, scale), _noise_dtype(dtype)
        noise = self.draw(lambda rng, lead: rng.standard_exponential((*lead, *shape), dtype=kind))
        return _affine(0.0, scale, noise, dtype)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return Gumbel samples; derivatives pass to `loc` and `scale`."""
        shape = _size("gumbel", size, loc, scale)
        return _affine(loc, scale, self.draw(lambda rng, lead: rng.gumbel(size=(*lead, *shape))), dtype)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return Laplace samples; derivatives pass to `loc` and `scale`."""
        shape = _size("laplace", size, loc, scale)
        return _affine(loc, scale, self.draw(lambda rng, lead: rng.laplace(size=(*lead, *shape))), dtype)

    def truncated_normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return normal samples of which those beyond two standard deviations were drawn again."""
        shape = _size("truncated_normal", size, loc, scale)

        def sample(rng: np.random.Generator, lead: Shape) -> np.ndarray:
            noise = np.array(rng.standard_normal((*lead, *shape)))
            while (outside := np.abs(noise) > 2).any():
                noise[outside] = rng.standard_normal(int(outside.sum()))
            return noise

        return _affine(loc, scale, self.draw(sample), dtype)

    def bernoulli(self, p: Any = 0.5, size: Size = None, dtype: Any = np.float64) -> Tensor:
        """Return ones with probability p, else zeros; no derivative passes."""
        shape = _size("bernoulli", size, p)
        noise = self.draw(lambda rng, lead: np.asarray(rng.random((*lead, *shape))))
        return _constant(primitives.astype(primitives.less(noise, _unrecorded(p)), np.dtype(dtype)), "bernoulli")

    def categorical(self, logits: Any, size: Size = None) -> Tensor:
        """Return indices drawn by the softmax of the logits' last axis (the Gumbel-max trick); no derivative passes.

        Args:
            logits: unnormalised log probabilities, shape (..., k).
            size: shape of the result, which the leading shape of `logits` must broadcast to; that shape by default.
        """
        values = _unrecorded(logits)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ArgumentError(f"categorical: logits must have a last axis of classes, got shape {values.shape}")
        shape = values.shape[:-1] if size is None else _as_shape(size)
        noise = self.draw(lambda rng, lead: rng.gumbel(size=(*lead, *shape, values.shape[-1])))
        return _constant(primitives.argmax(primitives.add(values, noise), axis=-1), "categorical")

    def integers(self, low: int, high: int | None = None, size: Size = None, dtype: Any = np.int64) -> Tensor:
        """Return integers in [low, high), or in [0, low) if `high` is not given."""
        shape = _size("integers", size, low, 0 if high is None else high)
        drawn = self.draw(lambda rng, lead: np.asarray(rng.integers(low, high, (*lead, *shape), dtype)))
        return to_tensor(drawn, "integers")

    def permutation(self, x: Any) -> Tensor:
        """Return a shuffled range (for an integer), or the rows of x in random order; derivatives pass to the rows."""
        if isinstance(x, int | np.integer):
            return to_tensor(self._order(int(x)), "permutation")
        tensor = to_tensor(x, "permutation")
        return primitives.take(tensor, self._order(tensor.shape[0]), axis=0)

    def _order(self, count: int) -> Any:
        def sample(rng: np.random.Generator, lead: Shape) -> np.ndarray:
            orders = [rng.permutation(count) for _ in range(math.prod(lead))]
            return np.asarray(orders, np.intp).reshape((*lead, count))

        return self.draw(sample)

    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None) -> Tensor:
        """Return entries of `a` (or of its range, for an integer) drawn at random; derivatives pass to the entries."""
        count = int(a) if isinstance(a, int | np.integer) else len(a)
        weights = None if p is None else np.asarray(_raw(p), float)
        shape = () if size is None else _as_shape(size)

        def sample(rng: np.random.Generator, lead: Shape) -> np.ndarray:
            rows = [rng.choice(count, shape, replace, weights) for _ in range(math.prod(lead))]
            return np.asarray(rows, np.intp).reshape((*lead, *shape))

        drawn = self.draw(sample)
        return to_tensor(drawn, "choice") if isinstance(a, int | np.integer) else primitives.take(a, drawn, axis=0)


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
    _default._start(value)


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
    stream = _default if generator is None else generator

    def drop(one: Any) -> Tensor:
        kept = stream.draw(lambda rng, lead: ((rng.random((*lead, *one.shape)) >= rate) / (1 - rate)).astype(one.dtype))
        return primitives.multiply(one, kept)

    return x if rate == 0 else map_leaves(drop, x)


def _raw(parameter: Any) -> Any:
    return coerce(parameter, "random")[0]


def _as_shape(size: int | Sequence[int]) -> tuple[int, ...]:
    return (int(size),) if isinstance(size, int | np.integer) else tuple(int(one) for one in size)


def _size(name: str, size: Size, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of the result: as given, or that of the parameters broadcast together."""
    shape = broadcast_shapes(name, *(spec_of(_raw(parameter)).shape for parameter in parameters))
    if size is None:
        return shape
    wanted = _as_shape(size)
    broadcast_shapes(name, wanted, shape)
    return wanted


def _noise_dtype(dtype: Any) -> Any:
    return np.float32 if np.dtype(dtype) == np.float32 else np.float64


def _affine(loc: Any, scale: Any, noise: Any, dtype: Any) -> Tensor:
    plain = type(loc) is float and type(scale) is float and loc == 0.0 and scale == 1.0
    drawn = primitives.astype(noise, np.dtype(dtype))
    return drawn if plain else primitives.add(loc, primitives.multiply(scale, drawn))


def _unrecorded(parameter: Any) -> Tensor:
    """Return a parameter that samples have no derivative by."""
    return Tensor(np.asarray(_raw(parameter)) if type(_raw(parameter)) in PYTHON_SCALARS else _raw(parameter))


def _constant(drawn: Tensor, name: str) -> Tensor:
    return Tensor(drawn.value, mark_operation(f"random.{name}"))
