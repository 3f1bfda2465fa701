"""The classes of storages that files name: `torch.FloatStorage` and its like."""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.storages import TYPED
from torchlab.serialization.names import enter


class QuantizedStorage:
    """Stands for the class of storages of a quantized type, which only files speak of."""

    dtype: dt.dtype


CLASSES: dict[str, Any] = dict(TYPED)
for _d in dt.QUANTIZED:
    _name = f"{_d.scalar_name}Storage"
    if _name not in CLASSES:
        CLASSES[_name] = type(_name, (QuantizedStorage,), {"dtype": _d})
for _name, _class in CLASSES.items():
    enter(_class, "torch", _name)
BY_DTYPE: dict[dt.dtype, Any] = {c.dtype: c for c in CLASSES.values()}


class StorageType:
    """A class of typed storages as files name it: `StorageType("FloatStorage").dtype`."""

    def __init__(self, name: str) -> None:
        found = CLASSES.get(name)
        if found is None:
            raise KeyError(f"no class of storages is called {name!r:.60}")
        self._dtype = found.dtype
        self.name = name

    @property
    def dtype(self) -> dt.dtype:
        """The type of its elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


StorageType.__module__ = "torchlab.serialization"
