"""Linear layers. Source: https://docs.pytorch.org/docs/2.13/nn.html#linear-layers"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter


class Identity(Module):
    """Returns its input; takes any arguments and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """y = x Wᵀ + b. x: (*, in_features), y: (*, out_features), W: (out_features, in_features).

    Weights and bias start uniform in ±1/√in_features, as PyTorch's for the same seed.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(aten.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(aten.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        reset_bias(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def reset_bias(weight: Any, bias: Any) -> None:
    """Uniform in ±1/√fan_in, where fan_in is the weight's."""
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        if fan_in > 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(bias, -bound, bound)


__all__ = ["Identity", "Linear"]
