"""Pooling layers. Source: https://docs.pytorch.org/docs/2.13/nn.html#pooling-layers

A layer says by name which function of `nn.functional` it is, looked up at each call: fx replaces
the functions while it traces.
"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn._sizes import each_of
from torchlab.nn.module import Module


class _Pool(Module):
    """A layer whose forward is the function `_function` of `nn.functional`."""

    _function: str

    def _pool(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(F, self._function)(*args, **kwargs)


class _MaxPool(_Pool):
    __constants__ = [
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode",
    ]  # fmt: skip

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of (N, C, L)."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest element of each window of (N, C, H, W)."""

    _function = "max_pool2d"


class _AvgPool(_Pool):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"  # type: ignore[attr-defined]


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L)."""

    _function = "avg_pool1d"

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = each_of(kernel_size, 1)
        self.stride = each_of(stride if stride is not None else kernel_size, 1)
        self.padding = each_of(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolDivided(_AvgPool):
    """With `divisor_override`, what a window's sum is divided by."""

    __constants__ = [*_AvgPool.__constants__, "divisor_override"]

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolDivided):
    """The mean of each window of (N, C, H, W)."""

    _function = "avg_pool2d"


class _Adaptive(_Pool):
    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_Adaptive):
    def forward(self, input: Any) -> Any:
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means over windows chosen so that (N, C, L) becomes (N, C, output_size)."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means over windows chosen so that (N, C, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    _function = "adaptive_avg_pool2d"


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d",
]  # fmt: skip
