"""The heavy libraries, each imported in this one place and only when something first needs it.

`import stopgrad` must stay quick, and SciPy alone takes longer to import than all of ours.
"""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def scipy_special() -> ModuleType:
    """Return `scipy.special`."""
    import scipy.special

    return scipy.special


@functools.cache
def scipy_linalg() -> ModuleType:
    """Return `scipy.linalg`."""
    import scipy.linalg

    return scipy.linalg


@functools.cache
def opt_einsum() -> ModuleType:
    """Return `opt_einsum`."""
    import opt_einsum

    return opt_einsum


@functools.cache
def ml_dtypes() -> ModuleType:
    """Return `ml_dtypes`; importing it is what makes NumPy know names such as "bfloat16"."""
    import ml_dtypes

    return ml_dtypes


@functools.cache
def safetensors() -> ModuleType:
    """Return `safetensors`, with its functions for NumPy's arrays."""
    import safetensors.numpy

    return safetensors
