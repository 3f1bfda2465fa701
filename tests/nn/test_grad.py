"""`torch.nn.grad` and `torch.nn.common_types`."""

from __future__ import annotations

import pytest

import torchlab as tl
from torchlab.nn import common_types, grad


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_are_autograds(n):
    tl.manual_seed(0)
    x = tl.randn(2, 4, *(7, 6, 5)[:n], requires_grad=True, dtype=tl.float64)
    w = tl.randn(6, 2, *(3, 2, 2)[:n], requires_grad=True, dtype=tl.float64)
    r = getattr(tl.nn.functional, f"conv{n}d")(x, w, stride=2, padding=1, groups=2)
    g = tl.randn_like(r)
    gx, gw = tl.autograd.grad(r, (x, w), g)
    found = getattr(grad, f"conv{n}d_input")(x.shape, w, g, 2, 1, 1, 2)
    tl.testing.assert_close(found, gx)
    found = getattr(grad, f"conv{n}d_weight")(x, w.shape, g, 2, (1,) * n, 1, 2)
    tl.testing.assert_close(found, gw)


def test_what_does_not_fit():
    with pytest.raises(RuntimeError, match="4-dimensional input, but got 2-dimensional"):
        grad.conv2d_input((4, 4), tl.ones(1, 1, 2, 2), tl.ones(1, 1, 3, 3))
    with pytest.raises(TypeError):
        grad.conv2d_input(None, tl.ones(1, 1, 2, 2), tl.ones(1, 1, 3, 3))


def test_types_of_sizes():
    assert common_types._size_2_t == (int | tuple[int, int])
    assert common_types._size_any_t == (int | tuple[int, ...])
    assert common_types._size_2_opt_t == (int | None | tuple[int | None, int | None])
    assert common_types._maybe_indices_t == (tl.Tensor | tuple[tl.Tensor, tl.Tensor])
