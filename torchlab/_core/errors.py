"""The exception classes that PyTorch's public names promise."""

from __future__ import annotations

import math
from typing import Any


class OutOfMemoryError(RuntimeError):
    """A device could not give the memory that was asked for (`torch.OutOfMemoryError`)."""


class LinAlgError(RuntimeError):
    """A matrix has no inverse or no such factorisation (`torch.linalg.LinAlgError`)."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as tracebacks show it
LinAlgError.__module__ = "torchlab._C"


_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded")  # begin NumPy's ValueErrors


def no_host_memory(error: BaseException, sizes: Any = None) -> RuntimeError | None:
    """PyTorch's error for an array that NumPy could not make: there is no such memory, or its size
    in bytes is no 64-bit number. None if `error` says something else.

    sizes: of the tensor that was asked for, where the caller knows them."""
    made: Any = error
    if isinstance(error, MemoryError) and hasattr(error, "shape"):
        nbytes = math.prod(made.shape) * made.dtype.itemsize
        return RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes."
            " Error code 12 (Cannot allocate memory)"
        )
    if isinstance(error, ValueError) and str(error).startswith(_TOO_BIG):
        shown = "" if sizes is None else f" with sizes={list(sizes)}"
        return RuntimeError(f"Storage size calculation overflowed{shown}")
    return None
