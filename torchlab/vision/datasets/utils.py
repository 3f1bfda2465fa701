"""Files from the net, with their MD5.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from torchlab import hub


def calculate_md5(fpath: str | os.PathLike[str], chunk_size: int = 1024 * 1024) -> str:
    """The file's MD5, hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fpath, "rb") as file:
        while part := file.read(chunk_size):
            digest.update(part)
    return digest.hexdigest()


def check_md5(fpath: Any, md5: str, **kwargs: Any) -> bool:
    """Whether the file's MD5 is that."""
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath: str | os.PathLike[str], md5: str | None = None) -> bool:
    """Whether the file is there, and is that of the MD5 if one is given."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


def download_url(
    url: str, root: str | os.PathLike[str], filename: str | None = None, md5: str | None = None
) -> None:
    """The file at an address, in the folder `root`; loaded only if it is not there yet.

    RuntimeError if its MD5 is another; then it is removed again.
    """
    root = os.path.expanduser(root)
    path = os.path.join(root, filename or os.path.basename(url))
    os.makedirs(root, exist_ok=True)
    if check_integrity(path, md5):
        return
    hub.download_url_to_file(url, path, progress=False)
    if not check_integrity(path, md5):
        found = calculate_md5(path)
        os.remove(path)
        raise RuntimeError(f"File not found or corrupted: {url} has the MD5 {found}, not {md5}")
