"""Losses against values computed by hand."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
import torchlab.nn.functional as F

LOGITS = [[0.0, math.log(3)], [math.log(7), 0.0]]  # probabilities (1/4, 3/4) and (7/8, 1/8)


def test_cross_entropy_and_its_gradient() -> None:
    x = torch.tensor(LOGITS, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, 1]))
    assert loss.item() == pytest.approx((math.log(4 / 3) + math.log(8)) / 2, rel=1e-6)
    assert type(loss.grad_fn).__name__ == "NllLossBackward0"
    loss.backward()
    assert x.grad.flatten().tolist() == pytest.approx([0.125, -0.125, 0.4375, -0.4375], rel=1e-5)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [math.log(4 / 3), math.log(8)]),
        ("sum", math.log(4 / 3) + math.log(8)),
        ("mean", (math.log(4 / 3) + math.log(8)) / 2),
    ],
)
def test_reductions(reduction: str, expected: object) -> None:
    got = F.cross_entropy(torch.tensor(LOGITS), torch.tensor([1, 1]), reduction=reduction)
    assert got.tolist() == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.cross_entropy(torch.tensor(LOGITS), torch.tensor([1, 1]), reduction="median")


def test_ignored_targets_count_nothing_and_get_no_gradient() -> None:
    x = torch.tensor(LOGITS, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, -100]))
    assert loss.item() == pytest.approx(math.log(4 / 3), rel=1e-5)
    loss.backward()
    assert x.grad[1].tolist() == [0, 0]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_reduced_loss_of_nothing_has_no_sign(reduction: str) -> None:
    sure = torch.tensor([[1000.0, 0.0], [2000.0, 0.0]])
    for x, y in ((sure, [0, 0]), (sure[0], 0), (torch.zeros(2, 2, 1), [[0], [1]])):
        loss = F.cross_entropy(x, torch.tensor(y), reduction=reduction)
        if x.ndim < 3:
            assert str(loss) == "tensor(0.)"  # as PyTorch writes it, not -0.
        loss = F.nll_loss(x * 0, torch.tensor(y), reduction=reduction)
        assert str(loss) == "tensor(0.)"
    each = F.nll_loss(sure * 0, torch.tensor([0, -100]), reduction="none")
    assert str(each) == "tensor([-0., 0.])"
    assert str(F.nll_loss(sure[0] * 0, torch.tensor(0), reduction="none")) == "tensor(0.)"


def test_class_weights_divide_the_mean() -> None:
    w = torch.tensor([1.0, 3.0])
    loss = F.cross_entropy(torch.tensor(LOGITS), torch.tensor([1, 0]), weight=w)
    assert loss.item() == pytest.approx((3 * math.log(4 / 3) + math.log(8 / 7)) / 4, rel=1e-5)


def test_label_smoothing_and_probabilities_agree() -> None:
    x = torch.tensor(LOGITS)
    smoothed = F.cross_entropy(x, torch.tensor([1, 1]), label_smoothing=0.2)
    soft = F.cross_entropy(x, torch.tensor([[0.1, 0.9], [0.1, 0.9]]))
    by_hand = (
        0.1 * math.log(4) + 0.9 * math.log(4 / 3) + 0.1 * math.log(8 / 7) + 0.9 * math.log(8)
    ) / 2
    assert smoothed.item() == pytest.approx(by_hand, rel=1e-5)
    assert soft.item() == pytest.approx(by_hand, rel=1e-5)


def test_two_dimensional_targets() -> None:
    logp = torch.log(torch.tensor([[[[0.25, 0.5]], [[0.75, 0.5]]]]))  # (1, 2, 1, 2)
    loss = F.nll_loss(logp, torch.tensor([[[1, 0]]]), reduction="sum")
    assert loss.item() == pytest.approx(math.log(4 / 3) + math.log(2), rel=1e-5)


def test_target_errors_name_the_target() -> None:
    x = torch.zeros(2, 10)
    with pytest.raises(IndexError, match="Target 10 is out of bounds."):
        F.cross_entropy(x, torch.tensor([0, 10]))
    with pytest.raises(
        ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"
    ):
        F.nll_loss(x, torch.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
        F.cross_entropy(x, torch.tensor([0.0, 1.0]))


A, B = [1.0, -2.0, 0.5], [0.0, 1.0, 0.25]
REGRESSION = {
    "mse_loss": (F.mse_loss, [1, 9, 0.0625]),
    "l1_loss": (F.l1_loss, [1, 3, 0.25]),
    "smooth_l1_loss": (F.smooth_l1_loss, [0.5, 2.5, 0.03125]),
    "huber_loss": (lambda a, b, **k: F.huber_loss(a, b, delta=2.0, **k), [0.5, 4, 0.03125]),
}


@pytest.mark.parametrize("name", REGRESSION)
def test_regression_losses(name: str) -> None:
    f, each = REGRESSION[name]
    a, b = torch.tensor(A), torch.tensor(B)
    assert f(a, b, reduction="none").tolist() == pytest.approx(each)
    assert f(a, b, reduction="sum").item() == pytest.approx(sum(each))
    assert f(a, b).item() == pytest.approx(sum(each) / 3)


def test_mse_gradient_and_size_warning() -> None:
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    F.mse_loss(a, torch.tensor([0.0, 1.0])).backward()
    assert a.grad.tolist() == [1, 2]
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(a, torch.zeros(1))


def test_binary_cross_entropies() -> None:
    p, y = torch.tensor([0.25, 1.0]), torch.tensor([1.0, 0.0])
    assert F.binary_cross_entropy(p, y, reduction="none").tolist() == pytest.approx(
        [math.log(4), 100]
    )
    x = torch.tensor([math.log(3), -200.0])
    got = F.binary_cross_entropy_with_logits(x, torch.tensor([0.0, 1.0]), reduction="none")
    assert got.tolist() == pytest.approx([math.log(4), 200], rel=1e-5)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(x, torch.zeros(3))


def test_weights_that_want_a_gradient_are_refused() -> None:
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="not differentiable with respect to argument 'pos_weight'"
    ):
        F.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), pos_weight=w)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        F.cross_entropy(torch.zeros(1, 2), torch.tensor([1]), weight=w)


def test_kl_divergence_is_zero_between_equals_and_takes_zeros() -> None:
    p = torch.tensor([[0.5, 0.5, 0.0]])
    q = torch.tensor([[0.25, 0.5, 0.25]])
    got = F.kl_div(q.log(), p, reduction="batchmean")
    assert got.item() == pytest.approx(0.5 * math.log(2), rel=1e-6)


def test_margin_losses() -> None:
    x, y = torch.tensor([0.3, -0.2]), torch.tensor([1.0, -1.0])
    assert F.hinge_embedding_loss(x, y, reduction="none").tolist() == pytest.approx([0.3, 1.2])
    assert F.margin_ranking_loss(x, -x, y, margin=0.5, reduction="none").tolist() == pytest.approx(
        [0, 0.1]
    )
    scores = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    multi = F.multi_margin_loss(scores, torch.tensor([3]))
    assert multi.item() == pytest.approx((0.3 + 0.4 + 0.6) / 4)
    # The example of PyTorch's documentation: 0.25 * ((1-(0.1-0.2)) + (1-(0.1-0.4)) + ...) = 0.85.
    label = F.multilabel_margin_loss(scores, torch.tensor([[3, 0, -1, 1]]))
    assert label.item() == pytest.approx(0.85)
    anchor, near, far = (
        torch.tensor([[0.0, 0.0]]),
        torch.tensor([[3.0, 4.0]]),
        torch.tensor([[0.0, 5.5]]),
    )
    assert F.triplet_margin_loss(anchor, near, far, eps=0).item() == pytest.approx(0.5)


def test_distances() -> None:
    a, b = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    assert F.cosine_similarity(a, b).item() == pytest.approx(0.96)
    assert F.normalize(a).tolist()[0] == pytest.approx([0.6, 0.8])
    assert F.normalize(torch.zeros(1, 2)).tolist() == [[0, 0]]
    assert F.pairwise_distance(a, b, eps=0).item() == pytest.approx(math.sqrt(2))


def test_losses_of_complex_numbers_that_pytorch_has_and_has_not():
    c = torch.tensor([[1 + 1j, 2 - 1j], [0.5j, 1]], dtype=torch.complex128)
    loss = F.soft_margin_loss(c, torch.ones(2, 2, dtype=torch.float64))
    assert abs(loss.item() - (0.31614234558187165 - 0.09924653288457201j)) < 1e-12
    with pytest.raises(NotImplementedError, match="log_sigmoid_cpu"):
        F.binary_cross_entropy_with_logits(c, c)
