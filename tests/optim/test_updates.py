"""SGD, Adam and AdamW: trajectories computed by hand (or by PyTorch, and written down); of all
optimizers the two ways of making a step, held together."""

from __future__ import annotations

import itertools

import pytest

import torchlab as torch
from torchlab import nn, optim
from torchlab.optim import _common, _elementwise, adam, sgd


def trajectory(make, steps=3):
    p = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    o = make([p])
    found = []
    for _ in range(steps):
        o.zero_grad()
        (p**2).sum().backward()
        o.step()
        found += p.tolist()
    return found


def test_plain_descent_is_what_the_formula_says():
    assert trajectory(lambda ps: optim.SGD(ps, lr=0.25)) == [0.5, -1.0, 0.25, -0.5, 0.125, -0.25]
    assert trajectory(lambda ps: optim.SGD(ps, lr=0.25, maximize=True), 1) == [1.5, -3.0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
            [0.601, -1.202, 0.191101, -0.382202, -0.140468399, 0.280936798],
        ),
        (
            lambda ps: optim.Adam(ps, lr=0.1, weight_decay=0.1, amsgrad=True),
            [
                0.9000000004761904,
                -1.9000000002380952,
                0.8004122286431954,
                -1.8001664860916349,
                0.7015862728718214,
                -1.7006233920100058,
            ],
        ),
        (
            lambda ps: optim.AdamW(ps, lr=0.1),
            [
                0.8990000005,
                -1.89800000025,
                0.7985190271685215,
                -1.7962725886447977,
                0.6989111831582322,
                -1.6949445143849768,
            ],
        ),
    ],
)
def test_known_trajectories(make, expected):
    assert trajectory(make) == pytest.approx(expected, rel=1e-12)


OPTIONS = [
    (optim.SGD, {"lr": 0.1}, ("momentum", 0.9), ("weight_decay", 0.1), ("maximize", True)),
    (optim.SGD, {"lr": 0.1, "momentum": 0.5}, ("nesterov", True), ("dampening", 0.25)),
    (optim.Adam, {"lr": 0.1}, ("amsgrad", True), ("weight_decay", 0.1), ("maximize", True)),
    (optim.AdamW, {"lr": 0.1}, ("amsgrad", True), ("weight_decay", 0.1), ("maximize", True)),
    (optim.ASGD, {"lr": 0.1, "t0": 1}, ("weight_decay", 0.1), ("lambd", 0.1)),
    (optim.Adadelta, {}, ("weight_decay", 0.1), ("rho", 0.5), ("maximize", True)),
    (optim.Adagrad, {}, ("weight_decay", 0.1), ("lr_decay", 0.5), ("maximize", True)),
    (optim.Adamax, {}, ("weight_decay", 0.1), ("eps", 0.1), ("maximize", True)),
    (optim.NAdam, {"weight_decay": 0.1}, ("decoupled_weight_decay", True), ("maximize", True)),
    (optim.RAdam, {"weight_decay": 0.1, "betas": (0.5, 0.9)}, ("decoupled_weight_decay", True)),
    (optim.RMSprop, {"weight_decay": 0.1}, ("centered", True), ("momentum", 0.9)),
    (optim.Rprop, {}, ("etas", (0.3, 1.7)), ("step_sizes", (0.01, 0.011)), ("maximize", True)),
]


def combinations():
    for cls, fixed, *options in OPTIONS:
        for n in range(len(options) + 1):
            for chosen in itertools.combinations(options, n):
                if {"nesterov", "dampening"} <= dict(chosen).keys():
                    continue
                yield cls, {**fixed, **dict(chosen)}


@pytest.mark.parametrize(("cls", "options"), list(combinations()))
def test_both_ways_make_the_same_step(cls, options, monkeypatch):
    monkeypatch.setattr(_common, "CHUNK", 3)
    monkeypatch.setattr(_common, "SCRATCH", _common.Scratch())
    for module in (_elementwise, adam, sgd):
        monkeypatch.setattr(module, "SCRATCH", _common.SCRATCH)
    results = []
    for arrays in (True, False):
        torch.manual_seed(0)
        p = nn.Parameter(torch.randn(2, 4, dtype=torch.float64))
        o = cls([p], **options)
        with monkeypatch.context() as patch:
            if not arrays:
                for module in (_elementwise, adam, sgd):
                    patch.setattr(module, "as_arrays", lambda *a: False)
            for _ in range(3):
                p.grad = torch.randn(2, 4, dtype=torch.float64)
                o.step()
        state = [v.flatten().tolist() for v in o.state[p].values()]
        results.append(sum(state, p.flatten().tolist()))
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_a_step_counts_as_a_write():
    p = nn.Parameter(torch.ones(2))
    loss = (p * p).sum()
    p.grad = torch.ones(2)
    version = p._version
    optim.SGD([p], lr=0.1).step()
    assert p._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_strided_and_short_parameters():
    for p in (
        nn.Parameter(torch.ones(3, 2).t()),
        nn.Parameter(torch.ones(2, 3, dtype=torch.float16)),
        nn.Parameter(torch.ones(2, 3, dtype=torch.bfloat16)),
    ):
        o = optim.Adam([p], lr=0.5)
        p.grad = torch.ones_like(p)
        o.step()
        assert p.dtype is o.state[p]["exp_avg"].dtype
        assert p.flatten().tolist() == pytest.approx([0.5] * 6, rel=1e-2)


def test_rates_and_betas_may_be_tensors():
    p = nn.Parameter(torch.tensor([1.0]))
    p.grad = torch.ones(1)
    lr = torch.tensor(0.5)
    optim.SGD([p], lr=lr).step()
    assert p.item() == 0.5
    optim.Adam([p], lr=lr, betas=(torch.tensor(0.9), torch.tensor(0.99))).step()
    assert p.item() == pytest.approx(0.0, abs=1e-6)


def test_differentiable_steps_pass_gradients():
    start = torch.tensor([2.0], requires_grad=True)
    p = start.clone()
    o = optim.SGD([p], lr=0.25, differentiable=True)
    p.grad = start * 2  # the gradient of p², as a function of the start
    o.step()
    # p = s - 0.25·2s = s/2
    assert p.item() == 1.0
    p.sum().backward()
    assert start.grad.item() == 0.5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lr": -1}, "Invalid learning rate: -1"),
        ({"eps": -1}, "Invalid epsilon value: -1"),
        ({"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        ({"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ({"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        ({"lr": torch.tensor(0.1), "foreach": True}, "lr as a Tensor is not supported"),
        ({"betas": (torch.tensor(0.9), 0.9)}, "betas must be either both floats or both Tensors"),
    ],
)
def test_adam_refuses(options, text):
    with pytest.raises(ValueError, match=text):
        optim.Adam([nn.Parameter(torch.ones(1))], **options)


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW])
def test_flags_that_exclude_each_other(cls):
    p = nn.Parameter(torch.ones(1))
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        cls([p], fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        cls([p], fused=True, differentiable=True)
    for flags in ({"fused": True}, {"foreach": True}):
        p.grad = torch.ones(1)
        cls([p], **flags).step()


def test_sgd_refuses():
    p = nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum"):
        optim.SGD([p], nesterov=True)
    with pytest.raises(ValueError, match="Invalid momentum value: -1"):
        optim.SGD([p], momentum=-1)
