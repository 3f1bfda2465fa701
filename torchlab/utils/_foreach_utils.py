"""`torch.utils._foreach_utils`: tensors in groups of one kind, and where calls on many pay.

Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/_foreach_utils.py
"""

from __future__ import annotations

from torchlab._core.device import device
from torchlab._core.tensor import Tensor
from torchlab.optim._writers import (
    Indices,
    TensorListList,
    _foreach_supported_types,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)


def _device_has_foreach_support(device: device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: device) -> bool:
    """Whether a call on these tensors, which are on this device, may be one on many."""
    plain = all(t is None or type(t) in _foreach_supported_types for t in tensors)
    return _device_has_foreach_support(device) and plain


__all__ = [
    "Indices",
    "TensorListList",
    "_device_has_foreach_support",
    "_foreach_supported_types",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_group_tensors_by_device_and_dtype",
    "_has_foreach_support",
]
