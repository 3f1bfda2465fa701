"""Recurrent networks, CTC and sampling against real PyTorch: values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.nn.functional as LF

torch = pytest.importorskip("torch")
TF = torch.nn.functional

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def both(array: Any, grad: bool = True) -> tuple[Any, Any]:
    """The same array as a tensor of either side."""
    return (
        torch.tensor(array, requires_grad=grad),
        torchlab.tensor(np.asarray(array), requires_grad=grad),
    )


def same(theirs: Any, ours: Any) -> None:
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-11
    )
    assert tuple(ours.stride()) == theirs.stride()


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_networks(kind: str, bidirectional: bool, batch_first: bool) -> None:
    rng = np.random.default_rng(2)
    lines, hidden = 2 * (1 + bidirectional), 4
    params = []
    for line in range(lines):
        size = 3 if line < 1 + bidirectional else hidden * (1 + bidirectional)
        for shape in ((GATES[kind] * hidden, size), (GATES[kind] * hidden, hidden)):
            params.append(both(rng.standard_normal(shape) * 0.5))
        params += [both(rng.standard_normal(GATES[kind] * hidden)) for _ in range(2)]
    x = both(rng.standard_normal((2, 5, 3) if batch_first else (5, 2, 3)))
    h = [both(rng.standard_normal((lines, 2, hidden))) for _ in range(2)]
    results, gradients = [], []
    for side, lib in ((0, torch), (1, torchlab)):
        state = [v[side] for v in h] if kind == "lstm" else h[0][side]
        own = [p[side] for p in params]
        r = getattr(lib, kind)(x[side], state, own, True, 2, 0.0, True, bidirectional, batch_first)
        total = sum((v * v).sum() for v in r)
        gradients.append(lib.autograd.grad(total, [x[side], h[0][side], *own]))
        results.append(r)
    for theirs, ours in zip(*results, strict=True):
        same(theirs, ours)
    for theirs, ours in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc(reduction: str, zero_infinity: bool) -> None:
    rng = np.random.default_rng(4)
    x = both(rng.standard_normal((7, 3, 5)))
    targets = [[1, 1, 2], [3, 1, 4], [2, 2, 2]]
    found = []
    for side, lib, F in ((0, torch, TF), (1, torchlab, LF)):
        loss = F.ctc_loss(
            x[side], lib.tensor(targets), (7, 5, 4), (3, 2, 3), 0, reduction, zero_infinity
        )
        (g,) = lib.autograd.grad(loss.sum(), x[side])
        found.append((loss, g))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(mode: str, padding: str, corners: bool) -> None:
    rng = np.random.default_rng(6)
    x = both(rng.standard_normal((2, 3, 5, 4)))
    grid = both(rng.uniform(-2, 2, (2, 3, 2, 2)))
    found = []
    for side, lib, F in ((0, torch, TF), (1, torchlab, LF)):
        y = F.grid_sample(x[side], grid[side], mode, padding, corners)
        first = lib.autograd.grad((y * y).sum(), (x[side], grid[side]), create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), (x[side], grid[side]))
        found.append((y, *first, *second))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-7, atol=1e-8
        )
