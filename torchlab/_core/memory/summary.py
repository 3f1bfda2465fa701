"""The allocator's counters as a table for people (`torch.cuda.memory_summary`)."""

from __future__ import annotations

from torchlab._core.memory.caching_allocator import CachingAllocator
from torchlab._core.memory.policy import format_size

_ROWS = (
    ("Allocated memory", "allocated_bytes"),
    ("Active memory", "active_bytes"),
    ("Requested memory", "requested_bytes"),
    ("Reserved memory", "reserved_bytes"),
    ("Non-releasable memory", "inactive_split_bytes"),
    ("Allocations", "allocation"),
    ("Active allocations", "active"),
    ("Segments", "segment"),
    ("Non-releasable holes", "inactive_split"),
)
_POOLS = (("", "all"), ("  from large pool", "large_pool"), ("  from small pool", "small_pool"))


def summary(allocator: CachingAllocator, abbreviated: bool = False) -> str:
    """A table with current, peak, allocated in total and freed in total; `abbreviated` leaves the
    two pools out."""
    stats = allocator.memory_stats()
    head = ["", "current", "peak", "total allocated", "total freed"]
    rows: list[list[str]] = []
    for title, kind in _ROWS:
        for suffix, pool in _POOLS[:1] if abbreviated else _POOLS:
            values = [
                stats[f"{kind}.{pool}.{n}"] for n in ("current", "peak", "allocated", "freed")
            ]
            shown = [format_size(v) if "memory" in title else str(v) for v in values]
            rows.append([suffix or title, *shown])
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    retries, ooms = stats["num_alloc_retries"], stats["num_ooms"]
    title = (
        f"Memory of {allocator.device.name}: {format_size(allocator.device.total_bytes)} in all, "
        f"allocation retries: {retries}, out of memory: {ooms}"
    )
    return "\n".join([title, line(head), rule, *(line(r) for r in rows)])
