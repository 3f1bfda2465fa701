"""Quantized tensors: the formulas, worked out here with exact arithmetic, and what holds for views,
copies and texts."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import torchlab as torch

X = [[-1.0, 0.0, 1.25], [2.0, 0.125, 100.0]]


def q(scale=0.25, zero_point=10, dtype=torch.quint8, values=X):
    return torch.quantize_per_tensor(torch.tensor(values), scale, zero_point, dtype)


def code(value, scale, zero, low, high):
    """round(value / scale + zero), half to even, cut to the range: in fractions."""
    return min(max(round(Fraction(value) / Fraction(scale) + zero), low), high)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.quint8, 0, 255),
        (torch.qint8, -128, 127),
        (torch.qint32, -(2**31), 2**31 - 1),
    ],
)
def test_formula(dtype, low, high):
    values = [k * 0.125 for k in range(-400, 400)]  # exact, with every kind of half
    for scale, zero in ((0.25, 0), (0.25, 7), (0.5, 10), (2.0, 1)):
        t = q(scale, zero, dtype, values)
        wanted = [code(v, scale, zero, low, high) for v in values]
        assert t.int_repr().tolist() == wanted
        assert t.dequantize().tolist() == [(c - zero) * scale for c in wanted]


def test_halves_go_to_even():
    assert q(1.0, 0, torch.qint8, [0.5, 1.5, 2.5, -0.5, -1.5]).int_repr().tolist() == [
        0, 2, 2, 0, -2,
    ]  # fmt: skip


def test_saturation():
    inf = float("inf")
    assert q(0.1, 3, torch.quint8, [1e30, -1e30, inf, -inf]).int_repr().tolist() == [255, 0] * 2
    assert q(0.1, 3, torch.qint8, [1e30, -1e30]).int_repr().tolist() == [127, -128]


def test_per_channel():
    t = torch.quantize_per_channel(
        torch.tensor(X), torch.tensor([0.25, 0.5]), torch.tensor([3, 4]), 0, torch.quint8
    )
    assert t.int_repr().tolist() == [[0, 3, 8], [8, 4, 204]]
    assert t.dequantize().tolist() == [[-0.75, 0.0, 1.25], [2.0, 0.0, 100.0]]
    assert t.qscheme() is torch.per_channel_affine
    assert t.q_per_channel_scales().tolist() == [0.25, 0.5]
    assert t.q_per_channel_zero_points().tolist() == [3, 4]
    assert t.q_per_channel_axis() == 0
    assert (t[1].qscheme(), t[1].q_scale()) == (torch.per_tensor_affine, 0.5)


def test_dynamic_covers_the_range():
    x = torch.tensor([-1.0, 0.0, 3.0])
    t = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
    assert t.q_scale() == 4 / 255
    assert t.q_zero_point() == round(255 / 4)
    assert abs(t.dequantize() - x).max().item() <= t.q_scale()


def test_views_share_the_codes():
    t = q()
    t.t()[1].fill_(5.0)
    assert t.int_repr().tolist() == [[6, 30, 15], [18, 30, 255]]
    assert t.view(-1).data_ptr() == t.data_ptr()
    assert t.t().stride() == (1, 3)
    assert t[0]._is_view()


def test_writes_requantize():
    t = q()
    t[0] = torch.tensor([0.25, 0.5, 0.75])
    assert t.int_repr()[0].tolist() == [11, 12, 13]
    t.copy_(torch.zeros(2, 3))
    assert t.int_repr().tolist() == [[10] * 3] * 2


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(remake):
    for t in (q(), torch.quantize_per_channel(torch.tensor(X), torch.tensor([0.25, 0.5]),
                                              torch.tensor([3, 4]), 0, torch.qint8)):  # fmt: skip
        r = remake(t)
        assert torch.equal(r, t)
        assert r.data_ptr() != t.data_ptr()


def test_text():
    assert repr(q()) == (
        "tensor([[-1.0000,  0.0000,  1.2500],\n"
        "        [ 2.0000,  0.0000, 61.2500]], size=(2, 3), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.25, zero_point=10)"
    )


def test_constants():
    for scheme in (torch.per_tensor_affine, torch.per_channel_symmetric):
        assert isinstance(scheme, torch.qscheme)
        assert pickle.loads(pickle.dumps(scheme)) is scheme
    assert pickle.loads(pickle.dumps(torch.qint8)) is torch.qint8


def test_linear_is_exact():
    rng = np.random.default_rng(0)
    a, w = rng.integers(0, 256, (5, 9)), rng.integers(-128, 128, (4, 9))
    x = torch._make_per_tensor_quantized_tensor(torch.tensor(a.astype(np.uint8)), 0.5, 100)
    m = torch._make_per_tensor_quantized_tensor(torch.tensor(w.astype(np.int8)), 0.25, 3)
    packed = torch.ops.quantized.linear_prepack(m, None)
    y = torch.ops.quantized.linear(x, packed, 64.0, 120)
    exact = ((a - 100) @ (w - 3).T) * 0.125 / 64.0
    assert y.int_repr().tolist() == np.clip(np.rint(exact) + 120, 0, 255).tolist()


def test_fake_quantize_passes_gradients_in_range():
    x = torch.tensor([-10.0, -0.3, 0.3, 10.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.25, 0, -8, 7)
    assert y.tolist() == [-2.0, -0.25, 0.25, 1.75]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]


def test_assert_close():
    torch.testing.assert_close(q(), q())
    with pytest.raises(AssertionError, match="Quantized tensor-likes"):
        torch.testing.assert_close(q(), q(values=[[1.0] * 3] * 2))
    with pytest.raises(AssertionError, match="is_quantized"):
        torch.testing.assert_close(q(), torch.tensor(X))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: q(0.1, 256), RuntimeError, "zero_point 256"),
        (lambda: q(dtype=torch.int8), RuntimeError, "qint8"),
        (lambda: q() + q(), NotImplementedError, "dequantize"),
        (lambda: q() + 1, RuntimeError, "dequantize"),
        (lambda: q().float(), RuntimeError, "dequantize"),
        (lambda: torch.tensor([1], dtype=torch.quint8), RuntimeError, "quantize_per_tensor"),
        (lambda: torch.ones(2).q_scale(), NotImplementedError, "quantize_per_tensor"),
        (lambda: torch.promote_types(torch.quint8, torch.float32), RuntimeError, "QUInt8"),
        (lambda: torch.ones(2).copy_(q()[0, :2]), RuntimeError, "dequantize"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
