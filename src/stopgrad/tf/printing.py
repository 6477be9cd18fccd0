"""Printing tensors: `tf.print`, and what TensorFlow.js's `x.print()` prints."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stopgrad.core.pytree import map_leaves
from stopgrad.tf.values import as_tensor


def print(
    *inputs: Any,
    output_stream: Any = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> None:
    """Print tensors, values and structures of them, to the standard error stream unless another is given.

    Args:
        *inputs: what to print.
        output_stream: a stream such as `sys.stdout`.
        summarize: how many entries at the beginning and end of every axis to print, -1 for all.
        sep: what goes between them.
        end: what goes after them.
        name: not used.

    Example:
        >>> import sys
        >>> import stopgrad.tf as tf
        >>> tf.print("x =", tf.constant([1.5, 2.0]), output_stream=sys.stdout)
        x = [1.5 2]
    """
    stream = sys.stderr if output_stream is None else output_stream
    stream.write(sep.join(str(map_leaves(lambda leaf: _shown(leaf, summarize), one)) for one in inputs) + end)


def print_tensor(x: Any, verbose: bool = False) -> None:
    """Print a tensor's values as TensorFlow.js does; `verbose` adds dtype, rank and shape.

    Example:
        >>> import stopgrad.tf as tf
        >>> tf.tensor2d([[1, 2], [3, 4.5]]).print()
        Tensor
            [[1, 2],
             [3, 4.5]]
    """
    tensor = as_tensor(x, "print")
    lines = ["Tensor"]
    if verbose:
        shown = ",".join(map(str, tensor.shape))
        lines += [f"  dtype: {tensor.dtype}", f"  rank: {tensor.ndim}", f"  shape: [{shown}]", "  values:"]
    text = np.array2string(tensor.numpy(), separator=", ", formatter=_FORMATTER)
    lines += ["    " + line for line in text.split("\n")]
    sys.stdout.write("\n".join(lines) + "\n")


class _Shown:
    """A text that stands for itself also within a printed list or dict."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _shown(leaf: Any, summarize: int) -> Any:
    """Return what stands for a leaf in a printed structure."""
    if not hasattr(leaf, "__array__"):
        return leaf
    host = np.asarray(leaf)
    edge = max(host.size if summarize < 0 else summarize, 1)
    return _Shown(np.array2string(host, formatter=_FORMATTER, edgeitems=edge, threshold=2 * edge))


def _number(value: Any) -> str:
    return f"{value:.7g}"


_FORMATTER: Any = {"float_kind": _number, "int_kind": str}
