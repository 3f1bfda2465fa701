"""The CTC loss against the sum over all paths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import torchlab as torch
import torchlab.nn.functional as F


def by_enumeration(p: np.ndarray, labels: list[int], blank: int) -> float:
    """−log of the probability of all paths that collapse to the labels."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=p.shape[0]):
        if [c for c, _ in itertools.groupby(path) if c != blank] == labels:
            total += math.prod(p[t, c] for t, c in enumerate(path))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_all_paths_are_counted(blank: int) -> None:
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((4, 3, 3))
    log_p = torch.tensor(logits).log_softmax(2)
    a, b = (c for c in range(3) if c != blank)
    targets = [[a, b], [a, a], [b]]
    lengths = [4, 3, 2]
    expected = [
        by_enumeration(np.exp(log_p.numpy()[:n, i]), t, blank)
        for i, (n, t) in enumerate(zip(lengths, targets, strict=True))
    ]
    padded = torch.tensor([t + [a] * (2 - len(t)) for t in targets])
    counts = torch.tensor([2, 2, 1])
    got = F.ctc_loss(log_p, padded, torch.tensor(lengths), counts, blank, "none")
    assert got.tolist() == pytest.approx(expected)
    flat = torch.tensor([c for t in targets for c in t])
    assert F.ctc_loss(log_p, flat, lengths, [2, 2, 1], blank, "sum").item() == pytest.approx(
        sum(expected)
    )
    mean = sum(e / n for e, n in zip(expected, (2, 2, 1), strict=True)) / 3
    assert F.ctc_loss(log_p, flat, lengths, [2, 2, 1], blank).item() == pytest.approx(mean)


def test_the_gradient_of_logits() -> None:
    x = torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 1, 3], [2, 3, 1]])

    def loss(x: torch.Tensor) -> torch.Tensor:
        return F.ctc_loss(x.log_softmax(2), targets, [6, 5], [3, 2], reduction="none")

    assert torch.autograd.gradcheck(loss, (x,))


def test_labels_that_the_input_is_too_short_for() -> None:
    x = torch.zeros(2, 1, 3, requires_grad=True)
    targets = torch.tensor([[1, 1]])  # needs a blank between
    loss = F.ctc_loss(x.log_softmax(2), targets, [2], [2])
    assert loss.item() == math.inf
    loss.backward()
    assert x.grad.isnan().all()
    x.grad = None
    loss = F.ctc_loss(x.log_softmax(2), targets, [2], [2], zero_infinity=True)
    assert loss.item() == 0
    loss.backward()
    assert x.grad.abs().sum().item() == 0


def test_no_time_and_no_labels() -> None:
    x = torch.zeros(3, 2, 2).log_softmax(2)
    got = F.ctc_loss(x, torch.tensor([1]), [0, 0], [0, 1], reduction="none")
    assert got.tolist() == [0, math.inf]
    empty = F.ctc_loss(x, torch.tensor([], dtype=torch.int64), [3, 2], [0, 0], reduction="none")
    assert empty.tolist() == pytest.approx([3 * math.log(2), 2 * math.log(2)])


def test_a_sample_without_batch() -> None:
    x = torch.randn(5, 4, dtype=torch.float64).log_softmax(1)
    one = F.ctc_loss(x, torch.tensor([1, 2]), torch.tensor(5), torch.tensor(2), reduction="none")
    batch = F.ctc_loss(x[:, None], torch.tensor([[1, 2]]), [5], [2], reduction="none")
    assert one.shape == () and one.item() == batch.item()


def test_what_is_refused() -> None:
    x = torch.zeros(3, 1, 4).log_softmax(2)
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(x, torch.tensor([[1]]), [3], [1], blank=4)
    with pytest.raises(RuntimeError, match="at most 3"):
        F.ctc_loss(x, torch.tensor([[1]]), [4], [1])
    with pytest.raises(RuntimeError, match="batch_size"):
        F.ctc_loss(x, torch.tensor([[1]]), [3, 3], [1])
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.ctc_loss(x, torch.tensor([[1]]), [3], [1], reduction="median")
    y = torch.zeros(3, 1, 4, requires_grad=True)
    loss = F.ctc_loss(y, torch.tensor([[1]]), [3], [1])
    (g,) = torch.autograd.grad(loss, y, create_graph=True)
    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        g.sum().backward()
