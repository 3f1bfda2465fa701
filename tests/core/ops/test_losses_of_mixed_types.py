"""Losses of an input and a target of different types."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab
from torchlab.nn import functional as F

F64, F32, F16, BF16, I64 = (
    torchlab.float64, torchlab.float32, torchlab.float16, torchlab.bfloat16, torchlab.int64,
)  # fmt: skip


def pair(a: Any, b: Any) -> tuple[Any, Any]:
    return torchlab.tensor([0.5, 0.75]).to(a), torchlab.tensor([1.0, 0.0]).to(b)


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss])
def test_types_that_promote(loss: Any) -> None:
    for a, b, expected in ((F64, F32, F64), (F32, F16, F32), (F16, BF16, F32), (I64, F16, F16)):
        assert loss(*pair(a, b)).dtype is expected is loss(*pair(b, a)).dtype
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        loss(*pair(I64, I64))


def test_results_of_the_inputs_or_the_targets_type() -> None:
    assert F.huber_loss(*pair(F16, F64)).dtype is F16
    assert F.soft_margin_loss(*pair(F16, F64)).dtype is F16
    logits = F.binary_cross_entropy_with_logits
    for a, b in ((F64, F32), (F32, F64), (F16, BF16)):
        assert logits(*pair(a, b)).dtype is b
    x, w = pair(F32, F64)
    assert logits(x, x, weight=w, pos_weight=w).dtype is F32
    x, y = (t.requires_grad_() for t in pair(F64, F32))
    g, h = torchlab.autograd.grad(logits(x, y), (x, y))
    assert g.dtype is F64 and h.dtype is F32
    assert torchlab.allclose(g, torchlab.autograd.grad(logits(x, y.double()), x)[0])


def test_what_is_refused() -> None:
    for loss in (F.huber_loss, F.soft_margin_loss):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            loss(*pair(I64, F32))
    with pytest.raises(RuntimeError, match="desired output type Long"):
        F.binary_cross_entropy_with_logits(*pair(F32, I64))
    with pytest.raises(NotImplementedError, match="log_sigmoid_cpu"):
        F.binary_cross_entropy_with_logits(*pair(I64, F32))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        F.binary_cross_entropy(*pair(F64, F32))
    with pytest.raises(RuntimeError, match="Integral inputs"):
        F.kl_div(*pair(F32, I64), reduction="sum")
    x, w = torchlab.rand(2, 2), torchlab.ones(2, dtype=F64)
    for loss in (F.cross_entropy, F.multi_margin_loss):
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
            loss(x, torchlab.tensor([0, 1]), weight=w)
    with pytest.raises(RuntimeError, match="class probabilities, got Long"):
        F.cross_entropy(x, x.long())


def test_autocast_gives_one_type() -> None:
    with torchlab.autocast("cpu", dtype=BF16):
        for loss in (F.mse_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
            assert loss(*pair(F32, BF16)).dtype is F32 is loss(*pair(BF16, F32)).dtype
