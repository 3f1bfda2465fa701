"""Reading a tar file front to back, from anything that can be read, and trusting nothing in it.

`tarfile` takes a damaged header or a missing end for the end of the archive, so that samples get
lost without a word, and believes the sizes of extended headers. Here each of these is an error, no
more than `largest` bytes are read for one member, and nothing is ever written to a disk.

Source: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html (ustar and pax formats)
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import Any

from torchlab._core.lazy import lazy

__all__ = ["members", "unpacked"]

client = lazy("http.client")

_BLOCK = 512
_HEADER = 1 << 20  # bytes that an extended header may have: it holds a name
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


def unpacked(file: Any) -> Any:
    """What is in a buffered file, uncompressed if gzip made it."""
    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def members(file: Any, where: str, largest: int) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the files in a tar, in order. tarfile.ReadError, which says where, for one
    that is damaged, cut off, or holds something else than files and folders."""
    at = 0

    def fail(what: str) -> tarfile.ReadError:
        return tarfile.ReadError(f"{where}, at byte {at}: {what}")

    def some(n: int) -> bytes:
        try:
            return file.read(n)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise fail(f"the compressed data is damaged or cut off ({e})") from e
        except client.IncompleteRead as e:
            raise fail(f"the file is cut off: the server sent less than it said ({e})") from e

    def read(n: int, what: str) -> bytes:
        nonlocal at
        pieces, left = [], n
        while left:
            piece = some(left)
            if not piece:
                raise fail(f"the file is cut off: it ends within {what}, {left} bytes are missing")
            pieces.append(piece)
            left -= len(piece)
            at += len(piece)
        return b"".join(pieces)

    def payload(size: int, limit: int, what: str) -> bytes:
        if not 0 <= size <= limit:
            raise fail(f"{what} says that it has {size} bytes; at most {limit} are read")
        data = read(size, what)
        read(-size % _BLOCK, what)
        return data

    everywhere: dict[str, str] = {}
    here: dict[str, str] = {}
    while True:
        header = read(_BLOCK, "a header (a whole tar ends with a block of zeros)")
        if not header.strip(b"\0"):
            rest = 0  # gzip's checksum comes last; more than padding is not read for it
            while isinstance(file, gzip.GzipFile) and rest < _HEADER:
                piece = some(1 << 16)
                rest += len(piece) or _HEADER
            return
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as e:
            raise fail(f"this is no header of a tar member ({e})") from e
        kind = info.type
        if kind in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE):
            found = _records(payload(info.size, _HEADER, "an extended header"), fail)
            (everywhere if kind == tarfile.XGLTYPE else here).update(found)
            continue
        if kind in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            text = payload(info.size, _HEADER, "a long name").split(b"\0")[0]
            if kind == tarfile.GNUTYPE_LONGNAME:
                here["path"] = text.decode("utf-8", "surrogateescape")
            continue
        told = everywhere | here
        here = {}
        name = told.get("path", info.name)
        if "sparse" in told:
            kind = tarfile.GNUTYPE_SPARSE
        if kind in _KINDS:
            raise fail(f"{name!r} is {_KINDS[kind]}; a shard holds files and folders")
        if kind not in _FILES and kind != tarfile.DIRTYPE:
            raise fail(f"{name!r} is of the unknown kind {kind!r}")
        size = info.size
        if "size" in told:
            if not told["size"].isdecimal() or len(told["size"]) > 20:
                raise fail(f"{name!r} has the size {told['size'][:40]!r}")
            size = int(told["size"])
        data = payload(size, largest, repr(name))
        if kind in _FILES:
            yield name, data


def _records(data: bytes, fail: Any) -> dict[str, str]:
    """What matters of the entries 'length key=value' of an extended header."""
    found = {}
    while data.strip(b"\0"):
        digits, space, _ = data[:21].partition(b" ")
        if not space or not digits.isdigit() or not len(digits) + 1 < int(digits) <= len(data):
            raise fail("an extended header is damaged")
        record, data = data[len(digits) + 1 : int(digits)], data[int(digits) :]
        key, equals, value = record.rstrip(b"\n").partition(b"=")
        if not equals:
            raise fail("an extended header is damaged")
        if key in (b"path", b"size"):
            found[key.decode()] = value.decode("utf-8", "surrogateescape")
        elif key.startswith(b"GNU.sparse"):
            found["sparse"] = ""
    return found
