"""Making instances of tensor subclasses: `Tensor._make_subclass`, `_make_wrapper_subclass`.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html#subclassing-torch-tensor
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout as layouts
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import as_device
from torchlab._core.formats import channels_last, channels_last_3d
from torchlab._core.kind import Kind
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import AccumulateGrad, storage_of
from torchlab._core.tensor import Tensor


def make_subclass(
    cls: type, data: Any, require_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False,
    dispatch_layout: bool = False, device_for_backend_keys: Any = None,
) -> Any:  # fmt: skip
    """An instance of `cls` over the memory of `data`, without history; a leaf if `require_grad`."""
    if not isinstance(data, Tensor):
        raise TypeError(
            "_make_subclass(): argument 'data' (position 2) must be Tensor, not"
            f" {type(data).__name__}"
        )
    if data._exotic and data.strided and not cls._exotic:  # type: ignore[attr-defined]
        data = data.plain()
    r: Any = object.__new__(cls)
    r._a, r._k, r._s = data._a, data._k, storage_of(data)
    r._e = r._v = r._g = None
    return leaf(r, require_grad)


def leaf(r: Any, requires_grad: bool) -> Any:
    """The tensor, wanting gradients if asked."""
    if requires_grad:
        if not r._k.differentiable:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients, not"
                f" {r._k.dtype}"
            )
        r._e = AccumulateGrad(r)
    return r


def make_wrapper_subclass(
    cls: type, size: Any, strides: Any = None, storage_offset: int | None = None,
    memory_format: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False,
    dispatch_layout: bool = False, _extra_dispatch_keys: Any = None, storage_size: Any = None,
) -> Any:  # fmt: skip
    """An instance of `cls` with a shape, a type and a device, but no memory of its own: the class
    holds the data in its attributes and must have a `__torch_dispatch__`."""
    if "__torch_dispatch__" not in {n for c in cls.__mro__ if c is not Tensor for n in vars(c)}:
        raise RuntimeError(
            f"{cls.__name__} must define __torch_dispatch__: a wrapper without memory of its own"
            " cannot run an operator otherwise"
        )
    shape = tuple(int(n) for n in size)
    made = dtype or dt.get_default_dtype()
    if strides is None:
        if memory_format in (channels_last, channels_last_3d):
            strides = layouts.channels_last_strides(shape)
        else:
            strides = layouts.contiguous_strides(shape)
    strides = tuple(int(n) for n in strides)
    if len(strides) != len(shape):
        raise RuntimeError(
            f"_make_wrapper_subclass: {len(shape)} sizes, {len(strides)} strides: {list(shape)},"
            f" {list(strides)}"
        )
    a = MetaArray(shape, made.np, strides, storage_offset or 0)
    k = wrapper_kind(made, as_device(device))
    r: Any = object.__new__(cls)
    r._a, r._k = a, k if layouts.is_contiguous(shape, strides) else k.v
    r._s = Storage(a)
    r._e = r._v = r._g = None
    return leaf(r, requires_grad)


_kinds: dict[tuple[dt.dtype, Any], Kind] = {}


def wrapper_kind(dtype: dt.dtype, dev: Any) -> Kind:
    """The kind of tensors without memory of their own: never plain, direct or fast."""
    found = _kinds.get((dtype, dev))
    if found is None:
        c, v, ci, vi = (Kind(dtype, dev, x, y) for y in (False, True) for x in (True, False))
        for k in (c, v, ci, vi):
            k.plain = k.direct = k.fast = k.fp = k.arith = False
        for normal, inference in ((c, ci), (v, vi)):
            normal.i, normal.n = inference, normal
            inference.i, inference.n = inference, normal
        c.c, c.v, v.c, v.v = c, v, c, v
        ci.c, ci.v, vi.c, vi.v = ci, vi, ci, vi
        found = _kinds.setdefault((dtype, dev), c)
    return found


__all__ = ["leaf", "make_subclass", "make_wrapper_subclass", "wrapper_kind"]
