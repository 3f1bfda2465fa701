"""Reading the formats from before PyTorch 1.6: see legacy_writer.py.

The storages' contents come after the object that uses them. So they are made first (their size is
checked against the file) and filled afterwards. If they have to go to another device, or the object
needs to look at their elements (indices of sparse tensors), it is read a second time, over the
storages as they are then.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.load.html
"""

from __future__ import annotations

import struct
import sys
import tarfile
from collections.abc import Callable
from typing import Any

from torchlab._core.dtype import dtype as DType
from torchlab._core.storages import TypedStorage, UntypedStorage, typed
from torchlab.serialization.legacy_writer import MAGIC_NUMBER, PROTOCOL_VERSION
from torchlab.serialization.rebuild import checking_later
from torchlab.serialization.storage_ids import StorageId, parse
from torchlab.serialization.zip_reader import fill

Loader = Callable[..., Any]
"""`loader(file, persistent_load)`: unpickles one object."""


def is_tar(file: Any, start: int) -> bool:
    """Whether a tar archive begins here: PyTorch's format before 0.1.10."""
    file.seek(start)
    head = file.read(tarfile.BLOCKSIZE)
    file.seek(start)
    return len(head) == tarfile.BLOCKSIZE and head[257:262] == b"ustar"


def _is_class(pid: Any) -> bool:
    """Whether it is ("module", class, file, source), a class with its text, which is for people."""
    return isinstance(pid, tuple) and len(pid) > 1 and type(pid[0]) is str and pid[0] == "module"


def _part(storage: UntypedStorage, wanted: StorageId) -> UntypedStorage:
    """The part of a storage that an id with a view means."""
    assert wanted.view is not None
    key, offset, size = wanted.view
    item = wanted.dtype.itemsize
    if (offset + size) * item > wanted.nbytes:
        raise RuntimeError(f"storage view {key[:60]} reaches beyond its storage")
    return storage[offset * item : (offset + size) * item]


class _Contents:
    """The storages of a file."""

    def __init__(self, room: int) -> None:
        self.room = room  # bytes of the file that may be storages
        self.found: dict[str, tuple[StorageId, UntypedStorage]] = {}
        self.views: dict[str, UntypedStorage] = {}

    def load(self, pid: Any) -> Any:
        """The storage of a persistent id, not yet filled."""
        if _is_class(pid):
            return pid[1]
        wanted = parse(pid, 6)
        known = self.found.get(wanted.key)
        if known is None:
            self.room -= wanted.nbytes
            if self.room < 0:
                raise RuntimeError(
                    f"storage {wanted.key[:60]} is declared with {wanted.nbytes} bytes, more than"
                    " the file has left: the file is damaged"
                )
            known = self.found[wanted.key] = (wanted, UntypedStorage(wanted.nbytes, device="cpu"))
        first, raw = known
        if first.nbytes != wanted.nbytes or first.dtype is not wanted.dtype:
            raise RuntimeError(f"storage {wanted.key[:60]} appears with two sizes or types")
        if wanted.view is None:
            return typed(raw, wanted.dtype)
        key = wanted.view[0]
        part = self.views.get(key)
        if part is None:
            part = self.views[key] = _part(raw, wanted)
        return typed(part, wanted.dtype)

    def fill(self, file: Any, keys: Any, swap: bool) -> None:
        """Read the contents."""
        if not isinstance(keys, list) or not all(type(k) is str for k in keys):
            raise RuntimeError("the list of storages in the file is damaged")
        if len(set(keys)) != len(keys) or set(keys) != set(self.found):
            raise RuntimeError("the list of storages in the file does not fit its tensors")
        for key in keys:
            wanted, raw = self.found[key]
            head = file.read(8)
            if len(head) < 8:
                raise RuntimeError(
                    f"unexpected EOF, expected {8 - len(head)} more bytes. The file might be"
                    " corrupted."
                )
            (count,) = struct.unpack("<q", head)
            if count != wanted.numel:
                raise RuntimeError(
                    f"storage has wrong byte size: expected {wanted.nbytes}, got"
                    f" {count * wanted.dtype.itemsize}"
                )
            fill(file, raw._storage.bytes.data, f"reading storage {key[:60]}")
            if swap and wanted.dtype.itemsize > 1:
                raw.byteswap(wanted.dtype)


def read(file: Any, loader: Loader, header_loader: Loader, restore: Any) -> Any:
    """The object of a file in the old format, from its present position on.

    loader, header_loader: unpickle the object, and the small parts around it.
    """
    start = file.tell()
    if is_tar(file, start):
        raise RuntimeError(
            "this file is a tar archive, the format of PyTorch before 0.1.10, which torchlab does"
            " not read; load it with PyTorch 2.8 or older and save it again"
        )
    magic = header_loader(file, None)
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = header_loader(file, None)
    if type(protocol) is not int or protocol != PROTOCOL_VERSION:
        shown = protocol if type(protocol) is int else type(protocol).__name__
        raise RuntimeError(f"Invalid protocol version: {shown}")
    machine = header_loader(file, None)
    little = not isinstance(machine, dict) or machine.get("little_endian") is not False
    body = file.tell()
    end = file.seek(0, 2)
    contents = _Contents((file.tell() if end is None else end) - body)
    file.seek(body)
    with checking_later() as checks:
        result = loader(file, contents.load)
    keys = header_loader(file, None)
    contents.fill(file, keys, little != (sys.byteorder == "little"))
    moved: dict[str, Any] = {}
    for key, (wanted, raw) in contents.found.items():
        moved[key] = restore(raw, wanted.location)
    if not checks and all(_same(moved[key], raw) for key, (_, raw) in contents.found.items()):
        return result
    after = file.tell()
    parts: dict[str, Any] = {}
    file.seek(body)

    def again(pid: Any) -> Any:
        if _is_class(pid):
            return pid[1]
        wanted = parse(pid, 6)
        if wanted.view is None:
            return _typed(moved[wanted.key], wanted.dtype)
        key = wanted.view[0]
        if key not in parts:
            parts[key] = _part(moved[wanted.key].untyped(), wanted)
        return _typed(parts[key], wanted.dtype)

    result = loader(file, again)
    file.seek(after)
    return result


def _same(moved: Any, raw: UntypedStorage) -> bool:
    return isinstance(moved, (UntypedStorage, TypedStorage)) and moved.untyped() is raw


def _typed(storage: Any, dtype: DType) -> TypedStorage:
    return typed(storage.untyped(), dtype)
