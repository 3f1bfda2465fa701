"""What a tensor with the conjugate or negative bit is to Python: its text, arrays, copies, pickles;
another type, size or memory. See Note [Pending tensors] in `_bits`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.resolve_conj.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch import modes
from torchlab._core.dispatch.exotic import exotic_method
from torchlab._core.dispatch.registry import METHODS
from torchlab._core.ops._bits import KEY, Pending, bare, computed, pending, refuse_array, take
from torchlab._core.tape import AccumulateGrad, edge_of
from torchlab._core.tensor import Parameter, Tensor


def _method(name: str) -> Any:
    owner, form = METHODS[name]
    return owner.form(form)


def _text(self: Any) -> str:
    r = computed(self)
    try:
        r._e = edge_of(self)
    except RuntimeError:  # a view that may not be used: its text says so
        r._s, r._v, r._e = self._s, self._v, self._e
    return repr(modes.as_subclass(r, Parameter) if self._is_param else r)


Pending.__repr__ = Pending.__str__ = _text  # type: ignore[method-assign]


@exotic_method(KEY, "__format__")
def _format(self: Any, spec: str) -> str:
    return format(computed(self), spec) if not self._a.ndim else object.__format__(self, spec)


# ---- out of the tensor --------------------------------------------------------------------------


@exotic_method(KEY, "numpy")
def _numpy(self: Any, *, force: bool = False) -> Any:
    """The array of the values with `force`; without, PyTorch's error: memory holds other ones."""
    if force:
        return computed(self).cpu().numpy()  # type: ignore[attr-defined]
    if edge_of(self) is None and self._k.device.type == "cpu":
        refuse_array(self)
    return _method("numpy")(self)


@exotic_method(KEY, "__array__")
def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    return _numpy(self)


@exotic_method(KEY, "__dlpack__")
def _dlpack(self: Any, **named: Any) -> Any:
    if edge_of(self) is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    bit = "conjugate" if self._a.conj else "negative"
    raise BufferError(f"Can't export tensors with the {bit} bit set")


# ---- copies and pickles -------------------------------------------------------------------------


@exotic_method(KEY, "__deepcopy__")
def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A tensor of the values, without the bits."""
    found = memo.get(id(self))
    if found is not None:
        return found
    e = edge_of(self)
    if e is not None and type(e) is not AccumulateGrad:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
            " protocol at the moment. Use tensor.detach().clone() to copy the values."
        )
    plain = computed(self)
    plain._g = self._g
    plain.__dict__.update(self.__dict__)
    if e is not None:
        plain.requires_grad_()
    r = memo[id(self)] = Tensor.__deepcopy__(plain, memo)  # type: ignore[attr-defined]
    return r


def rebuild_pending(
    memory: Any, conj: bool, neg: bool, requires_grad: bool, attributes: dict[str, Any]
) -> Any:
    """Make a pending tensor from what `__reduce_ex__` gave."""
    r = pending(memory, conj, neg)
    r.__dict__.update(attributes)
    return r.requires_grad_() if requires_grad else r


@exotic_method(KEY, "__reduce_ex__")
def _reduce(self: Any, protocol: int) -> Any:
    memory = bare(self)
    memory._e = None
    parts = (memory, self._a.conj, self._a.neg, edge_of(self) is not None, dict(self.__dict__))
    return rebuild_pending, parts


# ---- another type, size or memory ---------------------------------------------------------------


@exotic_method(KEY, "view")
def _view(self: Any, *size: Any, dtype: Any = None) -> Any:
    """Another shape; another type cannot be had while a bit is set."""
    if len(size) == 1 and isinstance(size[0], dt.dtype):
        dtype = size[0]
    if dtype is None:
        return _method("view")(self, *size)
    what = "for conjugate view tensors" if self._a.conj else "for tensors with negative bit set"
    raise RuntimeError(
        f"torch.Tensor.view is not supported {what} when converting to a different dtype."
    )


def _through_memory(name: str) -> None:
    def method(self: Any, *args: Any, **named: Any) -> Any:
        memory = bare(self)
        args = tuple(bare(x) if type(x) is Pending else x for x in args)
        _method(name)(memory, *args, **named)
        return take(self, memory)

    method.__doc__ = f"`{name}` of the memory; the bits stay."
    exotic_method(KEY, name)(method)


for _name in ("resize_", "resize_as_", "set_"):
    _through_memory(_name)


__all__ = ["rebuild_pending"]
