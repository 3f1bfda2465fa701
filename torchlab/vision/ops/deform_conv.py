"""Deformable convolution: the kernel's taps moved by offsets (arXiv:1703.06211) and weighed by a
mask (arXiv:1811.11168).

The taps are read by indexing, bilinearly, so gradients follow.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.deform_conv2d.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def _pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else (int(x[0]), int(x[1]))


def _taps(kernel: int, out: int, stride: int, padding: int, dilation: int, like: Tensor) -> Tensor:
    """Where the taps lie along one axis without offsets: (kernel, out)."""
    tap = aten.arange(kernel, dtype=like.dtype, device=like.device) * dilation
    start = aten.arange(out, dtype=like.dtype, device=like.device) * stride - padding
    return aten.unsqueeze(tap, 1) + aten.unsqueeze(start, 0)


def _read(input: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """input (N, G, C, H, W) at (y, x), each (N, G, M) → (N, G, C, M); zero outside."""
    n, g, c, h, w = input.shape
    flat = aten.reshape(input, (n, g, c, h * w))
    y0, x0 = aten.floor(y).detach(), aten.floor(x).detach()
    total: Any = 0
    for yy, wy in ((y0, 1 - (y - y0)), (y0 + 1, y - y0)):
        for xx, wx in ((x0, 1 - (x - x0)), (x0 + 1, x - x0)):
            inside = (yy >= 0) & (yy < h) & (xx >= 0) & (xx < w)
            at = aten.clamp(yy, 0, h - 1).long() * w + aten.clamp(xx, 0, w - 1).long()
            at = aten.expand(aten.unsqueeze(at, 2), (n, g, c, at.shape[-1]))
            weight = aten.where(inside, wy * wx, aten.zeros_like(wy))
            total = total + aten.gather(flat, 3, at) * aten.unsqueeze(weight, 2)
    return total


def deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None,
    stride: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(N, C, H, W) → (N, out, oh, ow): a convolution whose taps are moved.

    offset (N, 2 · groups · kh · kw, oh, ow): dy and dx of each tap at each output pixel, for each
    group of input channels; mask (N, groups · kh · kw, oh, ow): a factor for each tap. weight
    (out, C / g, kh, kw). RuntimeError for shapes that do not fit.
    """
    (sh, sw), (ph, pw), (dh, dw) = _pair(stride), _pair(padding), _pair(dilation)
    out_channels, per_group, kh, kw = weight.shape
    n, c, h, w = input.shape
    taps = kh * kw
    groups, offset_groups = c // per_group, offset.shape[1] // (2 * taps)
    if offset_groups == 0 or offset.shape[1] != 2 * taps * offset_groups or c % offset_groups:
        raise RuntimeError(
            "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of"
            f" 2 * weight.size[2] * weight.size[3] that divides the channels.\nGot"
            f" offset.shape[1]={offset.shape[1]}, input.shape={list(input.shape)}, while"
            f" 2 * weight.size[2] * weight.size[3]={2 * taps}"
        )
    if groups * per_group != c or out_channels % groups:
        raise RuntimeError(
            f"deform_conv2d: weight {list(weight.shape)} does not fit an input of"
            f" {list(input.shape)}"
        )
    oh = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    ow = (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    if tuple(offset.shape) != (n, offset.shape[1], oh, ow):
        raise RuntimeError(
            f"deform_conv2d: offset is {list(offset.shape)}, the output has {n} images of"
            f" {oh} x {ow}"
        )
    if mask is not None and tuple(mask.shape) != (n, offset_groups * taps, oh, ow):
        raise RuntimeError(
            f"deform_conv2d: mask should be {[n, offset_groups * taps, oh, ow]}, got"
            f" {list(mask.shape)}"
        )
    moved = aten.reshape(offset, (n, offset_groups, kh, kw, 2, oh, ow))
    y = _taps(kh, oh, sh, ph, dh, input)[:, None, :, None] + moved[:, :, :, :, 0]
    x = _taps(kw, ow, sw, pw, dw, input)[None, :, None, :] + moved[:, :, :, :, 1]
    flat = (n, offset_groups, taps * oh * ow)
    parts = aten.reshape(input, (n, offset_groups, c // offset_groups, h, w))
    values = _read(parts, aten.reshape(y, flat), aten.reshape(x, flat))
    if mask is not None:
        values = values * aten.reshape(mask, (n, offset_groups, 1, taps * oh * ow))
    columns = aten.reshape(values, (n, groups, per_group * taps, oh * ow))
    kernel = aten.reshape(weight, (groups, out_channels // groups, per_group * taps))
    out = aten.reshape(aten.matmul(kernel, columns), (n, out_channels, oh, ow))
    return out if bias is None else out + aten.reshape(bias, (1, -1, 1, 1))


class DeformConv2d(nn.Module):
    """`deform_conv2d` with weights. ValueError for channels that the groups do not divide."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        self.weight = nn.Parameter(
            aten.empty((out_channels, in_channels // groups, *self.kernel_size))
        )
        if bias:
            self.bias = nn.Parameter(aten.empty((out_channels,)))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights and bias as those of a convolution."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )

    def __repr__(self) -> str:
        said = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        said += f", stride={self.stride}"
        for name, usual in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != usual:
                said += f", {name}={getattr(self, name)}"
        return f"{type(self).__name__}({said}{', bias=False' if self.bias is None else ''})"


__all__ = ["DeformConv2d", "deform_conv2d"]
