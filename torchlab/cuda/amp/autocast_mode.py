"""Old names of `torch.amp` with "cuda" filled in: autocast and its decorators.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab.amp import autocast_mode as _amp

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):
    """Deprecated: `torch.autocast("cuda", dtype, enabled, cache_enabled)`."""

    def __init__(
        self, enabled: bool = True, dtype: dt.dtype = dt.float16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use"
            " `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use"
        f" `torch.amp.{name}(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=3,
    )


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: dt.dtype | None = None
) -> Callable[..., Any]:
    """Deprecated: `torch.amp.custom_fwd(fwd, device_type="cuda", cast_inputs=...)`."""
    _deprecated("custom_fwd")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """Deprecated: `torch.amp.custom_bwd(bwd, device_type="cuda")`."""
    _deprecated("custom_bwd")
    return _amp.custom_bwd(bwd, device_type="cuda")
