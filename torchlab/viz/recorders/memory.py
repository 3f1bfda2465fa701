"""The caching allocator: its segments and blocks now, and what happened while a recorder
listened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from torchlab._core import events
from torchlab._core.backends import sim
from torchlab._core.device import concrete, device
from torchlab._core.events import Topic
from torchlab._core.memory.caching_allocator import CachingAllocator
from torchlab._core.memory.snapshot import ALLOCATED, INACTIVE
from torchlab._core.memory.snapshot import snapshot as raw_snapshot
from torchlab.viz.pictures import MemoryPicture
from torchlab.viz.recorders.common import (
    LiveRecorder,
    Named,
    in_notebook,
    named_tensors,
    user_source,
)
from torchlab.viz.snapshots.common import VERSION, Source, source_text
from torchlab.viz.snapshots.memory import Event, MemorySnapshot, Segment, thin

MAX_EVENTS = 20_000
SHOWN_EVENTS = 600


def allocator_of(which: Any) -> CachingAllocator:
    """The allocator of a device ("sim", "sim:1" or a `torch.device`).

    Raises:
        ValueError: a device whose memory no caching allocator keeps.
    """
    found = concrete(device(which) if isinstance(which, str) else which)
    if found.type != "sim" or found.index is None:
        raise ValueError(
            f"memory: no caching allocator keeps the memory of {found}; pictures exist for 'sim' "
            "devices"
        )
    return sim.sim_allocator(found.index)


def _owners(names: Named) -> dict[int, str]:
    """Block address → name of the tensor that holds it, and of its gradient."""
    found: dict[int, str] = {}
    for name, tensor in named_tensors(names).items():
        for label, held in ((name, tensor), (f"{name}.grad", tensor._g)):
            block = getattr(getattr(held, "_s", None), "block", None)
            if block is not None:
                found.setdefault(block.address, label)
    return found


def _take(
    allocator: CachingAllocator,
    names: Named,
    sources: dict[int, Source],
    history: list[Event],
) -> MemorySnapshot:
    owners = _owners(names)
    statistics = allocator.statistics
    with allocator.lock:
        raw = raw_snapshot(allocator)
        allocated, reserved = (statistics.current(f"{k}_bytes") for k in ("allocated", "reserved"))
        peaks = [statistics.peak(f"{k}_bytes") for k in ("allocated", "reserved")]
        limit = allocator.limit if allocator.limit is not None else allocator.device.total_bytes
    segments: list[Segment] = []
    for segment in raw:
        number, start = segment["id"], segment["address"]
        blocks = []
        for block in segment["blocks"]:
            address, state = block["address"], block["state"]
            source = None if state == INACTIVE else sources.get(address)
            blocks.append(
                {
                    "id": f"b{number}.{address - start}",
                    "offset": address - start,
                    "size": block["size"],
                    "requested": block["requested_size"],
                    "state": (
                        "allocated"
                        if state == ALLOCATED
                        else "free"
                        if state == INACTIVE
                        else "pending"
                    ),
                    "owner": (
                        "" if state == INACTIVE else owners.get(address) or source_text(source)
                    ),
                    "source": source,
                }
            )
        segments.append(
            {
                "id": f"seg{number}",
                "address": start,
                "size": segment["total_size"],
                "pool": segment["segment_type"],
                "stream": segment["stream"],
                "blocks": blocks,  # type: ignore[typeddict-item]
            }
        )
    return MemorySnapshot(
        kind="memory",
        version=VERSION,
        device=allocator.device.name,
        limit=limit,
        allocated=allocated,
        reserved=reserved,
        peak_allocated=peaks[0],
        peak_reserved=peaks[1],
        segments=segments,
        events=thin(history, SHOWN_EVENTS),
    )


def memory(device: Any = "sim", names: Named = None) -> MemoryPicture:
    """The allocator's segments and blocks now.

    Args:
        device: "sim", "sim:1" or a `torch.device`.
        names: who holds what: a module, a mapping (`globals()` will do), or pairs (name, tensor).

    For lines and a timeline, record with `live_memory` or `MemoryRecorder`.

    Raises:
        ValueError: the device has no caching allocator.
    """
    return MemoryPicture(_take(allocator_of(device), names, {}, []))


class MemoryRecorder(LiveRecorder):
    """Follows an allocator: every event, and the user's line that asked for each block."""

    kind = "memory"

    def __init__(self, device: Any = "sim", names: Named = None, interval: float = 0.05) -> None:
        super().__init__(interval)
        self.allocator = allocator_of(device)
        self.names = names
        self._count = 0
        self._history: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._sources: dict[int, Source] = {}
        statistics = self.allocator.statistics
        self._allocated = statistics.current("allocated_bytes")
        self._reserved = statistics.current("reserved_bytes")

    def _listeners(self) -> list[tuple[Topic, Callable[..., None]]]:
        return [
            (events.block_alloc, self._on_alloc),
            (events.block_free, self._on_free),
            (events.segment_alloc, self._on_segment),
            (events.segment_free, self._on_segment_free),
            (events.out_of_memory, self._on_oom),
        ]

    def _note(
        self,
        device: str,
        kind: str,
        size: int,
        allocated: int,
        reserved: int,
        source: Source | None,
    ) -> None:
        if device != self.allocator.device.name:
            return
        with self._lock:
            self._allocated += allocated
            self._reserved += reserved
            self._history.append(
                {
                    "i": self._count,
                    "kind": kind,
                    "size": size,
                    "allocated": self._allocated,
                    "reserved": self._reserved,
                    "label": source_text(source),
                }
            )
            self._count += 1
        self._changed()

    def _on_alloc(self, device: str, address: int, size: int, **_: Any) -> None:
        source = user_source()
        if source is not None and device == self.allocator.device.name:
            with self._lock:
                self._sources[address] = source
        self._note(device, "alloc", size, size, 0, source)

    def _on_free(self, device: str, address: int, size: int, **_: Any) -> None:
        self._note(device, "free", size, -size, 0, user_source())

    def _on_segment(self, device: str, size: int, **_: Any) -> None:
        self._note(device, "segment_alloc", size, 0, size, user_source())

    def _on_segment_free(self, device: str, size: int, **_: Any) -> None:
        self._note(device, "segment_free", size, 0, -size, user_source())

    def _on_oom(self, device: str, requested: int, **_: Any) -> None:
        self._note(device, "oom", requested, 0, 0, user_source())

    def snapshot(self) -> MemorySnapshot:
        """The allocator now, and the recorded events (many are thinned out, peaks stay)."""
        with self._lock:
            history, sources = list(self._history), dict(self._sources)
        return _take(self.allocator, self.names, sources, history)


def live_memory(device: Any = "sim", names: Named = None, interval: float = 0.05) -> MemoryRecorder:
    """A recorder that is shown live in a notebook: `with viz.live_memory(names=globals()):
    train()`."""
    recorder = MemoryRecorder(device, names, interval)
    if in_notebook():
        recorder.show()
    return recorder
