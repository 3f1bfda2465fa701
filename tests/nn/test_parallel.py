"""`nn.DataParallel` without accelerators, `SyncBatchNorm` and the old kind of backward hooks.

On two simulated devices: tests/test_cuda.py.
"""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlab as torch
from torchlab import nn


def test_data_parallel_passes_everything_through() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x, scale=1.0, *, shift):
            return {"out": self.linear(x) * scale + shift}

    model = Model()
    both = nn.DataParallel(model)
    x = torch.randn(4, 3)
    out = both(x, 2.0, shift=1)
    assert torch.equal(out["out"], model(x, 2.0, shift=1)["out"])
    assert list(both.state_dict()) == ["module.linear.weight", "module.linear.bias"]
    out["out"].sum().backward()
    assert model.linear.weight.grad is not None
    assert both.module is model and both.device_ids == []


def test_parallel_apply_runs_all_and_says_which_one_failed() -> None:
    modules = [nn.Linear(2, 1), nn.Linear(2, 1)]
    with torch.no_grad():
        a, b = nn.parallel.parallel_apply(modules, [torch.ones(1, 2), (torch.zeros(1, 2),)])
    assert not a.requires_grad
    assert torch.equal(b, modules[1].bias.detach().reshape(1, 1))
    with pytest.raises(RuntimeError) as info:
        nn.parallel.parallel_apply(modules, [torch.ones(1, 2), torch.ones(1, 5)])
    assert any("replica 1" in note for note in info.value.__notes__)
    with pytest.raises(AssertionError, match="number of modules 2"):
        nn.parallel.parallel_apply(modules, [torch.ones(1, 2)])


def test_sync_batch_norm_is_batch_norm_over_one_process() -> None:
    x = torch.randn(4, 3, 2, 2)
    plain = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())).eval()
    plain[1].train()
    weight = plain[0].weight
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    assert [type(m) for m in (sync[0], sync[1][0])] == [nn.SyncBatchNorm] * 2
    assert sync[0].weight is weight and not sync[0].training and sync[1][0].training
    other = nn.BatchNorm2d(3)
    assert torch.equal(nn.SyncBatchNorm(3)(x), other(x))
    with pytest.raises(ValueError, match="at least 2D"):
        nn.SyncBatchNorm(3)(torch.ones(3))


def test_old_backward_hooks_see_the_last_step() -> None:
    seen = []
    layer = nn.Linear(3, 2)
    handle = layer.register_backward_hook(lambda m, gi, go: seen.append((m, len(gi), go[0].shape)))
    layer(torch.ones(4, 3, requires_grad=True)).sum().backward()
    assert seen == [(layer, 3, (4, 2))]
    with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
        layer.register_full_backward_hook(print)
    handle.remove()
    layer(torch.ones(4, 3)).sum().backward()
    assert len(seen) == 1


def test_compile_in_place() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    x = torch.randn(2, 3)
    want = model(x)
    model.compile()
    assert torch.allclose(model(x), want)
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert "forward" not in again.__dict__ and torch.equal(again(x), want)
    assert list(model.state_dict()) == list(again.state_dict())
