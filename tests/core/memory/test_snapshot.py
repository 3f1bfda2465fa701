"""Snapshots are plain data in PyTorch's shape, and the table of the counters."""

from __future__ import annotations

import json

from torchlab._core.backends.sim import SimDevice
from torchlab._core.memory.caching_allocator import CachingAllocator
from torchlab._core.memory.snapshot import snapshot
from torchlab._core.memory.summary import summary

MIB = 1024 * 1024


class NeverPassed:
    """An event of a stream that is busy for ever."""

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        raise AssertionError("nobody should wait here")


def test_segments_and_blocks_in_the_shape_of_pytorch() -> None:
    allocator = CachingAllocator(SimDevice(3, 64 * MIB))
    allocator.record_event = lambda stream: NeverPassed()
    a, b, c = allocator.malloc(100), allocator.malloc(600), allocator.malloc(512)
    big = allocator.malloc(10 * MIB, stream=5)
    allocator.free(a)
    allocator.record_stream(b, 2)
    allocator.free(b)
    small, large = snapshot(allocator)
    base = c.address - 1536
    assert small == {
        "device": 3,
        "id": 0,
        "address": base,
        "total_size": 2 * MIB,
        "allocated_size": 512,
        "active_size": 1536,
        "requested_size": 1112,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": [0, 0],
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": base + offset,
                "size": size,
                "requested_size": requested,
                "state": state,
                "frames": [],
            }
            for offset, size, requested, state in (
                (0, 512, 0, "inactive"),
                (512, 1024, 600, "active_pending_free"),
                (1536, 512, 512, "active_allocated"),
                (2048, 2 * MIB - 2048, 0, "inactive"),
            )
        ],
    }
    assert (large["segment_type"], large["stream"], large["address"]) == ("large", 5, big.address)
    assert large["total_size"] == large["allocated_size"] == 10 * MIB


def test_a_snapshot_is_json_and_independent_of_what_follows() -> None:
    allocator = CachingAllocator(SimDevice(0, 64 * MIB))
    block = allocator.malloc(512)
    taken = snapshot(allocator)
    text = json.dumps(taken)
    allocator.free(block)
    allocator.empty_cache()
    assert snapshot(allocator) == []
    assert json.loads(text) == taken and taken[0]["allocated_size"] == 512


def test_segments_are_sorted_by_address() -> None:
    allocator = CachingAllocator(SimDevice(0, 256 * MIB))
    first, _second = allocator.malloc(30 * MIB), allocator.malloc(30 * MIB)
    allocator.free(first)
    allocator.empty_cache()
    allocator.malloc(20 * MIB)  # gets the lower address that became free
    found = [(s["id"], s["total_size"] // MIB) for s in snapshot(allocator)]
    assert found == [(2, 20), (1, 30)]


def test_the_summary_is_an_aligned_table() -> None:
    allocator = CachingAllocator(SimDevice(0, 64 * MIB))
    allocator.free(allocator.malloc(2048))
    allocator.malloc(3 * MIB)
    full, short = summary(allocator).splitlines(), summary(allocator, True).splitlines()
    assert full[0] == "Memory of sim:0: 64.00 MiB in all, allocation retries: 0, out of memory: 0"
    assert len(full) == 3 + 27 and len(short) == 3 + 9
    assert len({len(line) for line in full[1:]}) == 1
    cells = [cell.strip() for cell in full[3].strip("|").split("|")]
    assert cells == ["Allocated memory", "3.00 MiB", "3.00 MiB", "3.00 MiB", "2.00 KiB"]
