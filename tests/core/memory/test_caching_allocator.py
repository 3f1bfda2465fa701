"""The caching allocator against sequences worked out by hand, and invariants under random use."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchlab._core import events
from torchlab._core.backends.sim import SimDevice, SimMemory
from torchlab._core.errors import OutOfMemoryError
from torchlab._core.memory.blocks import Block
from torchlab._core.memory.caching_allocator import CachingAllocator
from torchlab._core.memory.policy import AllocatorSettings, format_size, round_size, segment_size

KIB, MIB = 1024, 1024 * 1024


def make(capacity: int = 256 * MIB, settings: AllocatorSettings | None = None) -> CachingAllocator:
    return CachingAllocator(SimDevice(0, capacity), settings)


def sizes(allocator: CachingAllocator) -> list[list[tuple[int, bool]]]:
    """Per segment, in the order of their making: (size, allocated) of every block."""
    return [
        [(b.size, b.allocated) for b in segment.blocks()] for segment in allocator.segments.values()
    ]


def check(allocator: CachingAllocator) -> None:
    """What must hold at any time between two calls, recomputed from the blocks alone."""
    expected = {
        (kind, pool): 0
        for kind in allocator.statistics.by_pool
        for pool in ("all", "small", "large")
    }
    holes = set()
    for segment in allocator.segments.values():
        address, before = segment.address, None
        for block in segment.blocks():
            assert block.address == address and block.size % 512 == 0 and block.size > 0
            assert block.prev is before and block.segment is segment
            assert before is None or before.active or block.active, "two holes side by side"
            address, before = address + block.size, block
            if not block.active:
                holes.add(block)
            amounts = {
                "allocation": block.allocated,
                "allocated_bytes": block.size * block.allocated,
                "active": block.active,
                "active_bytes": block.size * block.active,
                "requested_bytes": block.requested * block.active,
                "inactive_split": not block.active and block.is_split,
                "inactive_split_bytes": block.size * (not block.active and block.is_split),
            }
            for kind, amount in amounts.items():
                expected[kind, "all"] += amount
                expected[kind, segment.pool.name] += amount
        assert address == segment.address + segment.size, "the blocks do not tile the segment"
        for pool in ("all", segment.pool.name):
            expected["segment", pool] += 1
            expected["reserved_bytes", pool] += segment.size
    for (kind, pool), value in expected.items():
        stat = allocator.statistics.by_pool[kind][pool]
        assert stat.current == value == stat.allocated - stat.freed, (kind, pool)
        assert stat.peak >= stat.current
    assert set(allocator.small_pool.holes()) | set(allocator.large_pool.holes()) == holes
    device = allocator.device
    assert device.total_bytes - device.free_bytes == expected["reserved_bytes", "all"]
    spans = sorted((s.address, s.address + s.size) for s in allocator.segments.values())
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_requests_are_rounded_to_512_bytes() -> None:
    assert [round_size(n) for n in (1, 511, 512, 513, 1024, 1025)] == [
        512,
        512,
        512,
        1024,
        1024,
        1536,
    ]


@pytest.mark.parametrize(
    ("request_bytes", "segment", "pool"),
    [
        (1, 2 * MIB, "small"),
        (MIB, 2 * MIB, "small"),
        (MIB + 1, 20 * MIB, "large"),
        (10 * MIB - 512, 20 * MIB, "large"),
        (10 * MIB, 10 * MIB, "large"),
        (10 * MIB + 1, 12 * MIB, "large"),
        (33 * MIB, 34 * MIB, "large"),
    ],
)
def test_segment_and_pool_of_a_request(request_bytes: int, segment: int, pool: str) -> None:
    assert segment_size(round_size(request_bytes)) == segment
    allocator = make()
    block = allocator.malloc(request_bytes)
    assert block.segment is not None
    assert (block.segment.size, block.segment.pool.name) == (segment, pool)
    assert block.requested == request_bytes
    check(allocator)


def test_a_small_segment_is_split_down_to_512_bytes() -> None:
    allocator = make()
    a, b = allocator.malloc(MIB), allocator.malloc(MIB - 512)
    assert sizes(allocator) == [[(MIB, True), (MIB - 512, True), (512, False)]]
    c = allocator.malloc(7)
    assert sizes(allocator) == [[(MIB, True), (MIB - 512, True), (512, True)]]
    assert b.address == a.address + MIB and c.address == b.address + MIB - 512
    allocator.malloc(1)  # the segment is full
    assert [len(s) for s in sizes(allocator)] == [3, 2]
    check(allocator)


def test_a_large_segment_is_split_only_when_more_than_1_mib_is_left() -> None:
    kept = make()
    kept.malloc(9 * MIB)
    kept.malloc(10 * MIB)  # from the hole of 11 MiB: exactly 1 MiB would be left
    assert sizes(kept) == [[(9 * MIB, True), (11 * MIB, True)]]
    assert kept.statistics.current("allocated_bytes") == 20 * MIB
    assert kept.statistics.current("requested_bytes") == 19 * MIB
    split = make()
    split.malloc(9 * MIB)
    split.malloc(10 * MIB - 512)
    assert sizes(split) == [[(9 * MIB, True), (10 * MIB - 512, True), (MIB + 512, False)]]
    check(kept)
    check(split)


def test_a_freed_block_merges_with_the_holes_on_both_sides() -> None:
    allocator = make()
    a, b, c, d = (allocator.malloc(512) for _ in range(4))
    rest = 2 * MIB - 2048
    allocator.free(a)
    allocator.free(c)
    assert sizes(allocator) == [
        [(512, False), (512, True), (512, False), (512, True), (rest, False)]
    ]
    assert allocator.statistics.current("inactive_split") == 3
    allocator.free(b)
    assert sizes(allocator) == [[(1536, False), (512, True), (rest, False)]]
    allocator.free(d)
    assert sizes(allocator) == [[(2 * MIB, False)]]
    assert allocator.statistics.current("inactive_split") == 0
    # As in PyTorch each call makes one net change: the first malloc added a hole of 2 MiB - 512,
    # three took 512 each; freeing a and c added 512 and a hole each, freeing b 512.
    split = allocator.memory_stats()
    assert split["inactive_split.all.allocated"] == 3
    assert split["inactive_split.all.freed"] == 3
    assert split["inactive_split_bytes.all.allocated"] == 2 * MIB - 512 + 3 * 512
    check(allocator)


def test_the_smallest_hole_that_fits_is_taken_and_of_equals_the_lowest() -> None:
    allocator = make()
    held = {}
    for name, size in (("4k", 4096), ("1k", 1024), ("2k", 2048), ("1k again", 1024)):
        held[name] = allocator.malloc(size)
        allocator.malloc(512)  # keeps the holes apart
    for block in held.values():
        allocator.free(block)
    assert allocator.malloc(1000).address == held["1k"].address
    assert allocator.malloc(1000).address == held["1k again"].address
    third = allocator.malloc(1500)  # 1536 of 2048: 512 are split off
    assert (third.address, third.size) == (held["2k"].address, 1536)
    assert allocator.malloc(100).address == third.address + 1536
    assert allocator.malloc(4000).address == held["4k"].address
    check(allocator)


def test_a_hole_serves_only_the_stream_it_was_made_for() -> None:
    allocator = make()
    a = allocator.malloc(512, stream=0)
    allocator.free(a)
    other = allocator.malloc(512, stream=7)
    assert other.segment is not a.segment and other.stream == 7
    assert allocator.malloc(512, stream=0).address == a.address
    check(allocator)


def test_current_peak_allocated_and_freed() -> None:
    allocator = make()
    a, b = allocator.malloc(1000), allocator.malloc(2 * MIB)
    allocator.free(a)
    stats = allocator.memory_stats()
    assert stats["allocated_bytes.all.current"] == 2 * MIB
    assert stats["allocated_bytes.all.peak"] == 2 * MIB + 1024
    assert stats["allocated_bytes.all.allocated"] == 2 * MIB + 1024
    assert stats["allocated_bytes.all.freed"] == 1024
    assert stats["allocated_bytes.small_pool.peak"] == 1024
    assert stats["requested_bytes.small_pool.peak"] == 1000
    assert stats["reserved_bytes.all.current"] == 22 * MIB
    assert stats["segment.large_pool.current"] == 1
    assert stats["inactive_split_bytes.all.current"] == 18 * MIB
    assert stats["num_device_alloc"] == 2 and stats["max_split_size"] == -1
    allocator.statistics.reset_peak()
    allocator.statistics.reset_accumulated()
    stats = allocator.memory_stats()
    assert stats["allocated_bytes.all.peak"] == 2 * MIB
    assert stats["allocated_bytes.all.allocated"] == 0 and stats["num_device_alloc"] == 0
    allocator.free(b)


def test_freed_memory_is_cached_until_empty_cache() -> None:
    allocator = make()
    blocks = [allocator.malloc(n) for n in (512, 3 * MIB, 30 * MIB)]
    for block in blocks:
        allocator.free(block)
    assert allocator.statistics.current("reserved_bytes") == 52 * MIB
    assert allocator.malloc(30 * MIB).address == blocks[2].address  # without asking the device
    assert allocator.statistics.counters["num_device_alloc"] == 3
    allocator.empty_cache()
    assert allocator.statistics.current("reserved_bytes") == 30 * MIB
    check(allocator)


def test_the_cache_is_given_back_before_memory_runs_out() -> None:
    allocator = make(64 * MIB)
    allocator.free(allocator.malloc(40 * MIB))
    block = allocator.malloc(48 * MIB)
    assert block.size == 48 * MIB
    assert allocator.statistics.counters["num_alloc_retries"] == 1
    assert allocator.statistics.counters["num_ooms"] == 0
    assert allocator.statistics.peak("reserved_bytes") == 48 * MIB
    check(allocator)


def test_out_of_memory_names_the_sizes_and_holds_nothing() -> None:
    allocator = make(64 * MIB)
    held = allocator.malloc(48 * MIB)
    with pytest.raises(OutOfMemoryError) as caught:
        allocator.malloc(17 * MIB)
    text = str(caught.value)
    for part in (
        "SIM out of memory. Tried to allocate 17.00 MiB (a segment of 18.00 MiB)",
        "sim:0 has a total capacity of 64.00 MiB of which 16.00 MiB is free",
        "48.00 MiB is allocated by tensors",
        "0 bytes is reserved but unallocated",
        "TORCHLAB_SIM_MEMORY",
    ):
        assert part in text
    assert issubclass(OutOfMemoryError, RuntimeError)
    assert allocator.statistics.counters["num_ooms"] == 1
    check(allocator)
    allocator.free(held)
    assert allocator.malloc(17 * MIB).size == 17 * MIB  # as before: nothing was lost


def test_fragmentation_is_named_as_the_reason() -> None:
    allocator = make(20 * MIB)
    blocks = [allocator.malloc(5 * MIB) for _ in range(4)]
    allocator.free(blocks[0])
    allocator.free(blocks[2])  # 10 MiB free in all, but in two pieces
    with pytest.raises(OutOfMemoryError, match=r"fragmented: the largest free block has 5\.00 MiB"):
        allocator.malloc(8 * MIB)
    check(allocator)


def test_the_limit_bounds_what_is_reserved() -> None:
    allocator = make(64 * MIB)
    allocator.set_limit(20 * MIB)
    block = allocator.malloc(5 * MIB)
    with pytest.raises(OutOfMemoryError, match=r"memory limit is 20\.00 MiB.*set_memory_limit"):
        allocator.malloc(512)  # 2 MiB more
    allocator.malloc(12 * MIB)  # from the cache
    allocator.set_limit(None)
    allocator.malloc(512)
    allocator.set_limit(0)  # what is held stays
    allocator.free(block)
    check(allocator)
    with pytest.raises(ValueError, match="limit must be between 0 and the device's 67108864"):
        allocator.set_limit(65 * MIB)
    with pytest.raises(ValueError, match="limit"):
        allocator.set_limit(-1)
    assert allocator.limit == 0


def test_no_bytes_give_a_null_block() -> None:
    allocator = make()
    block = allocator.malloc(0)
    assert (block.address, block.size, block.segment) == (0, 0, None)
    assert block.buffer().shape == (0,)
    allocator.free(block)
    allocator.free(block)
    assert allocator.segments == {}
    with pytest.raises(ValueError, match="-1 bytes"):
        allocator.malloc(-1)


def test_buffers_are_writable_and_do_not_overlap() -> None:
    allocator = make()
    blocks = [allocator.malloc(n) for n in (700, 512, 3 * MIB)]
    for value, block in enumerate(blocks, start=1):
        block.buffer()[:] = value
    assert [(b.buffer().size, set(b.buffer().tolist())) for b in blocks[:2]] == [
        (1024, {1}),
        (512, {2}),
    ]
    assert (blocks[2].buffer() == 3).all()
    assert all(b.buffer().ctypes.data % 512 == 0 for b in blocks)


def test_freeing_twice_or_elsewhere_is_an_error_and_changes_nothing() -> None:
    allocator, other = make(), make()
    block = allocator.malloc(512)
    with pytest.raises(RuntimeError, match="belongs to another allocator"):
        other.free(block)
    allocator.free(block)
    again = allocator.malloc(512)  # the same bytes, but another block
    assert again.address == block.address
    with pytest.raises(RuntimeError, match="was freed before"):
        allocator.free(block)
    assert again.allocated
    check(allocator)


def test_max_split_size_keeps_large_holes_whole() -> None:
    allocator = make(256 * MIB, AllocatorSettings(max_split_size=32 * MIB))
    big = allocator.malloc(64 * MIB)
    assert allocator.statistics.plain["oversize_allocations"].current == 1
    allocator.free(big)
    assert allocator.malloc(12 * MIB).segment is not big.segment  # not cut from the hole of 64 MiB
    assert allocator.malloc(40 * MIB).segment is not big.segment  # it would waste 24 MiB
    near = allocator.malloc(50 * MIB)  # wastes 14 MiB: under 20, so the whole hole is given
    assert (near.address, near.size) == (big.address, 64 * MIB)
    check(allocator)
    with pytest.raises(ValueError, match="max_split_size is too small"):
        AllocatorSettings(max_split_size=20 * MIB)


def test_with_max_split_size_one_large_hole_goes_before_the_whole_cache() -> None:
    allocator = make(128 * MIB, AllocatorSettings(max_split_size=32 * MIB))
    cached = [allocator.malloc(n * MIB) for n in (12, 40, 70)]
    for block in cached:
        allocator.free(block)
    allocator.malloc(36 * MIB)  # the hole of 40 fits, and is used
    allocator.malloc(32 * MIB)  # 70 would waste 38 MiB: the device is asked, and refuses
    assert allocator.statistics.counters["num_alloc_retries"] == 0
    assert sorted(s.size // MIB for s in allocator.segments.values()) == [12, 32, 40]
    check(allocator)


def test_garbage_collection_gives_back_what_was_idle_longest() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.5)
    allocator = make(100 * MIB, settings)
    old = allocator.malloc(30 * MIB)
    allocator.free(old)
    young = allocator.malloc(10 * MIB, stream=1)
    for _ in range(3):  # lookups, by which age is counted
        allocator.free(allocator.malloc(20 * MIB, stream=2))
    allocator.free(young)
    assert allocator.statistics.current("reserved_bytes") == 60 * MIB
    allocator.malloc(10 * MIB, stream=3)  # 60 > 50 MiB: the oldest 30 MiB go, which is enough
    assert sorted(s.size // MIB for s in allocator.segments.values()) == [10, 10, 20]
    assert allocator.statistics.counters["num_alloc_retries"] == 0
    check(allocator)
    with pytest.raises(ValueError, match="garbage_collection_threshold"):
        AllocatorSettings(garbage_collection_threshold=1.0)


class Mark:
    """A stream event that passes when told, or when somebody waits for it."""

    def __init__(self) -> None:
        self.passed = False

    def query(self) -> bool:
        return self.passed

    def synchronize(self) -> None:
        self.passed = True


def test_a_block_that_another_stream_uses_is_held_back() -> None:
    allocator = make()
    marks: list[tuple[int, Mark]] = []

    def record(stream: int) -> Mark:
        marks.append((stream, Mark()))
        return marks[-1][1]

    allocator.record_event = record
    block = allocator.malloc(512)
    allocator.record_stream(block, 0)  # its own stream: nothing to note
    allocator.record_stream(block, 3)
    allocator.free(block)
    assert [stream for stream, _ in marks] == [3]
    assert (block.allocated, block.active) == (False, True)
    assert allocator.statistics.current("allocated_bytes") == 0
    assert allocator.statistics.current("active_bytes") == 512
    second = allocator.malloc(512)
    assert second.address == block.address + 512
    check(allocator)
    marks[0][1].passed = True
    assert allocator.malloc(512).address == block.address
    allocator.record_stream(second, 3)
    allocator.free(second)
    allocator.empty_cache()  # waits for the stream
    assert allocator.statistics.current("active") == 1
    assert allocator.statistics.counters["num_sync_all_streams"] == 1
    check(allocator)


def test_events_tell_the_story_in_order() -> None:
    allocator = make(24 * MIB)
    story: list[tuple[str, dict]] = []
    topics = (
        events.segment_alloc,
        events.block_alloc,
        events.block_free,
        events.segment_free,
        events.out_of_memory,
    )
    subscriptions = [
        t.subscribe(lambda name=t.name, **payload: story.append((name, payload))) for t in topics
    ]
    try:
        block = allocator.malloc(100)
        allocator.free(block)
        with pytest.raises(OutOfMemoryError):
            allocator.malloc(30 * MIB)
    finally:
        for subscription in subscriptions:
            subscription.close()
    here = {"device": "sim:0", "segment": 0, "address": block.address}
    assert story == [
        ("segment_alloc", {**here, "size": 2 * MIB, "pool": "small"}),
        ("block_alloc", {**here, "size": 512, "requested": 100, "stream": 0}),
        ("block_free", {**here, "size": 512, "stream": 0}),
        ("segment_free", {**here, "size": 2 * MIB}),
        (
            "out_of_memory",
            {
                "device": "sim:0",
                "requested": 30 * MIB,
                "limit": 24 * MIB,
                "allocated": 0,
                "reserved": 0,
            },
        ),
    ]


def test_a_listener_may_read_allocate_and_free() -> None:
    allocator = make()
    seen: list[object] = []

    def listener(requested: int, **payload: object) -> None:
        seen.append(requested)
        check(allocator)
        if requested == 512:  # not for its own allocation, which is told too
            allocator.free(allocator.malloc(1024))

    with events.block_alloc.subscribe(listener):
        allocator.malloc(512)
    assert seen == [512, 1024] and allocator.statistics.current("allocated_bytes") == 512
    check(allocator)


class Interrupting(SimDevice):
    """Runs `action` in the middle of an allocation, as a finalizer might."""

    action = staticmethod(lambda: None)

    def raw_alloc(self, nbytes: int) -> SimMemory:
        self.action()
        return super().raw_alloc(nbytes)


def test_a_tensor_may_die_in_the_middle_of_an_allocation() -> None:
    device = Interrupting(0, 64 * MIB)
    allocator = CachingAllocator(device)
    victim = allocator.malloc(512)
    device.action = lambda: allocator.free(victim)
    allocator.malloc(30 * MIB)
    assert not victim.active and allocator.statistics.current("allocated_bytes") == 30 * MIB
    check(allocator)


def test_a_finalizer_that_allocates_in_the_middle_is_refused() -> None:
    device = Interrupting(0, 64 * MIB)
    allocator = CachingAllocator(device)
    device.action = lambda: allocator.malloc(512)
    with pytest.raises(RuntimeError, match="allocate outside of finalizers"):
        allocator.malloc(30 * MIB)
    device.action = lambda: None
    check(allocator)
    assert allocator.malloc(512).size == 512


def test_threads_share_an_allocator() -> None:
    allocator = make()
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng, mine = random.Random(seed), []
        try:
            for _ in range(300):
                if mine and rng.random() < 0.5:
                    allocator.free(mine.pop(rng.randrange(len(mine))))
                else:
                    mine.append(allocator.malloc(rng.choice([1, 600, 70_000, 2_000_000])))
                if len(mine) > 8:
                    allocator.free(mine.pop(0))
            for block in mine:
                allocator.free(block)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert allocator.statistics.current("allocation") == 0
    assert all(len(blocks) == 1 for blocks in sizes(allocator))
    check(allocator)


def test_format_size() -> None:
    shown = [format_size(n) for n in (0, 512, 1536, 20 * MIB, 2048 * MIB)]
    assert shown == ["0 bytes", "512 bytes", "1.50 KiB", "20.00 MiB", "2.00 GiB"]


REQUESTS = st.one_of(
    st.integers(0, 4096),
    st.integers(0, 3 * MIB),
    st.sampled_from([MIB - 512, MIB, MIB + 1, 9 * MIB, 10 * MIB, 10 * MIB + 1, 21 * MIB]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), REQUESTS, st.sampled_from([0, 0, 0, 1])),
        st.tuples(st.just("free"), st.integers(0, 10**6), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    max_size=40,
)
SETTINGS = st.sampled_from(
    [
        AllocatorSettings(),
        AllocatorSettings(max_split_size=20 * MIB + 512),
        AllocatorSettings(garbage_collection_threshold=0.4),
    ]
)


@given(steps=STEPS, settings=SETTINGS, limit=st.sampled_from([None, 30 * MIB]))
def test_invariants_under_random_use(
    steps: list[tuple[str, int, int]], settings: AllocatorSettings, limit: int | None
) -> None:
    allocator = make(64 * MIB, settings)
    allocator.set_limit(limit)
    held: list[Block] = []
    for action, number, stream in steps:
        if action == "malloc":
            try:
                held.append(allocator.malloc(number, stream))
            except OutOfMemoryError:
                # Only when even an empty cache leaves too little room.
                room = (limit or 64 * MIB) - allocator.statistics.current("reserved_bytes")
                assert segment_size(round_size(number)) > room
            else:
                block = held[-1]
                assert block.size >= number == block.requested and block.stream == stream
        elif action == "free" and held:
            allocator.free(held.pop(number % len(held)))
        elif action == "empty_cache":
            allocator.empty_cache()
            assert all(any(used for _, used in blocks) for blocks in sizes(allocator))
        check(allocator)
        live = sorted((b.address, b.address + b.size) for b in held if b.segment is not None)
        assert all(end <= start for (_, end), (start, _) in zip(live, live[1:], strict=False))
        total = sum(b.size for b in held)
        assert allocator.statistics.current("allocated_bytes") == total
    for block in held:
        allocator.free(block)
    assert all(len(blocks) == 1 and not blocks[0][1] for blocks in sizes(allocator))
    allocator.empty_cache()
    assert allocator.statistics.current("reserved_bytes") == 0 and allocator.segments == {}
    check(allocator)
