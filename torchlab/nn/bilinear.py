"""The bilinear layer. Source: https://docs.pytorch.org/docs/2.13/nn.html#linear-layers"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter


class Bilinear(Module):
    """y = x1ᵀ W x2 + b. x1: (*, in1_features), x2: (*, in2_features), y: (*, out_features);
    W: (out_features, in1_features, in2_features). Starts uniform in ±1/√in1_features."""

    __constants__ = ["in1_features", "in2_features", "out_features"]
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(aten.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(aten.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values again."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


__all__ = ["Bilinear"]
