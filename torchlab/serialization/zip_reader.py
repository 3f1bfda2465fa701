"""PyTorch's zip archives, read with distrust.

The directory is read by `zipfile`; where a record lies is checked against the file: entries stay
inside it, do not overlap (so that a small file cannot pretend to be a large one), do not appear
twice, and do not claim more bytes than their compressed form can hold. Nothing is ever unpacked to
a path, so names with ".." in them have no meaning.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

OLDEST, NEWEST = 1, 10
_CORRUPT = (
    ". If you are seeing this error, there is a high likelihood that your checkpoint file is"
    " corrupted. This can happen if the checkpoint was not saved properly, was transferred"
    " incorrectly, or the file was modified after saving."
)
_DEFLATE_AT_MOST = 1032  # deflate cannot expand a byte to more
_HEADER = struct.Struct("<4sHHHHHIIIHH")
_CHUNK = 1 << 24


def corrupt(doing: str, why: str) -> RuntimeError:
    """PyTorch's error for a damaged archive."""
    return RuntimeError(f"PytorchStreamReader failed {doing}: {why}{_CORRUPT}")


class _Section(io.RawIOBase):
    """The file from its present position on: an archive may be part of a larger file."""

    def __init__(self, file: Any, start: int, end: int) -> None:
        super().__init__()
        self._file, self._start, self._size, self._at = file, start, end - start, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, self._size)[whence]
        if at < 0:
            raise OSError("negative seek position")  # as files say it; zipfile waits for it
        self._at = at
        return at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._at, 0)
        n = left if size is None or size < 0 else min(size, left)
        self._file.seek(self._start + self._at)
        data = self._file.read(n)
        self._at += len(data)
        return data


