"""Copies, types, devices, and the ways out of a tensor: numpy, item, tolist.

Source of the semantics: https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import events, formats, layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.arguments import dtype_of
from torchlab._core.dispatch.factories import told
from torchlab._core.dispatch.modes import SLOW, grad_enabled
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from torchlab._core.ops._making import format_strides
from torchlab._core.ops.kernels import before_ints, copy_into
from torchlab._core.settings import warn_once, warn_user
from torchlab._core.tape import edge_of, wants_grad
from torchlab._core.tensor import Parameter, Tensor, strides_of

_new = object.__new__


def _copy_strides(t: Tensor, memory_format: Any) -> Any:
    if memory_format is contiguous_format:
        return None
    if memory_format is None or memory_format is preserve_format:
        if t._k.contiguous and not compute.odd_ones(t):
            return None
        return layout.empty_like_strides(t._a.shape, strides_of(t))
    return format_strides(t._a.shape, memory_format)


def copied(t: Tensor, dtype: dt.dtype, dev: Any, memory_format: Any) -> Tensor:
    """A new tensor with t's values: another type, device or format. No history."""
    src = t._k.device
    if src.type != dev.type and events.host_transfer.listeners:
        events.host_transfer.emit(src=str(src), dst=str(dev), nbytes=t.nbytes)
    strides = _copy_strides(t, memory_format)
    if src.type == "meta" and dev.type != "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    r = compute.empty(t._a.shape, dtype, dev, strides)
    if dev.type != "meta":
        _assign(r, t)
    return r


def _assign(r: Tensor, t: Tensor) -> None:
    src, dst = t._a, r._a
    if t._k.device.type == "cuda" and r._k.device.type != "cuda":
        src = src.get()
    elif r._k.device.type == "cuda" and t._k.device.type != "cuda":
        dst[...] = compute.base.backend(r._k.device).xp.asarray(np.ascontiguousarray(src))
        return
    if src.dtype.kind == "c" and dst.dtype.kind == "b":
        src = src != 0
    elif src.dtype.kind == "c" and dst.dtype.kind != "c":
        src = src.real
        warn_once("complex", "Casting complex values to real discards the imaginary part")
    if src.dtype.kind == "f" and dst.dtype.kind in "iu":
        np.copyto(dst, before_ints(src, dst.dtype), casting="unsafe")
        return
    if src.dtype == np.float64 and dst.dtype.itemsize == 2 and dst.dtype.kind not in "iu":
        src = src.astype(np.float32)  # rounded twice, as PyTorch's conversion to 16 bits
    if type(dst) is not np.ndarray:
        dst[...] = src
    elif type(src) is np.ndarray and dst.dtype is src.dtype:
        copy_into(dst, src)
    else:
        np.copyto(dst, src, casting="unsafe")


@op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, MemoryFormat?"
    " memory_format=None) -> Tensor",
    public=False,
    family="tensorwise",
    vjp={"self": "cast_back(g, self.dtype, self.device)"},
    grad_name="ToCopyBackward0",
)
def _to_copy(self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    """A copy in another type, on another device, in another format."""
    return copied(self, dtype or self._k.dtype, device or self._k.device, memory_format)


@op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    vjp={"self": "g"},
    family="tensorwise",
)
def clone(self: Any, memory_format: Any) -> Any:
    """A copy that passes gradients through."""
    k = self._k
    if k.plain and k.contiguous and (memory_format is None or memory_format is preserve_format):
        if 1 in self._a.shape and compute.odd_ones(self):
            return copied(self, k.dtype, k.device, None)
        t = _new(Tensor)
        t._a = self._a.copy()
        t._k = k
        t._e = t._s = t._v = t._g = None
        return t
    return copied(self, self._k.dtype, self._k.device, memory_format)


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=None) -> Tensor(a)", spaces=())
def contiguous(self: Any, memory_format: Any) -> Any:
    """Itself if its memory is row-major (or in the given format) already, else a copy that is."""
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if self.is_contiguous(memory_format or contiguous_format):
        return self
    return clone.call(self, memory_format=memory_format or contiguous_format)


def _as_target(args: Any, dtype: Any, device: Any, copy: bool) -> tuple[Any, Any, bool]:
    flags: list[bool] = []
    for i, x in enumerate(args):
        if isinstance(x, dt.dtype):
            dtype = x
        elif isinstance(x, Tensor):
            dtype, device = x._k.dtype, x._k.device
        elif isinstance(x, bool):
            flags.append(x)
        elif x is None or not i and isinstance(x, (str, int, devices.device)):
            device = x if x is not None else device
        elif dt.of_type(x) is not None:  # Python's own types
            dtype = dt.of_type(x)
        else:
            raise TypeError(
                f"to() received an invalid combination of arguments - argument {i + 1} is"
                f" {type(x).__name__}"
            )
    if len(flags) > 1:
        copy = flags[1]
    if dtype is not None and type(dtype) is not dt.dtype:
        dtype = dtype_of(dtype)
    return dtype, (devices.concrete(devices.device(device)) if device is not None else None), copy


