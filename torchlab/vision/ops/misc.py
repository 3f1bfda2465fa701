"""Layers that the models share.

Source: https://docs.pytorch.org/vision/0.28/ops.html#layers
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

Layer = Callable[..., nn.Module]


class FrozenBatchNorm2d(nn.Module):
    """Batch normalization with statistics and affine parameters that stay as they are: all four are
    buffers. (N, num_features, H, W) → the same."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", aten.ones(num_features))
        self.register_buffer("bias", aten.zeros(num_features))
        self.register_buffer("running_mean", aten.zeros(num_features))
        self.register_buffer("running_var", aten.ones(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        state_dict.pop(prefix + "num_batches_tracked", None)  # of a BatchNorm2d that was frozen
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, x: Tensor) -> Tensor:
        w, b, m, v = (
            aten.reshape(t, (1, -1, 1, 1))
            for t in (self.weight, self.bias, self.running_mean, self.running_var)
        )
        scale = w * aten.rsqrt(v + self.eps)
        return x * scale + (b - m * scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


def _tuple(value: Any, n: int) -> Any:
    return tuple(value) if isinstance(value, Sequence) else (value,) * n


class ConvNormActivation(nn.Sequential):
    """A convolution, a normalization, an activation. Without `padding` the size stays as it is at
    stride 1; without `bias` there is one only if there is no normalization."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1,
        padding: Any = None, groups: int = 1, norm_layer: Layer | None = nn.BatchNorm2d,
        activation_layer: Layer | None = nn.ReLU, dilation: Any = 1, inplace: bool | None = True,
        bias: bool | None = None, conv_layer: Layer = nn.Conv2d,
    ) -> None:  # fmt: skip
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                n = len(kernel_size) if isinstance(kernel_size, Sequence) else len(dilation)
                pairs = zip(_tuple(kernel_size, n), _tuple(dilation, n), strict=True)
                padding = tuple((k - 1) // 2 * d for k, d in pairs)
        if bias is None:
            bias = norm_layer is None
        layers = [
            conv_layer(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation,
                groups=groups, bias=bias,
            )
        ]  # fmt: skip
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            params = {} if inplace is None else {"inplace": inplace}
            layers.append(activation_layer(**params))
        super().__init__(*layers)
        self.out_channels = out_channels
        if type(self) is ConvNormActivation:
            warnings.warn(
                "Don't use ConvNormActivation directly, please use Conv2dNormActivation and"
                " Conv3dNormActivation instead.",
                stacklevel=2,
            )


class Conv2dNormActivation(ConvNormActivation):
    """ConvNormActivation of (N, C, H, W)."""


class Conv3dNormActivation(ConvNormActivation):
    """ConvNormActivation of (N, C, D, H, W)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1,
        padding: Any = None, groups: int = 1, norm_layer: Layer | None = nn.BatchNorm3d,
        activation_layer: Layer | None = nn.ReLU, dilation: Any = 1, inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer,
            activation_layer, dilation, inplace, bias, nn.Conv3d,
        )  # fmt: skip


class SqueezeExcitation(nn.Module):
    """Channels weighted by what their means say (arXiv:1709.01507). (N, C, H, W) → the same."""

    def __init__(
        self, input_channels: int, squeeze_channels: int, activation: Layer = nn.ReLU,
        scale_activation: Layer = nn.Sigmoid,
    ) -> None:  # fmt: skip
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def _scale(self, input: Tensor) -> Tensor:
        squeezed = self.activation(self.fc1(self.avgpool(input)))
        return self.scale_activation(self.fc2(squeezed))

    def forward(self, input: Tensor) -> Tensor:
        return self._scale(input) * input


class MLP(nn.Sequential):
    """nn.Linear layers with normalization, activation and dropout between and after them."""

    def __init__(
        self, in_channels: int, hidden_channels: list[int], norm_layer: Layer | None = None,
        activation_layer: Layer | None = nn.ReLU, inplace: bool | None = None, bias: bool = True,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        params = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        width = in_channels
        for size in hidden_channels[:-1]:
            layers.append(nn.Linear(width, size, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(size))
            if activation_layer is not None:
                layers.append(activation_layer(**params))
            layers.append(nn.Dropout(dropout, **params))
            width = size
        layers.append(nn.Linear(width, hidden_channels[-1], bias=bias))
        layers.append(nn.Dropout(dropout, **params))
        super().__init__(*layers)


class Permute(nn.Module):
    """`x.permute(dims)` as a module."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return aten.permute(x, self.dims)


__all__ = [
    "MLP", "Conv2dNormActivation", "Conv3dNormActivation", "ConvNormActivation",
    "FrozenBatchNorm2d", "Permute", "SqueezeExcitation",
]  # fmt: skip
