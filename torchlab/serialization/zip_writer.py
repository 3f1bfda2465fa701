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
from typing import Any

ALIGNMENT = 64
_LIMIT = 0xFFFFFFFF  # sizes and offsets from here on need zip64 fields
_FLAGS = 0x0808  # sizes follow the data; names are UTF-8
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
        self._entries: list[tuple[bytes, int, int, int]] = []  # name, crc, size, offset
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
        path = f"{self._prefix}/{name}".encode()
        offset, size = self._at, len(raw)
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LIMIT else b""
        start = offset + 30 + len(path) + len(extra) + 4
        pad = ALIGNMENT - start % ALIGNMENT if start % ALIGNMENT else 0
        extra += b"FB" + struct.pack("<H", pad) + b"Z" * pad
        seen = _LIMIT if size >= _LIMIT else 0
        self._write(
            struct.pack(
                "<4sHHHHHIIIHH", b"PK\3\4", 0, _FLAGS, 0, 0, 0, 0, seen, seen, len(path),
                len(extra),
            )
            + path
            + extra
        )  # fmt: skip
        crc = 0
        for i in range(0, size, _CHUNK):
            part = raw[i : i + _CHUNK]
            if self._crc32:
                crc = zlib.crc32(part, crc)
            self._write(part)
        self._write(struct.pack("<4sI" + ("QQ" if seen else "II"), b"PK\7\x08", crc, size, size))
        self._entries.append((path, crc, size, offset))
        if identify:
            self._digest.update(struct.pack("<QQ", size, crc) + name.encode() + b"\0")

    def identity(self) -> str:
        """40 digits that depend on the names, sizes and checksums of the records so far."""
        first, second = struct.unpack("<QQ", self._digest.digest()[:16])
        return f"{first:020d}{second:020d}"

    def close(self) -> None:
        """Write the directory."""
        begin = self._at
        for path, crc, size, offset in self._entries:
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
                    "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 0, 0, _FLAGS, 0, 0, 0, crc, n, n, len(path),
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
