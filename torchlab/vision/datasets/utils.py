"""Files from the net, with their MD5; folders; checks of arguments.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from torchlab import hub
from torchlab.vision.datasets.archives import extract_archive

NOT_FOUND = "Dataset not found. You can use download=True to download it"
NOT_FOUND_OR_CORRUPTED = "Dataset not found or corrupted. You can use download=True to download it"


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
    url: str,
    root: str | os.PathLike[str],
    filename: str | os.PathLike[str] | None = None,
    md5: str | None = None,
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


GOOGLE_DRIVE = "https://drive.usercontent.google.com/download"


def download_file_from_google_drive(
    file_id: str,
    root: str | os.PathLike[str],
    filename: str | os.PathLike[str] | None = None,
    md5: str | None = None,
) -> None:
    """`download_url` for a public file of Google Drive, by its number there.

    Drive answers with a page instead of the file if that was asked for too often: then, too, the
    MD5 is another, and RuntimeError is raised.
    """
    # "confirm" says that we know Drive has not searched a file of this size for viruses.
    url = f"{GOOGLE_DRIVE}?id={file_id}&export=download&confirm=t"
    download_url(url, root, filename or file_id, md5)


def download_and_extract_archive(
    url: str,
    download_root: str | os.PathLike[str],
    extract_root: str | os.PathLike[str] | None = None,
    filename: str | os.PathLike[str] | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """`download_url` into `download_root`, then `extract_archive` into `extract_root` (default:
    the same folder)."""
    download_root = os.path.expanduser(download_root)
    name = os.fspath(filename or os.path.basename(url))
    download_url(url, download_root, name, md5)
    extract_archive(
        os.path.join(download_root, name), extract_root or download_root, remove_finished
    )


def verify_str_arg(
    value: Any,
    arg: str | None = None,
    valid_values: Iterable[str] | None = None,
    custom_msg: str | None = None,
) -> Any:
    """`value` if it is one of the strings that are allowed; ValueError otherwise."""
    of = "" if arg is None else f" for argument {arg}"
    if not isinstance(value, str):
        raise ValueError(f"Expected type str{of}, but got type {type(value)}.")
    if valid_values is not None and value not in valid_values:
        known = ", ".join(f"'{v}'" for v in valid_values)
        raise ValueError(
            custom_msg or f"Unknown value '{value}'{of}. Valid values are {{{known}}}."
        )
    return value


def list_dir(root: str | os.PathLike[str], prefix: bool = False) -> list[str]:
    """The folders in a folder; `prefix`: with its own path."""
    root = os.path.expanduser(root)
    found = [name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name))]
    return [os.path.join(root, name) for name in found] if prefix else found


def list_files(
    root: str | os.PathLike[str], suffix: str | tuple[str, ...], prefix: bool = False
) -> list[str]:
    """The files in a folder whose names end so; `prefix`: with its own path."""
    root = os.path.expanduser(root)
    found = [
        name
        for name in os.listdir(root)
        if os.path.isfile(os.path.join(root, name)) and name.endswith(suffix)
    ]
    return [os.path.join(root, name) for name in found] if prefix else found
