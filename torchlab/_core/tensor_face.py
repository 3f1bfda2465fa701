"""What a tensor is to Python: its repr, copies, pickles, attributes and constructors.

Installed on the class by `torchlab`; nothing here is on a hot path.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import legacy, settings, storages
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import cpu
from torchlab._core.dispatch import asking, levels, modes, python_key, wrappers
from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.registry import aten
from torchlab._core.hooks import keep_retaining
from torchlab._core.kind import cpu_kind
from torchlab._core.lazy import lazy
from torchlab._core.memory.storage import Storage, exchanged
from torchlab._core.printing import format_tensor
from torchlab._core.tape import (
    DETACHED,
    TLS,
    AccumulateGrad,
    LeafRef,
    Out,
    edge_asked,
    edge_of,
    geometry,
    leaf_changed,
    storage_of,
)
from torchlab._core.tensor import Parameter, Tensor

dlpack = lazy("torchlab._core.dlpack")  # loads ctypes
_new = object.__new__


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    handler = getattr(type(self), "__torch_function__", None)
    if getattr(handler, "__func__", None) is not modes._default_function and modes.overriding(
        (self,)
    ):
        return type(self).__torch_function__(Tensor.__repr__, (type(self),), (self,), {})
    text = printed(self, tensor_contents, self._is_param)
    named = issubclass(type(self), Parameter) and type(self) is not Parameter
    return f"Parameter containing:\n{text}" if named else text


def printed(self: Tensor, contents: str | None = None, parameter: bool = False) -> str:
    """How a tensor prints. `contents` stands in the elements' place; `parameter`: say that it is
    one."""
    try:
        e = edge_asked(self)
        grad_fn = None
        if e is not None and type(e) is not AccumulateGrad:
            grad_fn = (e.node if type(e) is Out else e).name().rsplit("::", 1)[-1]
    except RuntimeError:  # a view that may not be used
        e, grad_fn = self._e, "Invalid"
    meta = self._k.device.type == "meta"
    array = None if meta else self._a.get() if self._k.device.type == "cuda" else self._a
    named = type(self) not in (Tensor, Parameter) and not self._level
    prefix = type(self).__name__ if named else "tensor"
    return format_tensor(
        array,
        dtype_name=str(self._k.dtype),
        device=str(self._k.device),
        requires_grad=e is not None,
        grad_fn_name=grad_fn,
        default_dtype=str(dt.get_default_dtype()),
        is_parameter=parameter,
        prefix=prefix,
        shape=self._a.shape,
        tangent=repr(self.tangent) if isinstance(self, Dual) else None,
        contents=contents,
    )


def _format(self: Tensor, spec: str) -> str:
    if self._a.ndim == 0 and type(self) is Tensor and self._k.device.type != "meta":
        return format(self.item(), spec)  # type: ignore[attr-defined]
    return object.__format__(self, spec)


_repr.__name__, _repr.__qualname__ = "__repr__", "Tensor.__repr__"  # `__torch_function__` sees it


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    e = edge_of(self)
    if e is not None and type(e) is not AccumulateGrad:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
            " protocol at the moment. If you were attempting to deepcopy a module, this may be"
            " because of a torch.nn.utils.weight_norm usage. Use tensor.detach().clone() to copy"
            " the values."
        )
    if type(self._a) is MetaArray and self._k.device.type != "meta":
        return _deepcopy_wrapper(self, memo)
    r = _new(type(self))
    if self._k.device.type == "meta":
        r._a, r._s = self._a, None
    else:
        r._s = _copied_storage(storage_of(self), memo, self)
        r._a = _over(r._s, geometry(self), self._a.dtype) if r._s is not None else None
        if r._a is None:
            fresh = aten.clone(aten.detach(self))
            r._a, r._s = fresh._a, fresh._s
    r._k = self._k.n
    r._v = r._g = None
    r._e = None
    memo[id(self)] = r
    if r._s is not None and not isinstance(self, Parameter):
        r._s.version = 1  # PyTorch's is an empty tensor that got its memory by `set_`
    if e is not None:
        r._e = AccumulateGrad(r)
    if self._g is not None:
        r._g = _deepcopy(self._g, memo)
    for name, value in self.__dict__.items():
        r.__dict__[name] = copy.deepcopy(value, memo)
    return r


def _deepcopy_wrapper(self: Tensor, memo: dict[int, Any]) -> Any:
    """A copy of an instance of a wrapper class, which must have `clone`; its attributes, where the
    data are, are copied, too."""
    r = aten.clone(aten.detach(self))
    if type(r) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for"
            " subclass types that properly implement clone() and detach() and for which these"
            f" functions return another instance of the same subclass, not {type(r).__name__}."
        )
    memo[id(self)] = r
    for name, value in self.__dict__.items():
        r.__dict__[name] = copy.deepcopy(value, memo)
    if edge_of(self) is not None:
        r.requires_grad_()
    if self._g is not None:
        r._g = copy.deepcopy(self._g, memo)
    return r


def _copied_storage(s: Storage, memo: dict[int, Any], t: Tensor) -> Storage | None:
    """Views that share a storage share its copy, too. Accelerators copy through an operator."""
    if t._k.device is not cpu:
        return None
    found = memo.get(id(s))
    if found is None:
        found = memo[id(s)] = Storage(s.bytes.copy())
        memo.setdefault("torchlab_storages", []).append(s)  # type: ignore[call-overload]
    return found


def _over(s: Storage, where: Any, dtype: np.dtype) -> Any:
    shape, strides, offset = where
    size = dtype.itemsize
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, s.bytes, offset * size, tuple(x * size for x in strides))


def rebuild(
    cls: type,
    data: Any,
    offset: int,
    shape: Any,
    strides: Any,
    dtype: Any,
    device: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """Make a tensor from what `__reduce_ex__` gave."""
    t = _new(cls)
    t._s = data if isinstance(data, Storage) else Storage(data)
    t._a = _over(t._s, (shape, strides, offset), dtype.np)
    t._k = cpu_kind(t._a)
    t._e = t._v = t._g = None
    if device != "cpu":
        moved = aten.to(t, device)
        t._a, t._s, t._k = moved._a, moved._s, moved._k
    t.__dict__.update(attributes)
    return t.requires_grad_() if requires_grad else t


def rebuild_meta(
    cls: type, shape: Any, strides: Any, dtype: Any, grad: bool, attributes: dict[str, Any]
) -> Any:
    """Make a tensor without data from what `__reduce_ex__` gave."""
    t = aten.empty_strided(shape, strides, dtype=dtype, device="meta")
    t = t if cls is Tensor else modes.as_subclass(t, cls)
    t.__dict__.update(attributes)
    return t.requires_grad_() if grad else t


def _reduce(self: Tensor, protocol: int) -> Any:
    # A tensor with a history comes back as a leaf that wants gradients, as PyTorch's does.
    e = edge_of(self)
    if self._k.device.type == "meta":
        facts = (tuple(self._a.shape), self.stride(), self._k.dtype)
        return rebuild_meta, (type(self), *facts, e is not None, dict(self.__dict__))
    host = self if self._k.device is cpu else aten.cpu(aten.detach(self))
    shape, strides, offset = geometry(host)
    return (
        rebuild,
        (
            type(self),
            storage_of(host),
            offset,
            shape,
            strides,
            self._k.dtype,
            str(self._k.device),
            e is not None,
            dict(self.__dict__),
        ),
    )


def _storage_reduce(self: Storage, protocol: int) -> Any:
    return (Storage, (self.bytes.copy(),))


# ---- constructors -------------------------------------------------------------------------------


def _construct(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(2, 3)`, `torch.Tensor([1, 2])`: the old constructor, always of the default
    type."""
    r = legacy.construct(args, kwargs, dt.get_default_dtype(), cpu, same_type=False)
    return r if cls is Tensor else modes.as_subclass(r, cls)


