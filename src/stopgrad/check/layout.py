"""`Layout`: how the floating-point leaves of several pytrees lie one after another in one vector of real numbers.

Differences are taken and compared on such vectors. A complex entry takes two places. The places of a *dual* vector
(cotangents) are signed so that the plain product of a dual vector and a vector is the pairing Re Σ u·t that the
convention for complex derivatives means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stopgrad.core.arrays import is_complex, is_numpy, namespace_of, spec_of
from stopgrad.core.errors import GradientCheckError
from stopgrad.core.tensor import Tensor

Vector = np.ndarray


class Layout:
    """The leaves of a point (raw arrays, with a name for each) as one vector, there and back."""

    def __init__(self, names: Sequence[str], leaves: Sequence[Any]) -> None:
        self.names = tuple(names)
        self.leaves = tuple(leaves)
        self.specs = tuple(spec_of(leaf) for leaf in leaves)
        self.places = [self._places(i) for i in range(len(self.leaves))]
        self._ends = np.cumsum(self.places, dtype=int)
        self.size = int(self._ends[-1]) if self.leaves else 0
        self.epsilon = max((_epsilon(spec.dtype) for spec in self.specs), default=np.finfo(float).eps)

    def _places(self, number: int) -> int:
        spec = self.specs[number]
        entries = int(np.prod(spec.shape, dtype=int))
        return 2 * entries if is_complex(spec.dtype) else entries

    def vector(self, leaves: Sequence[Any], *, dual: bool = False, what: str = "the result") -> Vector:
        """Return raw arrays or tensors of this layout as one vector, or raise if one is of another shape or dtype."""
        pieces = []
        for name, spec, leaf in zip(self.names, self.specs, leaves, strict=True):
            if tuple(leaf.shape) != spec.shape or leaf.dtype != spec.dtype:
                raise GradientCheckError(
                    f"check_gradients: {what} for {name} is {spec_of(leaf)}, where {spec} belongs there"
                )
            array = (leaf if isinstance(leaf, Tensor) else Tensor(leaf)).numpy()
            if is_complex(spec.dtype):
                pieces.append(np.stack([array.real, -array.imag if dual else array.imag], axis=-1).ravel())
            else:
                pieces.append(array.ravel())
        return np.concatenate([piece.astype(np.float64) for piece in pieces]) if pieces else np.zeros(0)

    def arrays(self, vector: Vector, *, dual: bool = False) -> list[Any]:
        """Return a vector as raw arrays of this layout, in the leaves' own dtypes and array libraries."""
        arrays = []
        for spec, leaf, end, places in zip(self.specs, self.leaves, self._ends, self.places, strict=True):
            piece = vector[end - places : end]
            if is_complex(spec.dtype):
                piece = piece[0::2] + 1j * (-piece[1::2] if dual else piece[1::2])
            if is_numpy(leaf):
                arrays.append(piece.reshape(spec.shape).astype(spec.dtype))
            else:
                xp = namespace_of(leaf)
                arrays.append(xp.asarray(piece.reshape(spec.shape), dtype=spec.dtype))
        return arrays

    def entry(self, place: int) -> str:
        """Return how to call the entry at this place of the vector: `argument 0['w'][2, 3]`."""
        number = int(np.searchsorted(self._ends, place, side="right"))
        spec = self.specs[number]
        offset = place - int(self._ends[number] - self.places[number])
        part = ""
        if is_complex(spec.dtype):
            part = " (imaginary part)" if offset % 2 else " (real part)"
            offset //= 2
        position = ", ".join(str(int(i)) for i in np.unravel_index(offset, spec.shape)) if spec.shape else ""
        return self.names[number] + (f"[{position}]" if position else "") + part


def _epsilon(dtype: Any) -> float:
    """Return the relative spacing of numbers of a real or complex dtype of any library."""
    name = str(dtype).rpartition(".")[2]
    known = {"bfloat16": 2.0**-7, "complex64": 2.0**-23, "complex128": 2.0**-52}
    if name in known:
        return known[name]
    return max(float(np.finfo(name).eps), float(np.finfo(np.float64).eps))
