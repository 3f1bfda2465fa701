"""Questions about tensors: functions that read what a tensor is and make none.

Source: https://docs.pytorch.org/docs/2.13/torch.html#tensors
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout, sharing
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.tape import geometry, storage_of
from torchlab._core.tensor import Tensor, strides_of

NUMBERS = (bool, int, float, complex)


def _needs_tensor(x: Any, name: str, argument: str = "input", position: int = 1) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not"
            f" {type(x).__name__}"
        )
    return x


def _question(name: str, text: str) -> None:
    """A function that asks the method of the same name."""

    def ask(self: Any) -> Any:
        return getattr(_needs_tensor(self, name), name)()

    ask.__doc__ = text
    face(name, method=False)(ask)


_question("is_complex", "Whether the elements are complex.")
_question("is_floating_point", "Whether the elements are floats (complex ones are not).")
_question("is_signed", "Whether the type can hold negative numbers.")
_question("is_inference", "Whether the tensor was made in inference mode.")
_question("is_conj", "Whether the tensor is a conjugate that was not yet computed.")
_question("is_neg", "Whether the tensor is a negative that was not yet computed.")
_question("numel", "The number of elements.")
_question("get_device", "The index of the tensor's device, -1 on the CPU.")


@face("is_distributed")
def is_distributed(self: Any) -> Any:
    """False: a tensor here lies in one process."""
    _needs_tensor(self, "is_distributed")
    return False


@face("is_same_size")
def is_same_size(self: Any, other: Any) -> Any:
    """Whether both have the same shape."""
    _needs_tensor(self, "is_same_size")
    return self._a.shape == _needs_tensor(other, "is_same_size", "other", 2)._a.shape


@face("is_set_to", spaces=())
def is_set_to(self: Any, tensor: Any) -> Any:
    """Whether both are the same view of the same memory: storage, offset, sizes and strides."""
    _needs_tensor(tensor, "is_set_to", "tensor")
    return (
        storage_of(self) is storage_of(tensor)
        and geometry(self)[2] == geometry(tensor)[2]
        and self._a.shape == tensor._a.shape
        and strides_of(self) == strides_of(tensor)
    )


@face("is_shared", spaces=())
def is_shared(self: Any) -> Any:
    """Whether other processes see the memory: on the CPU after `share_memory_`, always on a GPU."""
    return self._k.device.type == "cuda" or (self._s is not None and sharing.is_shared(self._s))


@face("share_memory_", spaces=())
def share_memory_(self: Any) -> Any:
    """Move the memory to where other processes can see it; returns the tensor. All views follow.
    Nothing happens if it is there already, or lies on a GPU. It cannot grow afterwards."""
    sharing.share_tensor(self)
    return self


@face("const_data_ptr", spaces=())
def const_data_ptr(self: Any) -> Any:
    """The address of the first element, for reading."""
    return self.data_ptr()


@face("dim_order", spaces=())
def dim_order(self: Any, *, ambiguity_check: Any = False) -> Any:
    """The dims from the one with the largest stride to the one with the smallest: (0, 2, 3, 1) for
    channels-last. `ambiguity_check`: raise RuntimeError if another order says the same (True), or
    if the tensor has not exactly one of the given memory formats (a list)."""
    if not isinstance(ambiguity_check, (bool, list)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = self._a.shape, strides_of(self)
    ambiguous = 1 in shape or 0 in strides or len(set(strides)) < len(strides)
    if ambiguity_check and ambiguous:
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        fitting = [f for f in formats if _has_format(self, f)]
        if len(fitting) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given"
                f" memory formats: dim_order of shape {list(shape)} with strides {list(strides)}"
            )
        dense = fitting[0] is contiguous_format
        return tuple(range(len(shape))) if dense else (0, *range(2, len(shape)), 1)
    return layout.dim_order(shape, strides)


def _has_format(t: Any, memory_format: Any) -> bool:
    if memory_format is contiguous_format:
        return t.is_contiguous()
    return layout.is_channels_last(t._a.shape, strides_of(t))


@face("result_type", method=False)
def result_type(
    tensor: Any = None,
    other: Any = None,
    *,
    scalar: Any = None,
    scalar1: Any = None,
    scalar2: Any = None,
) -> Any:
    """The dtype of an arithmetic operation on these two: tensors or numbers."""
    dims = zeros = wrapped = None
    pair = [x for x in (tensor, other, scalar, scalar1, scalar2) if x is not None]
    if len(pair) != 2:
        raise TypeError(
            "result_type() received an invalid combination of arguments: it needs two tensors or"
            f" numbers, not {len(pair)}"
        )
    for position, x in enumerate(pair):
        if isinstance(x, Tensor):
            d = x._k.dtype
            if x._a.ndim:
                dims = d if dims is None else dt.promote_types(dims, d)
            else:
                zeros = d if zeros is None else dt.promote_types(zeros, d)
        elif isinstance(x, NUMBERS):
            d = dt.of_scalar(x)
            wrapped = d if wrapped is None else dt.promote_types(wrapped, d)
        else:
            raise TypeError(
                f"result_type() received an invalid combination of arguments: argument"
                f" {position + 1} must be Tensor or Number, not {type(x).__name__}"
            )
    return dt.combine(dims, zeros, wrapped)


@face("detach_", method=False)
def detach_(self: Any) -> Any:
    """Cut the tensor off its history in place, see `Tensor.detach_`."""
    return _needs_tensor(self, "detach_").detach_()


@face("_assert_async", method=False)
def _assert_async(
    self: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """RuntimeError with `assert_msg` where the tensor's one element is zero. A tensor without data
    passes; in `vmap` each slice has one element."""
    _needs_tensor(self, "_assert_async")
    each = False
    while self._level:
        self, each = self.value, True
    if isinstance(self._a, MetaArray):
        return
    if not (bool(aten.all(self)) if each else bool(self)):
        raise RuntimeError(assert_msg)


@face("_shape_as_tensor", method=False)
def _shape_as_tensor(self: Any) -> Any:
    """The shape as a tensor of int64."""
    return aten.tensor(list(_needs_tensor(self, "_shape_as_tensor").shape), dtype=dt.int64)
