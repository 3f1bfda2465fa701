"""`torchlab.fft`: the operators of that name space.

Source: https://docs.pytorch.org/docs/2.13/fft.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.tensor import Tensor as Tensor  # a name of PyTorch's module, too


def __getattr__(name: str) -> Any:
    try:
        value = registry.function(name, "fft")
    except AttributeError:
        raise AttributeError(f"module 'torchlab.fft' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(registry.FUNCTIONS.get("fft", ()))
