"""What the user may set about files: byte order, checksums, memory maps, data left out.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import mmap
import threading
from enum import Enum
from typing import Any

MAP_SHARED = getattr(mmap, "MAP_SHARED", 1)
MAP_PRIVATE = getattr(mmap, "MAP_PRIVATE", 2)


class LoadEndianness(Enum):
    """The byte order that files without a record of it are taken to have."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    endianness: LoadEndianness | None = None
    crc32 = True
    mmap_flags = MAP_PRIVATE


class _Skipping(threading.local):
    depth = 0


_options = _Options()
_skipping = _Skipping()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order for files that do not record theirs; None: the machine's own."""
    return _options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order for files that do not record theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "Invalid argument type in function set_default_load_endianness: expected a"
            f" LoadEndianness or None, not {type(endianness).__name__}"
        )
    _options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `torch.save` computes the checksum of each record."""
    return _options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `torch.save` computes the checksum of each record. Without them (zeros stand in their
    place) `torch.load` works, other zip programs complain."""
    _options.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """MAP_PRIVATE or MAP_SHARED: what `torch.load(mmap=True)` maps files with."""
    return _options.mmap_flags


class set_default_mmap_options:
    """`set_default_mmap_options(mmap.MAP_SHARED)`: writes to tensors that were loaded with
    `mmap=True` reach the file. MAP_PRIVATE (the default): they stay in memory. As a context
    manager it holds inside."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE"
                f" or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = _options.mmap_flags
        _options.mmap_flags = flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        _options.mmap_flags = self._before


class skip_data:
    """Inside, `torch.save` leaves the place of tensors' data empty (zeros) and `torch.load` makes
    tensors without reading their data. Per thread."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        _skipping.depth += 1

    def __exit__(self, *exc: Any) -> None:
        _skipping.depth -= 1


def skipping() -> bool:
    """Whether this thread is inside `skip_data()`."""
    return _skipping.depth > 0


for _public in (
    LoadEndianness, get_default_load_endianness, set_default_load_endianness, get_crc32_options,
    set_crc32_options, get_default_mmap_options, set_default_mmap_options, skip_data,
):  # fmt: skip
    _public.__module__ = "torchlab.serialization"
