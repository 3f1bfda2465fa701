"""Settings that have one value per process, read from the environment once."""

from __future__ import annotations

import os
import pathlib
import sys


def cache_dir() -> pathlib.Path:
    """The private folder (mode 0700) of generated kernels; `TORCHLAB_CACHE_DIR` moves it."""
    given = os.environ.get("TORCHLAB_CACHE_DIR")
    if given:
        path = pathlib.Path(given)
    elif sys.platform == "win32":
        path = pathlib.Path(os.environ.get("LOCALAPPDATA", "~")).expanduser() / "torchlab" / "cache"
    elif sys.platform == "darwin":
        path = pathlib.Path("~/Library/Caches/torchlab").expanduser()
    else:
        path = (
            pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "torchlab"
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid"):
        status = path.stat()
        if status.st_uid != os.getuid():
            raise PermissionError(
                f"the kernel cache {path} belongs to another user; set TORCHLAB_CACHE_DIR to a"
                " folder of yours"
            )
        if status.st_mode & 0o077:
            path.chmod(0o700)
    return path
