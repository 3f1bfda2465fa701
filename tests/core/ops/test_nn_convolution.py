"""Convolution, pooling, resampling and patches against values computed by hand."""

from __future__ import annotations

import pytest

import torchlab as torch
import torchlab.nn.functional as F


def image(*rows: list[float]) -> torch.Tensor:
    return torch.tensor([[list(r) for r in rows]], dtype=torch.float32)


X = image([1, 2, 3], [4, 5, 6], [7, 8, 9])[None][:, 0][:, None]  # (1, 1, 3, 3)


def test_conv2d_is_a_cross_correlation() -> None:
    w = torch.tensor([[[[1.0, 0.0], [0.0, -1.0]]]])
    assert F.conv2d(X, w).flatten().tolist() == [-4, -4, -4, -4]
    assert F.conv2d(X, w, torch.tensor([10.0])).flatten().tolist() == [6, 6, 6, 6]
    padded = F.conv2d(X, w, stride=2, padding=1)
    assert padded.flatten().tolist() == [-1, -3, -7, 5 - 9]


def test_conv2d_gradients() -> None:
    x = X.clone().requires_grad_()
    w = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    y = F.conv2d(x, w, b)
    assert type(y.grad_fn).__name__ == "ConvolutionBackward0"
    y.sum().backward()
    assert x.grad.flatten().tolist() == [1, 3, 2, 4, 10, 6, 3, 7, 4]
    assert w.grad.flatten().tolist() == [12, 16, 24, 28]
    assert b.grad.tolist() == [4]


def test_conv1d_dilation_groups_and_named_padding() -> None:
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]]])
    w = torch.tensor([[[1.0, 1.0]], [[1.0, -1.0]]])
    assert F.conv1d(x, w, groups=2, dilation=2).tolist() == [[[4, 6], [-20, -20]]]
    assert F.conv1d(x, w, groups=2, padding="same").tolist() == [
        [[3, 5, 7, 4], [-10, -10, -10, 40]]
    ]
    assert F.conv1d(x, w, groups=2, padding="valid").shape == (1, 2, 3)
    assert F.conv1d(x[0], w, groups=2).shape == (2, 3)
    with pytest.raises(
        RuntimeError, match="padding='same' is not supported for strided convolutions"
    ):
        F.conv1d(x, w, groups=2, stride=2, padding="same")


def test_conv_transpose_spreads_the_kernel() -> None:
    x = torch.tensor([[[1.0, 10.0]]])
    w = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert F.conv_transpose1d(x, w).tolist() == [[[1, 12, 23, 30]]]
    assert F.conv_transpose1d(x, w, stride=2, output_padding=1).tolist() == [
        [[1, 2, 13, 20, 30, 0]]
    ]


def test_conv3d_of_ones_counts() -> None:
    assert (
        F.conv3d(torch.ones(1, 2, 3, 3, 3), torch.ones(1, 2, 2, 2, 2)).flatten().tolist()
        == [16] * 8
    )


