"""Parametrizations, weight and spectral norms, functional calls."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import torchlab
from torchlab import nn
from torchlab.nn.utils import parametrizations, parametrize, stateless


class Exp(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.exp()

    def right_inverse(self, x: Any) -> Any:
        return x.log()


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def exponential() -> Any:
    layer = nn.Linear(1, 1, bias=False)
    with torchlab.no_grad():
        layer.weight.fill_(2.0)
    return parametrize.register_parametrization(layer, "weight", Exp())


def test_value_original_and_assignment() -> None:
    layer = exponential()
    np.testing.assert_allclose(layer.weight.item(), 2.0, rtol=1e-6)
    np.testing.assert_allclose(layer.parametrizations.weight.original.item(), np.log(2), rtol=1e-6)
    layer.weight = torchlab.tensor([[3.0]])
    np.testing.assert_allclose(layer.parametrizations.weight.original.item(), np.log(3), rtol=1e-6)
    layer(torchlab.ones(1, 1)).sum().backward()
    np.testing.assert_allclose(layer.parametrizations.weight.original.grad.item(), 3, rtol=1e-6)


def test_chain_and_removal() -> None:
    layer = exponential()
    original = layer.parametrizations.weight.original
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_allclose(layer.weight.item(), 4.0, rtol=1e-6)
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = torchlab.ones(1, 1)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight is original  # an optimizer still knows it
    np.testing.assert_allclose(layer.weight.item(), 4.0, rtol=1e-6)


def test_cached() -> None:
    layer = exponential()
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_copied_but_not_pickled() -> None:
    layer = exponential()
    twin = copy.deepcopy(layer)
    twin.weight = torchlab.tensor([[5.0]])
    np.testing.assert_allclose(layer.weight.item(), 2.0, rtol=1e-6)
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)


def test_failed_registration_changes_nothing() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    assert type(layer) is nn.Linear
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_norms() -> None:
    torchlab.manual_seed(0)
    matrix = nn.Linear(4, 3).weight.detach()
    for make, check in (
        (parametrizations.orthogonal, lambda w: w @ w.T - np.eye(3)),
        (parametrizations.weight_norm, lambda w: w - matrix.numpy()),
        (parametrizations.spectral_norm, lambda w: np.linalg.svd(w)[1][0] - 1),
    ):
        layer = nn.Linear(4, 3)
        with torchlab.no_grad():
            layer.weight.copy_(matrix)
        make(layer)
        for _ in range(30):
            weight = layer.weight.detach().numpy()
        np.testing.assert_allclose(check(weight), 0, atol=1e-4)


def test_functional_call() -> None:
    layer = nn.Linear(1, 1)
    before = layer.weight
    new = {"weight": torchlab.full((1, 1), 3.0), "bias": torchlab.zeros(1)}
    assert stateless.call_with(layer, new, torchlab.ones(1)).item() == 3.0
    assert layer.weight is before
    with pytest.raises(RuntimeError, match="Missing"):
        stateless.call_with(layer, {"bias": torchlab.zeros(1)}, torchlab.ones(1), strict=True)
