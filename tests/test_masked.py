"""torchlab.masked: against the same reduction of the elements that are left."""

from __future__ import annotations

import math
from typing import Any

import pytest

import torchlab as torch
from torchlab import masked

X = torch.tensor([[0.5, -1.0, 2.0], [3.0, 4.0, -5.0]])
MASK = torch.tensor([[True, False, True], [True, True, True]])


def _left(row: int) -> Any:
    return X[row][MASK[row]]


@pytest.mark.parametrize("name", ("sum", "prod", "amax", "amin", "mean", "logsumexp"))
def test_a_reduction_sees_what_is_left(name: str) -> None:
    result = getattr(masked, name)(X, 1, mask=MASK)
    for row in range(2):
        alone = getattr(torch, name)(_left(row), 0)
        assert result[row].item() == pytest.approx(alone.item(), rel=1e-6)
    whole = getattr(masked, name)(X, mask=MASK)
    assert whole.item() == pytest.approx(getattr(torch, name)(X[MASK], 0).item(), rel=1e-6)
    assert getattr(masked, name)(X, (0, 1), keepdim=True, mask=MASK).shape == (1, 1)


def test_spread_norm_and_place() -> None:
    for row in range(2):
        left = _left(row)
        assert masked.var(X, 1, mask=MASK)[row].item() == pytest.approx(left.var().item())
        biased = masked.std(X, 1, unbiased=False, mask=MASK)[row].item()
        assert biased == pytest.approx(left.std(unbiased=False).item())
        assert masked.norm(X, 3.0, 1, mask=MASK)[row].item() == pytest.approx(
            left.norm(3.0).item(), rel=1e-5
        )
    assert masked.argmax(X, 1, mask=~MASK).tolist() == [1, 0]
    assert masked.median(X, 1, mask=MASK).tolist() == [0.5, 3.0]


def test_where_nothing_counts() -> None:
    none = torch.zeros(2, 3, dtype=torch.bool)
    assert masked.sum(X, 1, mask=none).tolist() == [0, 0]
    assert masked.prod(X, 1, mask=none).tolist() == [1, 1]
    assert masked.amax(X, 1, mask=none).tolist() == [-math.inf] * 2
    assert masked.amin(X.int(), 1, mask=none).tolist() == [2**31 - 1] * 2
    assert masked.mean(X, 1, mask=none).isnan().all()
    assert masked.softmax(X, 1, mask=none).isnan().all()


def test_normalisations() -> None:
    weights = masked.softmax(X, 1, mask=MASK)
    assert weights[0, 1].item() == 0
    assert weights.sum(1).tolist() == pytest.approx([1, 1])
    assert masked.log_softmax(X, 1, mask=MASK)[1].tolist() == pytest.approx(
        weights[1].log().tolist(), rel=1e-5
    )
    assert masked.normalize(X, 2.0, 1, mask=MASK)[0].tolist() == pytest.approx(
        [0.5 / 4.25**0.5, 0, 2 / 4.25**0.5]
    )
    assert masked.cumsum(X, 1, mask=MASK)[0].tolist() == [0.5, 0.5, 2.5]
    assert masked.cumprod(X, 1, mask=MASK)[0].tolist() == [0.5, 0.5, 1.0]


def test_gradients_reach_only_what_counts() -> None:
    x = X.clone().requires_grad_()
    masked.mean(x, 1, mask=MASK).sum().backward()
    assert x.grad.tolist() == [[0.5, 0, 0.5], pytest.approx([1 / 3] * 3)]


def test_a_mask_broadcasts_but_never_enlarges() -> None:
    assert masked.sum(X, 1, mask=torch.tensor([1, 0, 1])).tolist() == [2.5, -2.0]
    with pytest.raises(IndexError, match="dimensionality"):
        masked.sum(X, mask=torch.ones(1, 2, 3))
    with pytest.raises(RuntimeError):
        masked.sum(X, mask=torch.ones(4))
    with pytest.raises(ValueError, match="dtype"):
        masked.mean(X.int(), mask=MASK)
    with pytest.raises(ValueError, match="fully masked"):
        masked.median(X.int(), 1, mask=torch.zeros(2, 3))
