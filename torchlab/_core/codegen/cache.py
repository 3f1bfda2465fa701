"""The on-disk cache of built kernels: private, content-addressed, safe against half-written files.

An entry is `<key>.so` beside `<key>.sha256` (the library's digest) and `<key>.cpp`. A library
whose digest does not match is rebuilt: loading a damaged one could kill the process. Files appear
by atomic renames, so that processes may build the same kernel at once.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
from collections.abc import Callable

from torchlab._core import config


def key(*parts: str) -> str:
    """A name for what `parts` (source, compiler, flags, CPU …) determine."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def folder() -> pathlib.Path:
    """Where kernels are kept (mode 0700); see `config.cache_dir`."""
    path = config.cache_dir() / "kernels"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def fetch(
    name: str, source: str, build: Callable[[pathlib.Path, pathlib.Path], None]
) -> tuple[pathlib.Path, bool]:
    """The library of entry `name`, built by `build(source_file, library_file)` unless it is there
    and whole.

    Returns its path and whether it was there. Whatever `build` raises passes through and leaves no
    entry.
    """
    place = folder()
    library, seal = place / f"{name}.so", place / f"{name}.sha256"
    if _whole(library, seal):
        return library, True
    text = place / f"{name}.cpp"
    _write(text, source.encode())
    handle, made = tempfile.mkstemp(suffix=".so", dir=place)
    os.close(handle)
    try:
        build(text, pathlib.Path(made))
        _write(seal, hashlib.sha256(pathlib.Path(made).read_bytes()).hexdigest().encode())
        os.replace(made, library)
    except BaseException:
        pathlib.Path(made).unlink(missing_ok=True)
        raise
    return library, False


def note(name: str, make: Callable[[], str]) -> str:
    """A short text remembered under `name` (such as what a compiler can do), made when first asked
    for."""
    path = folder() / f"{name}.txt"
    try:
        return path.read_text()
    except OSError:
        text = make()
        _write(path, text.encode())
        return text


def _whole(library: pathlib.Path, seal: pathlib.Path) -> bool:
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest() == seal.read_text()
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: pathlib.Path, data: bytes) -> None:
    handle, made = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(made, path)
