"""Normalizations against values computed by hand."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
import torchlab.nn.functional as F
from torchlab._core.dispatch.registry import OPS


def test_layer_norm() -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 2.0]], requires_grad=True)
    w, b = (
        torch.tensor([2.0, 3.0], requires_grad=True),
        torch.tensor([0.5, -0.5], requires_grad=True),
    )
    y = F.layer_norm(x, (2,), w, b, eps=0.0 + 1e-12)
    assert y.flatten().tolist() == pytest.approx([-1.5, 2.5, 0.5, -0.5], abs=1e-5)
    y.sum().backward()
    assert w.grad.tolist() == pytest.approx([-1, 1], abs=1e-5)
    assert b.grad.tolist() == [2, 2]
    assert type(y.grad_fn).__name__ == "NativeLayerNormBackward0"


def test_layer_norm_of_far_away_numbers_does_not_cancel() -> None:
    y = F.layer_norm(torch.tensor([[10000.0, 10001.0, 10002.0]]), (3,))
    assert y.tolist()[0] == pytest.approx([-math.sqrt(1.5), 0, math.sqrt(1.5)], rel=1e-4, abs=1e-4)


def test_layer_norm_errors() -> None:
    with pytest.raises(
        RuntimeError, match=r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\]"
    ):
        F.layer_norm(torch.ones(2, 4), (3,))
    with pytest.raises(
        RuntimeError, match="Expected weight to be of same shape as normalized_shape"
    ):
        F.layer_norm(torch.ones(2, 4), (4,), torch.ones(3))


def test_rms_norm() -> None:
    y = F.rms_norm(torch.tensor([[3.0, 4.0]]), (2,), torch.tensor([1.0, 2.0]), eps=0.0)
    rms = math.sqrt(12.5)
    assert y.tolist()[0] == pytest.approx([3 / rms, 8 / rms], rel=1e-6)


def test_group_norm_normalizes_groups_of_channels() -> None:
    x = torch.tensor([[1.0, 3.0, 10.0, 30.0]]).view(1, 4, 1)
    y = F.group_norm(x, 2, eps=1e-12)
    assert y.flatten().tolist() == pytest.approx([-1, 1, -1, 1], rel=1e-5)
    with pytest.raises(
        RuntimeError, match="number of channels in input to be divisible by num_groups"
    ):
        F.group_norm(x, 3)


def test_batch_norm_in_training_moves_the_running_statistics() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(x, mean, var, training=True, momentum=0.1, eps=1e-12)
    assert y.flatten().tolist() == pytest.approx([-1, -1, 1, 1], rel=1e-5)
    assert mean.tolist() == pytest.approx([0.2, 2.0])
    assert var.tolist() == pytest.approx([0.9 + 0.2, 0.9 + 20.0])  # unbiased variances 2 and 200
    assert mean._version > 0  # whoever saved it will be told
    assert not mean.requires_grad


def test_batch_norm_in_evaluation_uses_them() -> None:
    x = torch.tensor([[1.0, 10.0]])
    mean, var = torch.tensor([0.0, 8.0]), torch.tensor([1.0, 4.0])
    y = F.batch_norm(x, mean, var, torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]), eps=1e-12)
    assert y.tolist()[0] == pytest.approx([1, 3])
    assert mean.tolist() == [0, 8]


def test_an_empty_batch_leaves_the_statistics_alone() -> None:
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(torch.ones(0, 2), mean, var, training=True)
    assert y.shape == (0, 2)
    assert mean.tolist() == [0, 0]
    assert var.tolist() == [1, 1]


def test_batch_norm_of_one_value_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.batch_norm(torch.ones(1, 2), None, None, training=True)
    with pytest.raises(RuntimeError, match="running_mean should contain 2 elements not 3"):
        F.batch_norm(torch.ones(4, 2), torch.ones(3), torch.ones(2))


def test_batch_norm_gradients() -> None:
    x = torch.tensor([[1.0], [3.0]], dtype=torch.float64, requires_grad=True)
    y = F.batch_norm(x, None, None, training=True, eps=0.0 + 1e-15)
    (y * torch.tensor([[1.0], [0.0]], dtype=torch.float64)).sum().backward()
    # y = (x - mean)/std is ±1 whatever x is: its derivative is 0.
    assert x.grad.abs().max().item() < 1e-9


def test_instance_norm_normalizes_each_sample() -> None:
    x = torch.tensor([[[1.0, 3.0]], [[100.0, 300.0]]])
    assert F.instance_norm(x, eps=1e-12).flatten().tolist() == pytest.approx(
        [-1, 1, -1, 1], rel=1e-5
    )


DECOMPOSED = {
    "_softmax": (((3, 5),), (1,)),
    "_log_softmax": (((3, 5),), (0,)),
    "_softmax_backward": (((3, 5), (3, 5)), (1,)),
    "_log_softmax_backward": (((3, 5), (3, 5)), (1,)),
    "gelu": (((3, 5),), ("none",)),
    "gelu_backward": (((3, 5), (3, 5)), ("tanh",)),
    "mse_loss": (((3, 5), (3, 5)), (1,)),
    "native_layer_norm": (((3, 5),), ((5,), None, None, 1e-5)),
    "_scaled_dot_product_attention": (((2, 3, 4),) * 3, (None, True, 0.5)),
}


@pytest.mark.parametrize("name", DECOMPOSED)
def test_decompositions_agree_with_the_kernels(name: str) -> None:
    shapes, values = DECOMPOSED[name]
    op = OPS[name]["default"]
    tensors = [torch.randn(s, dtype=torch.float64) for s in shapes]
    kernel, python = op.core(*tensors, *values), op.decompose(*tensors, *values)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (kernel, python))):
        assert (a - b).abs().max().item() < 1e-12
