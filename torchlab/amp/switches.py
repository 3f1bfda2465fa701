"""The settings of autocast, per thread and type of device, and the functions that read and set
them.

`autocast` is these in a context. `TLS.autocast` holds a `Caster` while any device's autocast is on
in the thread; `SLOW` then has an entry, so that calls come by it. Otherwise calls pay nothing.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.tape import TLS
from torchlab.amp._casting import Cache, Caster

AVAILABLE = ("cpu", "cuda", "sim")
"""The types of device that autocast knows here."""

_ELSEWHERE = {
    "hpu": dt.bfloat16, "ipu": dt.float16, "maia": dt.bfloat16, "mps": dt.float16,
    "mtia": dt.float16, "xla": dt.bfloat16, "xpu": dt.float16,
}  # fmt: skip
"""Devices that torchlab has not, whose settings programs ask for."""


class _Settings(threading.local):
    def __init__(self) -> None:
        self.dtypes = {
            "cpu": dt.bfloat16,
            "cuda": dt.float16,
            "sim": dt.float16,
            **_ELSEWHERE,
        }
        self.cache_on = True
        self.cache = Cache()
        self.nesting = 0


_settings = _Settings()


def known(device_type: Any, function: str) -> str:
    """The type of device, checked. TypeError and RuntimeError as PyTorch's."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}(): argument 'device_type' (position 1) must be str, not"
            f" {type(device_type).__name__}"
        )
    if device_type in _settings.dtypes:
        return device_type
    return devices.device(device_type).type


def _turn(on: dict[str, Any]) -> None:
    """Let this thread's autocast be on for these devices."""
    before = TLS.autocast
    if on:
        cache = _settings.cache if _settings.cache_on else None
        TLS.autocast = Caster(on, cache)
        if before is None:
            SLOW.append(_settings)
    elif before is not None:
        TLS.autocast = None
        SLOW.remove(_settings)


def _on() -> dict[str, Any]:
    return {} if TLS.autocast is None else TLS.autocast.lower


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread's autocast is on for that type of device."""
    kind = known(device_type, "is_autocast_enabled")
    if kind not in _settings.dtypes:
        raise RuntimeError(
            f"unknown device type for autocast: '{kind}'; it knows {', '.join(AVAILABLE)}"
        )
    return kind in _on()


def set_autocast_enabled(*args: Any, **kwargs: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`; without a device_type, for "cuda"."""
    values = [*args, *(kwargs[k] for k in ("device_type", "enabled") if k in kwargs)]
    if kwargs.keys() - {"device_type", "enabled"} or len(values) not in (1, 2):
        raise TypeError(
            "set_autocast_enabled() takes (str device_type, bool enabled) or (bool enabled), got"
            f" {len(args)} positional arguments and {sorted(kwargs)}"
        )
    device_type, enabled = values if len(values) == 2 else ("cuda", values[0])
    kind = known(device_type, "set_autocast_enabled")
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position {len(values)}) must be bool, not"
            f" {type(enabled).__name__}"
        )
    turn(kind, enabled)


def turn(kind: str, enabled: bool) -> None:
    """Switch this thread's autocast for a type of device."""
    on = {k: v for k, v in _on().items() if k != kind}
    if enabled:
        if kind not in _settings.dtypes:
            raise RuntimeError(
                f"unknown device type for autocast: '{kind}'; it knows {', '.join(AVAILABLE)}"
            )
        on[kind] = _settings.dtypes[kind]
    _turn(on)


def get_autocast_dtype(device_type: str) -> dt.dtype:
    """The dtype that autocast's lower operators run in on that type of device."""
    kind = known(device_type, "get_autocast_dtype")
    if kind not in _settings.dtypes:
        raise RuntimeError(
            f"unsupported scalarType: autocast does not know the device type '{kind}'; it knows"
            f" {', '.join(AVAILABLE)}"
        )
    return _settings.dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: dt.dtype) -> None:
    """Set the dtype that autocast's lower operators run in on that type of device."""
    kind = known(device_type, "set_autocast_dtype")
    if not isinstance(dtype, dt.dtype):
        raise TypeError(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not"
            f" {type(dtype).__name__}"
        )
    _settings.dtypes[kind] = dtype
    if kind in _on():
        _turn({**_on(), kind: dtype})


def is_autocast_cache_enabled() -> bool:
    """Whether this thread's casts of leaves are kept."""
    return _settings.cache_on


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether this thread's casts of leaves are kept."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _settings.cache_on = enabled
    if _on():
        _turn(_on())


def clear_autocast_cache() -> None:
    """Forget the casts that are kept."""
    _settings.cache.clear()


def autocast_increment_nesting() -> int:
    """Enter one level of autocast; the level is returned."""
    _settings.nesting += 1
    return _settings.nesting


def autocast_decrement_nesting() -> int:
    """Leave one level of autocast; the level is returned."""
    _settings.nesting -= 1
    return _settings.nesting


# ---- the older functions, one for each device ---------------------------------------------------


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"torch.{old} is deprecated. Please use torch.{new} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def get_autocast_cpu_dtype() -> dt.dtype:
    """`get_autocast_dtype("cpu")`."""
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dt.dtype:
    """`get_autocast_dtype("cuda")`."""
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def get_autocast_ipu_dtype() -> dt.dtype:
    """`get_autocast_dtype("ipu")`."""
    _deprecated("get_autocast_ipu_dtype()", "get_autocast_dtype('ipu')")
    return get_autocast_dtype("ipu")


def get_autocast_xla_dtype() -> dt.dtype:
    """`get_autocast_dtype("xla")`."""
    _deprecated("get_autocast_xla_dtype()", "get_autocast_dtype('xla')")
    return get_autocast_dtype("xla")


def set_autocast_cpu_dtype(dtype: dt.dtype) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dt.dtype) -> None:
    """`set_autocast_dtype("cuda", dtype)`."""
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def set_autocast_ipu_dtype(dtype: dt.dtype) -> None:
    """`set_autocast_dtype("ipu", dtype)`."""
    _deprecated("set_autocast_ipu_dtype(dtype)", "set_autocast_dtype('ipu', dtype)")
    set_autocast_dtype("ipu", dtype)


def set_autocast_xla_dtype(dtype: dt.dtype) -> None:
    """`set_autocast_dtype("xla", dtype)`."""
    _deprecated("set_autocast_xla_dtype(dtype)", "set_autocast_dtype('xla', dtype)")
    set_autocast_dtype("xla", dtype)


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def is_autocast_ipu_enabled() -> bool:
    """`is_autocast_enabled("ipu")`."""
    _deprecated("is_autocast_ipu_enabled()", "is_autocast_enabled('ipu')")
    return is_autocast_enabled("ipu")


def is_autocast_xla_enabled() -> bool:
    """`is_autocast_enabled("xla")`."""
    _deprecated("is_autocast_xla_enabled()", "is_autocast_enabled('xla')")
    return is_autocast_enabled("xla")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("ipu", enabled)`."""
    _deprecated("set_autocast_ipu_enabled(enabled)", "set_autocast_enabled('ipu', enabled)")
    set_autocast_enabled("ipu", enabled)


def set_autocast_xla_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("xla", enabled)`."""
    _deprecated("set_autocast_xla_enabled(enabled)", "set_autocast_enabled('xla', enabled)")
    set_autocast_enabled("xla", enabled)
