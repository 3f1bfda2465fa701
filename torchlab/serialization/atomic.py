"""Writing a file so that its name always stands for something whole.

The bytes go to a new file in the same folder, are brought to the disk, and only then take the
name. If the disk is full or the process dies, the old file is as it was.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any

_TRIES = 100


def _open_beside(path: str) -> tuple[int, str]:
    """A new file in the folder of `path`, with the permissions that open() would give."""
    folder, name = os.path.split(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for _ in range(_TRIES):
        beside = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(6)}.tmp")
        try:
            return os.open(beside, flags, 0o666), beside
        except FileExistsError:
            continue
    raise FileExistsError(f"no free name for a temporary file beside {path}")


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk, where folders can be opened (not on Windows)."""
    if os.name == "nt":
        return
    handle = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems refuse it; the file itself is on the disk
        return
    finally:
        os.close(handle)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """`with replacing("x.pt") as file:` — a file to write; it gets the name at the end, unless an
    exception comes out of the block.

    A name that stands for something else than a plain file (a pipe, a device) is written directly;
    links are followed.
    """
    target = os.path.realpath(os.fspath(path))
    try:
        before: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(target, "wb") as file:
            yield file
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", target)
    handle, beside = _open_beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            os.chmod(beside, stat.S_IMODE(before.st_mode))
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    _sync_folder(os.path.dirname(target))
