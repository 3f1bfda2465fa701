"""fill_ and zero_: one value everywhere, in place.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.fill_.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor


@op(
    "_fill(Tensor self, Scalar value) -> Tensor", family="tensorwise", public=False,
    vjp={"self": "zeros_like(g)"}, grad_name="FillBackward0",
)  # fmt: skip
def _fill(self: Any, value: Any) -> Any:
    """A tensor like `self` with `value` everywhere: nothing of the old value is left."""
    return aten.full_like(aten.detach(self), value)


@op(
    "_zero(Tensor self) -> Tensor", family="tensorwise", public=False, vjp={"self": "zeros_like(g)"},
    grad_name="ZeroBackward0",
)  # fmt: skip
def _zero(self: Any) -> Any:
    """A tensor like `self` of zeros."""
    return aten.zeros_like(aten.detach(self))


def _written(o: Any, self: Tensor, value: Any) -> Tensor:
    """Write a number into every element, with the bookkeeping of a write in place."""
    grad = writes.prepare_write(o, self, ())
    writes.check_memory(o, self, ())
    if isinstance(value, complex) and not self._k.dtype.is_complex:
        raise RuntimeError(
            f"fill_: value cannot be converted to type {self._k.dtype} without overflow: {value} is complex"
        )
    array = compute.scalar_array(value, self._k.dtype)
    e = edge_of(self)
    if self._k.device.type != "meta":
        self._a.fill(array) if self._k.device.type != "cuda" else self._a.__setitem__(..., value)
    writes.wrote(self)
    if grad and e is not None:
        node = o.node_class()
        node.next, node.shape, node.k = (e,), self._a.shape, self._k
        writes.rebase_history(self, node)
    return self


@face("fill_", spaces=())
def fill_(self: Any, value: Any) -> Any:
    """Write one value (a number, or a tensor without dimensions) everywhere."""
    if isinstance(value, Tensor):
        if value._a.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._a.ndim} dimensions."
            )
        return aten.copy_(self, value)
    if not isinstance(value, (bool, int, float, complex)) and not hasattr(value, "__float__"):
        raise TypeError(
            f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}"
        )
    return _written(_fill, self, value)


@face("zero_", spaces=("torch",))
def zero_(self: Any) -> Any:
    """Write zeros everywhere."""
    return _written(_zero, self, False if self._k.dtype is dt.bool_ else 0)


@face("fill", method=False)
def fill(self: Any, value: Any) -> Any:
    """A copy of `input` with one value everywhere."""
    return fill_.body(aten.clone(self), value)
