"""The simulated accelerator's memory: host memory behind device addresses and a fixed capacity.

Everything that a real accelerator's memory teaches (caching, fragmentation, running out) can be
had on a laptop: the capacity is small on purpose (256 MiB) and settable:

    TORCHLAB_SIM_MEMORY    capacity of each device: bytes, or "512MiB", "2GiB"
    TORCHLAB_SIM_DEVICES   number of devices (default 1; 0: no simulated accelerator)

Both are read once, at the first use. Host memory is touched only when a tensor writes to it.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from typing import Any

import numpy as np

from torchlab._core.memory.caching_allocator import CachingAllocator

DEFAULT_CAPACITY = 256 * 1024 * 1024
ALIGNMENT = 512  # of every segment, as a GPU gives it
_FIRST_ADDRESS = 0x5_0000_0000_0000  # no host has memory here: such an address is recognisable
_ADDRESSES_PER_DEVICE = 1 << 44
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS[f"{_letter}b"] = 1000**_power
    _UNITS[f"{_letter}ib"] = 1024**_power


def parse_size(text: str, what: str = "size") -> int:
    """Bytes from "268435456", "512MiB", "1.5 GiB" or "2GB" (powers of 1000 without the "i")."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text, re.IGNORECASE | re.ASCII)
    if m is None or m[2].lower() not in _UNITS:
        raise ValueError(f"{what} must be bytes or a size such as '512MiB' or '2GiB', got {text!r}")
    return (
        int(float(m[1]) * _UNITS[m[2].lower()]) if "." in m[1] else int(m[1]) * _UNITS[m[2].lower()]
    )


class SimMemory:
    """One segment: an address on the simulated device, and the host bytes behind it."""

    __slots__ = ("address", "data")

    def __init__(self, address: int, nbytes: int) -> None:
        raw = np.empty(nbytes + ALIGNMENT, dtype=np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.address = address
        self.data = raw[start : start + nbytes]

    def view(self, offset: int, nbytes: int) -> np.ndarray:
        """A writable uint8 array of `nbytes` bytes from `offset`."""
        return self.data[offset : offset + nbytes]


class SimDevice:
    """A simulated device's memory (a `RawDevice`): `capacity_bytes` that segments are taken from.

    Addresses are given lowest first, so that the same program sees the same addresses every time.
    As on a GPU with virtual memory, only the sum of the sizes counts, not gaps between the
    addresses.
    """

    def __init__(self, index: int = 0, capacity_bytes: int = DEFAULT_CAPACITY) -> None:
        if capacity_bytes < 0:
            raise ValueError(
                f"sim:{index}: the capacity must not be negative, got {capacity_bytes}"
            )
        self.index = index
        self.name = f"sim:{index}"
        self.total_bytes = capacity_bytes
        self.remedy = "The environment variable TORCHLAB_SIM_MEMORY (e.g. 2GiB) sets the capacity."
        self._segments: dict[int, int] = {}  # address: size
        self._null = np.empty(0, dtype=np.uint8)

    @property
    def free_bytes(self) -> int:
        """The capacity less all segments."""
        return self.total_bytes - sum(self._segments.values())

    def raw_alloc(self, nbytes: int) -> SimMemory:
        """A segment (uninitialised); raises `MemoryError` when it exceeds what is free."""
        if nbytes > self.free_bytes:
            raise MemoryError(f"{self.name}: {nbytes} bytes asked for, {self.free_bytes} free")
        address = _FIRST_ADDRESS + self.index * _ADDRESSES_PER_DEVICE
        for start in sorted(self._segments):
            if address + nbytes <= start:
                break
            address = start + -(-self._segments[start] // ALIGNMENT) * ALIGNMENT
        memory = SimMemory(address, nbytes)
        self._segments[address] = nbytes
        return memory

    def raw_free(self, memory: SimMemory) -> None:
        """Take a segment back; its host bytes go as soon as no array views them."""
        del self._segments[memory.address]
        memory.data = self._null

    def null_buffer(self) -> Any:
        """The array of an empty storage."""
        return self._null


@functools.cache
def device_count() -> int:
    """How many simulated devices there are (TORCHLAB_SIM_DEVICES, default 1)."""
    text = os.environ.get("TORCHLAB_SIM_DEVICES", "1")
    if not re.fullmatch(r"\d{1,3}", text, re.ASCII):
        raise ValueError(f"TORCHLAB_SIM_DEVICES must be a number from 0 to 999, got {text!r}")
    return int(text)


@functools.cache
def capacity_bytes() -> int:
    """The capacity of each simulated device (TORCHLAB_SIM_MEMORY, default 256 MiB)."""
    text = os.environ.get("TORCHLAB_SIM_MEMORY")
    return DEFAULT_CAPACITY if text is None else parse_size(text, "TORCHLAB_SIM_MEMORY")


_allocators: dict[int, CachingAllocator] = {}
_lock = threading.Lock()


def sim_allocator(index: int = 0) -> CachingAllocator:
    """The allocator of the simulated device `index`, made at its first use.

    Raises RuntimeError when there is no such device.
    """
    found = _allocators.get(index)
    if found is not None:
        return found
    if not 0 <= index < device_count():
        raise RuntimeError(
            f"invalid device ordinal: sim:{index} does not exist, there are {device_count()} "
            "simulated device(s); the environment variable TORCHLAB_SIM_DEVICES sets their number"
        )
    with _lock:
        return _allocators.setdefault(index, CachingAllocator(SimDevice(index, capacity_bytes())))


def made_allocators() -> list[CachingAllocator]:
    """The allocators that exist already, by device."""
    return [_allocators[i] for i in sorted(_allocators)]
