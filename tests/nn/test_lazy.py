"""Lazy modules: sizes from the first input, saved and loaded before and after."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn.parameter import is_lazy

pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")

LAYERS = {
    "Linear": (lambda: nn.LazyLinear(3), lambda: nn.Linear(4, 3), (5, 4)),
    "Conv1d": (lambda: nn.LazyConv1d(4, 3, groups=2), lambda: nn.Conv1d(2, 4, 3, groups=2), (2, 9)),
    "Conv2d": (lambda: nn.LazyConv2d(4, 3), lambda: nn.Conv2d(5, 4, 3), (2, 5, 6, 6)),
    "Conv3d": (lambda: nn.LazyConv3d(4, 2), lambda: nn.Conv3d(3, 4, 2), (3, 4, 4, 4)),
    "ConvTranspose1d": (
        lambda: nn.LazyConvTranspose1d(4, 3, stride=2, output_padding=1),
        lambda: nn.ConvTranspose1d(5, 4, 3, stride=2, output_padding=1),
        (2, 5, 6),
    ),
    "ConvTranspose2d": (
        lambda: nn.LazyConvTranspose2d(4, 3, bias=False),
        lambda: nn.ConvTranspose2d(5, 4, 3, bias=False),
        (2, 5, 6, 6),
    ),
    "ConvTranspose3d": (
        lambda: nn.LazyConvTranspose3d(4, 2, groups=2),
        lambda: nn.ConvTranspose3d(6, 4, 2, groups=2),
        (2, 6, 3, 3, 3),
    ),
    "BatchNorm1d": (nn.LazyBatchNorm1d, lambda: nn.BatchNorm1d(4), (5, 4)),
    "BatchNorm2d": (nn.LazyBatchNorm2d, lambda: nn.BatchNorm2d(4), (5, 4, 2, 2)),
    "BatchNorm3d": (
        lambda: nn.LazyBatchNorm3d(affine=False),
        lambda: nn.BatchNorm3d(4, affine=False),
        (5, 4, 2, 2, 2),
    ),
    "InstanceNorm1d": (
        nn.LazyInstanceNorm1d,
        lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
        (5, 4, 3),
    ),
    "InstanceNorm2d": (
        lambda: nn.LazyInstanceNorm2d(track_running_stats=False),
        lambda: nn.InstanceNorm2d(4, affine=True),
        (5, 4, 3, 3),
    ),
    "InstanceNorm3d": (
        lambda: nn.LazyInstanceNorm3d(bias=False),
        lambda: nn.InstanceNorm3d(4, affine=True, track_running_stats=True, bias=False),
        (5, 4, 3, 3, 3),
    ),
}


@pytest.fixture(params=LAYERS, name="layer")
def _layer(request):
    return LAYERS[request.param]


def test_becomes_the_ready_module(layer):
    lazy, ready, shape = layer
    x = torch.randn(*shape)
    m = lazy()
    assert m.has_uninitialized_params()
    torch.manual_seed(7)
    y = m(x)
    torch.manual_seed(7)
    wanted = ready()
    assert type(m) is type(wanted)
    assert repr(m) == repr(wanted)
    assert torch.equal(y, wanted(x))
    assert not m._forward_pre_hooks
    for a, b in zip(m.state_dict().items(), wanted.state_dict().items(), strict=True):
        assert a[0] == b[0]
        assert torch.equal(a[1], b[1])


def test_takes_shapes_from_a_state_dict(layer):
    lazy, ready, shape = layer
    m, other = lazy(), ready()
    assert str(m.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert not m.has_uninitialized_params()
    x = torch.randn(*shape)
    assert torch.equal(m(x), other(x))
    assert repr(m) == repr(other)
    fresh = lazy()
    fresh.load_state_dict(ready().state_dict(), assign=True)
    assert not fresh.has_uninitialized_params()


def test_copies_and_files_before_the_first_input(layer):
    lazy, _, shape = layer
    x = torch.randn(*shape)
    file = io.BytesIO()
    torch.save(lazy(), file)
    file.seek(0)
    first = lazy()
    for m in (
        copy.deepcopy(first),
        pickle.loads(pickle.dumps(first)),
        torch.load(file, weights_only=False),
    ):
        assert m.has_uninitialized_params()
        m(x)
        assert not m._forward_pre_hooks
    assert first.has_uninitialized_params()
    other = lazy()
    other.load_state_dict(first.state_dict())
    assert other.has_uninitialized_params()


def test_an_optimizer_holds_on_to_the_parameters():
    m = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(1))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    m(torch.ones(2, 4)).sum().backward()
    before = m[2].bias.item()
    optimizer.step()
    assert m[2].bias.item() == pytest.approx(before - 0.2)
    assert m[0].in_features == 4


def test_conversions_hold():
    m = nn.LazyLinear(3).to(torch.float64)
    assert m(torch.ones(2, 4, dtype=torch.float64)).dtype == torch.float64
    b = nn.LazyBatchNorm1d().double()
    b(torch.randn(3, 2, dtype=torch.float64))
    assert b.running_mean.dtype == torch.float64
    assert type(b.running_mean) is torch.Tensor


def test_uninitialized_tensors_refuse_to_compute():
    p = nn.UninitializedParameter(dtype=torch.float16)
    assert repr(p) == str(p) == "<UninitializedParameter>"
    assert is_lazy(p)
    assert isinstance(p, nn.Parameter)
    assert (p.dtype, p.requires_grad, p.is_leaf) == (torch.float16, True, True)
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        p.shape  # noqa: B018
    for use in (
        lambda: p + 1,
        lambda: torch.add(p, 1),
        lambda: p.numel(),
        lambda: p.clone(),
        lambda: p.zero_(),
        lambda: nn.functional.linear(torch.ones(2), p),
    ):
        with pytest.raises(ValueError, match="uninitialized parameter in"):
            use()
    p.materialize((2, 3))
    assert type(p) is nn.Parameter
    assert (p.shape, p.dtype) == ((2, 3), torch.float16)
    p.float().sum().backward()
    assert p.grad.shape == (2, 3)
    b = nn.UninitializedBuffer()
    assert isinstance(b, nn.Buffer)
    b.materialize((2,), dtype=torch.int64)
    assert type(b) is torch.Tensor
    assert b.dtype == torch.int64


def test_bad_first_inputs_change_nothing():
    for m, shape, error, text in (
        (nn.LazyConv2d(3, 2), (2, 3), RuntimeError, "Expected 3D .* or 4D"),
        (nn.LazyConv1d(4, 2, groups=2), (3, 5), ValueError, "divisible by groups"),
        (nn.LazyBatchNorm2d(), (2, 3), ValueError, "expected 4D input"),
    ):
        with pytest.raises(error, match=text):
            m(torch.ones(shape))
        assert m.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.Linear(4, 3).load_state_dict(nn.LazyLinear(3).state_dict())


def test_a_module_of_ones_own():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, input) -> None:
            self.weight.materialize(input.shape[-1:])
            nn.init.ones_(self.weight)

        def forward(self, input):
            return input * self.weight

    m = Scale()
    assert m(torch.ones(2, 3)).tolist() == [[1.0] * 3] * 2
    assert type(m) is Scale
    assert not m._forward_pre_hooks

    class Forgetful(Scale):
        def initialize_parameters(self, input) -> None:
            pass

    with pytest.raises(RuntimeError, match="not been fully initialized"):
        Forgetful()(torch.ones(2))


def test_warns():
    with pytest.warns(UserWarning, match="Lazy modules are a new feature"):
        nn.LazyLinear(2)
