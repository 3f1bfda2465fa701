"""`torch.UntypedStorage` and `torch.TypedStorage`: the memory of tensors, as users hold it.

    tensor.untyped_storage()     the bytes that a tensor and its views share
    tensor.storage()             the same, as a sequence of the tensor's type (PyTorch calls it old)
    torch.FloatStorage([1, 2])   a typed storage of its own

Source: https://docs.pytorch.org/docs/2.13/storage.html
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import layout, settings, sharing
from torchlab._core.backends import pinned
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.resizing import moved
from torchlab._core.memory.mapped import mapped_file
from torchlab._core.memory.storage import Storage, origin_of
from torchlab._core.tape import storage_of
from torchlab._core.tensor import Tensor

_new = object.__new__
_untyped: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()
_CONVERSIONS = {
    "float": dt.float32, "double": dt.float64, "half": dt.float16, "bfloat16": dt.bfloat16,
    "int": dt.int32, "long": dt.int64, "short": dt.int16, "char": dt.int8, "byte": dt.uint8,
    "bool": dt.bool_, "complex_float": dt.complex64, "complex_double": dt.complex128,
    "float8_e4m3fn": dt.float8_e4m3fn, "float8_e5m2": dt.float8_e5m2,
    "float8_e4m3fnuz": dt.float8_e4m3fnuz, "float8_e5m2fnuz": dt.float8_e5m2fnuz,
}  # fmt: skip


_FILES: weakref.WeakKeyDictionary[Storage, str] = weakref.WeakKeyDictionary()
"""Of memory that is a file's: its path."""


def fresh(nbytes: int, device: Any = None, locked: bool = False) -> Storage:
    """Uninitialised memory of its own; `locked`: pinned, if it is the host's."""
    if nbytes < 0:
        raise RuntimeError(f"Trying to create storage with negative size {nbytes}")
    place = devices.as_device(device)
    return storage_of(compute.empty((nbytes,), dt.uint8, place, locked=locked))


class StorageBase:
    """What storages are to `isinstance`; made through UntypedStorage."""

    __slots__ = ()


