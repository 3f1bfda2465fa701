"""The caching allocator: one for every accelerator, with the algorithm of PyTorch's.

Note: how it works
------------------
Asking a device for memory is slow and may stall it, and a training step asks thousands of times
for the same sizes. So the allocator asks rarely, for large *segments*, and cuts them into *blocks*:

1. A request is rounded up to a multiple of 512 bytes. Up to 1 MiB it belongs to the *small* pool,
   above to the *large* pool, so that small tensors do not chop up the room of large ones.
2. The pool is searched for the smallest hole that fits, among the holes of the same stream (work
   on one stream runs in order, so memory that was freed there may be reused there at once). Equal
   sizes: the lowest address.
3. No hole: a new segment. The small pool takes 2 MiB; the large pool takes 20 MiB for requests
   under 10 MiB, otherwise the request rounded up to 2 MiB.
4. What is left of the hole is *split* off when it is worth keeping: at least 512 bytes in the
   small pool, more than 1 MiB in the large one. Otherwise the block is larger than asked for
   (internal fragmentation).
5. A freed block *merges* with the holes beside it. It stays with the allocator: "reserved" counts
   the segments, "allocated" the blocks that tensors hold, and the difference is the cache.
6. The device (or the limit) refuses: whole free segments go back to the device and the request is
   tried once more (`num_alloc_retries`); then it is an `OutOfMemoryError` (`num_ooms`). A segment
   with one small tensor left in it cannot go back: that is (external) fragmentation.

Options: from `max_split_size` on, holes are never split and serve only requests of similar size;
with `garbage_collection_threshold`, large cached segments that were idle longest are given back
when usage passes that share of the limit. Source: PyTorch's notes on CUDA semantics, "Memory
management".

Note: threads and finalizers
----------------------------
Every change happens under one lock. But a tensor may die anywhere,
even while this thread is in the middle of `malloc` (the garbage collector runs when it likes).
`free` therefore never waits: it puts the block into a queue, and whoever holds the lock takes the
queue over when it is done. Events are queued likewise and delivered in order when the lists are
consistent, with the lock held: a listener may read, allocate and free, but must not wait for
another thread that allocates.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from torchlab._core import events
from torchlab._core.errors import OutOfMemoryError
from torchlab._core.memory.blocks import (
    Block,
    FreePool,
    NullBlock,
    RawDevice,
    Segment,
    link,
)
from torchlab._core.memory.policy import (
    LARGE_SEGMENT,
    ROUNDING,
    SMALL_REQUEST,
    AllocatorSettings,
    format_size,
    round_size,
    segment_size,
)
from torchlab._core.memory.statistics import Statistics


class StreamEvent(Protocol):
    """A mark in a stream's queue of work."""

    def query(self) -> bool:
        """Whether the stream has passed the mark."""

    def synchronize(self) -> None:
        """Wait until it has."""


class _Section:
    """`with allocator._section:` one change of the lists, then the queued frees and events."""

    __slots__ = ("_owner",)

    def __init__(self, owner: CachingAllocator) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        owner = self._owner
        owner.lock.acquire()
        if owner._changing:
            owner.lock.release()
            raise RuntimeError(
                f"{owner.device.name}: a finalizer or signal handler asked for device memory while "
                "the allocator was at work in the same thread; allocate outside of finalizers"
            )
        owner._changing = True
        try:
            owner._take_returned()
        except BaseException:  # a stream's failure must not leave the lock held
            owner._changing = False
            owner.lock.release()
            raise

    def __exit__(self, *exc: object) -> None:
        owner = self._owner
        owner._changing = False
        try:
            owner._deliver()
        finally:
            owner.lock.release()
        owner._settle()


