"""A caching allocator as data: segments, their blocks, and what happened so far."""

from __future__ import annotations

from typing import TypedDict

from torchlab.viz.snapshots.common import Source


class Block(TypedDict):
    """A piece of a segment. `state`: 'allocated', 'free', or 'pending' (freed, a stream still uses
    it)."""

    id: str
    offset: int  # from the segment's start, bytes
    size: int  # bytes, rounded by the allocator
    requested: int  # bytes asked for
    state: str
    owner: str  # who holds it: a parameter name, a saved tensor, '' if not known
    source: Source | None


class Segment(TypedDict):
    """Memory taken from the device in one piece."""

    id: str
    address: int
    size: int
    pool: str  # 'small' | 'large'
    stream: int
    blocks: list[Block]  # by offset, without gaps


class Event(TypedDict):
    """One point of the timeline. `kind`: alloc, free, segment_alloc, segment_free, oom."""

    i: int
    kind: str
    size: int
    allocated: int  # after the event, bytes
    reserved: int
    label: str


class MemorySnapshot(TypedDict):
    """The whole picture. `limit` is the device's memory, None if not known."""

    kind: str  # 'memory'
    version: int
    device: str
    limit: int | None
    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int
    segments: list[Segment]
    events: list[Event]


def thin(events: list[Event], most: int) -> list[Event]:
    """At most `most` events: the highest allocation of every stretch stays, with the first, the
    last and every out-of-memory."""
    if len(events) <= most or most < 3:
        return list(events)
    step = -(-len(events) // (most - 2))
    kept = {events[0]["i"]: events[0], events[-1]["i"]: events[-1]}
    for start in range(0, len(events), step):
        top = max(events[start : start + step], key=lambda e: e["allocated"])
        kept[top["i"]] = top
    for event in events:
        if event["kind"] == "oom":
            kept[event["i"]] = event
    return [kept[i] for i in sorted(kept)]


def fragmentation(snapshot: MemorySnapshot) -> float:
    """1 − largest free block / all free bytes; 0 where nothing is free."""
    free = [b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "free"]
    return 1 - max(free) / sum(free) if free else 0.0
