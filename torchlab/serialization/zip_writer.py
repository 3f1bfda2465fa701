"""PyTorch's zip archives, written in one pass to anything that has `write`.

Records lie uncompressed, and each begins at a multiple of 64 bytes (a padding field "FB" in its
header sees to it), so that a file can be mapped into memory and its storages used in place. Sizes
and checksums follow the data, as the writer need not go back.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
        https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT (zip)
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any

ALIGNMENT = 64
_LIMIT = 0xFFFFFFFF  # sizes and offsets from here on need zip64 fields
_UTF8, _SIZES_FOLLOW = 0x0800, 0x0008
_CHUNK = 1 << 24


class ZipWriter:
    """Writes records: `record("data/0", memory)`, and at the end `close()`.

    prefix: the folder of all records; crc32: whether checksums are computed.
    """

    def __init__(self, file: Any, prefix: str, crc32: bool = True) -> None:
        self._file = file
        self._prefix = prefix
        self._crc32 = crc32
        self._at = 0
        self._entries: list[tuple[bytes, int, int, int, int]] = []  # name, flags, crc, size, offset
        self._digest = hashlib.sha256()

    def _write(self, data: Any) -> None:
        n = len(data)
        written = self._file.write(data)
        if written is not None and written != n:
            raise RuntimeError(
                f"PytorchStreamWriter failed writing file: {written} of {n} bytes were written; is"
                " the disk full?"
            )
        self._at += n

    def record(self, name: str, data: Any, identify: bool = True) -> None:
        """Add a record. data: bytes, or anything with a buffer of bytes.

        `identify`: whether it counts for the archive's identity.
        """
        raw = memoryview(data).cast("B") if len(memoryview(data)) else memoryview(b"")
        size = len(raw)
        parts = (raw[i : i + _CHUNK] for i in range(0, size, _CHUNK))
        self._record(name, size, parts, identify)

    def blank(self, name: str, size: int) -> None:
        """Add a record of zeros."""
        zeros = memoryview(bytes(min(size, _CHUNK)))
        parts = (zeros[: min(_CHUNK, size - i)] for i in range(0, size, _CHUNK))
        self._record(name, size, parts, True)

    def _record(self, name: str, size: int, parts: Iterator[Any], identify: bool) -> None:
        path = f"{self._prefix}/{name}".encode()
        offset = self._at
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LIMIT else b""
        start = offset + 30 + len(path) + len(extra) + 4
        pad = ALIGNMENT - start % ALIGNMENT if start % ALIGNMENT else 0
        extra += b"FB" + struct.pack("<H", pad) + b"Z" * pad
        seen = _LIMIT if size >= _LIMIT else 0
        flags = _UTF8 | (_SIZES_FOLLOW if size else 0)
        self._write(
            struct.pack(
                "<4sHHHHHIIIHH", b"PK\3\4", 0, flags, 0, 0, 0, 0, seen, seen, len(path),
                len(extra),
            )
            + path
            + extra
        )  # fmt: skip
        crc = 0
        for part in parts:
            if self._crc32:
                crc = zlib.crc32(part, crc)
            self._write(part)
        if size:
            form = "<4sIQQ" if seen else "<4sIII"
            self._write(struct.pack(form, b"PK\7\x08", crc, size, size))
        self._entries.append((path, flags, crc, size, offset))
        if identify:
            self._digest.update(struct.pack("<QQ", size, crc) + name.encode() + b"\0")

    def identity(self) -> str:
        """40 digits that depend on the names, sizes and checksums of the records so far."""
        first, second = struct.unpack("<QQ", self._digest.digest()[:16])
        return f"{first:020d}{second:020d}"

    def close(self) -> None:
        """Write the directory."""
        begin = self._at
        for path, flags, crc, size, offset in self._entries:
            wide = b""
            if size >= _LIMIT:
                wide += struct.pack("<QQ", size, size)
            if offset >= _LIMIT:
                wide += struct.pack("<Q", offset)
            if wide:
                wide = struct.pack("<HH", 1, len(wide)) + wide
            n, where = min(size, _LIMIT), min(offset, _LIMIT)
            self._write(
                struct.pack(
                    "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 0, 0, flags, 0, 0, 0, crc, n, n, len(path),
                    len(wide), 0, 0, 0, 0, where,
                )
                + path
                + wide
            )  # fmt: skip
        end, count = self._at, len(self._entries)
        self._write(
            struct.pack(
                "<4sQHHIIQQQQ", b"PK\6\6", 44, 0x031E, 45, 0, 0, count, count, end - begin, begin
            )
        )
        self._write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        few = min(count, 0xFFFF)
        sizes = (min(end - begin, _LIMIT), min(begin, _LIMIT))
        self._write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, few, few, *sizes, 0))
