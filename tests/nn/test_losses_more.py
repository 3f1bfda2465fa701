"""Loss modules against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as torch
from torchlab import nn


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


close = pytest.approx


def test_likelihoods():
    p, q = f64(0.25, 0.75), f64(0.5, 0.5)
    divergence = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert nn.KLDivLoss(reduction="sum")(p.log(), q).item() == close(divergence)
    log_target = nn.KLDivLoss(reduction="sum", log_target=True)
    assert log_target(p.log(), q.log()).item() == close(divergence)
    x, t, var = f64(1.0, 2.0), f64(3.0, 2.0), f64(4.0, 1.0)
    wanted = [0.5 * (math.log(4) + 1) + 0.5 * math.log(2 * math.pi), 0.5 * math.log(2 * math.pi)]
    assert nn.GaussianNLLLoss(full=True, reduction="none")(x, t, var).tolist() == close(wanted)
    poisson = nn.PoissonNLLLoss(reduction="none")(x, t).tolist()
    assert poisson == close([math.e - 3, math.exp(2) - 4])
    assert nn.HuberLoss(reduction="none", delta=0.5)(x, t).tolist() == close([0.5 * (2 - 0.25), 0])
    with pytest.raises(TypeError, match="delta must be a float or int"):
        nn.HuberLoss(delta=1j)


def test_gaussian_variances_share_one_dimension_at_most():
    x = torch.zeros(2, 3, 4)
    loss = nn.GaussianNLLLoss()
    for shape in ((2, 3, 4), (2, 3, 1), (2, 1, 4), (1, 3, 4), (2, 3)):
        assert loss(x, x, torch.full(shape, math.e)).item() == close(0.5)
    for shape in ((2, 1, 1), (4,), (3, 4), (2, 4, 3)):
        with pytest.raises(ValueError, match="incorrect size"):
            loss(x, x, torch.ones(shape))


def test_ctc_of_one_label():
    # Alignments of "1" in two steps: (1, 1), (1, blank), (blank, 1): 3 of the 4 equal paths.
    log_probs = f64(0.5, 0.5, 0.5, 0.5).reshape(2, 1, 2).log()
    loss = nn.CTCLoss(reduction="sum")(log_probs, torch.tensor([[1]]), [2], [1])
    assert loss.item() == close(-math.log(0.75))


def test_margins():
    a, b, sign = f64(1.0, 2.0), f64(3.0, 1.0), f64(1.0, 1.0)
    assert nn.MarginRankingLoss(0.5, reduction="none")(a, b, sign).tolist() == close([2.5, 0])
    hinge = nn.HingeEmbeddingLoss(1.5, reduction="none")
    assert hinge(a, f64(1.0, -1.0)).tolist() == close([1, 0])
    soft = nn.SoftMarginLoss(reduction="sum")(a, f64(1.0, -1.0)).item()
    assert soft == close(math.log1p(math.exp(-1)) + math.log1p(math.exp(2)))
    scores = f64(0.1, 0.2, 0.4, 0.8)
    assert nn.MultiMarginLoss()(scores, torch.tensor(3)).item() == close((0.3 + 0.4 + 0.6) / 4)
    labels = torch.tensor([3, 0, -1, 1])
    assert nn.MultiLabelMarginLoss()(scores, labels).item() == close(0.85)
    logits = f64(0.0, 0.0).reshape(1, 2)
    assert nn.MultiLabelSoftMarginLoss()(logits, logits).item() == close(math.log(2))
    with pytest.raises(ValueError, match="p == 1 and p == 2"):
        nn.MultiMarginLoss(p=3)
    with pytest.raises(ValueError, match="1D tensor, got 2D"):
        nn.MultiMarginLoss(weight=torch.ones(2, 2))


def test_triplets():
    anchor, near, far = f64(0, 0).reshape(1, 2), f64(3, 4).reshape(1, 2), f64(6, 8).reshape(1, 2)
    assert nn.TripletMarginLoss(6.0, eps=0.0)(anchor, near, far).item() == close(1)
    assert nn.TripletMarginLoss(6.0, eps=0.0, swap=True)(anchor, near, far).item() == close(6)
    loss = nn.TripletMarginWithDistanceLoss(
        distance_function=lambda x, y: (x - y).abs().sum(-1), margin=8.0
    )
    assert loss(anchor, near, far).item() == close(1)
    assert nn.CosineEmbeddingLoss()(near, far, torch.ones(1)).item() == close(0)
    for make in (nn.TripletMarginLoss, nn.TripletMarginWithDistanceLoss):
        with pytest.raises(ValueError, match="margin to be greater than 0"):
            make(margin=0.0)


def test_linear_cross_entropy_is_linear_and_cross_entropy():
    torch.manual_seed(0)
    x, t = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 1, 0])
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=2)):
        m = nn.LinearCrossEntropyLoss(3, 4, bias=True, dtype=torch.float64, options=options)
        assert m(x, t).item() == close(nn.CrossEntropyLoss()(m.linear(x), t).item())
    m = nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), dtype=torch.float64)
    both = torch.stack([t, t.flip(0)], 1)
    wanted = nn.CrossEntropyLoss()(m.linear(x).reshape(6, 4, 2), both).item()
    assert m(x, both).item() == close(wanted)
    with pytest.raises(ValueError, match=r"batch_size \(6\) to match target batch_size \(5\)"):
        m(x, both[:5])
    with pytest.raises(RuntimeError, match=r"expected weight shape to be \(4,\)"):
        nn.LinearCrossEntropyLoss(3, 4, weight=torch.ones(3))


def test_adaptive_softmax_is_a_distribution():
    torch.manual_seed(0)
    m = nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7], div_value=2.0)
    x, t = torch.randn(9, 16), torch.tensor([0, 11, 3, 6, 7, 2, 1, 8, 3])
    full = m.log_prob(x)
    assert np.allclose(full.exp().sum(1).detach().numpy(), 1, atol=1e-5)
    output, loss = m(x, t)
    picked = full.gather(1, t.unsqueeze(1)).squeeze(1)
    assert torch.allclose(output, picked, atol=1e-5)
    assert loss.item() == close(-picked.mean().item(), abs=1e-5)
    assert torch.equal(m.predict(x), full.argmax(1))
    assert m(x[0], t[0]).output.item() == close(picked[0].item(), abs=1e-5)


def test_bad_adaptive_softmax():
    for cutoffs in ([5, 3], [0, 3], [3, 3], [3, 10]):
        with pytest.raises(ValueError, match="increasing order"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs)
    m = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])
    with pytest.raises(RuntimeError, match=r"\[0, 9\], but values in range \[1, 10\]"):
        m(torch.ones(2, 8), torch.tensor([1, 10]))
    with pytest.raises(RuntimeError, match="batch dimension"):
        m(torch.ones(2, 8), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="multi-target"):
        m(torch.ones(2, 8), torch.tensor([[1, 1]]))


def test_old_name():
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        loss = nn.NLLLoss2d()
    assert loss(torch.ones(1, 2, 2, 2), torch.zeros(1, 2, 2, dtype=torch.long)).item() == -1


def test_former_arguments_of_losses_are_told() -> None:
    x = torch.tensor([1.0, 3.0])
    for call in (
        lambda: nn.functional.mse_loss(x, x * 2, size_average=False),
        lambda: nn.MSELoss(size_average=False)(x, x * 2),
    ):
        with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
            assert call().item() == 10
