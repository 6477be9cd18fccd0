"""Points at which elementwise operations are tried: smooth samples, and edges where things go wrong."""

from __future__ import annotations

import numpy as np

Arrays = tuple[np.ndarray, ...]

ANY = np.array([[-1.7, -0.6, 0.3], [0.8, 1.4, 2.2]])
POSITIVE = np.array([[0.2, 0.7, 1.3], [1.9, 2.6, 4.1]])
INSIDE_ONE = np.array([[-0.9, -0.5, -0.1], [0.2, 0.6, 0.8]])
ABOVE_ONE = 1 + POSITIVE

ZEROS = np.array([0.0, -0.0, 1.0, -1.0])
NOT_FINITE = np.array([np.inf, -np.inf, np.nan, 2.0])
EMPTY = np.zeros((0, 3))
SCALAR = np.array(0.7)


def unary(*points: np.ndarray) -> list[Arrays]:
    """Return samples of one argument: the points, an entry of them without axes, and a column of them."""
    return [*((one,) for one in points), (points[0].ravel()[2],), (points[0][:, :1],)]


def unary_edges(*more: np.ndarray) -> list[Arrays]:
    """Return zeros of both signs, what is not finite, an empty array, a number without axes, and the points given."""
    return [(one,) for one in (ZEROS, NOT_FINITE, EMPTY, SCALAR, *more)]


def binary(a: np.ndarray, b: np.ndarray) -> list[Arrays]:
    """Return samples of two arguments of shape (2, 3): as they are, broadcast against each other, and without axes."""
    return [(a, b), (a, b[0]), (a[:, :1], b), (a[0, 0], b), (a, b[1, 2]), (a[:, None, :], b)]


def binary_edges(*more: Arrays) -> list[Arrays]:
    """Return ties, zeros, what is not finite, empties, numbers without axes, and the points given."""
    ties = (np.array([1.0, 0.0, -2.0, 3.0]), np.array([1.0, 0.0, -2.0, -3.0]))
    not_finite = (np.array([np.inf, -np.inf, np.nan, 1.0]), np.array([1.0, 2.0, 3.0, np.nan]))
    return [ties, not_finite, (EMPTY, EMPTY), (EMPTY, np.ones(3)), (SCALAR, SCALAR), *more]
