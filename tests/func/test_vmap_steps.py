"""torch._functorch.vmap and torch._C._functorch: what libraries take of vmap."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab._C import _functorch as told
from torchlab._functorch import vmap as steps


def test_a_library_puts_in_its_own_step(monkeypatch):
    seen = []

    def unwrap(output, out_dims, level, size, func):
        seen.append((out_dims, size, func.__name__))
        return steps._maybe_remove_batch_dim("f", output, level, size, out_dims)

    def double(x):
        return x * 2

    monkeypatch.setattr(steps, "_unwrap_batched", unwrap)
    assert torch.vmap(double)(torch.ones(3)).tolist() == [2, 2, 2]
    assert seen == [(0, 3, "double")]


def test_steps():
    def f(x):
        return x

    args = (torch.ones(2, 3), {"a": torch.ones(3, 2)})
    size, dims, flat, spec = steps._process_batched_inputs((1, 0), args, f)
    assert (size, dims, len(flat)) == (3, [1, 0], 2)
    assert steps.tree_unflatten(flat, spec)[1]["a"] is args[1]["a"]


def test_what_is_told_of_batches():
    x = torch.ones(2, 3)
    assert told.maybe_get_level(x) == told.maybe_get_bdim(x) == -1
    assert not told.is_batchedtensor(x) and not torch._C._are_functorch_transforms_active()

    def f(y):
        assert (told.maybe_get_level(y), told.maybe_get_bdim(y)) == (1, 1)
        assert told.is_batchedtensor(y) and told.is_batchedtensor(y * 0 + x[0, 0])
        assert told.get_unwrapped(y) is x and not told.is_batchedtensor(torch.ones(2))
        assert not told.is_legacy_batchedtensor(y)
        assert torch._C._are_functorch_transforms_active()
        z = told._add_batch_dim(x, -1, 1)
        assert z.shape == (2,)
        return told._remove_batch_dim(z + y, 1, 3, 0).sum() + y

    assert torch.vmap(f, in_dims=1)(x).shape == (3, 2)
    with pytest.raises(RuntimeError, match="No wrappers present"):
        told.get_unwrapped(x)

    def g(y):
        return y * torch._C._are_functorch_transforms_active()

    assert torch.func.grad(g)(torch.tensor(1.0)).item() == 1
    assert torch._C._get_default_device() == "cpu"
