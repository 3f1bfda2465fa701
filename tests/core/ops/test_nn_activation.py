"""Activations and softmax against values computed by hand."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
import torchlab.nn.functional as F

X = [-4.0, -1.0, 0.0, 0.5, 7.0]
SIGMOID = [1 / (1 + math.exp(-x)) for x in X]


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


CASES = {
    "relu": (F.relu, [max(x, 0) for x in X]),
    "relu6": (F.relu6, [0, 0, 0, 0.5, 6]),
    "leaky_relu": (lambda t: F.leaky_relu(t, 0.1), [-0.4, -0.1, 0, 0.5, 7]),
    "elu": (lambda t: F.elu(t, 2.0), [2 * math.expm1(-4), 2 * math.expm1(-1), 0, 0.5, 7]),
    "celu": (lambda t: F.celu(t, 2.0), [2 * math.expm1(-2), 2 * math.expm1(-0.5), 0, 0.5, 7]),
    "silu": (F.silu, [x * s for x, s in zip(X, SIGMOID)]),
    "mish": (F.mish, [x * math.tanh(softplus(x)) for x in X]),
    "softplus": (F.softplus, [softplus(x) for x in X]),
    "logsigmoid": (F.logsigmoid, [-softplus(-x) for x in X]),
    "softsign": (F.softsign, [-0.8, -0.5, 0, 1 / 3, 0.875]),
    "tanhshrink": (F.tanhshrink, [x - math.tanh(x) for x in X]),
    "hardtanh": (F.hardtanh, [-1, -1, 0, 0.5, 1]),
    "hardsigmoid": (F.hardsigmoid, [0, 1 / 3, 0.5, 3.5 / 6, 1]),
    "hardswish": (F.hardswish, [0, -1 / 3, 0, 0.5 * 3.5 / 6, 7]),
    "threshold": (lambda t: F.threshold(t, 0.25, 9.0), [9, 9, 9, 0.5, 7]),
    "hardshrink": (F.hardshrink, [-4, -1, 0, 0, 7]),
    "softshrink": (F.softshrink, [-3.5, -0.5, 0, 0, 6.5]),
    "gelu": (F.gelu, [x * normal_cdf(x) for x in X]),
    "rrelu": (lambda t: F.rrelu(t, 0.25, 0.75), [-2, -0.5, 0, 0.5, 7]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name: str, dtype: str) -> None:
    f, expected = CASES[name]
    got = f(torch.tensor(X, dtype=getattr(torch, dtype))).tolist()
    assert got == pytest.approx(expected, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_zero_dimensional_input_gives_a_zero_dimensional_tensor(name: str) -> None:
    f, expected = CASES[name]
    got = f(torch.tensor(7.0))
    assert got.shape == ()
    assert got.item() == pytest.approx(expected[-1], rel=2e-6)


def test_gelu_of_a_large_array_takes_another_path_to_the_same_values() -> None:
    x = torch.linspace(-6, 6, 5000)
    large, small = F.gelu(x), torch.cat([F.gelu(p) for p in x.split(100)])
    assert (large - small).abs().max().item() < 5e-7
    assert F.gelu(torch.full((300,), math.inf)).tolist() == [math.inf] * 300


def test_tanh_approximation_of_gelu() -> None:
    x = 0.5
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    got = F.gelu(torch.tensor(x), approximate="tanh").item()
    assert got == pytest.approx(0.5 * x * (1 + math.tanh(inner)), rel=1e-6)
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(torch.tensor(x), approximate="sigmoid")


@pytest.mark.parametrize(
    "name", ["relu", "silu", "elu", "leaky_relu", "hardtanh", "hardswish", "mish"]
)
def test_inplace_writes_into_the_input(name: str) -> None:
    f = getattr(F, name)
    x = torch.tensor(X)
    expected = f(x).tolist()
    r = f(x, inplace=True)
    assert r is x
    assert x.tolist() == expected


def test_relu_keeps_nan_and_its_gradient_passes_nan() -> None:
    x = torch.tensor([math.nan, -1.0, 0.0, 2.0], requires_grad=True)
    y = F.relu(x)
    assert math.isnan(y[0].item())
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 1]


def test_prelu_has_one_slope_for_each_channel() -> None:
    x = torch.tensor([[[-1.0, 2.0], [-3.0, 4.0]]], requires_grad=True)
    w = torch.tensor([0.5, 0.1], requires_grad=True)
    y = F.prelu(x, w)
    assert y.flatten().tolist() == pytest.approx([-0.5, 2, -0.3, 4])
    y.sum().backward()
    assert w.grad.tolist() == [-1, -3]
    assert type(y.grad_fn).__name__ == "PreluKernelBackward0"
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers and input channel size"):
        F.prelu(x, torch.ones(3))


def test_glu_multiplies_one_half_by_the_sigmoid_of_the_other() -> None:
    x = torch.tensor([[1.0, 2.0, 0.0, math.log(3)]])
    assert F.glu(x).tolist()[0] == pytest.approx([0.5, 1.5])
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        F.glu(torch.ones(1, 3))


def test_softmax_of_large_numbers_does_not_overflow() -> None:
    x = torch.tensor([[1000.0, 1000.0 + math.log(3)]])
    assert F.softmax(x, 1).tolist()[0] == pytest.approx([0.25, 0.75], rel=1e-4)
    assert F.log_softmax(x, 1).tolist()[0] == pytest.approx(
        [math.log(0.25), math.log(0.75)], rel=1e-4
    )
    assert F.softmin(-x, 1).tolist()[0] == pytest.approx([0.25, 0.75], rel=1e-4)


def test_softmax_gradient() -> None:
    x = torch.tensor([0.0, math.log(3)], requires_grad=True)
    torch.softmax(x, 0)[0].backward()
    assert x.grad.tolist() == pytest.approx([0.1875, -0.1875])


def test_softmax_refuses_integers_and_wrong_dimensions() -> None:
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        torch.softmax(torch.tensor([1, 2]), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(torch.ones(2), 1)
    assert torch.softmax(torch.tensor([1, 1]), 0, dtype=torch.float64).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("training", [False, True])
def test_rrelu_gives_rows(training: bool) -> None:
    x = torch.randn(6, 4).t()
    assert F.rrelu(x, training=training).stride() == (6, 1)
    last = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert F.rrelu(last, training=training).is_contiguous()
    assert F.rrelu(x, training=training, inplace=True) is x and x.stride() == (1, 4)


def test_threshold_writes_through_expanded_tensors() -> None:
    """As in PyTorch, which does not look: the second write of a cell changes nothing."""
    x = torch.ones(1, 3).expand(2, 3)
    assert F.threshold(x, 2, 5, inplace=True).tolist() == [[5.0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element"):
        x.relu_()
    whole = torch.ones(1, 3, dtype=torch.int64).expand(2, 3)
    assert whole.nan_to_num_() is whole


def test_complex_numbers_are_refused_as_by_pytorch():
    c = torch.ones(2, 2, dtype=torch.complex64)
    with pytest.raises(NotImplementedError, match="glu_cpu"):
        F.glu(c)
    with pytest.raises(RuntimeError, match="Got ComplexFloat and Float"):
        F.prelu(c, torch.tensor([0.5]))


def test_native_dropout_draws_pytorchs_mask_for_every_type():
    for dtype in (torch.float32, torch.complex64):
        torch.manual_seed(3)
        dropped, mask = torch.native_dropout(torch.ones(8, dtype=dtype), 0.5, True)
        assert mask.int().tolist() == [1, 1, 0, 1, 0, 0, 1, 1]
        assert dropped.tolist() == [2.0 * m for m in [1, 1, 0, 1, 0, 0, 1, 1]]
    kept, mask = torch.native_dropout(torch.ones(2), 0.5, False)
    assert kept.tolist() == [1.0, 1.0] and mask.tolist() == [True, True]
