"""Every exception and warning of the library, in one place.

Each text says what happened, where, and what to do; `StopgradError` is the common base. Classes that stand for a
mistake Python has a name for inherit from that name too, so `except ValueError` keeps working.
"""

import numpy as np


class StopgradError(Exception):
    """Base class of every error raised by this library."""


class ShapeError(StopgradError, ValueError):
    """Shapes, axes or indices that do not fit together."""


class BoundsError(ShapeError, IndexError):
    """An index that lies outside the axis it indexes."""


class LinearAlgebraError(StopgradError, np.linalg.LinAlgError):
    """A matrix that does not have what was asked for: singular, not positive definite, or no convergence."""


class DTypeError(StopgradError, TypeError):
    """A dtype that cannot be used where it was given, such as an integer asked for a derivative."""


class ArgumentError(StopgradError, ValueError):
    """An argument whose value makes no sense to the function it was given to."""


class ArgumentTypeError(StopgradError, TypeError):
    """An argument of a type the function cannot take."""


class UnconnectedError(StopgradError, ValueError):
    """A gradient was asked for, with `unconnected="error"`, where no ungated path exists."""


class TracedValueError(StopgradError, TypeError):
    """Something asked for a value that is not known while the program is traced."""


class NonDifferentiableError(StopgradError, TypeError):
    """A sweep met an operation that has no derivative in the direction it was asked for."""


class GradientPreventedError(StopgradError, RuntimeError):
    """A sweep reached a `prevent_gradient` gate."""


class DisposedError(StopgradError, RuntimeError):
    """A tensor was used after it had been disposed."""


class ReadOnlyError(StopgradError, TypeError):
    """Something tried to write into a tensor."""


class TapeError(StopgradError, RuntimeError):
    """A gradient tape was used out of order."""


class GradientCheckError(StopgradError, AssertionError):
    """A derivative does not agree with its numerical estimate."""


class CheckpointError(StopgradError, ValueError):
    """A checkpoint that is damaged, or does not hold what it is to be loaded into."""


class InterchangeError(StopgradError, ValueError):
    """A GraphDef or ONNX model that is damaged or holds what cannot be read; or a program that cannot be exported."""


class GraphFileError(StopgradError, ValueError):
    """A graph file that is damaged, of another version, or holds what no graph may hold."""


class UnconnectedWarning(UserWarning):
    """No variable is connected to the loss, so a training step changes nothing."""