class UntypedStorage(StorageBase):
    """Bytes: `UntypedStorage(8)`, `UntypedStorage([1, 2])`, or a tensor's. One object per memory
    as long as somebody holds it."""

    __slots__ = ("_storage", "_device", "__weakref__")
    _storage: Storage
    _device: devices.device
    is_sparse = is_sparse_csr = False

    def __new__(cls, *args: Any, device: Any = None) -> UntypedStorage:
        if len(args) > 1:
            raise RuntimeError("torch.UntypedStorage(): expected one size or sequence of bytes")
        first = args[0] if args else 0
        place = devices.as_device(device)
        if isinstance(first, int):
            return wrap_storage(fresh(first, place), place)
        if not isinstance(first, Sequence):
            raise TypeError(
                f"torch.UntypedStorage(): expected a size or a sequence of ints, not {first!r:.60}"
            )
        for item in first:
            if not isinstance(item, int):
                raise RuntimeError(
                    "torch.UntypedStorage(): tried to construct a storage from a sequence"
                    f" ({type(first).__name__}), but one of the items was of type"
                    f" {type(item).__name__} instead of int"
                )
        made = fresh(len(first), place)
        made.bytes[:] = np.array(first, np.int64).astype(np.uint8)
        return wrap_storage(made, place)

    # ---- what it is --------------------------------------------------------------------------

    def nbytes(self) -> int:
        """Its length in bytes."""
        if self._device.type == "meta":
            lent = self._storage.owner
            item = lent.itemsize
            strides = tuple(x // item for x in lent.strides)
            return layout.storage_nbytes(lent.shape, strides, lent.offset, item)
        return self._storage.nbytes

    size = nbytes
    __len__ = nbytes

    def __sizeof__(self) -> int:
        """With the memory, which those who count it ask `sys.getsizeof` for."""
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        """The address of its first byte."""
        return self._storage.address

    @property
    def _cdata(self) -> int:
        return self._storage.address

    @property
    def device(self) -> devices.device:
        """Where it lies."""
        return self._device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a GPU."""
        return self._device.type == "cuda"

    @property
    def filename(self) -> str | None:
        """The file whose bytes it shares, or None."""
        return _FILES.get(self._storage)

    def element_size(self) -> int:
        """1."""
        return 1

    def get_device(self) -> int:
        """The index of its device, -1 on the CPU."""
        return -1 if self._device.index is None else self._device.index

    def is_shared(self) -> bool:
        """Whether other processes see it: after `share_memory_`, and always on a GPU."""
        return self.is_cuda or sharing.is_shared(self._storage)

    def share_memory_(self) -> UntypedStorage:
        """Move it to where other processes can see it; tensors over it follow. It has a fixed
        length then."""
        if self._device.type == "meta":
            raise RuntimeError("_share_fd_: only available on CPU; a meta storage has no memory")
        if self._device.type == "cpu" and self._storage.nbytes:
            sharing.share(self._storage)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """`size` bytes that other processes can see."""
        return cls(size, device=device).share_memory_()

    def _tensor(self) -> Any:
        """A tensor of its bytes."""
        t = compute.wrap(self._bytes)
        t._s = self._storage
        return t

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it is page-locked."""
        return self._device.type == "cpu" and self._tensor().is_pinned(device)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A page-locked copy, or itself if it is that. RuntimeError without an accelerator."""
        if self._device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        t = self._tensor()
        locked = t.pin_memory(device)
        return self if locked is t else locked.untyped_storage()

    def resizable(self) -> bool:
        """Whether `resize_` works: unless somebody else's memory was lent."""
        return not self._storage.lent and self._storage.bytes.flags.writeable

    def type(self, dtype: Any = None) -> Any:
        """The name of its type, or a typed copy."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        return TypedStorage(wrap_storage=self, dtype=dt.uint8).type(dtype)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    # ---- its bytes ---------------------------------------------------------------------------

    @property
    def _bytes(self) -> np.ndarray:
        if self._device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type: there is no data")
        return self._storage.bytes

    def tolist(self) -> list[int]:
        """Its bytes as a list."""
        return self._bytes.tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError(
                    f"Trying to slice with a step of {index.step}, but only a step of 1 is"
                    " supported"
                )
            return _shared(self._bytes[index], self._storage, self._device)
        return int(self._bytes[_place(index, len(self), "torch.UntypedStorage")])

    def __setitem__(self, index: Any, value: int) -> None:
        if not isinstance(value, int):
            raise RuntimeError(f"can only set storage content with an int, not {value!r}")
        where = index
        if not isinstance(index, slice):
            where = _place(index, len(self), "torch.UntypedStorage")
        self._bytes[where] = value & 255

    def fill_(self, value: int) -> UntypedStorage:
        """The same byte everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """The bytes of another storage of the same length."""
        other = source.untyped()
        if len(self) != len(other):
            raise RuntimeError(
                f"size does not match, self was {len(self)} bytes but src was {len(other)} bytes"
            )
        self._bytes[:] = other._bytes
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(len(self), device=self._device).copy_(self)

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(0, device=self._device)

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Itself if it lies there, else a copy on `device`."""
        place = devices.as_device(device)
        if place is self._device:
            return self
        return UntypedStorage(len(self), device=place).copy_(self)

    def cpu(self) -> UntypedStorage:
        """Itself, or a copy in host memory."""
        return self.to(device=devices.cpu)

    def resize_(self, size: int) -> UntypedStorage:
        """Another length; the first bytes stay. Tensors over it follow. One that no longer fits
        keeps the old memory until the storage is large enough again."""
        if size == len(self):
            return self
        if self.is_shared():
            raise RuntimeError(
                f"resize_: a storage in shared memory keeps its {len(self)} bytes; clone() it first"
            )
        s = self._storage
        replacement = fresh(size, self._device, pinned.is_pinned(s.owner))
        if self._device.type == "meta":
            s.owner, s._bytes = replacement.owner, replacement._bytes
            return self
        n = min(size, len(self))
        replacement.bytes[:n] = s.bytes[:n]
        moved(s, replacement)
        return self

    def byteswap(self, dtype: dt.dtype) -> None:
        """Turn the bytes of each element of that type round."""
        parts = 2 if dtype.is_complex else 1
        width = dtype.itemsize // parts
        flat = self._bytes[: len(self) - len(self) % dtype.itemsize].reshape(-1, width)
        flat[...] = flat[:, ::-1].copy()

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0,
        dtype: dt.dtype | None = None,
    ) -> UntypedStorage:  # fmt: skip
        """A copy of `count` elements (-1: all) of a buffer in "little", "big" or "native" order."""
        kind = dtype or dt.uint8
        raw = memoryview(buffer).cast("B")[offset:]
        n = len(raw) // kind.itemsize if count < 0 else count
        if n * kind.itemsize > len(raw):
            raise ValueError(
                f"buffer has only {len(raw) // kind.itemsize} elements after offset {offset}, but"
                f" specified a size of {n}"
            )
        if byte_order not in ("little", "big", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big' or 'little')")
        made = UntypedStorage(n * kind.itemsize)
        made._bytes[:] = np.frombuffer(raw[: n * kind.itemsize], np.uint8)
        native = "little" if np.little_endian else "big"
        if byte_order not in ("native", native) and kind.itemsize > 1:
            made.byteswap(kind)
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first `nbytes` bytes of a file, mapped into memory: read when they are used.
        `shared`: writes reach the file, which is made or extended if it is too short; otherwise
        they do not."""
        if not isinstance(filename, (str, os.PathLike)):
            raise TypeError(f"from_file: expected a path, got {type(filename).__name__}")
        made = Storage(mapped_file(filename, shared, nbytes))
        made.lent = True
        if shared:
            _FILES[made] = os.fspath(filename)
        return wrap_storage(made, devices.cpu)

    # ---- Python ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        found = memo.get(id(self._storage))
        if found is None:
            found = memo[id(self._storage)] = self.clone()._storage
            memo.setdefault("torchlab_storages", []).append(self._storage)  # type: ignore[call-overload]
        return wrap_storage(found, self._device)

    def __reduce__(self) -> Any:
        return (wrap_storage, (self._storage, self._device))

    def __repr__(self) -> str:
        if self._device.type == "meta":
            body = "..."
        else:
            body = "\n".join(f" {x}" for x in self.tolist())
        tail = f"[torch.storage.UntypedStorage(device={self._device}) of size {len(self)}]"
        return f"{body}\n{tail}"


def wrap_storage(storage: Storage, device: Any) -> UntypedStorage:
    """The UntypedStorage of a tensor's memory: the same object for the same memory."""
    storage = origin_of(storage)  # `x.data` has a counter of its own, but the same memory
    found = _untyped.get(id(storage))
    if found is None or found._storage is not storage:
        found = _new(UntypedStorage)
        found._storage, found._device = storage, device
        _untyped[id(storage)] = found
    return found


def _shared(array: np.ndarray, owner: Storage, device: devices.device) -> UntypedStorage:
    part = Storage(array)
    part.owner, part._bytes = owner, array
    return wrap_storage(part, device)


def _place(index: Any, size: int, name: str) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"can't index a {name} with {type(index).__name__}")
    i = index.__index__()
    if not -size <= i < size:
        raise IndexError(f"index {i} out of range for storage of size {size}")
    return i % size


