"""The public name space `torchlab.autograd`."""

from __future__ import annotations

import importlib
from typing import Any

from torchlab._core.tape import Node
from torchlab.autograd import (
    forward_ad,
    function_transforms,
    functional,
    graph,
    tangents,
)
from torchlab.autograd.anomaly_mode import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from torchlab.autograd.api import backward, grad
from torchlab.autograd.function import Function
from torchlab.autograd.grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from torchlab.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from torchlab.autograd.gradcheck import gradcheck, gradgradcheck
from torchlab.autograd.nested_function import NestedIOFunction
from torchlab.autograd.variable import Variable, variable


def __getattr__(name: str) -> Any:
    """The profiler, loaded when it is first asked for."""
    if name not in ("profiler", "profiler_util"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(f"{__name__}.{name}")


__all__ = [
    "Function",
    "NestedIOFunction",
    "Node",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function_transforms",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]
