"""`torch.nn.modules`: where PyTorch's scripts look for the base class, the global hooks, and the
classes by the file that PyTorch has them in (`torch.nn.modules.conv.Conv2d`)."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from torchlab.nn.modules import module
from torchlab.nn.modules.module import Module


def __getattr__(name: str) -> Any:
    # Files load when they are asked for: few scripts do, and all classes are in torchlab.nn.
    if name in _files():
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module("torchlab.nn"), name, None)
    if isinstance(value, type) and (
        issubclass(value, Module) or name == "LinearCrossEntropyOptions"
    ):
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _files() -> list[str]:
    return [m.name for m in pkgutil.iter_modules(__path__)]


def __dir__() -> list[str]:
    nn = vars(importlib.import_module("torchlab.nn"))
    classes = [k for k, v in nn.items() if isinstance(v, type) and issubclass(v, Module)]
    return sorted({*_files(), *classes})


__all__ = ["Module", "module"]
