"""Segments and blocks: the pieces into which the caching allocator cuts a device's memory.

A *segment* is one piece of memory that the device handed out. It is tiled without gaps by
*blocks*, a doubly linked list in the order of addresses. A block is either handed out to a tensor,
or a *hole*: free, and kept for the next request. Only holes are in a `FreePool`.

A block that was handed out is never handed out again as the same object: a freed region becomes a
new hole. A stale reference can so be recognised (freeing twice is an error, not a corrupted list).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Protocol


class SegmentMemory(Protocol):
    """The memory of one segment, as a raw device gives it."""

    @property
    def address(self) -> int:
        """The address of the first byte, on the device."""

    def view(self, offset: int, nbytes: int) -> Any:
        """A writable one-dimensional uint8 array (NumPy's or CuPy's) of `nbytes` bytes from
        `offset`."""


class RawDevice(Protocol):
    """What the caching allocator needs from a device: slow, whole pieces of memory."""

    @property
    def name(self) -> str:
        """The device with its index: "sim:0", "cuda:1"."""

    @property
    def total_bytes(self) -> int:
        """The device's capacity."""

    @property
    def free_bytes(self) -> int:
        """What nobody holds at the moment."""

    @property
    def remedy(self) -> str:
        """A sentence for the out-of-memory error: how this device gets more memory; may be
        empty."""

    def raw_alloc(self, nbytes: int) -> SegmentMemory:
        """`nbytes` bytes, aligned to 512; raises `MemoryError` when the device cannot give them."""

    def raw_free(self, memory: Any) -> None:
        """Take back what `raw_alloc` gave."""

    def null_buffer(self) -> Any:
        """The uint8 array of no bytes that stands for an empty storage."""


class Segment:
    """One piece of the device's memory, tiled by blocks."""

    __slots__ = ("id", "address", "size", "memory", "pool", "stream", "first")

    def __init__(
        self, id: int, size: int, memory: SegmentMemory, pool: FreePool, stream: int
    ) -> None:
        self.id = id
        self.address = memory.address
        self.size = size
        self.memory = memory
        self.pool = pool
        self.stream = stream
        self.first: Block = Block(self.address, size, self, stream)

    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of their addresses; their sizes add up to the segment's."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next

    def __repr__(self) -> str:
        return f"Segment({self.id}, {self.pool.name}, address={self.address:#x}, size={self.size})"


class Block:
    """A run of bytes in a segment: handed out (`allocated`), awaiting a stream, or a hole.

    address, size, requested: bytes; `requested` is what was asked for before rounding (0 for a
    hole).
    allocated: a tensor holds it. active: allocated, or freed while another stream still reads it.
    """

    __slots__ = (
        "address",
        "size",
        "requested",
        "segment",
        "stream",
        "allocated",
        "active",
        "prev",
        "next",
        "stream_uses",
        "freed_at",
        "__weakref__",
    )

    def __init__(self, address: int, size: int, segment: Segment | None, stream: int) -> None:
        self.address = address
        self.size = size
        self.requested = 0
        self.segment = segment
        self.stream = stream
        self.allocated = False
        self.active = False
        self.prev: Block | None = None
        self.next: Block | None = None
        self.stream_uses: set[int] | None = None
        self.freed_at = 0

    @property
    def is_split(self) -> bool:
        """Whether the block is only a part of its segment."""
        return self.prev is not None or self.next is not None

    def buffer(self) -> Any:
        """The block's bytes as a writable uint8 array of `size` elements (not `requested`)."""
        assert self.segment is not None
        return self.segment.memory.view(self.address - self.segment.address, self.size)

    def __repr__(self) -> str:
        state = "allocated" if self.allocated else "awaiting free" if self.active else "free"
        return f"Block({self.address:#x}, size={self.size}, requested={self.requested}, {state})"


class NullBlock(Block):
    """What a request for zero bytes gets: address 0, no segment, nothing to free."""

    __slots__ = ("_empty",)

    def __init__(self, stream: int, empty: Any) -> None:
        super().__init__(0, 0, None, stream)
        self._empty = empty

    def buffer(self) -> Any:
        """The device's empty uint8 array."""
        return self._empty


def link(
    segment: Segment, left: Block | None, middle: tuple[Block, ...], right: Block | None
) -> None:
    """Put the blocks `middle` between `left` and `right` (None: the segment's border)."""
    chain: list[Block | None] = [left, *middle, right]
    for a, b in zip(chain, chain[1:], strict=False):
        if a is not None:
            a.next = b
        if b is not None:
            b.prev = a
    if left is None:
        segment.first = middle[0]


class FreePool:
    """The holes of one size class, ordered by (stream, size, address): the first that is large
    enough is the best fit, and among equals the one at the lowest address."""

    __slots__ = ("name", "lookups", "_order", "_holes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lookups = 0
        self._order: list[tuple[int, int, int]] = []
        self._holes: dict[int, Block] = {}

    def add(self, hole: Block) -> None:
        """Offer a hole. Its size may not change while it is here."""
        hole.freed_at = self.lookups
        insort(self._order, (hole.stream, hole.size, hole.address))
        self._holes[hole.address] = hole

    def remove(self, hole: Block) -> None:
        """Take a hole out."""
        del self._holes[hole.address]
        del self._order[bisect_left(self._order, (hole.stream, hole.size, hole.address))]

    def best_fit(self, size: int, stream: int) -> Block | None:
        """The smallest hole of `stream` with at least `size` bytes; it stays in the pool."""
        i = bisect_left(self._order, (stream, size, -1))
        if i < len(self._order) and self._order[i][0] == stream:
            return self._holes[self._order[i][2]]
        return None

    def holes(self) -> list[Block]:
        """All holes by (stream, size, address): a copy, so that the caller may remove some."""
        return [self._holes[address] for _, _, address in self._order]

    def __len__(self) -> int:
        return len(self._order)
