"""Which devices a model may be spread over.

The kind is the accelerator's (see torchlab.accelerator): GPUs, or simulated devices where
TORCHLAB_ACCELERATOR=sim.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import device as devices
from torchlab._core.lazy import lazy

accelerator = lazy("torchlab.accelerator")


def kind() -> str | None:
    """The type of the accelerator's devices, or None."""
    found = accelerator.current_accelerator()
    return None if found is None else found.type


def place(d: Any) -> devices.device:
    """The device of an index (-1 is the CPU), a string or a device."""
    if isinstance(d, int) and not isinstance(d, bool):
        return devices.cpu if d < 0 else devices.device(kind() or "cuda", d)
    return devices.concrete(devices.device(d))


def all_indices() -> list[int]:
    """The indices of all devices of the accelerator."""
    return list(range(accelerator.device_count()))