def _suggested(t: Any) -> Any:
    """The format that results made from `t` have: what `to` takes for its format."""
    name = layout.suggest_memory_format(tuple(t._a.shape), strides_of(t))
    return contiguous_format if name == "contiguous" else _CHANNELS_LAST[name]


_CHANNELS_LAST = {"channels_last": channels_last, "channels_last_3d": channels_last_3d}


@face("to", spaces=())
def to(
    self: Any,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """`x.to(dtype)`, `x.to(device)`, `x.to(other)`: itself if nothing changes (unless
    copy=True)."""
    if memory_format is not None and not isinstance(memory_format, formats.memory_format):
        raise TypeError(
            "to(): argument 'memory_format' must be torch.memory_format, not"
            f" {type(memory_format).__name__}"
        )
    args = args if other is None else (other, *args)
    dtype, device, copy = _as_target(args, dtype, device, copy)
    k = self._k
    same = (dtype is None or dtype is k.dtype) and (device is None or device is k.device)
    if (
        same
        and not copy
        and (
            memory_format is None
            or memory_format is preserve_format
            or memory_format is _suggested(self)
        )
    ):
        return self
    return _to_copy.call(self, dtype=dtype, device=device, memory_format=memory_format)


def _typed(name: str, dtype: dt.dtype) -> None:
    def method(self: Any, memory_format: Any = None) -> Any:
        if self._k.dtype is dtype and (
            memory_format is None
            or memory_format is preserve_format
            or memory_format is _suggested(self)
        ):
            return self
        return _to_copy.call(self, dtype=dtype, memory_format=memory_format)

    method.__doc__ = f"`self.to({dtype!r})`."
    face(name, spaces=())(method)


for _name, _dtype in (
    ("float", dt.float32),
    ("double", dt.float64),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("int", dt.int32),
    ("long", dt.int64),
    ("short", dt.int16),
    ("char", dt.int8),
    ("byte", dt.uint8),
    ("bool", dt.bool_),
    ("cfloat", dt.complex64),
    ("cdouble", dt.complex128),
):
    _typed(_name, _dtype)


@face("type", spaces=())
def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The type's name, or a conversion."""
    if dtype is None:
        place = "" if self._k.device.type == "cpu" else self._k.device.type + "."
        return f"torch.{place}{self._k.dtype.scalar_name}Tensor"
    return to.body(self, dtype)


@face("type_as", spaces=())
def type_as(self: Any, other: Any) -> Any:
    """`self.to(other.dtype)` on other's device."""
    return to.body(self, other)


@face("cpu", spaces=())
def cpu(self: Any, memory_format: Any = preserve_format) -> Any:
    """In host memory."""
    return to.body(self, devices.cpu, memory_format=memory_format)


@face("sim", spaces=())
def sim(self: Any, device: Any = 0) -> Any:
    """On the simulated accelerator."""
    return to.body(self, devices.device("sim", device or 0) if isinstance(device, int) else device)


@face("cuda", spaces=())
def cuda(
    self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = preserve_format
) -> Any:
    """On a GPU."""
    return to.body(
        self,
        (
            devices.device("cuda", device or 0)
            if device is None or isinstance(device, int)
            else device
        ),
        memory_format=memory_format,
    )


@op(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    family="tensorwise",
    public=False,
    vjp={"self": "zeros_like(g)", "src": "cast_back(sum_to(g, src.shape), src.dtype, src.device)"},
    grad_name="CopyBackwards",
)
def copy(self: Any, src: Any, non_blocking: bool) -> Any:
    """src in self's shape, type and place."""
    return copied(aten.expand_as(src, self), self._k.dtype, self._k.device, None)


def _is_wrapper(t: Any) -> bool:
    c = type(t)
    return c is not Tensor and c is not Parameter and not t._exotic


@face("copy_", spaces=())
def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Write `other`, broadcast and converted, into this tensor."""
    src = other
    if not isinstance(src, Tensor):
        raise TypeError(
            f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}"
        )
    # (where the type has no gradients, PyTorch asks nobody for a history)
    differentiable = self._k.differentiable
    grad = writes.prepare_write(copy, self, (src,) if differentiable else ()) and differentiable
    if src is not self:
        writes.check_memory(copy, self, (src,))
    shape = layout.broadcast_shapes(self._a.shape, src._a.shape, op="copy_")
    if shape != self._a.shape:
        raise RuntimeError(
            f"copy_: output with shape {list(self._a.shape)} doesn't match the broadcast shape"
            f" {list(shape)}"
        )
    e_self, e_src = (edge_of(self), edge_of(src)) if differentiable else (None, None)
    if (SLOW or _is_wrapper(self) or _is_wrapper(src)) and told("copy_", locals()) is not None:
        if _is_wrapper(self):  # Note [Below autograd]: a handler has written
            writes.wrote(self)
    else:
        _write_copy(self, src)
    if grad and (e_self is not None or e_src is not None):
        _record_copy(self, src, e_self, e_src)
    return self


def _write_copy(self: Any, src: Any) -> None:
    if self._k.device.type != "meta":
        if src._k.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if src._k.device.type != self._k.device.type and events.host_transfer.listeners:
            events.host_transfer.emit(src=str(src.device), dst=str(self.device), nbytes=src.nbytes)
        if src._s is self._s and src._s is not None:
            src = writes.saved_original(src)
        _assign(self, src)
    writes.wrote(self)


def _record_copy(self: Any, src: Any, e_self: Any, e_src: Any) -> None:
    node = copy.node_class()
    node.next = (e_self, e_src)
    for name, value in (
        ("src_shape", src._a.shape),
        ("src_dtype", src._k.dtype),
        ("src_device", src._k.device),
    ):
        setattr(node, f"v_{name}", value)
    node.shape, node.k = self._a.shape, self._k
    writes.rebase_history(self, node)


# ---- out of the tensor --------------------------------------------------------------------------


@face("numpy", spaces=())
def numpy(self: Any, *, force: bool = False) -> Any:
    """The NumPy array over the same memory."""
    if _is_wrapper(self) and type(self._a) is MetaArray:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    if force:
        return numpy.body(aten.detach(self).cpu())
    if wants_grad(self) and grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if self._k.device.type != "cpu":
        raise TypeError(
            f"can't convert {self._k.device} device type tensor to numpy. Use Tensor.cpu() to copy"
            " the tensor to host memory first."
        )
    return self._a.view()


def _host(self: Any, what: str) -> Any:
    if self._k.device.type == "meta":
        raise RuntimeError(f"Tensor.{what}() cannot be called on meta tensors")
    if _is_wrapper(self) and type(self._a) is MetaArray:
        raise RuntimeError(
            f".{what}() is not supported for tensor subclasses, got {type(self).__name__}"
        )
    return self._a.get() if self._k.device.type == "cuda" else self._a


@face("item", spaces=())
def item(self: Any) -> Any:
    """The one element as a Python number."""
    a = self._a
    if self._k.fast and not SLOW:
        try:
            return a.item()
        except ValueError:
            pass  # more elements than one: said below
    if a.size != 1:
        raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
    if SLOW and (seen := told("_local_scalar_dense", locals())) is not None:
        return seen
    if self._k.plain:
        r = a.item()
        return r if type(r) in (float, int, bool, complex) else float(r)
    a = _host(self, "item")
    r = a.item()
    return r if type(r) in (float, int, bool, complex) else float(r)


@face("tolist", spaces=())
def tolist(self: Any) -> Any:
    """Nested lists of Python numbers (a number for 0-d tensors)."""
    a = _host(self, "tolist")
    if self._k.dtype not in dt.NATIVE:
        a = a.astype(np.float32)
    return a.tolist()


def _scalar(self: Any, name: str) -> Any:
    if self._a.size != 1:
        raise ValueError(
            "only one element tensors can be converted to Python scalars, not one of shape"
            f" {list(self._a.shape)}"
        )
    value = item.body(self)
    if name != "__complex__" and isinstance(value, complex):
        if not value.imag:
            return value.real
        kind = {"__float__": "double", "__int__": "int64_t"}[name]
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow: {value}")
    return value


def _conversion(name: str, convert: Any) -> None:
    def method(self: Any) -> Any:
        if edge_of(self) is not None and name != "__bool__" and self._a.ndim:
            warn_user(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected"
                " behavior. Consider using tensor.detach() first.",
            )
        return convert(_scalar(self, name))

    face(name, spaces=())(method)


_conversion("__float__", float)
_conversion("__int__", int)
_conversion("__complex__", complex)


@face("__bool__", spaces=())
def to_bool(self: Any) -> Any:
    n = self._a.size
    if n != 1:
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if SLOW and (seen := told("_local_scalar_dense", locals())) is not None:
        return bool(seen)
    return bool(_host(self, "__bool__").item())


@face("__index__", spaces=())
def to_index(self: Any) -> Any:
    if self._a.size != 1 or self._k.dtype.category > dt.INT:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if SLOW and (seen := told("_local_scalar_dense", locals())) is not None:
        return int(seen)
    return int(_host(self, "__index__").item())


@face("__array__", spaces=())
def to_array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    a = numpy.body(self)
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError(
                f"Unable to avoid copy while creating an array as requested: {a.dtype} to {dtype}"
            )
        return a.astype(dtype)
    return a.copy() if copy else a


@face("is_nonzero")
def is_nonzero(self: Any) -> Any:
    """Whether the one element differs from zero."""
    return to_bool.body(self)


@face("is_tensor", method=False)
def is_tensor(obj: Any) -> Any:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)
