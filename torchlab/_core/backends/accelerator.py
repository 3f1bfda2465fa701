"""Which kind of device is the accelerator: the GPU if there is one, or the simulated one for those
who ask for it (TORCHLAB_ACCELERATOR=sim)."""

from __future__ import annotations

import os

from torchlab._core.backends import cuda
from torchlab._core.lazy import lazy

_sim = lazy("torchlab._core.backends.sim")


def kind() -> str | None:
    """The type of its devices, "cuda" or "sim"; None where there is no accelerator."""
    if os.environ.get("TORCHLAB_ACCELERATOR") == "sim":
        return "sim" if _sim.device_count() else None
    return "cuda" if cuda.device_count() else None


def require(doing: str) -> str:
    """`kind`, or PyTorch's RuntimeError where there is none."""
    found = kind()
    if found is None:
        raise RuntimeError(
            f"Cannot access accelerator device when none is available. ({doing}: "
            f"{cuda.found()[1] or 'TORCHLAB_ACCELERATOR=sim, but TORCHLAB_SIM_DEVICES is 0'};"
            " TORCHLAB_ACCELERATOR=sim takes the simulated accelerator)"
        )
    return found


__all__ = ["kind", "require"]
