"""Averages of models, checked against means computed by hand."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import nn, optim
from torchlab.optim import swa_utils


def averages(**options):
    model = nn.Linear(1, 1, bias=False)
    average = swa_utils.AveragedModel(model, **options)
    found = []
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
        found.append(average.module.weight.item())
    assert average.n_averaged.item() == 3
    return found


def test_means():
    for options in (
        {},
        {"avg_fn": swa_utils.get_swa_avg_fn()},
        {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
    ):
        assert averages(**options) == [1.0, 1.5, 3.0]
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(0.5)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)},
    ):
        assert averages(**options) == [1.0, 1.5, 3.75]
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        averages(avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match=r"Invalid decay value 1.5 provided"):
        swa_utils.get_ema_avg_fn(1.5)


def test_update_bn_takes_the_mean_of_all_batches():
    model = nn.BatchNorm1d(1).eval()
    model.running_mean.fill_(100.0)
    batches = [(torch.tensor([[v - 1], [v + 1]]), None) for v in (1.0, 2.0, 6.0)]
    swa_utils.update_bn(batches, model)
    assert model.running_mean.item() == pytest.approx(3.0)
    assert model.momentum == 0.1 and not model.training


def test_rates_go_to_swa_lr():
    o = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    s = swa_utils.SWALR(o, swa_lr=0.2, anneal_epochs=4, anneal_strategy="linear")
    found = []
    for _ in range(6):
        o.step()
        s.step()
        found.append(o.param_groups[0]["lr"])
    assert found == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.2, 0.2])
    with pytest.raises(ValueError, match="anneal_strategy must be one of 'cos' or 'linear'"):
        swa_utils.SWALR(o, 0.1, anneal_strategy="step")


def test_swapped_in_parameters_are_those_that_move():
    p = nn.Parameter(torch.ones(2))
    o = optim.SGD([p], lr=0.5, momentum=0.5)
    other = torch.zeros(2)
    other.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        with optim.swap_in_optimizer_params_and_state(o, {"p": other}, o.state_dict()):
            o.step()
    p.grad = torch.ones(2)
    o.step()
    state = {
        "state": {0: {"momentum_buffer": torch.zeros(2)}},
        "param_groups": o.state_dict()["param_groups"],
    }
    with optim.swap_in_optimizer_params_and_state(o, {"p": other}, state):
        o.step()
    assert other.tolist() == [-0.5, -0.5] and p.tolist() == [0.5, 0.5]
    assert state["state"][0]["momentum_buffer"].tolist() == [1.0, 1.0]
    assert o.param_groups[0]["params"][0] is p
