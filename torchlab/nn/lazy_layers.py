"""Lazy linear layers, convolutions and normalizations: the size of the input's features comes from
the first input.

Source: https://docs.pytorch.org/docs/2.13/nn.html#lazy-modules-initialization
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from torchlab.nn.conv import Conv1d, Conv2d, Conv3d
from torchlab.nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from torchlab.nn.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from torchlab.nn.lazy import LazyModuleMixin
from torchlab.nn.linear import Linear
from torchlab.nn.parameter import UninitializedBuffer, UninitializedParameter


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is the last dimension of its first input."""

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the initial values again, if there is a shape already."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Take in_features from `input`."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:  # the weight came from a state_dict
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """What lazy convolutions share: in_channels comes from the first input."""

    dimensions: int
    groups: int
    in_channels: int
    out_channels: int
    transposed: bool
    weight: Any
    bias: Any
    _weight_shape: Any

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the initial values again, if there is a shape already."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Take in_channels from `input`. Raises RuntimeError for a wrong number of dimensions,
        ValueError if the groups do not divide the channels."""
        if self.has_uninitialized_params():
            channels = self._channels_of(input)
            if channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            self.in_channels = channels
            with no_grad():
                self.weight.materialize(self._weight_shape())
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()
        elif self.in_channels == 0:  # the weight came from a state_dict
            shape = self.weight.shape
            self.in_channels = shape[0] if self.transposed else shape[1] * self.groups

    def _channels_of(self, input: Any) -> int:
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[input.dim() - n - 1]

    def _get_num_spatial_dims(self) -> int:
        return self.dimensions


class _LazyForward(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d):
    """Conv1d whose in_channels comes from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """Conv2d whose in_channels comes from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """Conv3d whose in_channels comes from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """ConvTranspose1d whose in_channels comes from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """ConvTranspose2d whose in_channels comes from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """ConvTranspose3d whose in_channels comes from its first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin):
    """What lazy normalizations share: num_features is the second dimension of the first input."""

    num_features: int
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    _check_input_dim: Any

    def __init__(
        self, eps: float = 1e-5, momentum: Any = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = aten.zeros((), dtype=dt.int64, device=device)

    def reset_running_stats(self) -> None:
        """Forget all batches, if there is a shape already."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_running_stats()  # type: ignore[misc]

    def reset_parameters(self) -> None:
        """Weight one, bias zero, no batches, if there is a shape already."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Take num_features from `input`. Raises ValueError for a wrong number of dimensions."""
        own = (self.weight, self.bias, self.running_mean, self.running_var)
        tensors = [t for t in own if t is not None]
        if self.has_uninitialized_params():
            self._check_input_dim(input)
            self.num_features = input.shape[1]
            for t in tensors:
                t.materialize((self.num_features,))
            self.reset_parameters()
        elif self.num_features == 0 and tensors:  # they came from a state_dict
            self.num_features = tensors[0].shape[0]


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features comes from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features comes from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features comes from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features comes from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d whose num_features comes from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d whose num_features comes from its first input."""

    cls_to_become = InstanceNorm3d


__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip
