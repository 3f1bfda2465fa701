"""Copies of a module on several devices, whose gradients flow back to the original.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core import device as devices
from torchlab.nn.module import Module
from torchlab.nn.parallel._places import place

__all__ = ["replicate"]


def _replica(module: Module, target: devices.device, detach: bool, made: dict[int, Any]) -> Any:
    """One copy. Its parameters are plain attributes: copies on the tape, not leaves."""
    found = made.get(id(module))
    if found is not None:
        return found
    copy = object.__new__(type(module))
    made[id(module)] = copy
    state = dict(module.__dict__)
    state["_parameters"] = {}
    state["_buffers"] = {k: None if b is None else b.to(target) for k, b in module._buffers.items()}
    state["_modules"] = {
        k: None if m is None else _replica(m, target, detach, made)
        for k, m in module._modules.items()
    }
    copy.__dict__.update(state)
    for name, parameter in module._parameters.items():
        moved = None
        if parameter is not None:
            moved = made.get(id(parameter))
            if moved is None:
                source = parameter.detach() if detach else parameter
                moved = made[id(parameter)] = source.to(target).view_as(source)
        copy.__dict__[name] = moved
    return copy


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of `network` on each device, over the same weights. With `detach`, gradients do not
    flow back. ValueError for the CPU, which needs no copy."""
    targets = [place(d) for d in devices]
    for target in targets:
        if target.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {target}")
    return [_replica(network, target, detach, {}) for target in targets]
