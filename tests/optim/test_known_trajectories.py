"""The optimizers on p² from (1, -2): trajectories computed by PyTorch, and written down."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import nn, optim

KNOWN = [
    ("ASGD", {"lr": 0.125, "lambd": 0.5, "alpha": 1.0, "t0": 1},
     [0.6875, -1.375, 0.4852941168937832, -0.9705882337875664, 0.3504901945300315,
      -0.700980389060063]),
    ("Adadelta", {},
     [0.9968377262926713, -1.996837723328043, 0.9935981740783056, -1.993595728929903,
      0.990309045658058, -1.9903007524197172]),
    ("Adafactor", {},
     [0.9841886116991581, -1.984188611699158, 0.9686339973568475, -1.9685802061713877,
      0.9533273771943804, -1.9531689779240413]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.5},
     [0.900000000005, -1.9000000000025, 0.8554023512316906, -1.8540833692089875,
      0.8285750384174465, -1.826192323470184]),
    ("Adamax", {"lr": 0.1},
     [0.9000000005, -1.90000000025, 0.805168327168774, -1.802534113547508,
      0.7154994733923282, -1.707648235553021]),
    ("NAdam", {"lr": 0.1},
     [0.8943548213947469, -1.8943548211306338, 0.8199730691399016, -1.8178975292762616,
      0.7527292651416537, -1.7475084999787465]),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.5)},
     [0.8, -1.6, 0.6210526315789474, -1.2421052631578948, 0.46230335987570403,
      -0.9246067197514081]),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True},
     [-0.005037764754163787, -0.994962209993313, -0.5024685771929966, -0.04118641860035847,
      -0.29819071347823695, 0.4544750898582712]),
    ("Rprop", {"lr": 0.5}, [0.5, -1.5, -0.1, -0.9, -0.1, -0.18]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "expected"), KNOWN)
def test_known_trajectories(name, options, expected):
    p = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    o = getattr(optim, name)([p], **options)
    found = []
    for _ in range(3):
        o.zero_grad()
        (p**2).sum().backward()
        o.step()
        found += p.tolist()
    assert found == pytest.approx(expected, rel=1e-12)


def test_muon_steps_are_nearly_orthogonal():
    p = nn.Parameter(torch.zeros(3, 3))
    o = optim.Muon([p], lr=1.0, weight_decay=0.0, nesterov=False)
    p.grad = torch.diag(torch.tensor([1.0, 2.0, -4.0]))
    o.step()
    step = -p.detach()
    assert (step - torch.diag(step.diag())).abs().max() < 0.05
    assert all(0.6 < abs(x) < 1.3 for x in step.diag().tolist())  # where the iteration ends
    assert [x > 0 for x in step.diag().tolist()] == [True, True, False]


def test_lbfgs_finds_the_minimum_of_rosenbrock():
    p = nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
    o = optim.LBFGS([p], max_iter=100, tolerance_change=1e-15, line_search_fn="strong_wolfe")

    def closure():
        o.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    assert o.step(closure).item() == pytest.approx(24.2)
    assert p.tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    assert o.state[p]["func_evals"] < 60


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_sparse_gradients_move_only_their_rows(name):
    p = nn.Parameter(torch.ones(3, 2))
    p.grad = torch.sparse_coo_tensor([[2, 0, 2]], torch.ones(3, 2), (3, 2))
    getattr(optim, name)([p], lr=0.125).step()
    rows = {"SGD": [0.875, 1.0, 0.75]}.get(name, [0.875, 1.0, 0.875])
    assert p[:, 0].tolist() == pytest.approx(rows, rel=1e-6)
    assert p[:, 1].tolist() == p[:, 0].tolist()


def test_a_refused_sparse_gradient_changes_nothing():
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    for name in ("Adam", "ASGD", "RMSprop", "Adafactor"):
        o = getattr(optim, name)([a, b], lr=0.5)
        a.grad, b.grad = torch.ones(2), torch.ones(2).to_sparse()
        with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
            o.step()
        assert a.tolist() == [1.0, 1.0] and not o.state
