"""`torch._utils`: small things that libraries take from there."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from torchlab import cuda
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

__all__ = [
    "_flatten_dense_tensors",
    "_get_available_device_type",
    "_get_device_module",
    "_unflatten_dense_tensors",
]


def _get_available_device_type() -> str | None:
    """The type of the accelerator that there is; None without one."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a type of devices. RuntimeError if there is none."""
    try:
        return importlib.import_module(f"torchlab.{device_type}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as"
            f" 'torch.{device_type}'."
        ) from None


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one row."""
    return aten.cat([aten.reshape(t, (-1,)) for t in tensors])  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the row with the tensors' shapes."""
    parts = aten.split_with_sizes(flat, tuple(t.numel() for t in tensors))
    return tuple(aten.view(p, tuple(t.shape)) for p, t in zip(parts, tensors, strict=True))
