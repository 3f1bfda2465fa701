"""What the caching allocator holds at one moment, as plain data (JSON-able) in the shape of
`torch.cuda.memory_snapshot()`, so that pictures and other tools can read it."""

from __future__ import annotations

from typing import Any

from torchlab._core.memory.blocks import Block, Segment
from torchlab._core.memory.caching_allocator import CachingAllocator

ALLOCATED = "active_allocated"  # a tensor holds it
PENDING = "active_pending_free"  # freed, but work that another stream has queued may still read it
INACTIVE = "inactive"  # a hole


def block_state(block: Block) -> str:
    """The block's state under PyTorch's name."""
    if block.allocated:
        return ALLOCATED
    return PENDING if block.active else INACTIVE


def _segment(segment: Segment, index: int) -> dict[str, Any]:
    blocks = [
        {
            "address": block.address,
            "size": block.size,
            "requested_size": block.requested,
            "state": block_state(block),
            "frames": [],
        }
        for block in segment.blocks()
    ]
    active = [b for b in blocks if b["state"] != INACTIVE]
    return {
        "device": index,
        "id": segment.id,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(b["size"] for b in active if b["state"] == ALLOCATED),
        "active_size": sum(b["size"] for b in active),
        "requested_size": sum(b["requested_size"] for b in active),
        "stream": segment.stream,
        "segment_type": segment.pool.name,
        "segment_pool_id": [0, 0],
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def snapshot(allocator: CachingAllocator) -> list[dict[str, Any]]:
    """The allocator's segments with their blocks, both by address; sizes in bytes.

    Segment: device (index), id (ours: the number that events carry), address, total_size,
    allocated_size, active_size, requested_size, stream, segment_type ("small" or "large"), blocks.
    Block: address, size, requested_size (0 for a hole), state ("active_allocated",
    "active_pending_free", "inactive").
    """
    index = int(allocator.device.name.partition(":")[2] or 0)
    with allocator.lock:
        segments = sorted(allocator.segments.values(), key=lambda s: s.address)
        return [_segment(segment, index) for segment in segments]
