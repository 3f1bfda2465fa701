"""DLPack with NumPy and between tensors: one memory, any dtype."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import torchlab as torch
from torchlab.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

NAMES = (
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64", "bool", "uint8",
    "int8", "int64", "uint16", "complex64",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_memory_type_and_strides_survive(name: str) -> None:
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()
    y = from_dlpack(x)
    assert (y.dtype, y.stride(), y.data_ptr()) == (x.dtype, x.stride(), x.data_ptr())
    z = from_dlpack(to_dlpack(y))
    assert z.dtype is x.dtype and repr(z) == repr(x)


def test_numpy_both_ways() -> None:
    a = np.arange(3.0)
    t = torch.from_dlpack(a)
    t += 1
    assert a.tolist() == [1, 2, 3]
    back = np.from_dlpack(t)
    assert back.flags.writeable and np.shares_memory(back, a)
    del a, t
    gc.collect()
    assert back.tolist() == [1, 2, 3]


def test_a_read_only_array_becomes_a_tensor() -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    assert torch.from_dlpack(a).tolist() == [0, 1, 2]


def test_a_capsule_can_be_consumed_once() -> None:
    capsule = to_dlpack(torch.ones(2))
    from_dlpack(capsule)
    for wrong in (capsule, 3, [1]):
        with pytest.raises(RuntimeError, match="invalid capsule"):
            from_dlpack(wrong)


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ValueError, match="negative strides"):
        torch.from_dlpack(np.arange(3)[::-1])
    with pytest.raises(BufferError):
        torch.from_dlpack(np.arange(3, dtype=">i8"))
    with pytest.raises(BufferError, match="gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    for device in ("meta", "sim"):
        with pytest.raises(BufferError, match=device):
            torch.empty(2, device=device).__dlpack__()


def test_device_and_copy() -> None:
    x = torch.ones(2)
    assert x.__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu", copy=False).data_ptr() == x.data_ptr()
