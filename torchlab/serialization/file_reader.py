"""`torch.PyTorchFileReader`: the records of a file that `torch.save` wrote, one by one.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.storages import UntypedStorage
from torchlab._core.tensor import Tensor
from torchlab.serialization.zip_reader import ZipReader


class PyTorchFileReader:
    """`PyTorchFileReader("model.pt").get_record("data.pkl")`.

    Takes a path or an open file at its beginning. Raises RuntimeError where there is no such file,
    archive or record.
    """

    def __init__(self, file: Any) -> None:
        if isinstance(file, (str, bytes, os.PathLike)):
            try:
                file = open(file, "rb")
            except OSError as error:
                raise RuntimeError(
                    f"open file failed because of errno {error.errno} on fopen: {error.strerror},"
                    f" file path: {os.fsdecode(file)}"
                ) from None
        self._reader = ZipReader(file)

    def get_all_records(self) -> list[str]:
        """The records' names."""
        return self._reader.names()

    def has_record(self, name: str) -> bool:
        """Whether there is such a record."""
        return name in self._reader

    def get_record(self, name: str) -> bytes:
        """A record's bytes."""
        return self._reader.record(name)

    def get_record_size(self, name: str) -> int:
        """The number of a record's bytes."""
        return self._reader.size(name)

    def get_record_offset(self, name: str) -> int:
        """Where a record's bytes begin in the file."""
        return self._reader.offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A tensor of `numel` elements whose storage is the record; of bytes if `dtype` is
        UntypedStorage. RuntimeError if the record has another size."""
        kind = dt.uint8 if dtype is UntypedStorage else dtype
        size = self._reader.size(name)
        if size != numel * kind.itemsize:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({numel * kind.itemsize}"
                f" bytes = {numel} elements * {kind.itemsize} bytes/element) for dtype {kind}"
            )
        out = np.empty(size, np.uint8)
        self._reader.read_into(name, out)
        return aten.frombuffer(out, dtype=kind) if size else aten.empty((0,), dtype=kind)  # type: ignore[no-any-return]

    def serialization_id(self) -> str:
        """The number that the writer gave to the contents; "" where it gave none."""
        name = ".data/serialization_id"
        return self._reader.small(name).decode() if name in self._reader else ""


__all__ = ["PyTorchFileReader"]
