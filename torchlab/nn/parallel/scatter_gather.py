"""Splitting what a module is called with over devices, and joining what comes back.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#dataparallel-functions-multi-gpu-distributed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core import device as devices
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn.parallel._places import place

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _split(x: Tensor, targets: Sequence[devices.device], dim: int) -> list[Tensor]:
    for target in targets:
        if target.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {target}")
    parts = aten.chunk(x, len(targets), dim)
    return [p.to(t) for p, t in zip(parts, targets, strict=False)]


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """One list entry per device: tensors are cut along `dim`, containers go through, anything else
    is handed to every device as it is."""
    targets = [place(d) for d in target_gpus]

    def over(x: Any) -> list[Any]:
        if isinstance(x, Tensor):
            return _split(x, targets, dim)
        if _is_namedtuple(x):
            return [type(x)(*parts) for parts in zip(*map(over, x), strict=False)]
        if isinstance(x, (tuple, list)) and len(x):
            rows = [list(parts) for parts in zip(*map(over, x), strict=False)]
            return [tuple(row) for row in rows] if isinstance(x, tuple) else rows
        if isinstance(x, dict) and x:
            pairs = zip(*(over(v) for v in x.values()), strict=False)
            return [type(x)(zip(x, values, strict=True)) for values in pairs]
        return [x for _ in targets]

    return over(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of the arguments of a call: a tuple of positional ones and a dictionary for each
    device that gets something."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    positional += [()] * (count - len(positional))
    named += [{}] * (count - len(named))
    return tuple(positional), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Join what the devices computed, along `dim`, on one device (-1 and "cpu": the CPU). Numbers
    become a vector; containers are joined entry by entry."""
    target = place(target_device)

    def join(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            if any(p.device.type == "cpu" for p in parts):
                raise AssertionError("Gather function not implemented for CPU tensors")
            moved = [p.to(target) for p in parts]
            if all(p.dim() == 0 for p in moved) and dim == 0:
                return aten.stack(moved)
            return aten.cat(moved, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(p) != len(first) for p in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((k, join([p[k] for p in parts])) for k in first)
        if _is_namedtuple(first):
            return type(first)(*(join(column) for column in zip(*parts, strict=True)))
        return type(first)(join(column) for column in zip(*parts, strict=True))

    return join(outputs)
