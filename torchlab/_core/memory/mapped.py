"""Files mapped into memory: what `torch.from_file` and `UntypedStorage.from_file` are made of."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def mapped_file(filename: Any, shared: bool, nbytes: int) -> np.ndarray:
    """The first `nbytes` bytes of a file, as uint8. `shared`: writes reach the file, which is made
    or extended if it is too short; otherwise they do not.

    Raises:
        RuntimeError: the file cannot be opened, or is too short.
    """
    path = os.fspath(filename)
    try:
        if shared:
            with open(path, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        size = os.path.getsize(path)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from error
    if size < nbytes:
        raise RuntimeError(
            f"file <{path}> size <{size}> is smaller than the required mapping size <{nbytes}>"
        )
    if not nbytes:  # which cannot be mapped
        return np.empty(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "r+" if shared else "c", 0, (nbytes,)))
