"""Padding layers. Source: https://docs.pytorch.org/docs/2.13/nn.html#padding-layers

padding: one number for all sides, or (before, after) of each dimension, the last dimension first.
Negative numbers cut off.
"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn._sizes import each_of
from torchlab.nn.module import Module


class _Pad(Module):
    """What padding of any kind shares: the last `dimensions` dimensions get a border."""

    __constants__ = ["padding"]
    dimensions = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = each_of(padding, 2 * self.dimensions)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"

    def _check_input_dim(self, input: Any) -> None:
        n = self.dimensions
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self.mode)


class CircularPad1d(_CircularPad):
    """The border of (N, C, W) or (C, W) is what lies at the other end."""

    dimensions = 1


class CircularPad2d(_CircularPad):
    """The border of (N, C, H, W) or (C, H, W) is what lies at the other end."""

    dimensions = 2


class CircularPad3d(_CircularPad):
    """The border of (N, C, D, H, W) or (C, D, H, W) is what lies at the other end."""

    dimensions = 3


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A border of `value` around the last dimension."""

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """A border of `value` around the last two dimensions."""

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """A border of `value` around the last three dimensions."""

    dimensions = 3


class ZeroPad1d(ConstantPad1d):
    """A border of zeros around the last dimension."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """A border of zeros around the last two dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """A border of zeros around the last three dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """The border of (N, C, W) or (C, W) mirrors the inside, without the edge itself."""

    dimensions = 1


class ReflectionPad2d(_ReflectionPad):
    """The border of (N, C, H, W) or (C, H, W) mirrors the inside, without the edge itself."""

    dimensions = 2


class ReflectionPad3d(_ReflectionPad):
    """The border of (N, C, D, H, W) or (C, D, H, W) mirrors the inside, without the edge itself."""

    dimensions = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """The border of (N, C, W) or (C, W) repeats the edge."""

    dimensions = 1


class ReplicationPad2d(_ReplicationPad):
    """The border of (N, C, H, W) or (C, H, W) repeats the edge."""

    dimensions = 2


class ReplicationPad3d(_ReplicationPad):
    """The border of (N, C, D, H, W) or (C, D, H, W) repeats the edge."""

    dimensions = 3


__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
