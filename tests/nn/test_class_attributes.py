"""Functions of torch as attributes of a module's class."""

from __future__ import annotations

import torchlab as torch
from torchlab import nn
from torchlab.nn.modules import module
from torchlab.nn.utils._named_member_accessor import _MISSING, swap_tensor


class Convolving(nn.Module):
    conv = torch.conv2d
    act = torch.relu

    def forward(self, x, w):
        return self.act(self.conv(x, weight=w))


class Derived(Convolving):
    act = torch.neg


def test_they_are_no_methods():
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    assert Convolving()(x, w).tolist() == [[[[4, 4], [4, 4]]]]
    assert Derived()(x, w).tolist() == [[[[-4, -4], [-4, -4]]]]
    assert Convolving.conv is torch.conv2d


def test_swapping_members():
    layer = nn.Linear(2, 3)
    weight = layer.weight
    assert swap_tensor(layer, "weight", torch.ones(3, 2)) is weight
    assert type(layer._parameters["weight"]) is torch.Tensor
    assert swap_tensor(layer, "new", torch.ones(1), allow_missing=True) is _MISSING
    assert "new" not in layer._buffers and layer.new.item() == 1
    assert swap_tensor(layer, "new", _MISSING).item() == 1 and not hasattr(layer, "new")
    for args, error in (
        ((layer, "nope", torch.ones(1)), AttributeError),
        ((3, "x", torch.ones(1)), TypeError),
        ((layer, "weight", 3), TypeError),
        ((layer, "a.b", torch.ones(1)), KeyError),
    ):
        try:
            swap_tensor(*args)
        except error:
            continue
        raise AssertionError(args)


def test_tables_of_hooks():
    seen = []
    handle = module.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n))
    try:
        assert len(module._global_parameter_registration_hooks) == 1
        nn.Linear(1, 1)
    finally:
        handle.remove()
    assert seen == ["weight", "bias"] and module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
