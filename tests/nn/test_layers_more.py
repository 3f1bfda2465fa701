"""Layers that are a function with arguments kept: values from closed forms, and their manners."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import torchlab as torch
from torchlab import nn


def values(t) -> list[float]:
    return [round(v, 5) for v in t.detach().reshape(-1).tolist()]


def test_piecewise_activations():
    x = torch.tensor([-4.0, -0.4, 0.0, 0.4, 7.0])
    assert values(nn.Hardtanh(-1, 2)(x)) == [-1, -0.4, 0, 0.4, 2]
    assert values(nn.ReLU6()(x)) == [0, 0, 0, 0.4, 6]
    assert values(nn.Hardsigmoid()(x)) == [0, 0.43333, 0.5, 0.56667, 1]
    assert values(nn.Hardswish()(x)) == [0, -0.17333, 0, 0.22667, 7]
    assert values(nn.Hardshrink()(x)) == [-4, 0, 0, 0, 7]
    assert values(nn.Softshrink()(x)) == [-3.5, 0, 0, 0, 6.5]
    assert values(nn.Threshold(0.1, 20)(x)) == [20, 20, 20, 0.4, 7]
    assert values(nn.PReLU()(x)) == [-1, -0.1, 0, 0.4, 7]
    assert values(nn.RReLU(0.1, 0.3).eval()(x)) == [-0.8, -0.08, 0, 0.4, 7]
    y = nn.RReLU(0.1, 0.3)(torch.full((1000,), -1.0))
    assert -0.3 <= y.min().item() < y.max().item() <= -0.1


def test_smooth_activations():
    x = torch.tensor([-2.0, 1.0], dtype=torch.float64)
    a, b = -2.0, 1.0
    close = pytest.approx
    assert nn.CELU(2.0)(x).tolist() == close([2 * (math.exp(a / 2) - 1), b])
    assert nn.SELU()(x).tolist() == close(
        [1.0507009873554805 * 1.6732632423543772 * (math.exp(a) - 1), 1.0507009873554805]
    )
    assert nn.Mish()(x).tolist() == close([v * math.tanh(math.log1p(math.exp(v))) for v in (a, b)])
    assert nn.GLU()(x).tolist() == close([a / (1 + math.exp(-b))])
    assert nn.LogSigmoid()(x).tolist() == close([-math.log1p(math.exp(-v)) for v in (a, b)])
    assert nn.Softplus(2.0)(x).tolist() == close([math.log1p(math.exp(2 * v)) / 2 for v in (a, b)])
    assert nn.Softsign()(x).tolist() == close([a / 3, b / 2])
    assert nn.Tanhshrink()(x).tolist() == close([v - math.tanh(v) for v in (a, b)])
    assert nn.Softmin(0)(x).tolist() == close([1 / (1 + math.exp(-3)), 1 / (1 + math.exp(3))])
    assert nn.Softmax2d()(torch.zeros(2, 4, 3, 3)).tolist()[0][0][0] == [0.25] * 3


def test_activations_write_in_place_only_if_told():
    for make in (nn.Mish, nn.SELU, nn.CELU, nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.ReLU6):
        x = torch.tensor([-2.0, 3.0])
        y = make()(x)
        assert x.tolist() == [-2.0, 3.0]
        assert make(inplace=True)(x) is x
        assert x.tolist() == y.tolist()


def test_bad_activation_arguments():
    with pytest.raises(AssertionError, match="greater than min_val"):
        nn.Hardtanh(1, -1)
    with pytest.warns(FutureWarning, match="min_value"):
        assert nn.Hardtanh(min_value=-3.0).min_val == -3.0
    with pytest.raises(ValueError, match="3D or 4D"):
        nn.Softmax2d()(torch.ones(2, 2))


def test_padding():
    x = torch.arange(3.0).reshape(1, 1, 3)
    assert values(nn.CircularPad1d((1, 2))(x)) == [2, 0, 1, 2, 0, 1]
    assert values(nn.ReflectionPad1d((2, 1))(x)) == [2, 1, 0, 1, 2, 1]
    assert values(nn.ReplicationPad1d(1)(x)) == [0, 0, 1, 2, 2]
    assert values(nn.ConstantPad1d((1, 0), 9.0)(x)) == [9, 0, 1, 2]
    assert values(nn.ZeroPad1d((-1, 1))(x)) == [1, 2, 0]
    assert nn.ZeroPad2d((1, 2, 3, 4))(torch.ones(1, 1, 2, 2)).shape == (1, 1, 9, 5)
    assert nn.ConstantPad3d(1, 2)(torch.ones(1, 2, 2, 2)).sum().item() == 8 + 2 * 56
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        nn.CircularPad1d(1)(torch.ones(3))


def test_pooling():
    x = torch.arange(64.0).reshape(1, 1, 4, 4, 4)
    assert values(nn.MaxPool3d(2)(x)) == [21, 23, 29, 31, 53, 55, 61, 63]
    assert values(nn.AvgPool3d(4)(x)) == [31.5]
    assert values(nn.AdaptiveAvgPool3d((1, 1, 2))(x)) == [30.5, 32.5]
    assert values(nn.AdaptiveMaxPool3d(1)(x)) == [63]
    y, where = nn.AdaptiveMaxPool1d(2, return_indices=True)(x[0, 0, 0])
    assert values(y[0]) == [1, 3]
    assert where[0].tolist() == [1, 3]
    assert values(nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0, 6.0, 8.0]]))) == [5, 10]
    assert nn.LPPool2d(1, 2)(torch.ones(1, 1, 4, 4)).tolist() == [[[[4, 4], [4, 4]]]]


def test_unpooling_reverses_pooling():
    x = torch.randn(2, 3, 6, 8)
    pool, back = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    y, where = pool(x)
    z = back(y, where)
    assert z.shape == x.shape
    assert torch.equal(pool(z)[0].clamp(min=0), y.clamp(min=0))
    assert back(y, where, output_size=(7, 9)).shape == (2, 3, 7, 9)


def test_fractional_pooling():
    torch.manual_seed(1)
    x = torch.randn(1, 2, 9, 9)
    y = nn.FractionalMaxPool2d(2, output_size=(4, 5))(x)
    assert y.shape == (1, 2, 4, 5)
    assert set(values(y)) <= set(values(x))
    assert nn.FractionalMaxPool2d(2, output_ratio=0.5)(x).shape == (1, 2, 4, 4)
    for arguments, text in (
        ({}, "either an output size"),
        ({"output_size": 2, "output_ratio": 0.5}, "only one"),
        ({"output_ratio": 1.5}, "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=text):
            nn.FractionalMaxPool3d(2, **arguments)


def test_transposed_convolution_is_the_gradient_of_a_convolution():
    for n, conv, transposed in (
        (1, nn.Conv1d, nn.ConvTranspose1d),
        (2, nn.Conv2d, nn.ConvTranspose2d),
        (3, nn.Conv3d, nn.ConvTranspose3d),
    ):
        forward = conv(4, 6, 3, stride=2, padding=1, groups=2, bias=False).double()
        back = transposed(6, 4, 3, stride=2, padding=1, groups=2, bias=False).double()
        back.load_state_dict(forward.state_dict())
        x = torch.randn(2, 4, *(6,) * n, dtype=torch.float64, requires_grad=True)
        y = forward(x)
        g = torch.randn(*y.shape, dtype=torch.float64)
        (wanted,) = torch.autograd.grad(y, x, g)
        assert torch.allclose(back(g, output_size=x.shape[2:]), wanted)
        assert torch.equal(back(g, output_size=x.shape), back(g, output_size=x.shape[2:]))


def test_bad_transposed_convolutions():
    m = nn.ConvTranspose1d(3, 4, 3)
    with pytest.raises(ValueError, match=r"valid sizes range from \[6\] to \[6\]"):
        m(torch.ones(2, 3, 4), output_size=[9])
    with pytest.raises(ValueError, match="must have 1 or 3 elements"):
        m(torch.ones(2, 3, 4), output_size=[9, 9])
    with pytest.raises(ValueError, match="padding mode"):
        nn.ConvTranspose2d(1, 1, 1, padding_mode="circular")
    with pytest.raises(TypeError, match="padding"):
        nn.ConvTranspose2d(1, 1, 1, padding="same")


def test_instance_norm():
    x = torch.randn(3, 4, 50) * 5 + 2
    y = nn.InstanceNorm1d(4)(x)
    assert abs(y.mean(2)).max().item() < 1e-5
    assert abs(y.var(2, correction=0) - 1).max().item() < 1e-4
    assert torch.equal(nn.InstanceNorm1d(4)(x[1]), nn.InstanceNorm1d(4)(x[1:2])[0])
    m = nn.InstanceNorm1d(4, affine=True, track_running_stats=True, momentum=1.0)
    m(x)
    assert torch.allclose(m.running_mean, x.mean((0, 2)), atol=1e-5)
    with pytest.raises(ValueError, match=r"num_features \(4\)"):
        m(torch.ones(2, 3, 5))
    with pytest.warns(UserWarning, match="num_features"):
        nn.InstanceNorm1d(4)(torch.ones(2, 3, 5))
    with pytest.raises(ValueError, match="3D or 4D"):
        nn.InstanceNorm2d(4)(torch.ones(2, 3))


def test_old_instance_norm_checkpoints_are_refused_with_a_remedy():
    m = nn.InstanceNorm1d(2)
    with pytest.raises(RuntimeError, match="track_running_stats=True"):
        m.load_state_dict({"running_mean": torch.zeros(2), "running_var": torch.ones(2)})


def test_response_norms():
    x = torch.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    y = nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(x)
    assert values(y) == pytest.approx([1 / 6, 2 / 15, 3 / 14], abs=1e-5)
    # Once out of the window, the first channel still counts: 1 + 4 + 9.
    y = nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x)
    assert values(y) == pytest.approx([1 / 6, 2 / 15, 3 / 15], abs=1e-5)


def test_dropouts_of_channels():
    torch.manual_seed(0)
    for make, n in ((nn.Dropout1d, 1), (nn.Dropout2d, 2), (nn.Dropout3d, 3)):
        y = make(0.5)(torch.ones(8, 16, *(3,) * n)).reshape(128, -1)
        assert set(values(y)) == {0.0, 2.0}
        assert all(len(set(row)) == 1 for row in y.tolist())
        x = torch.ones(2, 3, *(3,) * n)
        assert make().eval()(x) is x or torch.equal(make().eval()(x), x)
    y = nn.AlphaDropout(0.3)(torch.randn(200, 200))
    assert abs(y.mean().item()) < 0.02
    assert abs(y.std().item() - 1) < 0.02
    y = nn.FeatureAlphaDropout(0.5)(torch.zeros(4, 50, 9)).reshape(200, 9)
    assert all(len(set(row)) == 1 for row in y.tolist())
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.AlphaDropout(1.5)


def test_bilinear_and_distances():
    m = nn.Bilinear(2, 3, 4).double()
    a, b = torch.randn(5, 2, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    w, c = m.weight.detach().numpy(), m.bias.detach().numpy()
    wanted = np.einsum("ni,oij,nj->no", a.numpy(), w, b.numpy()) + c
    assert np.allclose(m(a, b).detach().numpy(), wanted)
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        nn.Bilinear(0, 1, 1)
    x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    assert values(nn.CosineSimilarity()(x, y)) == [0.96]
    assert values(nn.PairwiseDistance(p=1, eps=0.0, keepdim=True)(x, y)) == [2]


def test_embedding_bag():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    ids, offsets = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 3])
    for mode, wanted in (("sum", [9, 12, 5, 6]), ("mean", [3, 4, 5, 6]), ("max", [5, 6, 5, 6])):
        m = nn.EmbeddingBag.from_pretrained(table, mode=mode)
        assert values(m(ids, offsets)) == wanted
        assert not m.weight.requires_grad
    m = nn.EmbeddingBag(4, 2, padding_idx=-1)
    assert m.padding_idx == 3
    assert values(m.weight[3]) == [0, 0]
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.EmbeddingBag(3, 4, padding_idx=3)


def test_rearranging():
    x = torch.arange(16.0).reshape(1, 4, 2, 2)
    y = nn.PixelShuffle(2)(x)
    assert y[0, 0, 0].tolist() == [0, 4, 1, 5]
    assert torch.equal(nn.PixelUnshuffle(2)(y), x)
    assert nn.ChannelShuffle(2)(x)[0, :, 0, 0].tolist() == [0, 8, 4, 12]
    patches = nn.Unfold(2, stride=2)(x)
    assert torch.equal(nn.Fold((2, 2), 2, stride=2)(patches), x)


def test_upsampling():
    x = torch.tensor([[[[0.0, 2.0]]]])
    assert values(nn.UpsamplingNearest2d(scale_factor=2)(x)) == [0, 0, 2, 2] * 2
    assert values(nn.UpsamplingBilinear2d(size=(1, 3))(x)) == [0, 1, 2]
    assert nn.Upsample(scale_factor=(1, 2), mode="bilinear")(x).shape == (1, 1, 1, 4)
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"


def test_paths_of_pytorch():
    assert nn.modules.conv.Conv3d is nn.Conv3d
    assert nn.modules.Bilinear is nn.Bilinear
    assert issubclass(nn.ConvTranspose2d, nn.modules.conv._ConvNd)
    assert isinstance(nn.BatchNorm1d(2), nn.modules.batchnorm._NormBase)
    assert nn.modules.utils._pair(3) == (3, 3)
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        nn.modules.Missing  # noqa: B018


def test_container_and_factory_kwargs():
    with pytest.warns(FutureWarning, match="deprecated"):
        m = nn.Container(a=nn.ReLU())
    assert isinstance(m.a, nn.ReLU)
    assert nn.factory_kwargs({"dtype": torch.float64}) == {"dtype": torch.float64}
    with pytest.raises(TypeError, match="unexpected"):
        nn.factory_kwargs({"size": 1})
    with pytest.raises(TypeError, match="twice"):
        nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": "cpu"}})


def test_errors_name_the_module():
    with pytest.raises(RuntimeError) as caught:
        nn.Sequential(nn.ReLU(), nn.Conv3d(2, 3, 1))(torch.ones(1, 5, 2, 2, 2))
    assert any("module 1 (Conv3d(2, 3" in note for note in caught.value.__notes__)


def test_hook_handles_are_copied_with_their_module():
    m = nn.Linear(2, 2)
    m.handle = m.register_forward_hook(lambda *_: None)
    other = copy.deepcopy(m)
    other.handle.remove()
    assert len(m._forward_hooks) == 1
    assert len(other._forward_hooks) == 0
    kept = nn.Linear(2, 2)
    kept.handle = kept.register_forward_hook(print)
    back = pickle.loads(pickle.dumps(kept))
    again = back.register_forward_hook(print)
    assert len(back._forward_hooks) == 2
    again.remove()
    back.handle.remove()
    assert not back._forward_hooks
