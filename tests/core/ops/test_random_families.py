"""Gamma, Dirichlet, binomial, Poisson: what they return, consume and refuse."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab
from torchlab._core.generator import Generator


def test_a_failed_call_leaves_the_stream_alone() -> None:
    g = Generator().manual_seed(3)
    before = g.get_state()
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        torchlab.poisson(torchlab.tensor([1.0, -1.0]), g)
    with pytest.raises(NotImplementedError, match="gamma_cpu"):
        torchlab._standard_gamma(torchlab.tensor([1]), g)
    with pytest.raises(ValueError, match="floating-point dtypes for count"):
        torchlab.binomial(torchlab.tensor([1]), torchlab.tensor([0.5]), g)
    assert (g.get_state() == before).all()
    with pytest.raises(TypeError, match="generator"):
        torchlab.poisson(torchlab.ones(2), "seed")


def test_blocks_do_not_change_the_numbers() -> None:
    """Many elements in one call are as many calls with one each."""
    alpha = np.linspace(0.01, 4, 300)
    one, many = Generator().manual_seed(1), Generator().manual_seed(1)
    together = torchlab._standard_gamma(torchlab.tensor(alpha), many).numpy()
    apart = [torchlab._standard_gamma(torchlab.tensor([a]), one).item() for a in alpha]
    np.testing.assert_array_equal(together, apart)
    assert (one.get_state() == many.get_state()).all()


def test_edges() -> None:
    n, p = torchlab.tensor([0.0, 5.0, 5.0, -1.0]), torchlab.tensor([0.5, 0.0, 1.0, 0.5])
    assert torchlab.binomial(n, p).tolist() == [0, 0, 5, 0]
    assert torchlab.poisson(torchlab.zeros(3)).tolist() == [0, 0, 0]
    assert torchlab._standard_gamma(torchlab.zeros(())).item() == np.finfo(np.float32).tiny
    assert torchlab._standard_gamma(torchlab.empty(0, 3)).shape == (0, 3)
    x = torchlab._sample_dirichlet(torchlab.full((5, 2), 1e-3))
    assert ((x > 0) & (x < 1)).all()
    assert torchlab.binomial(torchlab.ones(3, 1), torchlab.rand(2)).shape == (3, 2)


def test_gradients() -> None:
    rate = torchlab.ones(3, requires_grad=True)
    for draw in (torchlab.poisson, torchlab.bernoulli):
        y = draw(rate)
        (g,) = torchlab.autograd.grad(y.sum(), rate)
        assert g.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="_sample_dirichlet is not implemented"):
        torchlab._sample_dirichlet(rate).sum().backward()
    for y in (torchlab.normal(rate, 1.0), torchlab.normal(0.0, rate), torchlab.normal(rate, rate)):
        (g,) = torchlab.autograd.grad(y.sum(), rate)
        assert g.tolist() == [0, 0, 0]
