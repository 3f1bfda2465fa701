"""The old constructors: `torch.Tensor(2, 3)`, `tensor.new(...)`, `torch.FloatTensor([1, 2])`.

`torch.FloatTensor` is no class of tensors but the name of a dtype and a device; `isinstance` asks
for these. Source: https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import settings
from torchlab._core.dispatch import viewing
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import strided
from torchlab._core.ops._sparse import COO
from torchlab._core.storages import TypedStorage, UntypedStorage
from torchlab._core.tensor import Size, Tensor


def _options(dtype: dt.dtype, device: devices.device) -> str:
    return f"{dtype.scalar_name} on {device}"


def _over_storage(storage: Any, dtype: dt.dtype, device: devices.device) -> Tensor:
    if isinstance(storage, TypedStorage) and storage.dtype is not dtype:
        raise RuntimeError(
            f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got type"
            f" {storage.dtype.scalar_name} for argument 1 'storage'"
        )
    return aten.set_(aten.empty((0,), dtype=dtype, device=device), storage.untyped())


def construct(
    args: tuple[Any, ...], kwargs: dict[str, Any], dtype: dt.dtype, place: devices.device,
    same_type: bool = True,
) -> Any:  # fmt: skip
    """What the old constructors do: sizes, a sequence, another tensor, a storage, or nothing.

    `same_type`: another tensor has to be of `dtype`; it is shared, not copied.
    """
    if "device" in kwargs:
        wish = kwargs.pop("device")
        if wish is not None and devices.as_device(wish).type != place.type:
            raise RuntimeError(
                f"legacy constructor expects device type: {place.type} but device type:"
                f" {devices.device(wish).type} was passed"
            )
        place = place if wish is None else devices.as_device(wish)
    for name in ("size", "data", "other", "storage"):
        if name in kwargs:
            args = (*args, Size(kwargs.pop(name)) if name == "size" else kwargs.pop(name))
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    first = args[0] if args else None
    if len(args) == 1 and isinstance(first, Tensor):
        if same_type and (first._k.dtype is not dtype or first._k.device is not place):
            raise TypeError(
                f"new(): expected a tensor of type {_options(dtype, place)}, but got"
                f" {_options(first._k.dtype, first._k.device)}; convert it with .to() first"
            )
        return viewing.alias(first)
    if len(args) == 1 and isinstance(first, (TypedStorage, UntypedStorage)):
        return _over_storage(first, dtype, place)
    if not args:
        return aten.empty((0,), dtype=dtype, device=place)
    if len(args) == 1 and isinstance(first, Size):
        return aten.empty(tuple(first), dtype=dtype, device=place)
    if isinstance(first, (int, np.integer)) and not isinstance(first, bool):
        for i, x in enumerate(args):
            if not isinstance(x, (int, np.integer)):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error"
                    f' "type must be tuple of ints,but got {type(x).__name__}"'
                )
        return aten.empty(tuple(int(x) for x in args), dtype=dtype, device=place)
    if len(args) > 1:
        raise TypeError(
            "new() received an invalid combination of arguments - got"
            f" ({', '.join(type(x).__name__ for x in args)}); give sizes as ints, one sequence of"
            " data, a tensor, or a storage"
        )
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(first, np.generic):
        raise TypeError(f"new(): data must be a sequence (got numpy.{type(first).__name__})")
    if isinstance(first, np.ndarray):  # shared where the type is the same
        return aten.as_tensor(first, dtype=dtype, device=place)
    if not (isinstance(first, Sequence) or hasattr(first, "__array__")):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return aten.tensor(first, dtype=dtype, device=place)


def _construct_sparse(
    args: tuple[Any, ...], kwargs: dict[str, Any], dtype: dt.dtype, place: devices.device
) -> Any:
    """What `torch.sparse.FloatTensor` does: nothing, sizes, or indices, values and a size. The
    values keep their dtype."""
    place = kwargs.pop("device", None) or place
    args = (*args, *(kwargs.pop(n) for n in ("indices", "values", "size") if n in kwargs))
    if not kwargs:
        if not args or isinstance(args[0], int) or (len(args) == 1 and isinstance(args[0], Size)):
            size = args[0] if args and isinstance(args[0], Size) else args or (0,)
            if size == (0,):  # one sparse dim, which a size alone would not say
                none = aten.empty((1, 0), dtype=dt.int64, device=place)
                values = aten.empty((0,), dtype=dtype, device=place)
                return aten.sparse_coo_tensor(none, values, size)
            return aten.sparse_coo_tensor(size, dtype=dtype, device=place)
        tensors = len(args) in (2, 3) and all(isinstance(x, Tensor) for x in args[:2])
        if tensors and (len(args) == 2 or isinstance(args[2], (tuple, list))):
            return aten.sparse_coo_tensor(*args, device=place)
        if len(args) == 1 and isinstance(args[0], (tuple, list)):
            raise TypeError(
                "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use"
                " torch.sparse_coo_tensor() or construct a strided tensor and convert it to sparse"
                " via to_sparse."
            )
    raise TypeError(
        "new() received an invalid combination of arguments - got"
        f" ({', '.join([*(type(x).__name__ for x in args), *kwargs])}); give sizes as ints, or"
        " indices and values as tensors and a tuple of ints as size"
    )


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """As the class's old constructor, with this tensor's type and device."""
    if self.layout is COO:
        return _construct_sparse(args, kwargs, self._k.dtype, self._k.device)
    return construct(args, kwargs, self._k.dtype, self._k.device)


class tensortype(type):
    """The class of `torch.FloatTensor` and its like."""

    dtype: dt.dtype
    _device: devices.device
    layout = strided

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.layout is COO:
            return _construct_sparse(args, kwargs, cls.dtype, cls._device)
        return construct(args, kwargs, cls.dtype, cls._device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance._k.dtype is cls.dtype
            and instance._k.device.type == cls._device.type
            and instance.layout is cls.layout
        )

    @property
    def is_sparse(cls) -> bool:
        """Whether its tensors are of layout COO."""
        return cls.layout is COO

    @property
    def is_cuda(cls) -> bool:
        """Whether its tensors lie on a GPU."""
        return cls._device.type == "cuda"

    def __getattr__(cls, name: str) -> Any:
        return getattr(Tensor, name)


tensortype.__module__ = "torchlab"
TYPED: dict[str, tensortype] = {
    f"{d.scalar_name}Tensor": tensortype(
        f"{d.scalar_name}Tensor", (), {"dtype": d, "_device": devices.cpu, "__module__": "torchlab"}
    )
    for d in (
        dt.float64, dt.float32, dt.float16, dt.bfloat16, dt.int64, dt.int32, dt.int16, dt.int8,
        dt.uint8, dt.bool_,
    )
}  # fmt: skip

SPARSE: dict[str, tensortype] = {
    name: tensortype(
        name, (),
        {"dtype": t.dtype, "_device": t._device, "layout": COO, "__module__": "torchlab.sparse"},
    )
    for name, t in TYPED.items()
    if name != "BoolTensor"
}  # fmt: skip
"""The names in `torch.sparse`."""


def type_named(wanted: Any) -> tuple[dt.dtype, devices.device | None]:
    """(dtype, device or None for "as it is") of a dtype, a class, or a name that `x.type()` gives.
    ValueError for anything else."""
    if isinstance(wanted, dt.dtype):
        return wanted, None
    if isinstance(wanted, tensortype):
        return wanted.dtype, wanted._device
    if wanted is Tensor:
        return dt.get_default_dtype(), devices.cpu
    if isinstance(wanted, str):
        path = wanted.split(".")
        if path[0] == "torch" and len(path) in (2, 3) and path[-1].endswith("Tensor"):
            name = path[-1].removesuffix("Tensor")
            place = devices.cpu if len(path) == 2 else None
            if len(path) == 3 and path[1] == "sparse":
                place = devices.cpu
            elif len(path) == 3 and path[1] in devices.TYPES:
                place = devices.concrete(devices.device(path[1]))
            found = next((d for d in dt.ALL if d.scalar_name == name), None)
            if place is not None and (found is not None or not name):
                return found or dt.get_default_dtype(), place
        raise ValueError(f"invalid type: '{wanted}'")
    raise ValueError(f"invalid type: '{getattr(wanted, '__name__', wanted)}'")


def set_default_tensor_type(t: Any, /) -> None:
    """The type of tensors made from Python floats, named by a class: torch.DoubleTensor.
    Deprecated: `set_default_dtype` and `set_default_device` say the same more plainly."""
    settings.warn_once(
        "set_default_tensor_type",
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use"
        " torch.set_default_dtype() and torch.set_default_device() as alternatives.",
    )
    if not isinstance(t, (str, tensortype)):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type, not"
            f" {t!r}"
        )
    try:
        dtype, device = type_named(t)
    except ValueError as e:
        raise TypeError(f"invalid type object: {e}") from None
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dt.set_default_dtype(dtype)
    if device is not None and device is not devices.cpu:
        devices.set_default_device(device)


__all__ = ["SPARSE", "TYPED", "construct", "new", "set_default_tensor_type", "type_named"]
