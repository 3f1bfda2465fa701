"""The package functorch, and which mode of fakes is on."""

from __future__ import annotations

import warnings

import pytest

import torchlab as torch
from torchlab import compat, nn
from torchlab._functorch import deprecated as functorch
from torchlab._guards import active_fake_mode, detect_fake_mode
from torchlab._subclasses import FakeTensorMode


def test_its_functions_warn():
    with pytest.warns(FutureWarning, match="Please use `torch.vmap` instead"):
        assert functorch.vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2, 2]
    assert compat.ALIASES["functorch"] == functorch.__name__


def test_modules_as_functions():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = nn.Linear(2, 3)
        f, params = functorch.make_functional(layer)
        x = torch.ones(1, 2)
        assert isinstance(f, functorch.FunctionalModule) and params[0] is not layer.weight
        assert torch.equal(f(params, x), layer(x)) and params[0].requires_grad
        grads = functorch.grad(lambda p: f(p, x).sum())(params)
        assert grads[0].tolist() == [[1, 1]] * 3 and grads[1].tolist() == [1, 1, 1]
        norm = nn.BatchNorm1d(3)
        with pytest.raises(RuntimeError, match="`model` has buffers"):
            functorch.make_functional(norm)
        g, params, buffers = functorch.make_functional_with_buffers(norm, True)
        assert len(buffers) == 3 and not params[0].requires_grad
        y = torch.randn(4, 3)
        assert torch.equal(g(params, buffers, y), norm(y))


def test_ensembles():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [nn.Linear(2, 3) for _ in range(3)]
        f, params, buffers = functorch.combine_state_for_ensemble(models)
        assert [p.shape for p in params] == [(3, 3, 2), (3, 3)] and buffers == ()
        x = torch.ones(1, 2)
        made = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        torch.testing.assert_close(made, torch.stack([m(x) for m in models]))
        with pytest.raises(RuntimeError, match="at least one model"):
            functorch.combine_state_for_ensemble([])
        with pytest.raises(RuntimeError, match="of the same class"):
            functorch.combine_state_for_ensemble([models[0], nn.Tanh()])


def test_modes_of_fakes():
    assert active_fake_mode() is None and detect_fake_mode([torch.ones(1)]) is None
    with FakeTensorMode() as mode:
        assert active_fake_mode() is mode
        x = torch.ones(2)
    assert detect_fake_mode([1, {"x": x}]) is mode and active_fake_mode() is None


def test_what_is_told_of_tensors():
    x = torch.ones(3)
    same = torch._C._is_alias_of
    assert same(x, x[1:]) and same(x[:1], x[2:]) and not same(x, x.clone())
    assert torch._C._is_torch_function_mode_enabled() is False
    with torch.overrides.TorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled() is True