def test_channels_last_stays_channels_last() -> None:
    x = torch.randn(2, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    y = F.max_pool2d(F.conv2d(x, torch.randn(4, 3, 3, 3)), 2)
    assert y.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("types", [("float16", "float32"), ("float32", "bfloat16")])
def test_conv_takes_no_two_types(types: tuple[str, str]) -> None:
    x, w = (torch.ones(1, 1, 3, 3, dtype=getattr(torch, t)) for t in types)
    for f in (F.conv2d, F.conv_transpose2d):
        with pytest.raises(RuntimeError, match="same dtype"):
            f(x, w)
    with pytest.raises(RuntimeError, match="same dtype"):
        F.conv2d(x, w.to(x.dtype), torch.ones(1, dtype=w.dtype))


def test_conv_errors() -> None:
    with pytest.raises(
        RuntimeError,
        match=(
            r"Given groups=1, weight of size \[4, 3, 3, 3\], expected input\[1, 4, 5, 5\] to have "
            "3 channels, but got 4 channels instead"
        ),
    ):
        F.conv2d(torch.ones(1, 4, 5, 5), torch.ones(4, 3, 3, 3))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(torch.ones(1, 3, 2, 2), torch.ones(4, 3, 3, 3))
    with pytest.raises(RuntimeError, match="non-positive stride is not supported"):
        F.conv2d(torch.ones(1, 3, 5, 5), torch.ones(4, 3, 3, 3), stride=0)


def test_max_pool_values_indices_and_gradient() -> None:
    x = torch.tensor([[[[1.0, 5.0, 2.0, 2.0], [3.0, 4.0, 2.0, 2.0]]]], requires_grad=True)
    y, where = F.max_pool2d(x, 2, return_indices=True)
    assert y.flatten().tolist() == [5, 2]
    assert where.flatten().tolist() == [1, 2]  # the first of equals
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.flatten().tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    assert F.max_unpool2d(y, where, 2).flatten().tolist() == [0, 5, 2, 0, 0, 0, 0, 0]


def test_overlapping_padded_and_ceiling_windows() -> None:
    x = torch.tensor([[1.0, 3.0, 2.0, 5.0]], requires_grad=True)
    y = F.max_pool1d(x, 3, stride=1, padding=1)
    assert y.tolist() == [[3, 3, 5, 5]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 0, 2]]
    assert F.max_pool1d(x.detach(), 3, ceil_mode=True).tolist() == [[3, 5]]
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size"):
        F.max_pool1d(x, 2, padding=2)


def test_average_pools_and_their_divisors() -> None:
    assert F.avg_pool2d(X, 2, stride=1).flatten().tolist() == [3, 4, 6, 7]
    x = torch.tensor([[2.0, 4.0]])
    assert F.avg_pool1d(x, 2, stride=2, padding=1).tolist() == [[1, 2]]
    assert F.avg_pool1d(x, 2, stride=2, padding=1, count_include_pad=False).tolist() == [[2, 4]]
    assert F.avg_pool2d(X, 3, divisor_override=5).item() == 9


def test_adaptive_pools() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[2, 4]]  # [1, 2, 3] and [3, 4, 5]
    assert F.adaptive_max_pool1d(x, 2).tolist() == [[3, 5]]
    assert F.adaptive_avg_pool2d(X, 1).item() == 5
    assert F.adaptive_avg_pool2d(X, (None, 1)).flatten().tolist() == [2, 5, 8]
    assert F.adaptive_max_pool2d(X, 2, return_indices=True)[1].flatten().tolist() == [4, 5, 7, 8]
    last = torch.arange(160.0).reshape(2, 5, 4, 4).contiguous(memory_format=torch.channels_last)
    pair = F.adaptive_max_pool2d(last, 2, return_indices=True)
    assert [t.stride() for t in pair] == [(20, 1, 10, 5)] * 2


def test_interpolation() -> None:
    x = torch.tensor([[[0.0, 4.0]]])
    assert F.interpolate(x, scale_factor=2).tolist() == [[[0, 0, 4, 4]]]
    assert F.interpolate(x, 4, mode="linear").tolist() == [[[0, 1, 3, 4]]]
    assert F.interpolate(x, 3, mode="linear", align_corners=True).tolist() == [[[0, 2, 4]]]
    assert F.interpolate(X, 1, mode="area").item() == 5
    with pytest.raises(ValueError, match="either size or scale_factor should be defined"):
        F.interpolate(x)


def test_unfold_and_fold() -> None:
    columns = F.unfold(X, 2)
    assert columns[0, :, 0].tolist() == [1, 2, 4, 5]
    assert columns.shape == (1, 4, 4)
    counts = F.fold(F.unfold(torch.ones(1, 1, 3, 3), 2), 3, 2)
    assert counts.flatten().tolist() == [1, 2, 1, 2, 4, 2, 1, 2, 1]


def test_shuffles() -> None:
    x = torch.arange(4.0).view(1, 4, 1, 1)
    assert F.pixel_shuffle(x, 2).tolist() == [[[[0, 1], [2, 3]]]]
    assert F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).tolist() == x.tolist()
    assert F.channel_shuffle(x, 2).flatten().tolist() == [0, 2, 1, 3]
    one = F.pixel_shuffle(x, 1)
    one.zero_()
    assert x.sum().item() == 6  # never the same memory
