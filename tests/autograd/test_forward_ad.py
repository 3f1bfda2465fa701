"""Forward mode: tangents against closed forms, and what is left when the level ends."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab.autograd import forward_ad


def test_tangent_of_a_product_of_sines() -> None:
    x, t = torch.tensor([0.3, 1.2], dtype=torch.float64), torch.tensor([1.0, -2.0])
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, t.double())
        value, tangent = forward_ad.unpack_dual((y.sin() * y).sum())
    expected = (math.cos(0.3) * 0.3 + math.sin(0.3)) - 2 * (math.cos(1.2) * 1.2 + math.sin(1.2))
    assert tangent.item() == pytest.approx(expected, rel=1e-14)
    assert value.item() == pytest.approx(0.3 * math.sin(0.3) + 1.2 * math.sin(1.2), rel=1e-14)


def test_a_write_makes_the_base_a_dual_and_the_end_undoes_it() -> None:
    out = torch.zeros(3)
    with forward_ad.dual_level():
        out[1] = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(5.0))
        assert forward_ad.unpack_dual(out).tangent.tolist() == [0.0, 5.0, 0.0]
    assert type(out) is torch.Tensor
    assert out.tolist() == [0.0, 2.0, 0.0]
    assert forward_ad.unpack_dual(out).tangent is None
    assert (out + 1).tolist() == [1.0, 3.0, 1.0]


def test_hessian_times_vector() -> None:
    """f = Σ x³: H = diag(6x)."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, torch.tensor([1.0, 10.0]))
        (slope,) = torch.autograd.grad((y**3).sum(), x)
        value, tangent = forward_ad.unpack_dual(slope)
    assert value.tolist() == [3.0, 12.0]
    assert tangent.tolist() == [6.0, 120.0]


def test_gradients_of_a_dual_reach_the_tensor_after_the_level() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = (forward_ad.make_dual(x, torch.ones(2)) ** 2).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_no_level() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="positive number"):
        forward_ad.exit_dual_level()


def test_duals_of_a_level_are_freed() -> None:
    from torchlab._core.dispatch.levels import LEVELS

    with forward_ad.dual_level():
        for _ in range(3):
            forward_ad.make_dual(torch.ones(2), torch.ones(2)).exp()
    assert not LEVELS.duals and not LEVELS.running


def test_logcumsumexp_of_far_apart_values() -> None:
    """Each sum is its largest term, and so is its derivative."""
    x = torch.tensor([250.0, -500.0, 1000.0], dtype=torch.float64)
    t = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    with forward_ad.dual_level():
        y = torch.logcumsumexp(forward_ad.make_dual(x, t), 0)
        assert forward_ad.unpack_dual(y).tangent.tolist() == pytest.approx([1.0, 1.0, 3.0])


def test_tangents_want_no_gradients_where_nothing_does() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, torch.ones(2, 2))
        for y in (d.log_softmax(-1), torch.nn.functional.layer_norm(d, (2,)), torch.linalg.inv(d)):
            tangent = forward_ad.unpack_dual(y).tangent
            assert not tangent.requires_grad and tangent.is_leaf
        w = x.clone().requires_grad_()
        y = forward_ad.make_dual(w, x).log_softmax(-1)
        assert forward_ad.unpack_dual(y).tangent.requires_grad
