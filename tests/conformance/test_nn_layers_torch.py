"""Further layers against PyTorch: initial values for the same seed, outputs, gradients, repr."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torchlab  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")

LAYERS = {
    "PReLU": (lambda T: T.nn.PReLU(3), (2, 3, 4)),
    "RReLU": (lambda T: T.nn.RReLU(), (5, 6)),
    "Hardtanh": (lambda T: T.nn.Hardtanh(-0.5, 0.7), (5, 6)),
    "CELU": (lambda T: T.nn.CELU(0.7), (5, 6)),
    "CircularPad2d": (lambda T: T.nn.CircularPad2d((1, 2, 0, 1)), (2, 3, 4, 4)),
    "ReflectionPad3d": (lambda T: T.nn.ReflectionPad3d(1), (2, 3, 4, 4)),
    "Conv3d": (lambda T: T.nn.Conv3d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 5, 4, 5)),
    "Conv3d circular": (
        lambda T: T.nn.Conv3d(2, 2, 3, padding=1, padding_mode="circular"),
        (1, 2, 4, 4, 4),
    ),
    "ConvTranspose1d": (lambda T: T.nn.ConvTranspose1d(3, 4, 3, 2, 1, 1, dilation=2), (2, 3, 5)),
    "ConvTranspose2d": (lambda T: T.nn.ConvTranspose2d(4, 6, 3, groups=2), (2, 4, 5, 4)),
    "ConvTranspose3d": (lambda T: T.nn.ConvTranspose3d(2, 3, 2, bias=False), (2, 2, 3, 3, 3)),
    "MaxPool3d": (lambda T: T.nn.MaxPool3d(2, ceil_mode=True), (2, 2, 5, 4, 5)),
    "AvgPool3d": (lambda T: T.nn.AvgPool3d(2, padding=1, divisor_override=3), (2, 2, 5, 4, 5)),
    "FractionalMaxPool2d": (lambda T: T.nn.FractionalMaxPool2d(2, 3), (2, 2, 8, 8)),
    "LPPool2d": (lambda T: T.nn.LPPool2d(2, 2), (2, 2, 5, 6)),
    "InstanceNorm2d": (
        lambda T: T.nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        (2, 3, 4, 4),
    ),
    "LocalResponseNorm": (lambda T: T.nn.LocalResponseNorm(3, 0.1), (2, 5, 3, 3)),
    "Dropout2d": (lambda T: T.nn.Dropout2d(0.4), (3, 5, 2, 2)),
    "AlphaDropout": (lambda T: T.nn.AlphaDropout(0.4), (6, 7)),
    "FeatureAlphaDropout": (lambda T: T.nn.FeatureAlphaDropout(0.4), (6, 7, 2)),
    "Fold": (lambda T: T.nn.Fold((4, 5), (2, 2)), (2, 8, 12)),
    "Unfold": (lambda T: T.nn.Unfold((2, 3), padding=1), (2, 3, 4, 5)),
    "Upsample": (lambda T: T.nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 5)),
    "lazy": (
        lambda T: T.nn.Sequential(
            T.nn.LazyConv2d(4, 3),
            T.nn.LazyBatchNorm2d(),
            T.nn.LazyConvTranspose2d(2, 2),
            T.nn.Flatten(),
            T.nn.LazyLinear(3),
        ),
        (2, 3, 5, 5),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_as_pytorch(name):
    make, shape = LAYERS[name]
    values = np.random.default_rng(0).normal(size=shape).astype("f4")
    seen = []
    for T in (torch, torchlab):
        T.manual_seed(5)
        module = make(T)
        text = repr(module)
        x = T.tensor(values, requires_grad=True)
        y = module(x)
        (y * y).sum().backward()
        arrays = [y.detach().numpy(), x.grad.numpy()]
        arrays += [p.grad.numpy() for p in module.parameters()]
        arrays += [t.numpy() for t in module.state_dict().values()]
        seen.append((text, list(module.state_dict()), repr(module), arrays))
    assert seen[0][:3] == seen[1][:3]
    for a, b in zip(seen[0][3], seen[1][3], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_cross_map_response_norm(size):
    x = np.random.default_rng(0).normal(size=(2, 7, 3, 2)).astype("f4") * 30
    a, b = (T.nn.CrossMapLRN2d(size, 0.01)(T.tensor(x)).numpy() for T in (torch, torchlab))
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def test_adaptive_softmax():
    seen = []
    for T in (torch, torchlab):
        T.manual_seed(3)
        m = T.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 3, 7], head_bias=True, div_value=2.0)
        x = T.randn(7, 16, requires_grad=True)
        output, loss = m(x, T.tensor([0, 9, 3, 4, 5, 1, 2]))
        loss.backward()
        arrays = [output, loss, m.log_prob(x), m.predict(x)]
        seen.append([t.detach().numpy() for t in arrays] + [p.grad.numpy() for p in m.parameters()])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
