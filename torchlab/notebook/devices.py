"""What the devices hold: the process's resident memory, and the pools of the caching allocators."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlab._core.backends import sim
from torchlab._core.lazy import lazy

resource = lazy("resource")  # not on Windows
cuda = lazy("torchlab.cuda")
_HAS_CUDA = importlib.util.find_spec("torchlab.cuda") is not None


@dataclass(frozen=True)
class DeviceMemory:
    """One device's memory, in bytes; None where the device has no such number.

    `kind` is "process" (resident memory of this process) or "allocator" (a caching allocator's
    pools). `high` is the most that was allocated since the previous message: a block that came and
    went between two messages is in it, and so on the curve.
    """

    device: str
    kind: str
    allocated: int
    peak: int
    reserved: int | None = None
    limit: int | None = None
    segments: int | None = None
    blocks: int | None = None
    high: int = 0


Reader = Callable[[], Sequence[DeviceMemory]]


def _resident() -> tuple[int, int] | None:
    """(resident bytes now, most so far) of this process; None where the system does not say.

    Linux tells both. Elsewhere `getrusage` knows only the most so far, which then stands for both
    (bytes on macOS, KiB on the BSDs). Windows has neither.
    """
    try:
        pages = pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if importlib.util.find_spec("resource") is None:
            return None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        return peak, peak
    now = int(pages) * os.sysconf("SC_PAGE_SIZE")
    # Not `ru_maxrss`: a new process inherits it from the one that started it.
    high = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return now, max(now, int(high[1]) * 1024 if high else 0)


def _host_limit() -> int | None:
    """Bytes this process may use: the container's limit, else the machine's memory."""
    limits = []
    try:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows; a system without the name
        pass
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups, version 2 and 1
        try:
            text = pathlib.Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits, default=None)


def _pools(name: str, stats: dict[str, int], limit: int) -> DeviceMemory:
    """From the counters of `memory_stats`, which have the names of `torch.cuda.memory_stats`."""
    return DeviceMemory(
        device=name,
        kind="allocator",
        allocated=stats.get("allocated_bytes.all.current", 0),
        peak=stats.get("allocated_bytes.all.peak", 0),
        reserved=stats.get("reserved_bytes.all.current", 0),
        limit=limit,
        segments=stats.get("segment.all.current", 0),
        blocks=stats.get("allocation.all.current", 0),
    )


def read_devices() -> list[DeviceMemory]:
    """The memory of this process and of every accelerator that is there, in a fixed order.

    A GPU counts from its first use on: asking it earlier would create its context, which takes
    hundreds of megabytes.
    """
    found = []
    resident = _resident()
    if resident is not None:
        found.append(DeviceMemory("cpu", "process", *resident, limit=_host_limit()))
    for index in range(sim.device_count()):
        allocator = sim.sim_allocator(index)
        limit = allocator.device.total_bytes if allocator.limit is None else allocator.limit
        found.append(_pools(allocator.device.name, allocator.memory_stats(), limit))
    if _HAS_CUDA and cuda.is_available() and cuda.is_initialized():
        for index in range(cuda.device_count()):
            limit = cuda.mem_get_info(index)[1]
            found.append(_pools(f"cuda:{index}", cuda.memory_stats(index), limit))
    return found
