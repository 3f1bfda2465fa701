"""The simulated accelerator, with the names of `torch.cuda`.

`torch.device("sim")` keeps its tensors in host memory, behind the caching allocator that also
serves
cuda: what these functions show and the errors they lead to are those of a GPU, on any machine.

Wherever a function takes `device`, it may be None (the current device), an index, "sim", "sim:1"
or a `torch.device`. Sizes are bytes. Reference: https://docs.pytorch.org/docs/stable/cuda.html
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from torchlab._core import device as _device
from torchlab._core.backends import sim as _backend
from torchlab._core.errors import OutOfMemoryError
from torchlab._core.memory.caching_allocator import CachingAllocator
from torchlab._core.memory.snapshot import snapshot as _snapshot
from torchlab._core.memory.summary import summary as _summary

Device = _device.device | int | str | None

__all__ = [
    "OutOfMemoryError",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "synchronize",
]


@dataclass(frozen=True)
class SimDeviceProperties:
    """What a simulated device is: name, memory in bytes, and the host's cores as its processors."""

    name: str
    total_memory: int
    multi_processor_count: int


def is_available() -> bool:
    """Whether there is a simulated device: yes, unless TORCHLAB_SIM_DEVICES is 0."""
    return device_count() > 0


def device_count() -> int:
    """The number of simulated devices (the environment's TORCHLAB_SIM_DEVICES, default 1)."""
    return _backend.device_count()


def current_device() -> int:
    """The index of the device that "sim" without an index means."""
    index = _device.concrete(_device.device("sim")).index
    assert index is not None
    return index


def synchronize(device: Device = None) -> None:
    """Wait until the device has done its work: each call returns when its work is done, so there is
    nothing to wait for. ValueError for a device that is not a simulated one."""
    _allocator(device)


def _allocator(device: Device) -> CachingAllocator:
    if device is None:
        return _backend.sim_allocator(current_device())
    if isinstance(device, int):
        return _backend.sim_allocator(device)
    found = _device.concrete(_device.device(device))
    if found.type != "sim" or found.index is None:
        raise ValueError(f"Expected a sim device, but got: {device}")
    return _backend.sim_allocator(found.index)


def get_device_name(device: Device = None) -> str:
    """The device's name."""
    return get_device_properties(device).name


def get_device_properties(device: Device = None) -> SimDeviceProperties:
    """Name, total memory and number of processors."""
    raw = _allocator(device).device
    return SimDeviceProperties("Simulated accelerator", raw.total_bytes, os.cpu_count() or 1)


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) of the device. What the allocator caches counts as not free."""
    allocator = _allocator(device)
    with allocator.lock:
        return allocator.device.free_bytes, allocator.device.total_bytes


def memory_allocated(device: Device = None) -> int:
    """Bytes in blocks that tensors hold (sizes rounded up to 512)."""
    return _allocator(device).statistics.current("allocated_bytes")


def max_memory_allocated(device: Device = None) -> int:
    """The peak of `memory_allocated` since the start or `reset_peak_memory_stats`."""
    return _allocator(device).statistics.peak("allocated_bytes")


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds from the device: blocks of tensors and the cache."""
    return _allocator(device).statistics.current("reserved_bytes")


def max_memory_reserved(device: Device = None) -> int:
    """The peak of `memory_reserved` since the start or `reset_peak_memory_stats`."""
    return _allocator(device).statistics.peak("reserved_bytes")


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let all peaks start again from the present values."""
    allocator = _allocator(device)
    with allocator.lock:
        allocator.statistics.reset_peak()


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Set the sums over time ("allocated", "freed") and the counters ("num_ooms" ...) to zero."""
    allocator = _allocator(device)
    with allocator.lock:
        allocator.statistics.reset_accumulated()


def memory_stats(device: Device = None) -> dict[str, int]:
    """All counters: "allocated_bytes.all.current", "segment.small_pool.peak", "num_ooms" ...

    Kinds: allocation, segment, active, inactive_split, and in bytes allocated_bytes,
    reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes; pools: all, large_pool,
    small_pool; numbers: current, peak, allocated, freed.
    """
    return _allocator(device).memory_stats()


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The counters as a table to print; `abbreviated` leaves the pools out."""
    return _summary(_allocator(device), abbreviated)


def memory_snapshot(device: Device = None) -> list[dict[str, Any]]:
    """The segments and their blocks, in the shape of `torch.cuda.memory_snapshot()`: plain data.

    With `device` None, of all devices that were used.
    """
    if device is None:
        return [segment for a in _backend.made_allocators() for segment in _snapshot(a)]
    return _snapshot(_allocator(device))


def empty_cache() -> None:
    """Give all segments that no tensor touches back to the devices (all of them)."""
    for allocator in _backend.made_allocators():
        allocator.empty_cache()


def set_memory_limit(nbytes: int | str | None, device: Device = None) -> None:
    """Let the allocator reserve at most `nbytes` (or "64MiB"); None: up to the device's capacity.

    Not in PyTorch, where only a fraction can be set. Memory that is held stays, even over the
    limit. Raises ValueError when the limit exceeds the device's capacity.
    """
    if isinstance(nbytes, str):
        nbytes = _backend.parse_size(nbytes, "the memory limit")
    _allocator(device).set_limit(nbytes)


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Let the allocator reserve at most `fraction` (0 to 1) of the device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    allocator = _allocator(device)
    allocator.set_limit(int(fraction * allocator.device.total_bytes))
