"""Methods that call a Python function for each element, and spellings of old programs.

Source: https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch import writes
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.settings import warn_user
from torchlab._core.tape import AccumulateGrad, edge_of
from torchlab._core.tensor import Tensor, strides_of


def _number(kind: type) -> Any:
    def convert(x: Any) -> Any:
        if isinstance(x, (str, bytes)):
            raise TypeError(f"must be {kind.__name__} number, not {type(x).__name__}")
        return kind(x)

    return convert


_CONVERT = [_number(kind) for kind in (bool, int, float, complex)]  # by dtype.category


def _apply(name: str, self: Any, others: tuple[Any, ...], function: Any) -> Any:
    for t in (self, *others):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): expected a Tensor, but got {type(t).__name__}")
        e = edge_of(t)
        if e is not None:
            what = "leaf" if type(e) is AccumulateGrad else "tensor with a history"
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad (a {what} of shape"
                f" {list(t.shape)}). Use var.detach().{name}() instead."
            )
        if t._k.device.type not in ("cpu", "meta"):
            raise TypeError(f"{name} is only implemented on CPU tensors, not on {t.device}")
        if t._k.dtype is not self._k.dtype:
            raise TypeError(f"{name}: expected a tensor of {self.dtype}, but got {t.dtype}")
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")
    if self._k.device.type == "meta":
        return self
    shape = self._a.shape
    arrays = []
    for t in (self, *others):
        aten.expand(t, shape)  # PyTorch's error if the sizes do not fit
        arrays.append(np.broadcast_to(t._a, shape))
    kind = self._k.dtype
    convert = _CONVERT[kind.category]
    if kind not in dt.NATIVE:
        arrays = [a.astype(np.float32) for a in arrays]
    rows = zip(*(a.ravel().tolist() for a in arrays), strict=True)
    results = [convert(function(*row)) for row in rows]
    self._a[...] = np.array(results, dtype=kind.np).reshape(shape)
    writes.wrote(self)
    return self


@face("apply_", spaces=())
def apply_(self: Any, callable: Any) -> Any:
    """Replace each element x by callable(x). Slow: a Python call per element; CPU only."""
    return _apply("apply_", self, (), callable)


@face("map_", spaces=())
def map_(self: Any, other: Any, callable: Any) -> Any:
    """Replace each element x by callable(x, y), y from `other` (of the same type, broadcast)."""
    return _apply("map_", self, (other,), callable)


@face("map2_", spaces=())
def map2_(self: Any, x: Any, y: Any, callable: Any) -> Any:
    """Replace each element a by callable(a, b, c), b from `x` and c from `y`."""
    return _apply("map2_", self, (x, y), callable)


# ---- Python 2's division, and shifts from the right --------------------------------------------


def _number_or_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, complex, np.number, np.bool_))


@face("__div__", spaces=())
def div(self: Any, other: Any) -> Any:
    """self / other, as Python 2 called it."""
    return aten.div(self, other) if _number_or_tensor(other) else NotImplemented


@face("__idiv__", spaces=())
def idiv(self: Any, other: Any) -> Any:
    """self /= other, as Python 2 called it."""
    return aten.div_(self, other) if _number_or_tensor(other) else NotImplemented


@face("__rdiv__", spaces=())
def rdiv(self: Any, other: Any) -> Any:
    """other / self, as Python 2 called it."""
    return aten.mul(self.reciprocal(), other) if _number_or_tensor(other) else NotImplemented


@face("__rlshift__", spaces=())
def rlshift(self: Any, other: Any) -> Any:
    """other << self."""
    return aten.bitwise_left_shift(other, self) if _number_or_tensor(other) else NotImplemented


@face("__rrshift__", spaces=())
def rrshift(self: Any, other: Any) -> Any:
    """other >> self."""
    return aten.bitwise_right_shift(other, self) if _number_or_tensor(other) else NotImplemented


# ---- old names ----------------------------------------------------------------------------------


def _resized(self: Any, shape: tuple[int, ...]) -> Any:
    if layout.numel(shape) != self._a.size:
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({layout.numel(shape)} elements in"
            f" total), but the given tensor has a size of {'x'.join(map(str, self._a.shape))}"
            f" ({self._a.size} elements). resize can only change the shape of a given tensor, while"
            " preserving the number of elements."
        )
    return aten.reshape(self, shape)


@face("resize", spaces=())
def resize(self: Any, *sizes: Any) -> Any:
    """Deprecated: `reshape`, but never with another number of elements."""
    warn_user("non-inplace resize is deprecated")
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    return _resized(self, tuple(int(n) for n in sizes))


@face("resize_as", spaces=())
def resize_as(self: Any, tensor: Any) -> Any:
    """Deprecated: `resize(tensor.size())`."""
    warn_user("non-inplace resize_as is deprecated")
    return _resized(self, tensor._a.shape)


@face("module_load", spaces=())
def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """What replaces this parameter or buffer when `load_state_dict` loads `other`: `other` itself
    (`assign`), or this tensor with other's values; without history."""
    return aten.detach(other if assign else self.copy_(other))


@face("slice_inverse", spaces=())
def slice_inverse(
    self: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """The tensor `src` from its slice `self`: a view of self's memory with src's geometry."""
    return aten.as_strided(self, src._a.shape, strides_of(src), src.storage_offset())
