"""The memory of GPUs, as CuPy's pool holds it. Sizes are bytes.

What PyTorch answers without a GPU is answered without one here: zeros, and AssertionError for what
only a device can know.

Source: https://docs.pytorch.org/docs/2.13/cuda.html#memory-management
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchlab._core.backends import cuda as _gpus
from torchlab.cuda.devices import Device, index_of

cupy = _gpus.cupy

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
]


def _pool(device: Device, ask: str) -> int:
    if not _gpus.device_count():
        return 0
    with cupy.cuda.Device(index_of(device)):
        return int(getattr(cupy.get_default_memory_pool(), ask)())


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors hold."""
    return _pool(device, "used_bytes")


def memory_reserved(device: Device = None) -> int:
    """Bytes that the pool holds from the device: those of tensors, and what it keeps for later."""
    return _pool(device, "total_bytes")


def _no_peaks(name: str) -> None:
    if _gpus.device_count():
        raise NotImplementedError(f"torch.cuda.{name}: CuPy's pool does not count peaks")


def _peak(name: str) -> int:
    _no_peaks(name)
    return 0


def max_memory_allocated(device: Device = None) -> int:
    """The peak of `memory_allocated`: 0 without a GPU; NotImplementedError with one."""
    return _peak("max_memory_allocated")


def max_memory_reserved(device: Device = None) -> int:
    """The peak of `memory_reserved`: 0 without a GPU; NotImplementedError with one."""
    return _peak("max_memory_reserved")


def max_memory_cached(device: Device = None) -> int:
    """The old name of `max_memory_reserved`."""
    return max_memory_reserved(device)


def memory_cached(device: Device = None) -> int:
    """The old name of `memory_reserved`."""
    return memory_reserved(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Nothing without a GPU, whose peaks it would start again; NotImplementedError with one."""
    _no_peaks("reset_peak_memory_stats")


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Nothing without a GPU, whose sums it would start again; NotImplementedError with one."""
    _no_peaks("reset_accumulated_memory_stats")


def reset_max_memory_allocated(device: Device = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Device = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The counters: `allocated_bytes` and `reserved_bytes`, each `["all"]["current"]`. Empty if
    there is no GPU."""
    if not _gpus.device_count():
        return {}
    counts = {
        "allocated_bytes": memory_allocated(device),
        "reserved_bytes": memory_reserved(device),
    }
    return {name: {"all": {"current": n}} for name, n in counts.items()}


def memory_stats(device: Device = None) -> OrderedDict[str, int]:
    """The counters by flat names, "allocated_bytes.all.current". Empty if there is no GPU."""
    nested = memory_stats_as_nested_dict(device)
    return OrderedDict((f"{k}.all.current", v["all"]["current"]) for k, v in sorted(nested.items()))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) of the device. AssertionError if there is no GPU."""
    _gpus.require()
    with cupy.cuda.Device(index_of(device)):
        free, total = cupy.cuda.runtime.memGetInfo()
    return int(free), int(total)


def empty_cache() -> None:
    """Give what the pool keeps for later back to the devices."""
    if _gpus.device_count():
        cupy.get_default_memory_pool().free_all_blocks()
