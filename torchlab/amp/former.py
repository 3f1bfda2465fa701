"""The old names `torch.cpu.amp.…` and `torch.cuda.amp.…`: those of `torch.amp` with a device type
filled in.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab._core import dtype as dt
from torchlab.amp import autocast_mode as _autocast
from torchlab.amp import grad_scaler as _scaler


def _placed(cls: Any, device: str, module: str) -> Any:
    """The class as its module's own, so that it can be pickled by its name."""
    cls.__module__ = f"torchlab.{device}.amp.{module}"
    cls.__qualname__ = cls.__name__
    return cls


def deprecated(device: str, name: str, instead: str, level: int = 3) -> None:
    """Warn that `torch.<device>.amp.<name>` is an old name."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use"
        f" `torch.amp.{name}({instead})` instead.",
        FutureWarning,
        stacklevel=level,
    )


def autocast_of(device: str, default: dt.dtype) -> Any:
    """`torch.<device>.amp.autocast`; `default` is the type that it computes in if none is given."""

    class autocast(_autocast.autocast):
        __doc__ = f'Deprecated: `torch.autocast("{device}", dtype, enabled, cache_enabled)`.'

        def __init__(
            self, enabled: bool = True, dtype: dt.dtype = default, cache_enabled: bool = True
        ) -> None:
            deprecated(device, "autocast", f"'{device}', args...")
            super().__init__(device, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    return _placed(autocast, device, "autocast_mode")


def scaler_of(device: str) -> Any:
    """`torch.<device>.amp.GradScaler`."""

    class GradScaler(_scaler.GradScaler):
        __doc__ = f'Deprecated: `torch.amp.GradScaler("{device}", ...)`.'

        def __init__(
            self,
            init_scale: float = 65536.0,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            deprecated(device, "GradScaler", f"'{device}', args...")
            super().__init__(
                device,
                init_scale=init_scale,
                growth_factor=growth_factor,
                backoff_factor=backoff_factor,
                growth_interval=growth_interval,
                enabled=enabled,
            )

    return _placed(GradScaler, device, "grad_scaler")


__all__ = ["autocast_of", "deprecated", "scaler_of"]
