"""`torch.fx.passes`: shapes of values, splitting graphs, finding and fusing parts of them.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "fake_tensor_prop",
    "graph_drawer",
    "graph_manipulation",
    "operator_support",
    "param_fetch",
    "pass_manager",
    "shape_prop",
    "split_module",
    "split_utils",
    "tools_common",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(f"{__name__}.{name}")