def _legacy_message(cls: type, why: str) -> str:
    return (
        f"<class 'torch.{cls.__name__}'>.__new__ received an invalid combination of arguments."
        " Expected one of:\n * no arguments\n * (int size)\n * (Sequence data)\n"
        f" * (*, UntypedStorage wrap_storage)\n{why}"
    )


class _StorageType(type):
    """isinstance(typed_storage, torch.FloatStorage) asks for its type."""

    _fixed: dt.dtype | None

    def __instancecheck__(cls, instance: Any) -> bool:
        if not type.__instancecheck__(TypedStorage, instance):
            return False
        return cls._fixed is None or instance.dtype is cls._fixed

    @property
    def dtype(cls) -> Any:
        """The type of FloatStorage and its like."""
        if cls._fixed is None:
            raise AttributeError(f"type object '{cls.__name__}' has no attribute 'dtype'")
        return cls._fixed


class TypedStorage(metaclass=_StorageType):
    """A storage seen as elements of one type: `TypedStorage([1, 2], dtype=torch.int8)`."""

    __slots__ = ("_untyped_storage", "_dtype")
    _fixed: dt.dtype | None = None
    _untyped_storage: UntypedStorage
    _dtype: dt.dtype
    is_sparse = False

    def __new__(
        cls,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> TypedStorage:
        if cls._fixed is not None and (dtype is not None or device is not None):
            name = "dtype" if dtype is not None else "device"
            raise RuntimeError(
                _legacy_message(cls, f"Keyword argument '{name}' cannot be specified")
            )
        if not _internal:
            _old()
        kind = cls._fixed or dtype or dt.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(_legacy_message(cls, "No positional arguments beside a storage"))
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    _legacy_message(cls, f"wrap_storage is no UntypedStorage: {wrap_storage!r:.60}")
                )
            return typed(wrap_storage, kind)
        if len(args) > 1:
            raise RuntimeError(_legacy_message(cls, "Too many positional arguments"))
        first = args[0] if args else 0
        if isinstance(first, int):
            return typed(UntypedStorage(first * kind.itemsize, device=device), kind)
        if not isinstance(first, Sequence) and not isinstance(first, Tensor | np.ndarray):
            raise TypeError(_legacy_message(cls, f"Argument type not recognized: {type(first)}"))
        if isinstance(first, Tensor):
            if cls._fixed is not None:
                raise TypeError(
                    _legacy_message(cls, f"Argument type not recognized: {type(first)}")
                )
            first = first.tolist()
        values = np.asarray(first).astype(kind.np).reshape(-1)
        made = typed(UntypedStorage(values.nbytes, device=device), kind)
        made._elements[:] = values
        return made

    # ---- what it is --------------------------------------------------------------------------

    @property
    def _elements(self) -> np.ndarray:
        raw, item = self._untyped_storage._bytes, self._dtype.itemsize
        return raw[: raw.size - raw.size % item].view(self._dtype.np)

    @property
    def dtype(self) -> dt.dtype:
        """The type of its elements."""
        return self._dtype

    @property
    def device(self) -> devices.device:
        """Where it lies."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a GPU."""
        return self._untyped_storage.is_cuda

    @property
    def filename(self) -> str | None:
        """See UntypedStorage."""
        return self._untyped_storage.filename

    def untyped(self) -> UntypedStorage:
        """Its bytes."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """Its length in bytes."""
        return self._untyped_storage.nbytes()

    def __sizeof__(self) -> int:
        """With the memory."""
        return object.__sizeof__(self) + self.nbytes()

    def size(self) -> int:
        """Its length in elements."""
        return self.nbytes() // self._dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes per element."""
        return self._dtype.itemsize

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """The index of its device, -1 on the CPU."""
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        """See UntypedStorage."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """See UntypedStorage."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it is page-locked."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """See UntypedStorage."""
        return typed(self._untyped_storage.pin_memory(device), self._dtype)

    def resizable(self) -> bool:
        """See UntypedStorage."""
        return self._untyped_storage.resizable()

    def pickle_storage_type(self) -> str:
        """The name of the class that PyTorch's files hold: "FloatStorage"."""
        return f"{self._dtype.scalar_name}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class, or a copy of another type (a dtype, class, or its name)."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            name = dtype.removeprefix("torch.").removesuffix("Storage")
            found = next((d for d in dt.ALL if d.scalar_name == name), None)
            if found is None:
                raise ValueError(f"invalid type: '{dtype}'")
            dtype = found
        elif isinstance(dtype, _StorageType):
            dtype = dtype.dtype
        return self._converted(dtype)

    # ---- its elements ------------------------------------------------------------------------

    def _number(self, x: Any) -> Any:
        value = x.item()
        return value if isinstance(value, (bool, int, float, complex)) else float(value)

    def tolist(self) -> list[Any]:
        """Its elements as Python numbers."""
        elements = self._elements
        if self._dtype not in dt.NATIVE:
            elements = elements.astype(np.float32)
        return elements.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(index)}")
        return self._number(self._elements[_place(index, len(self), "storage")])

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(index)}")
        where = index if isinstance(index, slice) else _place(index, len(self), "storage")
        self._elements[where] = value

    def fill_(self, value: Any) -> TypedStorage:
        """The same number everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """The numbers of another storage of the same length, converted."""
        if isinstance(source, TypedStorage):
            if len(source) != len(self):
                raise RuntimeError(
                    f"size does not match, self has {len(self)} elements but src has {len(source)}"
                )
            self[:] = source._elements.astype(self._dtype.np)
        else:
            self._untyped_storage.copy_(source)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return typed(self._untyped_storage.clone(), self._dtype)

    def resize_(self, size: int) -> None:
        """Another length in elements, see UntypedStorage."""
        self._untyped_storage.resize_(size * self._dtype.itemsize)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Itself if it lies there, else a copy on `device`."""
        moved = self._untyped_storage.to(device=device)
        return self if moved is self._untyped_storage else typed(moved, self._dtype)

    def cpu(self) -> TypedStorage:
        """Itself, or a copy in host memory."""
        return self.to(device=devices.cpu)

    def _converted(self, dtype: dt.dtype) -> TypedStorage:
        if dtype is self._dtype:
            return self
        made = typed(UntypedStorage(len(self) * dtype.itemsize, device=self.device), dtype)
        return made.copy_(self)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *,
        dtype: Any = None, device: Any = None,
    ) -> TypedStorage:  # fmt: skip
        """See UntypedStorage.from_buffer; the type is the class's, or `dtype`."""
        kind = cls._fixed or dtype or dt.get_default_dtype()
        copied = UntypedStorage.from_buffer(buffer, byte_order, count, offset, kind)
        made = typed(copied, kind)
        return made if device is None else made.to(device=device)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """See UntypedStorage.from_file; `size` counts elements of the class's type."""
        if cls._fixed is None:
            raise RuntimeError("from_file can only be called on derived classes")
        nbytes = size * cls._fixed.itemsize
        return typed(UntypedStorage.from_file(filename, shared, nbytes), cls._fixed)

    # ---- Python ------------------------------------------------------------------------------

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return typed(self._untyped_storage.__deepcopy__(memo), self._dtype)

    def __reduce__(self) -> Any:
        return (typed, (self._untyped_storage, self._dtype))

    def __repr__(self) -> str:
        body = "..." if self.device.type == "meta" else "\n".join(f" {x}" for x in self.tolist())
        return (
            f"{body}\n[torch.storage.TypedStorage(dtype={self._dtype}, device={self.device}) of"
            f" size {len(self)}]"
        )


