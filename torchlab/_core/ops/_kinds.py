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


def need_fitting(x: Any, *parameters: Any) -> None:
    """Refuse parameters of a normalization that are of another type than its input, as PyTorch does
    on the CPU. Inputs of 16 bits may have float32 ones."""
    kind = x._k
    for p in parameters:
        if p is None or p._k is kind or p._k.dtype is kind.dtype:
            continue
        own = kind.dtype
        if p._k.dtype is not dt.float32:
            raise RuntimeError(
                "mixed dtype (CPU): expect parameter to have scalar type of Float, not"
                f" {p._k.dtype.scalar_name}, where the input is of {own.scalar_name}"
            )
        if own.itemsize > 2:
            raise RuntimeError(
                f"mixed dtype (CPU): all inputs must share same datatype, not {own.scalar_name} and"
                " Float"
            )


__all__ = ["FLOATS", "NUMBERS", "ORDERED", "REAL", "need", "need_fitting"]
