"""The layers: arithmetic on numbers small enough to check by hand, repr, refusals."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab import nn


def filled(module, value=1.0):
    with torch.no_grad():
        for p in module.parameters():
            p.fill_(value)
    return module


def near(t, expected):
    assert t.flatten().tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_linear_flatten_identity():
    assert filled(nn.Linear(3, 2))(torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [[7.0, 7.0]]
    assert nn.Flatten()(torch.zeros(2, 3, 4)).shape == (2, 12)
    assert nn.Unflatten(1, (2, 3))(torch.zeros(4, 6)).shape == (4, 2, 3)
    x = torch.ones(1)
    assert nn.Identity(3, any="thing")(x) is x


def test_convolution_padding_and_groups():
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    conv = filled(nn.Conv2d(1, 1, 2, bias=False))
    assert conv(x).flatten().tolist() == [8.0, 12.0, 20.0, 24.0]
    same = filled(nn.Conv1d(1, 1, 3, padding="same", bias=False))
    assert same(torch.tensor([[[1.0, 2.0, 3.0]]])).flatten().tolist() == [3.0, 6.0, 5.0]
    ring = filled(nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular", bias=False))
    assert ring(torch.tensor([[[1.0, 2.0, 3.0]]])).flatten().tolist() == [6.0, 6.0, 6.0]
    grouped = filled(nn.Conv2d(4, 2, 1, groups=2))
    assert grouped.weight.shape == (2, 2, 1, 1)
    assert grouped(torch.ones(1, 4, 1, 1)).flatten().tolist() == [3.0, 3.0]


def test_pooling():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert nn.MaxPool2d(2)(x).flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert nn.AvgPool2d(2)(x).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert nn.AdaptiveAvgPool2d((1, None))(x).flatten().tolist() == [6.0, 7.0, 8.0, 9.0]
    y, at = nn.MaxPool1d(2, return_indices=True)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    assert y.tolist() == [[3.0, 2.0]] and at.tolist() == [[1, 2]]
    assert nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0]])).tolist() == [[2.0]]
    assert nn.AdaptiveAvgPool1d(1)(torch.tensor([[1.0, 3.0]])).tolist() == [[2.0]]


def test_activations():
    x = torch.tensor([-1.0, 2.0])
    near(nn.ReLU()(x), [0.0, 2.0])
    near(nn.LeakyReLU(0.5)(x), [-0.5, 2.0])
    near(nn.ELU(2.0)(x), [2 * (math.exp(-1) - 1), 2.0])
    near(nn.Sigmoid()(x), [1 / (1 + math.e), 1 / (1 + math.exp(-2))])
    near(nn.Tanh()(x), [math.tanh(-1), math.tanh(2)])
    near(nn.SiLU()(x), [-1 / (1 + math.e), 2 / (1 + math.exp(-2))])
    near(nn.GELU()(x), [-(1 + math.erf(-1 / math.sqrt(2))) / 2, 1 + math.erf(math.sqrt(2))])
    near(nn.Softmax(dim=0)(x), [1 / (1 + math.exp(3)), 1 / (1 + math.exp(-3))])
    near(nn.LogSoftmax(dim=0)(x), [-math.log(1 + math.exp(3)), -math.log(1 + math.exp(-3))])
    y = x.clone()
    assert nn.ReLU(inplace=True)(y) is y and y.tolist() == [0.0, 2.0]


def test_normalizations():
    x = torch.tensor([[1.0, 3.0]])
    near(nn.LayerNorm(2, eps=0.0)(x), [-1.0, 1.0])
    near(nn.RMSNorm(2, eps=0.0)(x), [1 / math.sqrt(5), 3 / math.sqrt(5)])
    near(nn.GroupNorm(1, 2, eps=0.0)(x), [-1.0, 1.0])
    assert nn.LayerNorm((2, 3), bias=False).bias is None


def test_batch_norm_learns_in_training_only():
    m = nn.BatchNorm1d(1, eps=1e-12)
    x = torch.tensor([[1.0], [3.0]])
    near(m(x), [-1.0, 1.0])
    # running = 0.9·old + 0.1·new; the variance that is kept is the unbiased one, 2
    near(m.running_mean, [0.2])
    near(m.running_var, [1.1])
    assert m.num_batches_tracked.item() == 1
    m.eval()
    near(m(x), [0.8 / math.sqrt(1.1), 2.8 / math.sqrt(1.1)])
    assert m.num_batches_tracked.item() == 1
    average = nn.BatchNorm1d(1, momentum=None)
    for scale in (1.0, 3.0):
        average(x * scale)
    near(average.running_mean, [4.0])


def test_dropout():
    torch.manual_seed(0)
    m = nn.Dropout(0.25)
    y = m(torch.ones(4000))
    assert set(y.tolist()) == {0.0, 1 / 0.75} or sorted(set(y.tolist()))[0] == 0.0
    assert abs((y == 0).sum().item() / 4000 - 0.25) < 0.03
    x = torch.ones(5)
    assert m.eval()(x).tolist() == [1.0] * 5


def test_embedding():
    table = nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert table(torch.tensor([1, 0])).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert not table.weight.requires_grad
    padded = nn.Embedding(3, 2, padding_idx=-1)
    assert padded.padding_idx == 2 and padded.weight[2].tolist() == [0.0, 0.0]
    padded(torch.tensor([0, 2])).sum().backward()
    assert padded.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_losses():
    p, t = torch.tensor([0.5, 3.0]), torch.tensor([1.0, 1.0])
    assert nn.MSELoss()(p, t).item() == 2.125
    assert nn.L1Loss(reduction="sum")(p, t).item() == 2.5
    assert nn.SmoothL1Loss(reduction="none")(p, t).tolist() == [0.125, 1.5]
    near(nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0])), [math.log(2)])
    near(nn.BCEWithLogitsLoss()(torch.tensor([0.0]), torch.tensor([1.0])), [math.log(2)])
    logits, label = torch.tensor([[0.0, 0.0]]), torch.tensor([1])
    near(nn.CrossEntropyLoss()(logits, label), [math.log(2)])
    near(nn.NLLLoss()(torch.tensor([[-1.0, -3.0]]), label), [3.0])
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]), reduction="sum")
    near(weighted(logits, label), [2 * math.log(2)])
    assert list(weighted.state_dict()) == ["weight"]
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), "groups must be a positive integer"),
        (lambda: nn.Conv2d(1, 1, 3, padding="x"), "Invalid padding string 'x'"),
        (lambda: nn.Conv2d(1, 1, 3, 2, padding="same"), "not supported for strided"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), "padding_mode must be one of"),
        (lambda: nn.BatchNorm2d(3)(torch.ones(2, 3)), r"expected 4D input \(got 2D input\)"),
        (lambda: nn.BatchNorm1d(3)(torch.ones(2, 3, 1, 1)), "expected 2D or 3D input"),
        (lambda: nn.GroupNorm(3, 4), r"num_channels \(4\) must be divisible by num_groups \(3\)"),
        (lambda: nn.Dropout(2.0), "has to be between 0 and 1, but got 2.0"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (lambda: nn.Conv2d(1, 2, 3), "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))"),
        (
            lambda: nn.Conv1d(2, 2, 3, padding="same", groups=2, bias=False),
            "Conv1d(2, 2, kernel_size=(3,), stride=(1,), padding=same, groups=2, bias=False)",
        ),
        (
            lambda: nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (
            lambda: nn.BatchNorm2d(3),
            (
                "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
                "track_running_stats=True)"
            ),
        ),
        (
            lambda: nn.LayerNorm(3),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)",
        ),
        (lambda: nn.Embedding(3, 4, padding_idx=0), "Embedding(3, 4, padding_idx=0)"),
        (lambda: nn.Dropout(), "Dropout(p=0.5, inplace=False)"),
        (lambda: nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (lambda: nn.LeakyReLU(0.2, True), "LeakyReLU(negative_slope=0.2, inplace=True)"),
        (lambda: nn.Softmax(dim=1), "Softmax(dim=1)"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)
def test_repr(module, text):
    assert repr(module()) == text


def test_a_convolution_with_another_weight() -> None:
    class Doubled(nn.Conv1d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self._conv_forward(x, self.weight * 2, None)

    conv = Doubled(1, 1, 2, padding=1, padding_mode="reflect")
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[[1.0, 10.0]]]))
    x = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert conv(x).tolist() == [[[24, 42, 64, 46]]]
