"""Pickling for files: tensors become calls of PyTorch's functions, storages become references.

Names are written as PyTorch's (names.py). Python's own pickler in C looks every name up and cannot
be told another, so this is the one in Python.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import copyreg
import io
import pickle
import warnings
from collections import OrderedDict
from typing import Any

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import layout as Layout
from torchlab._core.generator import Generator
from torchlab._core.hooks import HookDict
from torchlab._core.ops._quantized import qscheme
from torchlab._core.storages import TypedStorage, UntypedStorage
from torchlab._core.tensor import Size, Tensor
from torchlab.serialization import rebuild
from torchlab.serialization.locations import location_tag
from torchlab.serialization.names import on_disk
from torchlab.serialization.reduce import WITHOUT_STORAGE_TYPE, reduce_tensor
from torchlab.serialization.storage_classes import BY_DTYPE

PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]
_WASTE_FROM, _WASTE_RATIO = 1 << 16, 8


class Saved:
    """A storage that goes into the file: its number, its type there, and how much of it tensors
    use."""

    __slots__ = ("key", "storage", "dtype", "used")

    def __init__(self, key: str, storage: UntypedStorage, dtype: Any) -> None:
        self.key, self.storage, self.dtype, self.used = key, storage, dtype, 0


class Storages:
    """The storages that an object refers to, each once.

    old_format: there, a reference has a sixth part, None.
    """

    def __init__(self, old_format: bool = False) -> None:
        self.found: dict[Any, Saved] = {}
        self._tail = (None,) if old_format else ()

    def add(self, storage: UntypedStorage, dtype: dt.dtype, used: int | None = None) -> Saved:
        """Enter a storage, seen as elements of `dtype`. Two objects over the same bytes are one."""
        n = storage.nbytes()
        meta = storage.device.type == "meta"
        where = storage.data_ptr() if n and not meta else ("object", id(storage._storage))
        identity = (str(storage.device), where, n)
        saved = self.found.get(identity)
        if saved is None:
            saved = self.found[identity] = Saved(str(len(self.found)), storage, dtype)
        elif saved.dtype is not dtype and n:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different"
                f" types: {saved.dtype} and {dtype} of one storage; clone() one of them"
            )
        saved.used += n if used is None else used
        return saved

    def persistent_id(self, obj: Any) -> Any:
        """What the pickle has instead of a storage."""
        if type(obj) is TypedStorage:
            dtype, raw = obj._dtype, obj._untyped_storage
            return self._reference(BY_DTYPE[dtype], raw, dtype, None)
        if type(obj) is UntypedStorage:
            return self._reference(UntypedStorage, obj, dt.uint8, None)
        if type(obj) is _Part:
            kind = BY_DTYPE.get(obj.dtype)
            if kind is None or obj.dtype in WITHOUT_STORAGE_TYPE:
                return self._reference(UntypedStorage, obj.storage, dt.uint8, obj.used)
            return self._reference(kind, obj.storage, obj.dtype, obj.used)
        return None

    def _reference(self, kind: Any, raw: Any, dtype: dt.dtype, used: int | None) -> Any:
        saved = self.add(raw, dtype, used)
        numel = raw.nbytes() // dtype.itemsize
        return ("storage", kind, saved.key, location_tag(raw), numel, *self._tail)

    def warn_of_waste(self) -> None:
        """Say so if views take along far more than they show."""
        whole = sum(s.storage.nbytes() for s in self.found.values())
        used = sum(min(s.used, s.storage.nbytes()) for s in self.found.values())
        if whole >= _WASTE_FROM and used * _WASTE_RATIO < whole:
            warnings.warn(
                f"torch.save: the tensors show {used} bytes, but they are views of storages of"
                f" {whole} bytes, which are saved whole so that views stay views. Save"
                " tensor.clone() to save only what the tensor shows.",
                stacklevel=4,
            )


class _Part:
    """Stands for a tensor's storage until the pickler asks."""

    __slots__ = ("storage", "dtype", "used")

    def __init__(self, t: Tensor) -> None:
        self.storage, self.dtype = t.untyped_storage(), t._k.dtype
        self.used = t._a.size * t._k.itemsize


_PLAIN = frozenset({str, int, float, bool, type(None), tuple, list, dict, OrderedDict, type})


def _takes_over(t: Any) -> bool:
    """Whether the class leaves it to us how its objects are pickled."""
    own = type(t).__reduce_ex__
    if type(t).__reduce__ is not object.__reduce__:
        return False
    return own is Tensor.__reduce_ex__ or t._exotic or t._is_param


def _reduce(obj: Any) -> Any:
    """What `reducer_override` gives: for tensors and torchlab's constants, PyTorch's form."""
    cls = type(obj)
    if cls in _PLAIN:
        return NotImplemented
    if isinstance(obj, Tensor):
        return reduce_tensor(obj, _Part) if _takes_over(obj) else NotImplemented
    if cls is Size:
        return Size, (tuple(obj),)
    if cls is dt.dtype or cls is qscheme:
        return str(obj).rpartition(".")[2]
    if cls is devices.device:
        return devices.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
    if issubclass(cls, Layout):
        return rebuild.get_layout, (str(obj),)
    if cls is Generator and obj.device is devices.cpu:
        state = aten.from_numpy(obj.get_state())
        return Generator, (obj.device,), (obj.initial_seed(), None, state)
    if cls is HookDict:
        return OrderedDict, (), None, None, iter(obj.items())
    return NotImplemented


class Pickler(PythonPickler):
    """Writes PyTorch's names."""

    def __init__(self, file: Any, protocol: int, storages: Storages) -> None:
        super().__init__(file, protocol)
        self.dispatch_table = copyreg.dispatch_table.copy()
        self.persistent_id = storages.persistent_id
        self.reducer_override = _reduce

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """A class, function or constant: by PyTorch's name if it has one."""
        place = on_disk(obj, name)
        if place is None:
            super().save_global(obj, name)
            return
        module, qualified = place
        if self.proto >= 4:
            self.save(module)
            self.save(qualified)
            self.write(pickle.STACK_GLOBAL)
        elif "." in qualified:
            super().save_global(obj, name)
            return
        else:
            self.write(pickle.GLOBAL + f"{module}\n{qualified}\n".encode("ascii"))
        self.memoize(obj)

    def _save_type(self, obj: Any) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch = dict(PythonPickler.dispatch)
    for _kind, _save in PythonPickler.dispatch.items():
        if _save is PythonPickler.save_global:
            dispatch[_kind] = lambda self, obj: self.save_global(obj)
    dispatch[type] = _save_type


def dump(obj: Any, storages: Storages, pickle_module: Any, protocol: int) -> bytes:
    """The pickle of an object; the storages that it refers to are entered."""
    out = io.BytesIO()
    if pickle_module is pickle:
        Pickler(out, protocol, storages).dump(obj)
        return out.getvalue()
    base = pickle_module.Pickler
    inner = getattr(base, "reducer_override", None)

    class Foreign(base):  # type: ignore[misc, valid-type]
        """Another module's pickler; it writes the names that it finds."""

        def persistent_id(self, obj: Any) -> Any:
            return storages.persistent_id(obj)

        def reducer_override(self, obj: Any) -> Any:
            known = type(obj) in (dt.dtype, qscheme)  # by their own __reduce__
            made = NotImplemented if known else _reduce(obj)
            return inner(self, obj) if made is NotImplemented and inner is not None else made

    Foreign(out, protocol=protocol).dump(obj)
    return out.getvalue()


__all__ = ["Pickler", "Saved", "Storages", "dump"]
