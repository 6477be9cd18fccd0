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


@functools.cache
def protobuf() -> ModuleType:
    """Return `google.protobuf`, with the modules that declare, read and print messages.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import google.protobuf
        import google.protobuf.descriptor_pb2
        import google.protobuf.descriptor_pool
        import google.protobuf.message
        import google.protobuf.message_factory
        import google.protobuf.text_format
    except ImportError as error:
        raise ImportError("reading and writing GraphDefs needs protobuf; pip install stopgrad[interchange]") from error
    return google.protobuf


@functools.cache
def onnx() -> ModuleType:
    """Return `onnx`, with its helpers.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("reading and writing ONNX models needs onnx; pip install stopgrad[interchange]") from error
    return onnx
