"""The tuple that stands for a storage in a pickle, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.storages import TypedStorage, UntypedStorage
from torchlab.serialization.storage_classes import QuantizedStorage, StorageType


@dataclass(frozen=True, slots=True)
class StorageId:
    """key: its name in the file; numel: elements of `dtype`; location: "cpu", "cuda:0";
    view: (key, offset, size) of a part of it, in old files."""

    dtype: dt.dtype
    key: str
    location: str
    numel: int
    view: tuple[str, int, int] | None = None

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.numel * self.dtype.itemsize


def _count(x: Any) -> bool:
    return type(x) is int and 0 <= x < 2**60


def parse(pid: Any, most: int = 5) -> StorageId:
    """The parts of ("storage", class, key, location, numel[, view]); RuntimeError if it is none."""
    name = pid[0] if isinstance(pid, tuple) and pid and type(pid[0]) is str else ""
    if name != "storage" or not 5 <= len(pid) <= most:
        kind = name[:60] or type(pid)
        raise RuntimeError(
            f"Unknown typename for persistent_load, expected 'storage' but got {kind}"
        )
    _, kind, key, location, numel = pid[:5]
    dtype: Any
    if kind is UntypedStorage or kind is TypedStorage:
        dtype = dt.uint8
    else:
        dtype = getattr(kind, "dtype", None)
        if not isinstance(dtype, dt.dtype) or not (
            isinstance(kind, StorageType)
            or (isinstance(kind, type) and issubclass(kind, TypedStorage | QuantizedStorage))
        ):
            raise RuntimeError("a storage in the file has no class of storages as its type")
    if type(key) is not str or type(location) is not str or not _count(numel):
        raise RuntimeError("a storage in the file has a damaged key, location or size")
    view = pid[5] if len(pid) == 6 else None
    if view is not None and not (
        isinstance(view, tuple)
        and len(view) == 3
        and type(view[0]) is str
        and _count(view[1])
        and _count(view[2])
    ):
        raise RuntimeError("a storage in the file has a damaged view")
    return StorageId(dtype, key, location, numel, view)