def _conversion(dtype: dt.dtype) -> tuple[Any, Any]:
    def typed_to(self: TypedStorage) -> TypedStorage:
        return self._converted(dtype)

    def untyped_to(self: UntypedStorage) -> TypedStorage:
        return typed(self, dt.uint8)._converted(dtype)

    typed_to.__doc__ = untyped_to.__doc__ = f"A copy as {dtype} (itself if it is that already)."
    return typed_to, untyped_to


for _name, _dtype in _CONVERSIONS.items():
    for _class, _method in zip((TypedStorage, UntypedStorage), _conversion(_dtype), strict=True):
        _method.__name__ = _name
        setattr(_class, _name, _method)


def typed(storage: UntypedStorage, dtype: dt.dtype) -> TypedStorage:
    """A typed view of a storage."""
    made = _new(TypedStorage)
    made._untyped_storage, made._dtype = storage, dtype
    return made


def _old() -> None:
    settings.warn_once(
        "TypedStorage",
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be"
        " the only storage class. This should only matter to you if you are using storages"
        " directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of"
        " tensor.storage()",
    )


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that this tensor and its views share, as bytes."""
    return wrap_storage(storage_of(self), self._k.device)


def tensor_storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor and its views share, as elements of its type."""
    _old()
    return typed(untyped_storage(self), self._k.dtype)


def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is a storage, typed or not."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


TYPED: dict[str, Any] = {
    f"{d.scalar_name}Storage": _StorageType(
        f"{d.scalar_name}Storage",
        (TypedStorage,),
        {"_fixed": d, "__slots__": (), "__module__": "torchlab", "__doc__": f"Storage of {d}."},
    )
    for d in (
        dt.float64, dt.float32, dt.float16, dt.bfloat16, dt.int64, dt.int32, dt.int16, dt.int8,
        dt.uint8, dt.bool_, dt.complex128, dt.complex64,
    )
}  # fmt: skip
StorageBase.__module__ = "torchlab"
UntypedStorage.__module__ = TypedStorage.__module__ = "torchlab.storage"

__all__ = ["TypedStorage", "UntypedStorage", "is_storage", "typed", "wrap_storage"]
