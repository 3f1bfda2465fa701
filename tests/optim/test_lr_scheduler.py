"""torchlab.optim.lr_scheduler: rates by the published formulas."""

from __future__ import annotations

import math
import warnings

import pytest

import torchlab as torch
from torchlab import nn, optim
from torchlab.optim import lr_scheduler as ls


def optimizer(lr=1.0, **options):
    return optim.SGD([nn.Parameter(torch.ones(1))], lr=lr, **options)


def rates(make, n, **options):
    o = optimizer(**options)
    s = make(o)
    found = [o.param_groups[0]["lr"]]
    for _ in range(n):
        o.step()
        s.step()
        found.append(o.param_groups[0]["lr"])
    assert s.get_last_lr() == found[-1:]
    return found


def cosine(k, n, low=0.0):
    return low + (1 - low) * (1 + math.cos(math.pi * k / n)) / 2


CASES = {
    "StepLR": (lambda o: ls.StepLR(o, 2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25]),
    "MultiStepLR": (lambda o: ls.MultiStepLR(o, [1, 3, 3], gamma=0.5), [1, 0.5, 0.5, 0.125, 0.125]),
    "ExponentialLR": (lambda o: ls.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125]),
    "ConstantLR": (lambda o: ls.ConstantLR(o, 0.25, 2), [0.25, 0.25, 1, 1]),
    "LinearLR": (lambda o: ls.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1]),
    "PolynomialLR": (lambda o: ls.PolynomialLR(o, 4, 2.0), [1, 0.5625, 0.25, 0.0625, 0, 0]),
    "LambdaLR": (lambda o: ls.LambdaLR(o, lambda e: 1 / (1 + e)), [1, 1 / 2, 1 / 3]),
    "MultiplicativeLR": (lambda o: ls.MultiplicativeLR(o, lambda e: e / 2), [1, 0.5, 0.5, 0.75]),
    "CosineAnnealingLR": (
        lambda o: ls.CosineAnnealingLR(o, 4, 0.1),
        [cosine(k, 4, 0.1) for k in (0, 1, 2, 3, 4, 5, 6)],
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: ls.CosineAnnealingWarmRestarts(o, 2, 2),
        [cosine(0, 2), cosine(1, 2), cosine(0, 4), cosine(1, 4), cosine(2, 4), cosine(3, 4), 1],
    ),
    "CyclicLR": (
        lambda o: ls.CyclicLR(o, 1.0, 2.0, 2, mode="triangular2", cycle_momentum=False),
        [1, 1.5, 2, 1.5, 1, 1.25, 1.5],
    ),
    "OneCycleLR": (
        lambda o: ls.OneCycleLR(
            o, 1.0, total_steps=5, pct_start=0.4, anneal_strategy="linear", div_factor=4.0,
            final_div_factor=2.0, cycle_momentum=False,
        ),
        [0.25, 1, 1 - 0.875 / 3, 1 - 2 * 0.875 / 3, 0.125],
    ),
    "SequentialLR": (
        lambda o: ls.SequentialLR(o, [ls.ConstantLR(o, 0.1, 9), ls.ExponentialLR(o, 0.5)], [2]),
        [0.1, 0.1, 1, 0.5, 0.25],
    ),
    "ChainedScheduler": (
        lambda o: ls.ChainedScheduler([ls.ConstantLR(o, 0.1, 2), ls.ExponentialLR(o, 0.5)]),
        [0.1, 0.05, 0.25, 0.125],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rates(name):
    make, expected = CASES[name]
    assert rates(make, len(expected) - 1) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", CASES)
def test_resuming_gives_the_same_rates(name):
    make, expected = CASES[name]
    o = optimizer()
    s = make(o)
    o.step()
    s.step()
    saved = s.state_dict(), o.state_dict()
    o = optimizer()
    s = make(o)
    o.load_state_dict(saved[1])
    s.load_state_dict(saved[0])
    found = []
    for _ in expected[2:]:
        o.step()
        s.step()
        found.append(o.param_groups[0]["lr"])
    assert found == pytest.approx(expected[2:], rel=1e-12, abs=1e-15)


CLOSED = ("StepLR", "MultiStepLR", "ExponentialLR", "LinearLR", "ConstantLR", "PolynomialLR")


@pytest.mark.parametrize("name", [*CLOSED, "CosineAnnealingLR"])
def test_an_epoch_given_is_reached_at_once(name):
    make, expected = CASES[name]
    o = optimizer()
    s = make(o)
    o.step()
    with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step"):
        s.step(3)
    assert o.param_groups[0]["lr"] == pytest.approx(expected[3], rel=1e-12)


def test_one_cycle_moves_the_momentum_the_other_way():
    o = optimizer(momentum=0.9)
    s = ls.OneCycleLR(o, 1.0, total_steps=3, pct_start=0.5, anneal_strategy="linear")
    found = [o.param_groups[0]["momentum"]]
    for _ in range(2):
        o.step()
        s.step()
        found.append(o.param_groups[0]["momentum"])
    # the top lies at step 0.5·3 - 1 = 0.5
    assert found == pytest.approx([0.95, 0.85 + 0.1 / 3, 0.95])
    s.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        s.step()


def test_beta1_plays_the_momentum_of_adam():
    o = optim.Adam([nn.Parameter(torch.ones(1))])
    ls.OneCycleLR(o, 1.0, total_steps=10)
    assert o.param_groups[0]["betas"] == (0.95, 0.999)


def test_plateau():
    o = optimizer()
    s = ls.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1, min_lr=0.3)
    found = []
    for metric in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5):
        s.step(torch.tensor(metric))
        found.append(o.param_groups[0]["lr"])
    assert found == [1.0, 1.0, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3]
    assert s.best == 0.5
    better = ls.ReduceLROnPlateau(optimizer(), mode="max", threshold=0.1, threshold_mode="abs")
    assert better.is_better(1.2, 1.0) and not better.is_better(1.05, 1.0)


def test_a_rate_that_is_a_tensor_stays_that_tensor():
    lr = torch.tensor(1.0)
    o = optimizer(lr)
    s = ls.ExponentialLR(o, 0.5)
    o.step()
    s.step()
    assert o.param_groups[0]["lr"] is lr and lr.item() == 0.5


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda o: ls.StepLR(3, 2), TypeError, "int is not an Optimizer"),
        (lambda o: ls.StepLR(o, 2, last_epoch=3), KeyError, "'initial_lr' is not specified"),
        (lambda o: ls.LambdaLR(o, [len, len]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: ls.LinearLR(o, 0), ValueError, "Starting multiplicative factor"),
        (lambda o: ls.OneCycleLR(o, 0.1), ValueError, "either total_steps OR"),
        (lambda o: ls.OneCycleLR(o, [1, 2], total_steps=3), ValueError, "max_lr has 2 values"),
        (lambda o: ls.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown"),
        (lambda o: ls.LRScheduler(o), NotImplementedError, "get_lr"),
        (lambda o: ls.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (
            lambda o: ls.SequentialLR(o, [ls.StepLR(o, 1)], [3]),
            ValueError,
            "number of schedulers 1 and the number of milestones to be equal to 1",
        ),
    ],
)
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make(optimizer())


def test_warnings_about_the_order_of_calls():
    s = ls.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        s.step()
    o = optimizer()
    s = ls.StepLR(o, 2)
    o.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s.step()
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        s.get_lr()
