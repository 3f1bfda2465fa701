"""The exception classes that PyTorch's public names promise."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device could not give the memory that was asked for (`torch.OutOfMemoryError`)."""


class LinAlgError(RuntimeError):
    """A matrix has no inverse or no such factorisation (`torch.linalg.LinAlgError`)."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as tracebacks show it
LinAlgError.__module__ = "torchlab._C"
