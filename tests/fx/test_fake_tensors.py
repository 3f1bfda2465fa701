"""Fake tensors: shape, type and device without data."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import fx, nn
from torchlab._subclasses import FakeTensor, FakeTensorMode
from torchlab._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)
from torchlab.fx.passes.fake_tensor_prop import FakeTensorProp


def test_a_fake_says_what_the_real_one_is():
    mode = FakeTensorMode()
    real = torch.ones(3, 4).t()
    fake = mode.from_tensor(real)
    assert isinstance(fake, FakeTensor) and mode.from_tensor(real) is fake
    assert (fake.shape, fake.stride(), fake.dtype, str(fake.device)) == (
        real.shape, real.stride(), real.dtype, "cpu",
    )  # fmt: skip
    assert repr(fake + 1) == "FakeTensor(..., size=(4, 3))"
    p = mode.from_tensor(nn.Parameter(torch.ones(2)))
    assert isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf


@pytest.mark.parametrize(
    "use", [lambda t: t.sum().item(), lambda t: bool(t.sum() > 0), lambda t: t.tolist(), float]
)
def test_values_are_refused(use):
    t = FakeTensorMode().from_tensor(torch.ones(1, 1))
    with pytest.raises(DataDependentOutputException, match=r"aten\._local_scalar_dense\.default"):
        use(t)


@pytest.mark.parametrize("use", [lambda t: t.nonzero(), lambda t: t[t > 0], torch.unique])
def test_shapes_that_data_decide_are_refused(use):
    with pytest.raises(DynamicOutputShapeException):
        use(FakeTensorMode().from_tensor(torch.ones(3)))


def test_in_the_mode_everything_is_fake():
    with FakeTensorMode() as mode:
        made = [torch.zeros(2, 3), torch.tensor([1.0]), nn.Linear(2, 3).weight, torch.arange(3)]
        far = torch.empty(2, device="cuda")
        made += [torch.hann_window(4), torch.tril_indices(3, 3), torch.logspace(0, 1, 3)]
        made += [torch.empty_permuted((2, 3), (1, 0))]
        assert all(isinstance(t, FakeTensor) and t.fake_mode is mode for t in made)
        assert str(far.device) == "cuda:0" and str((far * 2).device) == "cuda:0"
        assert torch.tensor(3.0).item() == 3.0  # what the program wrote is known
        with pytest.raises(RuntimeError, match="two different devices"):
            far + torch.zeros(2)


def test_real_tensors_need_leave():
    fake = FakeTensorMode().from_tensor(torch.ones(2))
    with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
        fake + torch.ones(2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(torch.ones(2) + 1, FakeTensor)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        fake + FakeTensorMode().from_tensor(torch.ones(2))
    with pytest.raises(UnsupportedFakeTensorException):
        FakeTensorMode().from_tensor(torch.eye(2).to_sparse())


def test_writes_views_and_gradients():
    mode = FakeTensorMode()
    x = mode.from_tensor(torch.ones(2, 3, requires_grad=True))
    y = (x * 2).relu()
    assert y.requires_grad and y.grad_fn is not None
    y.sum().backward()
    assert repr(x.grad) == "FakeTensor(..., size=(2, 3))"
    z = mode.from_tensor(torch.ones(2, 3))
    v = z[1:]
    assert v.add_(1) is v and v._base is z and z._version == 1
    assert z.t_() is z and z.shape == (3, 2)


def test_fake_tensor_prop_notes_values():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    FakeTensorProp(gm).propagate(torch.ones(2, 4))
    assert [n.meta["val"].shape for n in gm.graph.nodes if n.op != "output"] == [
        (2, 4), (2, 3), (2, 3),
    ]  # fmt: skip