def _data(self: Tensor) -> Tensor:
    """The same memory, without history and with a version counter of its own."""
    if type(self._a) is MetaArray and self._k.device.type != "meta":  # a wrapper
        return aten.detach(self)
    r = _new(type(self) if self._exotic or not self._is_param else Tensor)
    r._a, r._k = self._a, self._k
    r._s = storage_of(self).twin()
    r._e = r._v = r._g = None
    return r


def _set_real(self: Tensor, value: Any) -> None:
    _write(aten.real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    _write(aten.imag(self), value)


def _write(part: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        aten.copy_(part, value)
    else:
        aten.fill_(part, value)


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self._e is not None and not value._k.differentiable:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    if self._exotic or value._exotic:  # Note [Exotic tensors]
        if type(self) not in (Tensor, Parameter) and not self._exotic:
            value = value.plain()  # a user's class stays
        else:
            parameter = self._is_param
            self.__dict__.pop("_is_param", None)
            self.__class__ = type(value) if value._exotic else Parameter if parameter else Tensor
            if parameter and value._exotic:
                self._is_param = True
    shape, k = self._a.shape, self._k
    if self._s is None:
        self._s = storage_of(value).twin()
    else:
        self._s.stale = True  # its views count its writes still, and see them in their history
        self._s = exchanged(self._s, storage_of(value))
    if self._v is not None:
        self._s.stale = True  # a view stays one: its base may want gradients from now on
    self._a, self._k = value._a, value._k
    leaf_changed(self, shape, k)
    if type(self._e) is AccumulateGrad and type(self._e.leaf) is LeafRef:
        self._e.leaf = LeafRef(self)  # Note [Leaves that are gone] in tape


def _transposed(self: Tensor) -> Tensor:
    n = self._a.ndim
    if n == 0:
        settings.warn_once(
            "T of 0-D",
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
        )
    elif n != 2:
        settings.warn_once(
            "T of others",
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is"
            " deprecated and it will throw an error in a future release. Consider `x.mT` to"
            " transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to"
            " reverse the dimensions of a tensor.",
        )
    return aten.permute(self, tuple(range(n - 1, -1, -1)))


def _matrix_transposed(self: Tensor) -> Tensor:
    if self._a.ndim == 0:
        return self
    if self._a.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._a.ndim}-D"
            " tensor."
        )
    return aten.transpose(self, -2, -1)


