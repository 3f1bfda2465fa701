"""Pinned memory: `x.pin_memory()`, `x.is_pinned()`. See torchlab._core.backends.pinned.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.pin_memory.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import device as devices
from torchlab._core.backends import accelerator, pinned
from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import KEY as QUANTIZED
from torchlab._core.ops.kernels import copy_into
from torchlab._core.settings import warn_user
from torchlab._core.tape import storage_of
from torchlab._core.tensor import strides_of


def _deprecated(name: str) -> None:
    warn_user(
        f"The argument 'device' of Tensor.{name}() is deprecated. Please do not pass this"
        " argument.",
        DeprecationWarning,
    )


def _is_pinned(t: Any, device: Any) -> bool:
    if t._k.device is not devices.cpu:
        return False
    if device is not None and devices.device(device).type != accelerator.kind():
        return False
    a = t._a
    if t._exotic:
        if t.strided:
            a = a.memory
        else:  # a sparse tensor's indices are where its values are
            a = (a.codes if t.backend == QUANTIZED else a.values)._a
    return pinned.is_pinned(a)


@face("is_pinned", spaces=())
def is_pinned(self: Any, device: Any = None) -> Any:
    """Whether the memory is page-locked for transfers to an accelerator."""
    if device is not None:
        _deprecated("is_pinned")
    return _is_pinned(self, device)


@face("pin_memory", spaces=())
def pin_memory(self: Any, device: Any = None) -> Any:
    """A copy in page-locked memory with the same strides, from which an accelerator copies without
    the host's help; itself if it is there. RuntimeError if there is no accelerator, and for tensors
    on one."""
    if device is not None:
        _deprecated("pin_memory")
    if _is_pinned(self, device):
        return self
    _check(self, device)  # before anybody says what a class has not got
    return aten._pin_memory(self, device)


def _check(t: Any, device: Any) -> None:
    k = t._k
    if k.device is not devices.cpu:
        place = {"cuda": "CUDA", "meta": "Meta"}.get(k.device.type, k.device.type)
        raise RuntimeError(
            f"cannot pin '{place}{k.dtype.scalar_name}Type' only dense CPU tensors can be pinned"
        )
    kind = None if device is None else devices.device(device).type
    if kind in ("cpu", "meta") or kind != accelerator.require("pin_memory()") and kind is not None:
        raise RuntimeError(f"{kind.upper()} device type not an accelerator.")


@op(
    "_pin_memory(Tensor self, Device? device=None) -> Tensor",
    family="tensorwise",
    vjp={"self": "g"},
    method=False,
)
def _pin_memory(self: Any, device: Any) -> Any:
    """A copy in page-locked memory, always a new one."""
    _check(self, device)
    r = compute.empty(self._a.shape, self._k.dtype, devices.cpu, strides_of(self), True)
    storage_of(r).lent = True  # it does not grow
    writes.check_memory(_pin_memory, r, ())
    copy_into(r._a, self._a)
    return r
