"""`torchlab.cpu`: the names of `torch.cuda` for the host, so that a program need not ask where it
runs.

The host works off every call before it returns: there is one stream, in order, and nothing to wait
for.

Source: https://docs.pytorch.org/docs/2.13/cpu.html
"""

from __future__ import annotations

import importlib
import os
import platform
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torchlab._core.device import device as _device

Device = _device | str | int | None

__all__ = [
    "is_available",
    "is_initialized",
    "synchronize",
    "current_device",
    "current_stream",
    "stream",
    "set_device",
    "device_count",
    "Stream",
    "StreamContext",
    "Event",
    "get_capabilities",
]


class Stream:
    """An order of work; all work is done when asked for, so streams wait for nothing."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Nothing: the other stream's work is done."""

    def record_event(self) -> None:
        """Nothing: an event would have happened already."""

    def wait_event(self, event: Any) -> None:
        """Nothing: the event has happened."""


class Event:
    """A point in a stream; it is past as soon as it is recorded."""

    def query(self) -> bool:
        """Whether the work before it is done: always."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing: the work before it is done."""

    def synchronize(self) -> None:
        """Nothing: the work before it is done."""

    def wait(self, stream: Any = None) -> None:
        """Nothing: the work before it is done."""


class _Current(threading.local):
    def __init__(self) -> None:
        self.stream = _DEFAULT


_DEFAULT = Stream()
_current = _Current()


class StreamContext(AbstractContextManager):
    """Inside the context `stream` is the current one. None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.prev_stream = _DEFAULT

    def __enter__(self) -> None:
        self.prev_stream = _current.stream
        if self.stream is not None:
            _current.stream = self.stream

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            _current.stream = self.prev_stream


def stream(stream: Stream) -> AbstractContextManager:
    """A context in which `stream` is the current one."""
    return StreamContext(stream)


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is ready: always."""
    return True


def synchronize(device: Device = None) -> None:
    """Wait until all work is done, which it is. `device` is ignored, as PyTorch does."""


def current_device() -> str:
    """The current device: "cpu"."""
    return "cpu"


def current_stream(device: Device = None) -> Stream:
    """The stream that this thread has chosen with `stream`."""
    return _current.stream


def set_device(device: Device) -> None:
    """Nothing: there is one CPU."""


def device_count() -> int:
    """The number of CPU devices (not cores): 1."""
    return 1


# PyTorch's names of x86's abilities, where they are not those of the Linux kernel.
_FLAGS = {
    "sse4_1": "sse4_1", "sse4_2": "sse4_2", "fma3": "fma", "lzcnt": "abm", "sha": "sha_ni",
    "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw", "avx512_vl": "avx512vl", "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi", "avx_vnni": "avx_vnni", "sse3": "pni",
    "bmi": "bmi1",
}  # fmt: skip
_SAME = (
    "sse sse2 ssse3 sse4a avx avx2 f16c bmi2 popcnt aes clflush clflushopt clwb fma4"
    " avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_bf16 avx512_fp16"
    " avx512_4vnniw avx512_4fmaps avx512_vp2intersect amx_tile amx_int8 amx_bf16"
).split()


@lru_cache(maxsize=1)
def get_capabilities() -> Mapping[str, Any]:
    """What the CPU can: architecture, number of logical cores and, where Linux tells it (x86), the
    CPU's name and its instruction sets by name. Read once, immutable."""
    found: dict[str, Any] = {
        "architecture": platform.machine(),
        "num_logical_cores": os.cpu_count() or 1,
    }
    told = Path("/proc/cpuinfo")
    text = told.read_text(encoding="utf-8") if told.exists() else ""
    facts: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    if "model name" in facts:
        found["cpu_name"] = facts["model name"]
    if "flags" in facts:
        flags = set(facts["flags"].split())
        found |= {
            name: flag in flags
            for name, flag in {**dict(zip(_SAME, _SAME, strict=True)), **_FLAGS}.items()
        }
    return MappingProxyType(found)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("torchlab.cpu.amp")
    raise AttributeError(f"module 'torchlab.cpu' has no attribute '{name}'")
