"""`torch._subclasses`: tensors without data.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_fake_tensor.html
"""

from __future__ import annotations

from torchlab._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = [
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]
