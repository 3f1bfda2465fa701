"""Archives from the net: unpacked below a folder, and nowhere else.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pathlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_SHORT = {".tgz": (".tar", ".gz"), ".tbz": (".tar", ".bz2"), ".tbz2": (".tar", ".bz2")}


def _kinds(path: str) -> tuple[str | None, str | None]:
    """The endings for the archive and for its compression."""
    last = "".join(pathlib.Path(path).suffixes[-1:])
    if last in _SHORT:
        return _SHORT[last]
    if last in (".tar", ".zip"):
        return last, None
    if last in _OPENERS:
        before = pathlib.Path(path).with_suffix("").suffix
        return (".tar" if before == ".tar" else None), last
    raise RuntimeError(
        f"File '{path}' has no suffixes that could be used to detect the archive type and"
        f" compression: .tar, .zip, {', '.join([*_SHORT, *_OPENERS])}."
    )


def _place(name: str, folder: str) -> str | None:
    """Where a member belongs; None if that is not below the folder."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        return None
    return os.path.join(folder, *parts)


def _write(source: Any, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with source, open(target, "wb") as file:
        shutil.copyfileobj(source, file)


def _untar(path: str, folder: str, opener: Callable[..., Any]) -> None:
    # Files only, one by one: links and devices may lead elsewhere (extractall's filter is of
    # Python 3.11.4).
    with opener(path, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
        for member in archive:
            target = _place(member.name, folder)
            if target is not None and member.isfile():
                _write(archive.extractfile(member), target)
            elif target is not None and member.isdir():
                os.makedirs(target, exist_ok=True)


def _unzip(path: str, folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            target = _place(member.filename, folder)
            if target is not None and not member.is_dir():
                _write(archive.open(member), target)


def extract_archive(
    from_path: str | os.PathLike[str],
    to_path: str | os.PathLike[str] | None = None,
    remove_finished: bool = False,
) -> str:
    """Unpack a .tar (also .gz, .xz, .bz2) or .zip into the folder `to_path` (default: where it
    lies), or a file that is only compressed into the file of that name. Returns where.

    Members that are links, or whose names lead out of the folder, are left out.
    """
    path = os.fspath(from_path)
    folder = os.path.dirname(path) if to_path is None else os.fspath(to_path)
    archive, compression = _kinds(path)
    if archive == ".tar":
        _untar(path, folder, open if compression is None else _OPENERS[compression])
    elif archive == ".zip":
        _unzip(path, folder)
    else:
        assert compression is not None
        if to_path is None:
            folder = path.removesuffix(compression)
        # The name appears when all is there.
        _write(_OPENERS[compression](path, "rb"), folder + ".partial")
        os.replace(folder + ".partial", folder)
    if remove_finished:
        os.remove(path)
    return folder


__all__ = ["extract_archive"]
