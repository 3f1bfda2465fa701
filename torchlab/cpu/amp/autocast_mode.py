"""The old name `torch.cpu.amp.autocast`: `torch.autocast("cpu", ...)`.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

import warnings

from torchlab._core import dtype as dt
from torchlab.amp import autocast_mode as _amp

__all__ = ["autocast"]


class autocast(_amp.autocast):
    """Deprecated: `torch.autocast("cpu", dtype, enabled, cache_enabled)`."""

    def __init__(
        self, enabled: bool = True, dtype: dt.dtype = dt.bfloat16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use"
            " `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
