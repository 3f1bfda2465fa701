"""Types of which there are no tensors, for programs that name them."""

from __future__ import annotations

import pickle

import pytest

import torchlab as torch


def test_facts():
    c = torch.complex32
    assert c is torch.chalf and str(c) == "torch.complex32" and pickle.loads(pickle.dumps(c)) is c
    assert c.is_complex and c.itemsize == 4 and c.to_real() is torch.float16
    assert not torch.uint4.is_signed and torch.int3.is_signed and torch.uint1.itemsize == 1
    assert torch.quint4x2 is not torch.quint8


def test_there_are_no_tensors_of_them():
    for d in (torch.complex32, torch.uint4):
        with pytest.raises(NotImplementedError, match="tensors of torch"):
            torch.empty(2, dtype=d)


def test_promotion():
    promoted = {
        torch.float16: torch.complex32, torch.bfloat16: torch.complex64,
        torch.float32: torch.complex64, torch.float64: torch.complex128,
        torch.int64: torch.complex32, torch.bool: torch.complex32,
        torch.complex64: torch.complex64, torch.complex128: torch.complex128,
    }  # fmt: skip
    for d, result in promoted.items():
        assert torch.promote_types(torch.complex32, d) is result
        assert torch.promote_types(d, torch.complex32) is result