class ZipReader:
    """The records of an archive: `record("data.pkl")`, `size("data/0")`.

    file: seekable, stands at the archive's first byte.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._start = file.tell()
        end = file.seek(0, 2)
        if end is None:
            end = file.tell()
        self._length = end - self._start
        section = _Section(file, self._start, end)
        try:
            with zipfile.ZipFile(section) as archive:  # type: ignore[arg-type]
                entries = archive.infolist()
        except zipfile.BadZipFile as e:
            raise corrupt(
                "reading zip archive", f"failed finding central directory ({e})"
            ) from None
        except (struct.error, NotImplementedError, ValueError, OSError, EOFError) as e:
            raise corrupt("reading zip archive", f"its directory is damaged ({e})") from None
        self._check(entries)
        self._version()

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        if not entries:
            raise corrupt("reading zip archive", "it has no records")
        first = entries[0].filename
        prefix, slash, _ = first.partition("/")
        if not slash:
            raise RuntimeError(
                f"PytorchStreamReader: file in archive is not in a subdirectory: {first[:200]}"
            )
        self._records: dict[str, zipfile.ZipInfo] = {}
        before, free = "", 0
        for e in sorted(entries, key=lambda e: e.header_offset):
            if not e.filename.startswith(prefix + "/"):
                raise RuntimeError(
                    "PytorchStreamReader: file in archive is not in a subdirectory"
                    f" {prefix[:100]}/: {e.filename[:200]}"
                )
            name = e.filename[len(prefix) + 1 :]
            doing = f"reading file {name[:200]}"
            if name in self._records:
                raise corrupt(doing, "the archive has two records of that name")
            if e.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise corrupt(doing, f"compression method {e.compress_type} is not known")
            if e.flag_bits & 1:
                raise corrupt(doing, "it is encrypted")
            if e.header_offset < free:
                raise corrupt(doing, f"it overlaps with {before[:200]}")
            free = e.header_offset + 30 + e.compress_size
            if free > self._length:
                raise corrupt(doing, "it reaches beyond the end of the file")
            stored = e.compress_type == zipfile.ZIP_STORED
            most = e.compress_size * (1 if stored else _DEFLATE_AT_MOST)
            if e.file_size > most or (stored and e.file_size != e.compress_size):
                raise corrupt(
                    doing,
                    f"{e.file_size} bytes are declared, {e.compress_size} bytes are in the file",
                )
            self._records[name] = e
            before = name

    def _version(self) -> None:
        if "version" not in self._records and ".data/version" not in self._records:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false: this zip file has no'
                " record of PyTorch's format version"
            )
        name = "version" if "version" in self._records else ".data/version"
        text = self.small(name)
        if not re.fullmatch(rb"\s*\d{1,18}\s*", text):
            raise RuntimeError(
                "PytorchStreamReader: couldn't parse the version"
                f" {text[:40].decode('latin-1')} as a number"
            )
        number = int(text)
        if not OLDEST <= number <= NEWEST:
            bound = "maximum" if number > NEWEST else "minimum"
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {number}, but the {bound} supported"
                f" version for reading is {NEWEST if number > NEWEST else OLDEST}."
            )

    # ---- records -----------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def names(self) -> list[str]:
        """The names of all records, without the archive's folder."""
        return list(self._records)

    def _find(self, name: str) -> zipfile.ZipInfo:
        found = self._records.get(name)
        if found is None:
            raise corrupt(f"locating file {name[:200]}", "file not found")
        return found

    def size(self, name: str) -> int:
        """The size of a record in bytes, uncompressed."""
        return self._find(name).file_size

    def stored(self, name: str) -> bool:
        """Whether the record lies uncompressed."""
        return self._find(name).compress_type == zipfile.ZIP_STORED

    def offset(self, name: str) -> int:
        """Where the record's data begins in the file."""
        e = self._find(name)
        self._file.seek(self._start + e.header_offset)
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or header[:4] != b"PK\3\4":
            raise corrupt(f"reading file {name[:200]}", "its header is damaged")
        fields = _HEADER.unpack(header)
        at = e.header_offset + _HEADER.size + fields[9] + fields[10]
        if at + e.compress_size > self._length:
            raise corrupt(f"reading file {name[:200]}", "it reaches beyond the end of the file")
        return self._start + at

    def read_into(self, name: str, out: np.ndarray) -> None:
        """Read a record into a writable array of uint8 that has its size."""
        e = self._find(name)
        self._file.seek(self.offset(name))
        view: memoryview = out.data.cast("B") if out.size else memoryview(b"")
        if e.compress_type == zipfile.ZIP_STORED:
            fill(self._file, view, f"reading file {name[:200]}")
            return
        engine, at, left = zlib.decompressobj(-15), 0, e.compress_size
        pending = b""
        try:
            while at < len(view):
                if not pending:
                    pending = self._file.read(min(left, _CHUNK))
                    left -= len(pending)
                    if not pending:
                        break
                part = engine.decompress(pending, min(len(view) - at, _CHUNK))
                pending = engine.unconsumed_tail
                view[at : at + len(part)] = part
                at += len(part)
        except zlib.error as error:
            raise corrupt(f"reading file {name[:200]}", str(error)) from None
        if at < len(view):
            raise corrupt(f"reading file {name[:200]}", f"{at} of {len(view)} bytes are there")

    def record(self, name: str) -> bytes:
        """A record's bytes."""
        out = np.empty(self.size(name), np.uint8)
        self.read_into(name, out)
        return out.tobytes()

    def small(self, name: str, limit: int = 1000) -> bytes:
        """A record that holds a word; RuntimeError if it is larger."""
        if self.size(name) > limit:
            raise corrupt(f"reading file {name[:200]}", f"it has more than {limit} bytes")
        return self.record(name)


def fill(file: Any, view: memoryview, doing: str) -> None:
    """Read until `view` is full; RuntimeError if the file ends before."""
    at = 0
    into = getattr(file, "readinto", None)
    while at < len(view):
        part = view[at : at + _CHUNK]
        if into is not None:
            n = into(part)
        else:
            data = file.read(len(part))
            n = len(data)
            part[:n] = data
        if not n:
            raise corrupt(doing, f"unexpected end of file, expected {len(view) - at} more bytes")
        at += n
