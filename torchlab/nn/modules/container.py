"""`torch.nn.modules.container`: containers, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.containers import Container, ModuleDict, ModuleList, Sequential
from torchlab.nn.parameter_containers import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
