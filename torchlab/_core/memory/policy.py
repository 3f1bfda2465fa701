"""The caching allocator's sizes and options: what is rounded to what, which request is small."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1024, 1024**2, 1024**3
ROUNDING = 512  # every block's size is a multiple of it
SMALL_REQUEST = MIB  # the largest request of the small pool
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
MEDIUM_REQUEST = 10 * MIB  # from here on a request gets a segment of its own size
SEGMENT_ROUNDING = 2 * MIB


@dataclass(frozen=True)
class AllocatorSettings:
    """Options, with the meaning of PyTorch's PYTORCH_ALLOC_CONF.

    max_split_size: bytes, more than 20 MiB; None splits blocks of any size.
    garbage_collection_threshold: share of the limit, 0 (off) to below 1.
    """

    max_split_size: int | None = None
    garbage_collection_threshold: float = 0.0

    def __post_init__(self) -> None:
        if self.max_split_size is not None and self.max_split_size <= LARGE_SEGMENT:
            raise ValueError(
                f"max_split_size is too small: {self.max_split_size} bytes, must be more than "
                f"{LARGE_SEGMENT} (20 MiB)"
            )
        if not 0.0 <= self.garbage_collection_threshold < 1.0:
            raise ValueError(
                "garbage_collection_threshold must be at least 0 and less than 1, got "
                f"{self.garbage_collection_threshold}"
            )


def round_size(nbytes: int) -> int:
    """The size of the block for a request: the next multiple of 512 bytes, at least 512."""
    return max(ROUNDING, -(-nbytes // ROUNDING) * ROUNDING)


def segment_size(size: int) -> int:
    """The size of the segment that a rounded request takes from the device."""
    if size <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if size < MEDIUM_REQUEST:
        return LARGE_SEGMENT
    return -(-size // SEGMENT_ROUNDING) * SEGMENT_ROUNDING


def format_size(nbytes: int) -> str:
    """Bytes for people: "512 bytes", "1.50 KiB", "20.00 MiB", "2.00 GiB"."""
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if nbytes >= scale:
            return f"{nbytes / scale:.2f} {unit}"
    return f"{nbytes} bytes"
