"""Which kernels PyTorch has for which types. It refuses the others, and so does torchlab: a mean of
integers in their own type would be a wrong number and no error."""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt

# Kinds of NumPy's types; V are the small floating-point types of ml_dtypes.
FLOATS, NUMBERS, ORDERED, REAL = "fV", "fcV", "fViu", "fViub"


def need(kinds: str, kernel: str, a: Any) -> None:
    """NotImplementedError, with the kernel's name in PyTorch, unless the array's type is of one of
    the kinds."""
    if a.dtype.kind not in kinds:
        name = dt.from_numpy(a.dtype).scalar_name
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


__all__ = ["FLOATS", "NUMBERS", "ORDERED", "REAL", "need"]