class CachingAllocator:
    """Hands out blocks of a device's memory and keeps what is freed (see the Note above).

    `limit` (bytes or None) bounds the reserved memory below the device's capacity. `record_event`,
    set by a backend with asynchronous streams, marks the present end of a stream's queue; without
    it a freed block is reusable at once.
    """

    def __init__(self, device: RawDevice, settings: AllocatorSettings | None = None) -> None:
        self.device = device
        self.settings = settings or AllocatorSettings()
        self.statistics = Statistics()
        self.limit: int | None = None
        self.record_event: Callable[[int], StreamEvent] | None = None
        self.lock = threading.RLock()
        self.segments: dict[int, Segment] = {}  # by id
        self.small_pool = FreePool("small")
        self.large_pool = FreePool("large")
        self._next_id = 0
        self._returned: deque[Block] = deque()  # freed by tensors, not yet seen under the lock
        self._awaiting: list[tuple[Block, list[StreamEvent]]] = []
        self._outbox: deque[tuple[events.Topic, dict[str, Any]]] = deque()
        self._changing = False
        self._section = _Section(self)

    # -- what tensors call -------------------------------------------------------------------------

    def malloc(self, nbytes: int, stream: int = 0) -> Block:
        """A block of at least `nbytes` bytes (uninitialised), for work on `stream`.

        Zero bytes give a null block (address 0, an empty buffer). Raises `OutOfMemoryError`, after
        having tried again without the cache; nothing is held then.
        """
        if nbytes <= 0:
            if nbytes < 0:
                raise ValueError(f"{self.device.name}: cannot allocate {nbytes} bytes")
            return NullBlock(stream, self.device.null_buffer())
        size = round_size(nbytes)
        with self._section:
            if self._awaiting:
                self._reclaim(wait=False)
            pool = self.small_pool if size <= SMALL_REQUEST else self.large_pool
            hole = self._find_hole(pool, size, stream)
            if hole is None:
                hole = self._new_segment(pool, size, stream, nbytes).first
            else:
                pool.remove(hole)
            return self._hand_out(hole, pool, size, nbytes)

    def free(self, block: Block) -> None:
        """Take a block back. Never waits, and may be called from finalizers and other threads."""
        segment = block.segment
        if segment is None:
            return
        if not block.allocated:
            raise RuntimeError(f"{self.device.name}: {block} was freed before")
        if self.segments.get(segment.id) is not segment:
            raise RuntimeError(f"{self.device.name}: {block} belongs to another allocator")
        block.allocated = False
        self._returned.append(block)
        self._settle()

    def record_stream(self, block: Block, stream: int) -> None:
        """Note that work on `stream` uses the block too: once freed, the block is not handed out
        before that stream has passed the work that is queued on it at that time."""
        if block.segment is not None and stream != block.stream:
            with self._section:
                block.stream_uses = (block.stream_uses or set()) | {stream}

    def empty_cache(self) -> None:
        """Give every segment that no tensor touches back to the device."""
        with self._section:
            self._release_cached()

    def set_limit(self, nbytes: int | None) -> None:
        """Bound the reserved memory; None: only by the device's capacity. What is held already
        stays, even over the limit: it is the next new segment that fails."""
        if nbytes is not None and not 0 <= nbytes <= self.device.total_bytes:
            raise ValueError(
                f"{self.device.name}: the memory limit must be between 0 and the device's "
                f"{self.device.total_bytes} bytes, got {nbytes}. {self.device.remedy}".rstrip()
            )
        self.limit = nbytes

    def memory_stats(self) -> dict[str, int]:
        """The counters under the names of `torch.cuda.memory_stats`."""
        with self.lock:
            return self.statistics.flat(self.settings.max_split_size)

    # -- finding and cutting -----------------------------------------------------------------------

    def _find_hole(self, pool: FreePool, size: int, stream: int) -> Block | None:
        pool.lookups += 1
        hole = pool.best_fit(size, stream)
        most = self.settings.max_split_size
        if hole is None or most is None:
            return hole
        if size < most:
            return hole if hole.size < most else None  # would have to be split, which it must not
        return hole if hole.size < size + LARGE_SEGMENT else None  # would waste too much

    def _hand_out(self, hole: Block, pool: FreePool, size: int, requested: int) -> Block:
        """Turn a hole (already out of its pool) into an allocated block, splitting off the rest."""
        segment, left, right = hole.segment, hole.prev, hole.next
        assert segment is not None
        add, kind, was_split = self.statistics.add, pool.name, hole.is_split
        taken = size if self._worth_splitting(pool, hole.size - size, size) else hole.size
        block = Block(hole.address, taken, segment, hole.stream)
        # Holes in split segments are counted; one net change keeps the sums over time PyTorch's.
        split_holes, split_bytes = (-1, -hole.size) if was_split else (0, 0)
        if taken < hole.size:
            rest = Block(hole.address + taken, hole.size - taken, segment, hole.stream)
            link(segment, left, (block, rest), right)
            pool.add(rest)
            split_holes, split_bytes = split_holes + 1, split_bytes + rest.size
        else:
            link(segment, left, (block,), right)
        block.requested = requested
        block.allocated = block.active = True
        add("allocation", kind, 1)
        add("allocated_bytes", kind, taken)
        add("active", kind, 1)
        add("active_bytes", kind, taken)
        add("requested_bytes", kind, requested)
        add("inactive_split", kind, split_holes)
        add("inactive_split_bytes", kind, split_bytes)
        if self._is_oversize(taken):
            self.statistics.plain["oversize_allocations"].add(1)
        if events.block_alloc.listeners:
            self._post(
                events.block_alloc,
                segment=segment.id,
                address=block.address,
                size=taken,
                requested=requested,
                stream=block.stream,
            )
        return block

    def _worth_splitting(self, pool: FreePool, rest: int, size: int) -> bool:
        if pool is self.small_pool:
            return rest >= ROUNDING
        most = self.settings.max_split_size
        return (most is None or size < most) and rest > SMALL_REQUEST

    def _is_oversize(self, size: int) -> bool:
        most = self.settings.max_split_size
        return most is not None and size >= most

    # -- segments ----------------------------------------------------------------------------------

    def _new_segment(self, pool: FreePool, size: int, stream: int, requested: int) -> Segment:
        nbytes = segment_size(size)
        self._collect_garbage()
        segment = self._try_segment(pool, nbytes, stream)
        if segment is None and self._release_oversize(pool, size, stream):
            segment = self._try_segment(pool, nbytes, stream)
        if segment is None:
            self._release_cached()
            self.statistics.counters["num_alloc_retries"] += 1
            segment = self._try_segment(pool, nbytes, stream)
        if segment is None:
            self._out_of_memory(nbytes, requested)
        return segment

    def _try_segment(self, pool: FreePool, nbytes: int, stream: int) -> Segment | None:
        """A new segment as one block outside of the pool, or None where limit or device refuse."""
        reserved = self.statistics.current("reserved_bytes")
        if self.limit is not None and reserved + nbytes > self.limit:
            return None
        try:
            memory = self.device.raw_alloc(nbytes)
        except MemoryError:
            return None
        segment = Segment(self._next_id, nbytes, memory, pool, stream)
        self._next_id += 1
        self.segments[segment.id] = segment
        self.statistics.add("segment", pool.name, 1)
        self.statistics.add("reserved_bytes", pool.name, nbytes)
        self.statistics.counters["num_device_alloc"] += 1
        if self._is_oversize(nbytes):
            self.statistics.plain["oversize_segments"].add(1)
        if events.segment_alloc.listeners:
            self._post(
                events.segment_alloc,
                segment=segment.id,
                address=segment.address,
                size=nbytes,
                pool=pool.name,
            )
        return segment

    def _release_segment(self, hole: Block) -> None:
        """Give the segment that `hole` fills back to the device."""
        segment = hole.segment
        assert segment is not None and not hole.is_split
        segment.pool.remove(hole)
        del self.segments[segment.id]
        self.device.raw_free(segment.memory)
        self.statistics.add("segment", segment.pool.name, -1)
        self.statistics.add("reserved_bytes", segment.pool.name, -segment.size)
        self.statistics.counters["num_device_free"] += 1
        if self._is_oversize(segment.size):
            self.statistics.plain["oversize_segments"].add(-1)
        if events.segment_free.listeners:
            self._post(
                events.segment_free,
                segment=segment.id,
                address=segment.address,
                size=segment.size,
            )

    def _release_cached(self) -> None:
        """Give back every segment that is one hole, after waiting for the streams of freed
        blocks."""
        if self._awaiting:
            self.statistics.counters["num_sync_all_streams"] += 1
            self._reclaim(wait=True)
        for pool in (self.large_pool, self.small_pool):
            for hole in pool.holes():
                if not hole.is_split:
                    self._release_segment(hole)

    def _release_oversize(self, pool: FreePool, size: int, stream: int) -> bool:
        """With `max_split_size`: give back the smallest unsplittable hole that makes enough room,
        or the largest ones until their sum does. Returns whether it did."""
        most = self.settings.max_split_size
        if most is None:
            return False
        needed = max(size, most)
        hole = pool.best_fit(needed, stream)
        if hole is not None and not hole.is_split:
            self._release_segment(hole)
            return True
        released = 0
        for hole in reversed([h for h in pool.holes() if h.stream == stream and not h.is_split]):
            if hole.size < most or released >= needed:
                break
            released += hole.size
            self._release_segment(hole)
        return released >= needed

    def _collect_garbage(self) -> None:
        """Give back large cached segments that were idle longer than average, until usage is under
        the threshold. Age is counted in lookups of the pool since the hole was made."""
        limit = self.device.total_bytes if self.limit is None else self.limit
        threshold = int(self.settings.garbage_collection_threshold * limit)
        excess = self.statistics.current("reserved_bytes") - threshold
        if threshold <= 0 or excess <= 0:
            return
        pool = self.large_pool
        candidates = [h for h in pool.holes() if not h.is_split]
        while excess > 0 and candidates:
            ages = [pool.lookups - h.freed_at for h in candidates]
            mean = sum(ages) / len(ages)
            old = [h for h, age in zip(candidates, ages, strict=True) if age >= mean]
            candidates = [h for h in candidates if h not in old]
            for hole in old:
                excess -= hole.size
                self._release_segment(hole)

    def _out_of_memory(self, nbytes: int, requested: int) -> NoReturn:
        self.statistics.counters["num_ooms"] += 1
        device, current = self.device, self.statistics.current
        reserved, allocated = current("reserved_bytes"), current("allocated_bytes")
        limit = device.total_bytes if self.limit is None else self.limit
        if events.out_of_memory.listeners:
            self._post(
                events.out_of_memory,
                requested=requested,
                limit=limit,
                allocated=allocated,
                reserved=reserved,
            )
        holes = self.small_pool.holes() + self.large_pool.holes()
        unallocated = reserved - allocated
        remedy = "Drop references to tensors you no longer need, or use smaller batches."
        if unallocated >= requested:
            largest = max((h.size for h in holes), default=0)
            remedy = (
                f"The memory is fragmented: the largest free block has {format_size(largest)}, and "
                "segments with a tensor in them cannot be given back. Allocate tensors that live "
                "long before those that live short, or set max_split_size. " + remedy
            )
        if self.limit is not None:
            remedy += (
                f" The memory limit is {format_size(self.limit)}: raise it with set_memory_limit."
            )
        elif device.remedy:
            remedy += f" {device.remedy}"
        raise OutOfMemoryError(
            f"{device.name.partition(':')[0].upper()} out of memory. Tried to allocate "
            f"{format_size(requested)} (a segment of {format_size(nbytes)}). {device.name} has a "
            f"total capacity of {format_size(device.total_bytes)} of which "
            f"{format_size(device.free_bytes)} is free. {format_size(allocated)} is allocated by "
            f"tensors, and {format_size(unallocated)} is reserved but unallocated. {remedy}"
        )

    # -- freeing -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Take over the queue of freed blocks, unless somebody is at work, who will do it. The loop
        looks again after letting go of the lock: a block may have come in just before that."""
        while self._returned and self.lock.acquire(blocking=False):
            try:
                if self._changing:
                    return
                self._changing = True
                try:
                    self._take_returned()
                finally:
                    self._changing = False
                self._deliver()
            finally:
                self.lock.release()

    def _take_returned(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            segment = block.segment
            assert segment is not None
            kind = segment.pool.name
            self.statistics.add("allocation", kind, -1)
            self.statistics.add("allocated_bytes", kind, -block.size)
            if self._is_oversize(block.size):
                self.statistics.plain["oversize_allocations"].add(-1)
            if events.block_free.listeners:
                self._post(
                    events.block_free,
                    segment=segment.id,
                    address=block.address,
                    size=block.size,
                    stream=block.stream,
                )
            if block.stream_uses and self.record_event is not None:
                marks = [self.record_event(stream) for stream in sorted(block.stream_uses)]
                self._awaiting.append((block, marks))
            else:
                self._make_hole(block)

    def _reclaim(self, wait: bool) -> None:
        """Make holes of the freed blocks whose streams are done; `wait`: of all, waiting for
        them."""
        still: list[tuple[Block, list[StreamEvent]]] = []
        for block, marks in self._awaiting:
            if wait:
                for mark in marks:
                    mark.synchronize()
            elif not all(mark.query() for mark in marks):
                still.append((block, marks))
                continue
            self._make_hole(block)
        self._awaiting = still

    def _make_hole(self, block: Block) -> None:
        """Put a new hole in the block's place, merged with the holes on both sides."""
        segment, left, right = block.segment, block.prev, block.next
        assert segment is not None
        pool, add = segment.pool, self.statistics.add
        start, end = block.address, block.address + block.size
        split_holes = split_bytes = 0
        if left is not None and not left.active:
            pool.remove(left)
            split_holes, split_bytes = split_holes - 1, split_bytes - left.size
            start, left = left.address, left.prev
        if right is not None and not right.active:
            pool.remove(right)
            split_holes, split_bytes = split_holes - 1, split_bytes - right.size
            end, right = right.address + right.size, right.next
        hole = Block(start, end - start, segment, block.stream)
        link(segment, left, (hole,), right)
        pool.add(hole)
        if hole.is_split:
            split_holes, split_bytes = split_holes + 1, split_bytes + hole.size
        add("inactive_split", pool.name, split_holes)
        add("inactive_split_bytes", pool.name, split_bytes)
        add("active", pool.name, -1)
        add("active_bytes", pool.name, -block.size)
        add("requested_bytes", pool.name, -block.requested)
        block.active = False
        block.prev = block.next = None

    # -- events ------------------------------------------------------------------------------------

    def _post(self, topic: events.Topic, **payload: Any) -> None:
        self._outbox.append((topic, payload))

    def _deliver(self) -> None:
        while self._outbox:
            topic, payload = self._outbox.popleft()
            topic.emit(device=self.device.name, **payload)

    def __repr__(self) -> str:
        current = self.statistics.current
        return (
            f"CachingAllocator({self.device.name}, allocated={current('allocated_bytes')}, "
            f"reserved={current('reserved_bytes')}, segments={len(self.segments)})"
        )
