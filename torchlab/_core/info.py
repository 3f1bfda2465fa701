"""`torch.finfo` and `torch.iinfo`: the limits of the element types.

Source: https://docs.pytorch.org/docs/2.13/type_info.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dtype import ml_dtypes


class _Info:
    """What both have: the type, and equality by it."""

    __slots__ = ("_dtype",)
    __hash__ = None  # type: ignore[assignment]  # as PyTorch's, which are not hashable either

    _dtype: dt.dtype

    def __init_subclass__(cls) -> None:
        cls.__module__ = "torchlab"

    @property
    def dtype(self) -> str:
        """The type's name, such as "float32"."""
        return self._dtype.name

    @property
    def bits(self) -> int:
        """The width of an element."""
        return 8 * self._dtype.itemsize

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._dtype is self._dtype  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' is read-only")


class finfo(_Info):
    """The limits of a floating type (of a complex type's parts): `finfo(torch.float32).eps`.
    Without an argument, of the default dtype."""

    __slots__ = ("_limits",)
    _limits: Any

    def __init__(self, type: dt.dtype | None = None) -> None:
        chosen = dt.get_default_dtype() if type is None else dt.of_type(type) or type
        if not isinstance(chosen, dt.dtype):
            raise TypeError(
                "finfo(): argument 'type' (position 1) must be torch.dtype, not"
                f" {chosen.__class__.__name__}"
            )
        if chosen.category < dt.FLOAT:
            raise TypeError(
                f"torch.finfo() requires a floating point input type, not {chosen}; use torch.iinfo"
            )
        object.__setattr__(self, "_dtype", chosen.to_real())
        numpy_type = self._dtype.np
        limits = np.finfo if self._dtype in dt.NATIVE else ml_dtypes.finfo
        object.__setattr__(self, "_limits", limits(numpy_type))

    @property
    def eps(self) -> float:
        """The distance from 1.0 to the next larger number."""
        return float(self._limits.eps)

    @property
    def max(self) -> float:
        """The largest finite number."""
        return float(self._limits.max)

    @property
    def min(self) -> float:
        """The most negative finite number."""
        return float(self._limits.min)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number that is not denormal."""
        return float(self._limits.smallest_normal)

    tiny = smallest_normal

    @property
    def resolution(self) -> float:
        """10 to the minus number of decimal digits that survive in this type."""
        return float(f"1e-{math.floor(-math.log10(self.eps))}")

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({shown}, dtype={self.dtype})"


class iinfo(_Info):
    """The limits of an integer type: `iinfo(torch.int8).max`."""

    __slots__ = ()

    def __init__(self, type: dt.dtype) -> None:
        type = dt.of_type(type) or type
        if not isinstance(type, dt.dtype):
            raise TypeError(
                "iinfo(): argument 'type' (position 1) must be torch.dtype, not"
                f" {type.__class__.__name__}"
            )
        if type.category == dt.BOOL:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type in dt.QUANTIZED:
            raise NotImplementedError(f"iinfo: not implemented for '{type.scalar_name}'")
        if type.category != dt.INT:
            raise TypeError(
                f"torch.iinfo() requires an integer input type, not {type}; use torch.finfo"
            )
        object.__setattr__(self, "_dtype", type)

    @property
    def max(self) -> int:
        """The largest number."""
        return (1 << (self.bits - self._dtype.is_signed)) - 1

    @property
    def min(self) -> int:
        """The smallest number."""
        return -(1 << (self.bits - 1)) if self._dtype.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
