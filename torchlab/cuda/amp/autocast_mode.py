"""Old names of `torch.amp` with "cuda" filled in: autocast and its decorators.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab.amp import autocast_mode as _amp
from torchlab.amp.former import autocast_of, deprecated

__all__ = ["autocast", "custom_bwd", "custom_fwd"]

autocast = autocast_of("cuda", dt.float16)
_INSTEAD = "args..., device_type='cuda'"


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: dt.dtype | None = None
) -> Callable[..., Any]:
    """Deprecated: `torch.amp.custom_fwd(fwd, device_type="cuda", cast_inputs=...)`."""
    deprecated("cuda", "custom_fwd", _INSTEAD)
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """Deprecated: `torch.amp.custom_bwd(bwd, device_type="cuda")`."""
    deprecated("cuda", "custom_bwd", _INSTEAD)
    return _amp.custom_bwd(bwd, device_type="cuda")
