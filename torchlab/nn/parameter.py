"""Parameter and Buffer: tensors that a module registers when they are assigned to it.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.parameter.Parameter.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import AccumulateGrad, edge_of, storage_of
from torchlab._core.tensor import Parameter, Tensor


def _share(cls: type, data: Any) -> Any:
    """The same memory and version counter as `data`, without history, in a tensor of class
    `cls`."""
    r: Any = object.__new__(cls)
    r._a, r._k, r._s = data._a, data._k, storage_of(data)
    r._e = r._v = r._g = None
    return r


def _new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
    """`Parameter(data, requires_grad=True)`: a leaf over data's memory.

    Raises TypeError if `data` is no tensor, RuntimeError if its dtype cannot have gradients.
    """
    if data is None:
        data = aten.empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"Parameter data has to be a Tensor, but got {type(data).__name__}; make one with "
            "torch.tensor(...)"
        )
    if type(data) is Tensor or issubclass(type(data), Parameter):
        made = _share(cls, data)
        behind = made._s.stale
        made.requires_grad_(requires_grad)
        made._s.stale = behind  # it has no views yet that would have to ask
        return made
    # A subclass of Tensor stays what it is and is marked: modules register it as a parameter.
    marked = data.detach().requires_grad_(requires_grad)
    if type(marked) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that"
            f" detach() returns an instance of the same type, but return type"
            f" {type(marked).__name__} was found instead. To use the type as a Parameter, please"
            " correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    marked._is_param = True
    return marked


def _deepcopy_parameter(self: Any, memo: dict[int, Any]) -> Any:
    """A parameter with a copy of the values; as in PyTorch neither `.grad` nor attributes come
    along."""
    found = memo.get(id(self))
    if found is None:
        values = aten.clone(aten.detach(self))
        found = memo[id(self)] = _new_parameter(type(self), values, edge_of(self) is not None)
    return found


Parameter.__new__ = _new_parameter  # type: ignore[assignment]
Parameter.__deepcopy__ = _deepcopy_parameter  # type: ignore[attr-defined]
Parameter.__module__ = "torchlab.nn.parameter"


def is_parameter(value: Any) -> bool:
    """Whether a module registers `value` as a parameter."""
    return isinstance(value, Parameter) or (isinstance(value, Tensor) and value._is_param)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """`Buffer(data, persistent=True)`: a plain tensor that a module registers as a buffer.

    persistent: whether it is part of the module's `state_dict`.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = aten.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer data has to be a Tensor, but got {type(data).__name__}")
        t = _share(type(data), data)
        if edge_of(data) is not None:
            t._e = AccumulateGrad(t)
        t.persistent = persistent
        t._is_buffer = True
        return t


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet: it has a dtype and a device, may be converted and
    moved, and becomes a tensor of class `cls_to_become` by `materialize`. Everything else raises
    ValueError."""

    __slots__ = ()
    cls_to_become: Any = None
    _allowed = (
        "size", "copy_", "is_complex", "is_floating_point", "half", "bfloat16", "float", "double",
        "char", "short", "int", "long", "cuda", "cpu", "sim", "to", "get_device",
    )  # fmt: skip

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Get memory for this shape, uninitialised, and the class of an ordinary tensor. The object
        stays the same, so that an optimizer that holds it keeps working."""
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = aten.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = memo.get(id(self))
        if found is None:
            make, arguments = self.__reduce__()
            found = memo[id(self)] = make(*arguments)
        return found

    def __reduce__(self: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        # "method-wrapper": the getter or setter of a property.
        if type(func).__name__ == "method-wrapper" or (
            name in cls._allowed and func == getattr(Tensor, name)
        ):
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[misc]
        what = getattr(func, "__qualname__", func)
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {what}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` "
            "with a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        r = _share(cls, aten.empty(0, device=device, dtype=dtype))
        r._e = AccumulateGrad(r) if requires_grad else None
        return r


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        r = _share(cls, aten.empty(0, device=device, dtype=dtype))
        r._e = AccumulateGrad(r) if requires_grad else None
        r.persistent = persistent
        r._is_buffer = True
        return r

    def __reduce__(self: Any) -> Any:
        persistent = self.__dict__.get("persistent", True)
        return type(self), (self.requires_grad, self.device, self.dtype, persistent)


def is_lazy(param: Any) -> bool:
    """Whether its shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "UninitializedTensorMixin", "is_lazy", "is_parameter",
]  # fmt: skip
