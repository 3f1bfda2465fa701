"""Statistics of a tensor's values: what a recording keeps instead of the tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab.viz.recorders.common import array_of, dtype_name
from torchlab.viz.snapshots.backward import Stats


def stats(tensor: Any, name: str = "") -> Stats:
    """Range and counts of a tensor's values; counts stay 0 where there are no numbers to read."""
    shape = [int(n) for n in tensor.shape]
    found: Stats = {
        "name": name,
        "shape": shape,
        "dtype": dtype_name(tensor.dtype),
        "low": None,
        "high": None,
        "nan": 0,
        "inf": 0,
        "zero": 0,
        "negative": 0,
        "count": math.prod(shape),
    }
    array = array_of(tensor) if found["count"] else None
    if array is None or not array.size:
        return found
    if tensor._k.dtype.is_complex:
        array = abs(array)
    elif array.dtype.kind not in "fiub":  # bfloat16 and the float8 types
        array = array.astype("float32")
    if array.dtype.kind == "f":
        low, high = float(array.min()), float(array.max())  # a NaN shows in both
        if not (math.isfinite(low) and math.isfinite(high)):
            good = np.isfinite(array)
            found["nan"] = int(np.isnan(array).sum())
            found["inf"] = found["count"] - int(good.sum()) - found["nan"]
            array = array[good]
            if not array.size:
                return found
            low, high = float(array.min()), float(array.max())
    else:
        low, high = float(array.min()), float(array.max())
    found["low"], found["high"] = low, high
    if low <= 0 <= high:
        found["zero"] = int((array == 0).sum())
    if low < 0:
        found["negative"] = int((array < 0).sum())
    return found


def bad(found: Stats) -> bool:
    """Whether there is a NaN or an infinity among the values."""
    return bool(found["nan"] or found["inf"])


def _count(fed: Sequence[Stats], key: str) -> int:
    return sum(s[key] for s in fed if isinstance(s.get(key), int))  # type: ignore[literal-required]


def _high(fed: Sequence[Stats]) -> float:
    return max((abs(v) for s in fed for v in (s["low"], s["high"]) if v is not None), default=0.0)


def _some(n: int, what: str) -> str:
    return f"{n:,} {what} value{'s' if n != 1 else ''}"


def forward_reason(op: str, fed: Sequence[Stats]) -> str:
    """Why an operation with these operands made a NaN or an infinity, where that can be told."""
    negative, zero = _count(fed, "negative"), _count(fed, "zero")
    first = fed[:1]
    if op in ("log", "log2", "log10") and (_count(first, "negative") or _count(first, "zero")):
        parts = [
            _some(n, kind)
            for n, kind in (
                (_count(first, "negative"), "negative"),
                (_count(first, "zero"), "zero"),
            )
            if n
        ]
        return f"the logarithm of {' and '.join(parts)}"
    if op in ("sqrt", "rsqrt") and negative:
        return f"the square root of {_some(negative, 'negative')}"
    if op == "rsqrt" and zero:
        return f"one over the square root of {_some(zero, 'zero')}"
    if op in ("div", "reciprocal", "true_divide", "remainder", "fmod"):
        below = fed[-1:]
        if _count(below, "zero"):
            return f"a division by {_some(_count(below, 'zero'), 'zero')}"
        return "a quotient too large for the type"
    if op in ("exp", "exp2", "expm1", "cosh", "sinh"):
        return f"the exponential of {_high(fed):.4g} is too large for {fed[0]['dtype']}"
    if op == "pow" and fed:
        if _count(first, "negative"):
            return f"a power of {_some(_count(first, 'negative'), 'negative')}"
        if _count(first, "zero"):
            return f"a power of {_some(_count(first, 'zero'), 'zero')}"
    if op in ("acos", "asin", "atanh", "acosh"):
        return f"outside the domain of {op}: values up to {_high(fed):.4g}"
    if any(s["inf"] for s in fed):
        return "an infinity met another, or a zero"
    if fed and _high(fed) > 1e3:
        return f"values up to {_high(fed):.4g} overflow {fed[0]['dtype']}"
    return ""


STEEP_AT_ZERO = {"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal", "pow", "abs", "div"}


def backward_reason(op: str, fed: Sequence[Stats]) -> str:
    """Why a gradient rule made a NaN or an infinity from good values, where that can be told."""
    zero = _count(fed, "zero")
    if op in STEEP_AT_ZERO and zero:
        return f"the derivative of {op} is infinite at 0, and it was fed {_some(zero, 'zero')}"
    if "norm" in op and zero:
        return f"the derivative of a norm at 0 is not defined; it was fed {_some(zero, 'zero')}"
    if op in ("asin", "acos", "atanh", "acosh"):
        return f"the derivative of {op} is infinite at ±1"
    if any(bad(s) for s in fed):
        return "the forward fed it values that are not finite"
    return ""
