"""torchlab.nn.init: the values PyTorch draws for the same seed, written down here."""

from __future__ import annotations

import math
import warnings

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn import init


def close(t, expected):
    assert t.flatten().tolist() == pytest.approx(
        torch.tensor(expected, dtype=torch.float64).flatten().tolist(), rel=2e-6, abs=1e-9
    )


def test_layers_start_as_pytorchs():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    assert layer.weight.tolist() == [
        [-0.004322517663240433, 0.3097158372402191, -0.4751853346824646],
        [-0.4248946011066437, -0.2223689705133438, 0.15482072532176971],
    ]
    assert layer.bias.tolist() == [-0.011439144611358643, 0.45777493715286255]
    torch.manual_seed(1)
    conv = nn.Conv2d(1, 1, 2)
    assert conv.weight.flatten().tolist() == [
        0.2576315999031067,
        -0.22068911790847778,
        -0.09693074226379395,
        0.23468446731567383,
    ]
    assert conv.bias.tolist() == [-0.4707184433937073]
    torch.manual_seed(2)
    close(
        nn.Embedding(2, 2).weight,
        [[0.39229682087898254, -0.223564013838768], [-0.31950026750564575, -1.2050371170043945]],
    )


def test_random_inits_give_pytorchs_values():
    torch.manual_seed(3)
    close(
        init.xavier_normal_(torch.empty(2, 3)),
        [
            [0.5080363750457764, 0.11057434976100922, 0.056274689733982086],
            [-0.38814935088157654, 0.02920834720134735, -0.8653630614280701],
        ],
    )
    torch.manual_seed(3)
    close(
        init.trunc_normal_(torch.empty(2, 2), std=0.5),
        [
            [0.4016380310058594, 0.08741669356822968],
            [0.044489048421382904, -0.30685901641845703],
        ],
    )
    torch.manual_seed(3)
    close(
        init.orthogonal_(torch.empty(2, 2, dtype=torch.float64)),
        [[0.9939209974730632, 0.1100956437928017], [0.1100956437928017, -0.9939209974730631]],
    )
    torch.manual_seed(3)
    close(
        init.sparse_(torch.empty(4, 2), 0.5),
        [
            [0.008032760582864285, 0.0],
            [0.0, 0.0],
            [0.00046182452933862805, -0.0136825917288661],
            [0.0, 0.010111158713698387],
        ],
    )


def test_uniform_bounds():
    w = torch.empty(50, 200)
    for fill, bound in (
        (lambda: init.xavier_uniform_(w, gain=2.0), 2 * math.sqrt(6 / 250)),
        (lambda: init.kaiming_uniform_(w), math.sqrt(6 / 200)),
        (lambda: init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / 50)),
        (lambda: init.uniform_(w, -0.5, 0.5), 0.5),
    ):
        assert fill() is w
        assert 0.98 * bound < w.abs().max().item() <= bound


def test_normal_spread():
    torch.manual_seed(0)
    w = torch.empty(100, 400)
    for fill, std in (
        (lambda: init.kaiming_normal_(w, nonlinearity="relu"), math.sqrt(2 / 400)),
        (lambda: init.normal_(w, std=3.0), 3.0),
    ):
        fill()
        assert (w * w).mean().sqrt().item() == pytest.approx(std, rel=0.02)


def test_fixed_values():
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert init.constant_(torch.empty(2), 0.25).tolist() == [0.25, 0.25]
    assert init.ones_(torch.empty(1)).item() == 1 and init.zeros_(torch.empty(1)).item() == 0
    assert init.dirac_(torch.empty(2, 2, 3)).tolist() == [
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
    ]
    grouped = init.dirac_(torch.empty(4, 2, 1), groups=2)
    assert grouped.squeeze().tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]


def test_wide_orthogonal_rows_are_orthonormal():
    w = init.orthogonal_(torch.empty(3, 2, 4, dtype=torch.float64), gain=2.0).reshape(3, 8)
    assert (w @ w.T - 4 * torch.eye(3, dtype=torch.float64)).abs().max().item() < 1e-12


def test_parameters_are_filled_without_recording():
    p = nn.Parameter(torch.empty(2, 2))
    version = p._version
    for fill in (init.uniform_, init.normal_, init.trunc_normal_, init.eye_, init.orthogonal_):
        assert fill(p) is p and p.is_leaf and p._version > version


def test_gains():
    assert init.calculate_gain("conv2d") == 1 and init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("relu") == math.sqrt(2) and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("leaky_relu", 1) == 1


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: init.calculate_gain("foo"), "Unsupported nonlinearity foo"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "negative_slope x not a valid number"),
        (lambda: init.kaiming_uniform_(torch.ones(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(torch.ones(2, 2), mode="x"), "Mode x not supported"),
        (lambda: init.eye_(torch.ones(3)), "Only tensors with 2 dimensions"),
        (lambda: init.dirac_(torch.ones(3, 3, 3), 2), "dim 0 must be divisible by groups"),
        (lambda: init.orthogonal_(torch.ones(3)), "2 or more dimensions"),
    ],
)
def test_what_is_refused(act, text):
    with pytest.raises(ValueError, match=text):
        act()


def test_warnings():
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 2))
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        init.trunc_normal_(torch.empty(2), mean=9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init.trunc_normal_(torch.empty(2))


def test_truncation_holds_also_far_from_the_mean():
    torch.manual_seed(0)
    tail = init.trunc_normal_(torch.empty(500), mean=0.0, std=1.0, a=1.5, b=1.9)
    assert 1.5 <= tail.min().item() and tail.max().item() <= 1.9
    assert tail.mean().item() == pytest.approx(1.676, abs=0.01)  # (φ(1.5) - φ(1.9)) / 0.0381
