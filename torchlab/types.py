"""`torchlab.types`: names for annotations.

Source: https://docs.pytorch.org/docs/2.13/type_info.html and the signatures that use them
"""

from __future__ import annotations

import os
from typing import IO, TypeAlias

from torchlab._core.device import device as _device
from torchlab._core.storages import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = TypedStorage | UntypedStorage
