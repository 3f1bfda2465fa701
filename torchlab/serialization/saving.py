"""`torch.save`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.save.html
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from torchlab.serialization import legacy_writer, options
from torchlab.serialization.atomic import replacing
from torchlab.serialization.pickler import Storages, dump
from torchlab.serialization.zip_writer import ALIGNMENT, ZipWriter

DEFAULT_PROTOCOL = 2
FORMAT_VERSION = b"3\n"
_NAME = "archive"


def save(
    obj: object,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file that `torch.load` reads, here and in PyTorch.

    f: a path, or an object with `write` and `flush`. A path is replaced only when all is written:
        if the disk is full, the process dies or the object cannot be pickled, the old file stays.
    pickle_protocol: 2 is what `torch.load(weights_only=True)` reads.
    _use_new_zipfile_serialization: False writes the format from before PyTorch 1.6.

    Tensors that share memory share it again after loading. So a view takes its whole storage along:
    a warning says so if that is much more than the view shows; save `view.clone()` then.
    """
    if not hasattr(pickle_module, "Pickler"):
        raise AttributeError(f"torch.save: pickle_module {pickle_module!r:.60} has no Pickler")
    storages = Storages(old_format=not _use_new_zipfile_serialization)
    # First the pickle, in memory: what cannot be pickled leaves the file alone.
    data = dump(obj, storages, pickle_module, pickle_protocol)
    storages.warn_of_waste()
    with _opened(f) as (file, name):
        if _use_new_zipfile_serialization:
            _write_zip(file, name, data, storages, _disable_byteorder_record)
        else:
            legacy_writer.write(file, data, storages, pickle_module, pickle_protocol)


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[tuple[Any, str]]:
    """(file, name of the archive)."""
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        if os.path.isdir(path):
            raise RuntimeError(f"open file failed with strerror: Is a directory: {path}")
        try:
            with replacing(path) as file:
                yield file, os.path.splitext(os.path.basename(path))[0] or _NAME
        except OSError as e:
            raise RuntimeError(
                f"PytorchStreamWriter failed writing file {path}: {e.strerror or e}; a file that"
                " was there before is unchanged"
            ) from e
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    yield f, _NAME
    f.flush()


def host_bytes(storage: Any) -> Any:
    """The storage's bytes in host memory."""
    if storage.device.type == "meta":
        return np.zeros(0, np.uint8)
    return storage.cpu()._storage.bytes


def _write_zip(
    file: Any, name: str, data: bytes, storages: Storages, without_byteorder: bool
) -> None:
    out = ZipWriter(file, name, options.get_crc32_options())
    out.record("data.pkl", data)
    out.record(".format_version", b"1")
    out.record(".storage_alignment", str(ALIGNMENT).encode())
    if not without_byteorder:
        out.record("byteorder", sys.byteorder.encode())
    for saved in storages.found.values():
        if options.skipping():
            out.blank(f"data/{saved.key}", saved.storage.nbytes())
        else:
            out.record(f"data/{saved.key}", host_bytes(saved.storage))
    out.record("version", FORMAT_VERSION)
    if without_byteorder:  # it only moves: as PyTorch's writer, which adds it if it is missing
        out.record("byteorder", sys.byteorder.encode())
    out.record(".data/serialization_id", out.identity().encode(), identify=False)
    out.close()


save.__module__ = "torchlab.serialization"
