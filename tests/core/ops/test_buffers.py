"""Tensors over memory that others lend: buffers, files, arrays."""

from __future__ import annotations

import pathlib
import warnings

import numpy as np
import pytest

import torchlab as torch
from torchlab._core import settings


def test_a_buffer_is_shared() -> None:
    memory = bytearray(8)
    t = torch.frombuffer(memory, dtype=torch.int16, count=2, offset=2)
    t[1] = 258
    assert memory == b"\0\0\0\0\x02\x01\0\0"
    with pytest.raises(ValueError, match="must not be greater"):
        torch.frombuffer(memory, dtype=torch.int32, count=3)
    with pytest.raises(ValueError, match="multiple of element size"):
        torch.frombuffer(bytearray(7), dtype=torch.int32)


@pytest.mark.parametrize("make", (torch.from_numpy, torch.as_tensor, torch.asarray))
def test_read_only_memory_warns_once(make: object) -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    settings._warned.discard("read-only array")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        make(a)  # type: ignore[operator]
        make(a)  # type: ignore[operator]
    assert [("not writable" in str(w.message)) for w in seen] == [True]


def test_a_file_is_shared_or_private(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "numbers"
    shared = torch.from_file(str(path), shared=True, size=4, dtype=torch.int32)
    shared[2] = 7
    private = torch.from_file(path, size=4, dtype=torch.int32)
    assert private.tolist() == [0, 0, 7, 0]
    private[0] = 1
    assert shared.tolist() == [0, 0, 7, 0]
    assert np.fromfile(path, np.int32).tolist() == [0, 0, 7, 0]
    with pytest.raises(RuntimeError, match="<16> is smaller than the required mapping size <40>"):
        torch.from_file(path, size=10, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="unable to open file <.*> in read-only mode: No such"):
        torch.from_file(tmp_path / "none", size=1)


def test_asarray_shares_where_it_can_and_says_where_it_cannot() -> None:
    a = np.arange(3.0)
    assert torch.asarray(a).data_ptr() == a.ctypes.data
    assert torch.asarray(a, copy=True).data_ptr() != a.ctypes.data
    t = torch.ones(2)
    assert torch.asarray(t) is t
    assert torch.asarray(b"ab", dtype=torch.uint8).tolist() == [97, 98]
    for wrong in (lambda: torch.asarray(a, dtype=torch.int32, copy=False),
                  lambda: torch.asarray([1], copy=False)):  # fmt: skip
        with pytest.raises(ValueError, match="alias"):
            wrong()
    x = torch.ones(2, requires_grad=True)
    assert not torch.asarray(x, requires_grad=False).requires_grad and x.requires_grad


def test_strides_and_byte_order() -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert torch.tensor(a.T).stride() == (1, 3)
    for make in (torch.tensor, torch.from_numpy, torch.as_tensor):
        with pytest.raises(ValueError, match="negative"):
            make(a[::-1])
        with pytest.raises(ValueError, match="byte order"):
            make(a.astype(a.dtype.newbyteorder()))
