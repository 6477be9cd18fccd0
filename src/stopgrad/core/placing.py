"""Placing: arrays added into zeros at slices, the adjoint of slicing; and sums of placings not yet written out.

A loop over `x[i]` gives x as many cotangents as it has entries, each zero but in one place. Written out and added one
by one they would cost n² in time; a `Placed` collects them, and the sweep writes the total out when it gets there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from stopgrad.core.arrays import Shape, Spec, result_dtype
from stopgrad.core.operation import EveryInput, general
from stopgrad.core.tensor import Tensor

IndexEntry = int | tuple[int | None, int | None, int | None] | None
BasicIndex = tuple[IndexEntry, ...]
"""A basic index in hashable form: integers, `None` for a new axis, (start, stop, step) for a slice."""


@lru_cache(maxsize=4096)
def index_of(basic: BasicIndex) -> tuple[int | slice | None, ...]:
    """Return the index as Python writes it."""
    return tuple(slice(*entry) if isinstance(entry, tuple) else entry for entry in basic)


def ascending(basic: BasicIndex, shape: Shape) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return an index without steps back, and the axes of what it selects that are to be flipped then.

    For libraries that have no negative steps; the index ends in an ellipsis, which some want.
    """
    index: list[Any] = []
    flipped: list[int] = []
    axis = place = 0
    for entry in index_of(basic):
        if isinstance(entry, slice):
            places = range(*entry.indices(shape[axis]))
            if places and places.step < 0:
                entry = slice(places[-1], places[0] + 1, -places.step)
                flipped.append(place)
            elif not places:
                entry = slice(0, 0)
        index.append(entry)
        axis += entry is not None
        place += not isinstance(entry, int)
    return (*index, ...), tuple(flipped)


def _place_numpy(*pieces_and_params: Any) -> Any:
    *pieces, indices, shape = pieces_and_params
    first = pieces[0]
    dtype = first.dtype
    for piece in pieces:
        if piece.dtype is not dtype:
            dtype = np.result_type(*pieces)
            break
    out = np.zeros(shape, dtype)
    out[index_of(indices[0])] = first
    for piece, index in zip(pieces[1:], indices[1:], strict=True):
        out[index_of(index)] += piece
    return out


def _place(xp: Any, *pieces_and_params: Any) -> Any:
    *pieces, indices, shape = pieces_and_params
    out = xp.zeros(shape, dtype=xp.result_type(*pieces), device=getattr(pieces[0], "device", None))
    for piece, basic in zip(pieces, indices, strict=True):
        # The standard has no new axes in an index that is assigned to: give the piece the shape it has without them.
        index, flipped = ascending(tuple(entry for entry in basic if entry is not None), shape)
        part = out[index]
        piece = xp.reshape(piece, part.shape)
        piece = xp.flip(piece, axis=flipped) if flipped else piece
        if hasattr(out, "at"):
            out = out.at[index].add(piece)
        else:
            out[index] = part + piece
    return out


def _piece(i: int, xp: Any, t: Any, inputs: Any, out: Any, indices: tuple[BasicIndex, ...], shape: Shape) -> Any:
    if xp is np or isinstance(t, Tensor):
        return t[(*index_of(indices[i]), ...)]
    index, flipped = ascending(indices[i], shape)
    return xp.flip(t[index], axis=flipped) if flipped else t[index]


def _placed(i: int, xp: Any, t: Any, inputs: Any, out: Any, indices: tuple[BasicIndex, ...], shape: Shape) -> Any:
    return Placed([t], [indices[i]], shape)


def _place_spec(*inputs_and_params: Any) -> Spec:
    *inputs, _indices, shape = inputs_and_params
    return Spec(shape, result_dtype(inputs))


PLACE = general(
    "place",
    _place,
    numpy_kernel=_place_numpy,
    vjps=EveryInput(_piece, 2, keep_inputs=False),
    jvps=EveryInput(_placed, 2, keep_inputs=False),
    spec=_place_spec,
    passes_masks=True,
)
"""place(*pieces, indices, shape): zeros of the shape, with each piece added at its basic index."""


class Placed:
    """A cotangent or tangent that is the sum of pieces at slices of zeros. Only the sweeps handle it.

    Rules return a fresh one; adding to it changes it. A sweep writes it out by the operation `place`.
    """

    __slots__ = ("indices", "pieces", "shape")

    def __init__(self, pieces: list[Any], indices: list[BasicIndex], shape: Shape) -> None:
        self.pieces = pieces
        self.indices = indices
        self.shape = shape

    @property
    def dtype(self) -> Any:
        """The dtype of the first piece; the sweep casts whatever differs from its primal before it adds."""
        return self.pieces[0].dtype

    def add(self, other: Any) -> Placed:
        """Add another one, or an array or tensor of the full shape."""
        if type(other) is Placed:
            self.pieces += other.pieces
            self.indices += other.indices
        else:
            self.pieces.append(other)
            self.indices.append(())
        return self
