"""Linear algebra, under the names of `numpy.linalg`; batches of matrices everywhere, as there."""

from stopgrad.primitives.linalg import *  # noqa: F403 - the list is that module's
from stopgrad.primitives.linalg import __all__ as __all__
