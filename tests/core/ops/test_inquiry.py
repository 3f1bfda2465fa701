"""Questions about tensors."""

from __future__ import annotations

import pytest

import torchlab as torch


def test_assert_async():
    assert torch._assert_async(torch.tensor(True)) is None
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got"):
        torch._assert_async(torch.tensor(0))
    with pytest.raises(RuntimeError, match="all must be positive"):
        torch._assert_async(torch.tensor([0.0]), "all must be positive")
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(torch.ones(2))
    assert torch._assert_async(torch.zeros(1, device="meta")) is None

    def checked(x):
        torch._assert_async(x > 0)
        return x * 2

    assert torch.vmap(checked)(torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError):
        torch.vmap(checked)(torch.tensor([1.0, -1.0]))


def test_shape_as_tensor():
    made = torch._shape_as_tensor(torch.ones(2, 3))
    assert made.tolist() == [2, 3] and made.dtype is torch.int64
    assert torch._shape_as_tensor(torch.ones(())).dtype is torch.int64
