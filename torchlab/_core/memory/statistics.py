"""Counters of the caching allocator, under the names of `torch.cuda.memory_stats`."""

from __future__ import annotations

POOL_KINDS = (
    "allocation",  # blocks that tensors hold
    "segment",  # segments taken from the device
    "active",  # blocks held, or freed and awaiting a stream
    "inactive_split",  # holes that are only a part of their segment: they cannot be given back
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",  # as allocated_bytes, but before rounding
)
PLAIN_KINDS = ("oversize_allocations", "oversize_segments")  # at least max_split_size bytes
COUNTERS = (
    "num_alloc_retries",  # the device refused, and cached segments were given back for a second try
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
)


class Stat:
    """A quantity over time: its value now, its peak, and all that was ever added and removed."""

    __slots__ = ("current", "peak", "allocated", "freed")

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount: int) -> None:
        """Change the value by `amount`, which may be negative."""
        self.current += amount
        if amount > 0:
            self.allocated += amount
            if self.current > self.peak:
                self.peak = self.current
        else:
            self.freed -= amount

    def items(self) -> list[tuple[str, int]]:
        """(name, value) of the four numbers."""
        return [(name, getattr(self, name)) for name in self.__slots__]


class Statistics:
    """All counters of one allocator. `pool` is "small" or "large"; "all" is their sum, with a peak
    of its own (the peak of a sum is not the sum of the peaks)."""

    def __init__(self) -> None:
        self.by_pool = {
            kind: {"all": Stat(), "small": Stat(), "large": Stat()} for kind in POOL_KINDS
        }
        self._pairs = {
            (kind, pool): (pools["all"], pools[pool])
            for kind, pools in self.by_pool.items()
            for pool in ("small", "large")
        }
        self.plain = {kind: Stat() for kind in PLAIN_KINDS}
        self.counters = dict.fromkeys(COUNTERS, 0)

    def add(self, kind: str, pool: str, amount: int) -> None:
        """Change `kind` by `amount` in the pool and in the sum of the pools."""
        if amount:
            for stat in self._pairs[kind, pool]:
                stat.add(amount)

    def current(self, kind: str) -> int:
        """The present value of `kind`, over both pools."""
        return self.by_pool[kind]["all"].current

    def peak(self, kind: str) -> int:
        """The peak of `kind`, over both pools."""
        return self.by_pool[kind]["all"].peak

    def _all(self) -> list[Stat]:
        return [s for pools in self.by_pool.values() for s in pools.values()] + [
            *self.plain.values()
        ]

    def reset_peak(self) -> None:
        """Let the peaks start again from the present values."""
        for stat in self._all():
            stat.peak = stat.current

    def reset_accumulated(self) -> None:
        """Set the historical sums (`allocated`, `freed`) and the counters to zero."""
        for stat in self._all():
            stat.allocated = stat.freed = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    def flat(self, max_split_size: int | None) -> dict[str, int]:
        """{"allocated_bytes.all.current": 512, ...}, sorted by name. `max_split_size` is -1 when
        blocks of every size may be split."""
        flat: dict[str, int] = dict(self.counters)
        flat["max_split_size"] = -1 if max_split_size is None else max_split_size
        for kind, pools in self.by_pool.items():
            for pool, stat in pools.items():
                key = pool if pool == "all" else f"{pool}_pool"
                flat.update((f"{kind}.{key}.{name}", value) for name, value in stat.items())
        for kind, stat in self.plain.items():
            flat.update((f"{kind}.{name}", value) for name, value in stat.items())
        return dict(sorted(flat.items()))