def _hermitian(self: Tensor) -> Tensor:
    if self._a.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self._a.ndim}-D tensor."
        )
    return _adjoint(self)


def _adjoint(self: Tensor) -> Tensor:
    return aten.conj(_matrix_transposed(self) if self._a.ndim else self)


def _dlpack(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the tensor's memory."""
    return dlpack.export(
        self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's functions make of their result for a tensor: a tensor. Truth values come as
    uint8, as PyTorch gives them."""
    array = np.asarray(array)
    return aten.from_numpy(array.astype(np.uint8) if array.dtype == bool else array)


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, bool, int, float, complex)):
        return bool((self == element).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def _reversed(self: Tensor) -> Tensor:
    return self if self._a.ndim == 0 else aten.flip(self, (0,))


def _detach_(self: Tensor) -> Tensor:
    """Cut the tensor off its history in place; RuntimeError for views. Nothing in inference
    mode."""
    if TLS.inference:
        return self
    if self._v is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead, which leaves the view as it is."
        )
    if type(self._e) is AccumulateGrad:
        self.requires_grad_(False)
    keep_retaining(self)
    e = self._e
    if e is not None and type(e) is not AccumulateGrad:
        node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        DETACHED.setdefault(node, set()).add(nr)
    self._e = None
    if self._s is not None:
        self._s.stale = True  # its views ask it whether they want gradients
    return self


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of the old class of such tensors, "torch.FloatTensor"; or a conversion to the type
    and device that a dtype, such a class or its name say."""
    if dtype is None:
        place = "" if self._k.device is cpu else self._k.device.type + "."
        return f"torch.{place}{self._k.dtype.scalar_name}Tensor"
    kind, device = legacy.type_named(dtype)
    return aten.to(self, device or self._k.device, kind, non_blocking=non_blocking)


def _cdata(self: Tensor) -> int:
    """What tells tensors apart; PyTorch's is the address of its C++ part."""
    return id(self)


def _storage_type(self: Tensor) -> Any:
    """The class of this tensor's typed storage: torch.FloatStorage."""
    found = storages.TYPED.get(f"{self._k.dtype.scalar_name}Storage")
    if found is None:
        raise RuntimeError(f"unsupported Storage type: {self.dtype}")
    return found


def _volatile(self: Tensor) -> bool:
    """False: what was `volatile` in old programs is `torch.no_grad()` now."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _prepared(cls: type, **kwargs: Any) -> None:
    """A new subclass: one that overrides `__torch_function__` is asked for its attributes, too."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    asking.prepare(cls)


def install() -> None:
    """Put these on the class."""
    t: Any = Tensor
    t.__new__ = lambda cls, *a, **k: _construct(cls, *a, **k)
    t.__torch_function__ = classmethod(modes._default_function)
    t.__torch_dispatch__ = staticmethod(python_key.disabled)
    t.__init_subclass__ = classmethod(_prepared)
    for cls in levels.CLASSES:  # (they were made before `_prepared`)
        asking.prepare(cls)
    t._make_subclass = staticmethod(wrappers.make_subclass)
    t._make_wrapper_subclass = staticmethod(wrappers.make_wrapper_subclass)
    t.__repr__ = _repr  # and so `str`, of classes with a `__repr__` of their own, too
    t.__format__ = _format
    t.__deepcopy__ = _deepcopy
    t.__reduce_ex__ = _reduce
    t.__contains__ = _contains
    t.__reversed__ = _reversed
    t.__dlpack__ = _dlpack
    t.__dlpack_device__ = lambda self: dlpack.device_of(self)
    t.__array_wrap__ = _array_wrap
    t.data = property(_data, _set_data)
    t.T = property(_transposed)
    t.detach_ = _detach_
    t.mT = property(_matrix_transposed)
    t.H = property(_hermitian)
    t.mH = property(_adjoint)
    t.real = property(lambda self: aten.real(self), _set_real)
    t.imag = property(lambda self: aten.imag(self), _set_imag)
    t.untyped_storage = storages.untyped_storage
    t.storage = storages.tensor_storage
    t.storage_type = _storage_type
    t.new = legacy.new
    t.type = _type
    t.volatile = property(_volatile)
    t._cdata = property(_cdata)
    for name in ("is_ipu", "is_maia", "is_mps", "is_mtia", "is_vulkan", "is_xla", "is_xpu"):
        setattr(t, name, property(lambda self: False))  # there is no such device here
    asking.of_parameters()
    modes.NOWRAP.update((t.grad.__get__, t._base.__get__))
    _type.__name__ = "type"
    _contains.__name__ = "__contains__"
    t.as_subclass = lambda self, cls: modes.as_subclass(self, cls)
    Storage.__reduce_ex__ = _storage_reduce  # type: ignore[method-assign]


__all__ = ["install", "rebuild"]
