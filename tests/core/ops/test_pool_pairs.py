"""Max pooling by 2×2: its own backward against the one for all windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.ops import _pool_pairs, pooling

GEOMETRY = ((2, 2), (2, 2), (0, 0), (1, 1))


def both(x: Any, monkeypatch: pytest.MonkeyPatch, g: Any = None) -> tuple[Any, Any]:
    """(ours, the general one) for an input."""
    y = pooling._max_values(np, x, *GEOMETRY, False)
    if g is None:
        g = np.random.default_rng(1).standard_normal(y.shape).astype(x.dtype)
    ours = pooling._max_backward(np, g, x, y, *GEOMETRY)
    monkeypatch.setattr(pooling, "halves", lambda *args: False)
    return ours, pooling._max_backward(np, g, x, y, *GEOMETRY)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 6), (1, 2, 5, 7), (3, 2, 2), (1, 1, 3, 2), (70, 40, 12, 12)]
)
def test_the_first_maximum_gets_the_gradient(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).integers(0, 3, shape).astype(np.float32)  # many are equal
    assert _pool_pairs.halves(x, *GEOMETRY)
    ours, general = both(x, monkeypatch)
    np.testing.assert_array_equal(ours, general)


def test_infinite_values_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[[-np.inf, -np.inf, 1, np.inf], [-np.inf, -np.inf, np.inf, 0]]], np.float32)
    ours, general = both(x, monkeypatch, np.array([[[np.inf, -np.nan]]], np.float32))
    np.testing.assert_array_equal(ours, general)
    assert np.isinf(ours[0, 0, 0]) and np.isnan(ours[0, 0, 3]) and ours[0, 1, 2] == 0


def test_nan_is_a_maximum() -> None:
    x = torch.tensor([[[1.0, float("nan")], [2.0, 3.0]]], requires_grad=True)
    torch.nn.functional.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[0, 1], [0, 0]]]


@pytest.mark.parametrize(
    "other",
    [((2, 2), (1, 1), (0, 0), (1, 1)), ((2, 2), (2, 2), (1, 1), (1, 1)),
     ((3, 2), (2, 2), (0, 0), (1, 1)), ((2, 2), (2, 2), (0, 0), (2, 1))],
)  # fmt: skip
def test_other_windows_go_elsewhere(other: Any) -> None:
    x = np.zeros((1, 1, 6, 6), np.float32)
    assert not _pool_pairs.halves(x, *other)
    assert not _pool_pairs.halves(x.astype(np.float64), *GEOMETRY)
    assert not _pool_pairs.halves(x.transpose(0, 1, 3, 2)[..., :3], *GEOMETRY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_unpooling_keeps_channels_last_with_a_dimension_of_one(dtype: Any) -> None:
    x = torch.arange(36.0).reshape(1, 2, 3, 6).to(dtype)
    x = x.contiguous(memory_format=torch.channels_last)
    y, places = torch.nn.functional.max_pool2d(x, (3, 2), return_indices=True)
    assert y.stride() == places.stride() == (6, 1, 6, 2)
    y = y.detach().requires_grad_()
    back = torch.nn.functional.max_unpool2d(y, places, (3, 2))
    assert back.stride() == (36, 1, 12, 2)
    (grad,) = torch.autograd.grad(back, y, torch.ones_like(back))
    assert grad.stride() == (6, 3, 3, 1)
