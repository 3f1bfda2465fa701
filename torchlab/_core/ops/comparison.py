"""Whether tensors are close or equal.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.isclose.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor


@composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
    "-> Tensor"
)
def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """|self − other| ≤ atol + rtol · |other|, element by element; infinities must be equal."""
    if self._k.dtype is not other._k.dtype:
        raise RuntimeError(
            f"{self._k.dtype.scalar_name} did not match {other._k.dtype.scalar_name}"
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    before = self, other
    self, other = aten.detach(self), aten.detach(other)
    close = self == other
    inexact = self._k.differentiable
    if equal_nan and inexact:
        close = close | (aten.isnan(self) & aten.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    for x in before:
        edge_of(x)  # a view that may not be used is refused: PyTorch records the distances
    if not inexact:
        self, other = (aten.to(x, dtype=dt.get_default_dtype()) for x in (self, other))
    allowed = aten.abs(other * rtol) + atol
    distance = aten.abs(self - other)
    return close | (aten.isfinite(distance) & (distance <= allowed))


@face("allclose")
def allclose(
    self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close in the sense of `isclose`."""
    for x in (self, other):
        if isinstance(x, Tensor) and x._s is not None and x._s.stale:
            # PyTorch records nothing here, so it refuses no view either.
            self, other = aten.detach(self), aten.detach(other)
            break
    return bool(aten.all(isclose.function(self, other, rtol, atol, equal_nan)).item())


@face("equal")
def equal(self: Any, other: Any) -> bool:
    """Whether both have the same shape and the same elements; NaN equals nothing."""
    if not isinstance(other, Tensor):
        raise TypeError(
            f"equal(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}"
        )
    if self._k.device is not other._k.device:
        raise RuntimeError(
            f"Cannot compare two tensors on different devices. Got: {self.device} and "
            f"{other.device}"
        )
    if self._a.shape != other._a.shape or other.is_quantized:
        return False
    if type(self._a) is MetaArray:
        return bool(aten.all(aten.eq(self, other)))  # which says that there are no data
    return bool((self._a == other._a).all())
