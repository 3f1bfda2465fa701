"""Modules without initial values. Source:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.skip_init.html"""

from __future__ import annotations

import inspect
from typing import Any

from torchlab.nn.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """module_cls(*args, **kwargs) with parameters and buffers that are not filled.

    Raises RuntimeError if it is no Module or takes no `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)


__all__ = ["skip_init"]
