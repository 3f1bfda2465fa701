"""The element types of generated code: names, categories, promotion, what computes what.

Types are plain strings ("float32"), so that this package knows neither tensors nor
`torchlab.dtype`. Promotion is PyTorch's:
https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy

ml_dtypes = lazy("ml_dtypes")

BOOL, INTEGRAL, FLOATING, COMPLEX = range(4)

CATEGORY = {
    "bool": BOOL,
    **dict.fromkeys(
        ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), INTEGRAL
    ),
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), FLOATING),
    **dict.fromkeys(("complex64", "complex128"), COMPLEX),
}
ITEMSIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "uint64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8,
    "complex128": 16,
}  # fmt: skip
HALF = ("float16", "bfloat16")


def is_float(dtype: str) -> bool:
    """True for the real floating types."""
    return CATEGORY[dtype] == FLOATING


def is_integer(dtype: str) -> bool:
    """True for integers, bool not among them."""
    return CATEGORY[dtype] == INTEGRAL


@cache
def promote(a: str, b: str) -> str:
    """The type of `a op b` for two dimensioned operands.

    >>> promote("float16", "bfloat16"), promote("int64", "float16"), promote("uint8", "int8")
    ('float32', 'float16', 'int16')
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=lambda t: (CATEGORY[t], ITEMSIZE[t]))
    if CATEGORY[low] != CATEGORY[high]:
        if CATEGORY[high] == COMPLEX and low == "float64":
            return "complex128"
        return high
    if CATEGORY[high] != INTEGRAL:
        return "float32" if ITEMSIZE[low] == ITEMSIZE[high] else high
    low_signed, high_signed = not low.startswith("u"), not high.startswith("u")
    if low_signed == high_signed or (high_signed and ITEMSIZE[high] > ITEMSIZE[low]):
        return high
    wider = {1: "int16", 2: "int32", 4: "int64"}.get(ITEMSIZE[high])
    if wider is None:
        raise TypeError(f"Promotion for {a} and {b} is not supported: no integer type holds both")
    return wider


def weak_type(value: bool | int | float, partner: str | None) -> str:
    """The type a Python number takes beside an operand of type `partner` (None: beside none)."""
    if isinstance(value, bool):
        return partner or "bool"
    if isinstance(value, int):
        return "int64" if partner is None or partner == "bool" else partner
    if partner is None or CATEGORY[partner] < FLOATING:
        return "float32"
    return partner


def compute_type(dtype: str) -> str:
    """The type arithmetic on `dtype` is done in: float32 for the 16-bit floats."""
    return "float32" if dtype in HALF else dtype


def sum_type(dtype: str) -> str:
    """The result type of sum and prod: integers and bool give int64."""
    return "int64" if CATEGORY[dtype] < FLOATING else dtype


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype object of a type name; bfloat16 comes from `ml_dtypes`."""
    if dtype == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)
