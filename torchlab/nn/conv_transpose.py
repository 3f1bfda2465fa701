"""Transposed convolutions. Source: https://docs.pytorch.org/docs/2.13/nn.html#convolution-layers"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.conv import _Conv
from torchlab.nn.module import Module


class _ConvTranspose(_Conv):
    """The gradient of a convolution with respect to its input, as a layer of its own.

    Weight: (in, out / groups, *kernel). output_padding: how much longer than the shortest possible
    size the result is, where a stride lets several sizes shrink to the input's.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        Module.__init__(self)
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, but got '
                f'padding_mode="{padding_mode}"'
            )
        if isinstance(padding, str):
            raise TypeError(
                f"{type(self).__name__}: padding must be an int or a tuple of ints, but got "
                f"{padding!r}; only convolutions that are not transposed know names for it"
            )
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Any, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What leads to `output_size`; it may have the batch and the channels in front."""
        if output_size is None:
            return self.output_padding
        n = self.dimensions
        leading = input.dim() - n
        if len(output_size) == n + leading:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or "
                f"{n + leading} elements (got {len(output_size)})"
            )
        sizes = input.shape[leading:]
        smallest = [
            (sizes[i] - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(n)
        ]
        largest = [smallest[i] + self.stride[i] - 1 for i in range(n)]
        if any(not smallest[i] <= output_size[i] <= largest[i] for i in range(n)):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range from "
                f"{smallest} to {largest} (for an input of {sizes})"
            )
        return tuple(output_size[i] - smallest[i] for i in range(n))


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over (N, C, L) or (C, L)."""

    dimensions = 1

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over (N, C, H, W) or (C, H, W)."""

    dimensions = 2

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over (N, C, D, H, W) or (C, D, H, W)."""

    dimensions = 3

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip


__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
