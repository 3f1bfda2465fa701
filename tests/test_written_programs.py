"""What programs as users write them met: small faults of many places, each with its program's
line."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import torchlab as torch
import torchlab._dynamo as dynamo
from torchlab import nn
from torchlab.nn import functional as F
from torchlab.utils import data


def test_a_number_on_the_left_in_inference_mode() -> None:
    with torch.inference_mode():
        x = torch.full((2,), 2.0)
        assert (1 - x).tolist() == [-1, -1] and (1 / x).tolist() == [0.5, 0.5]
        assert torch.sub(x, 1).tolist() == [1, 1]


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_relu_in_place_behind_max_pooling(ceil_mode: bool) -> None:
    x = torch.randn(2, 3, 7, 7, requires_grad=True)
    y = F.relu(F.max_pool2d(x, 2, ceil_mode=ceil_mode))
    expected = torch.autograd.grad(y.sum(), x)[0]
    again = F.relu(F.max_pool2d(x, 2, ceil_mode=ceil_mode), inplace=True)
    assert torch.equal(torch.autograd.grad(again.sum(), x)[0], expected)
    row = torch.randn(2, 3, 9, requires_grad=True)
    F.max_pool1d(row, 3).relu_().sum().backward()
    assert row.grad is not None
    x = x.detach().requires_grad_()
    y = F.max_pool2d(x * 1, 2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z = x * 1
        p = F.max_pool2d(z, 2)
        z.add_(1)
        p.sum().backward()


def test_the_identity_grid_is_pytorchs_bit_for_bit() -> None:
    grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 28, 28], align_corners=False)
    line = torch.linspace(-1, 1, 28) * 27 / 28
    assert torch.equal(grid[0, 0, :, 0], line) and torch.equal(grid[0, :, 0, 1], line)


def test_channels_last_goes_on() -> None:
    x = torch.randn(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    assert nn.GroupNorm(2, 4)(x).stride() == (144, 1, 24, 4)
    assert F.pixel_shuffle(x, 2).stride() == (144, 1, 12, 1)
    assert F.adaptive_avg_pool2d(x, 2).stride() == (16, 1, 8, 4)
    weight = torch.randn(2, 4, 1, 1).to(memory_format=torch.channels_last)
    assert weight.stride() == (4, 1, 4, 4)
    conv = nn.Conv2d(4, 3, 3).to(memory_format=torch.channels_last)
    assert conv(x.contiguous()).stride() == (48, 1, 12, 3)


def test_warnings_name_the_users_line() -> None:
    here = inspect.getsourcefile(test_warnings_name_the_users_line)
    calls = (
        lambda: F.mse_loss(torch.ones(2, 3), torch.ones(2, 1)),
        lambda: nn.MSELoss()(torch.ones(2, 3), torch.ones(2, 1)),
        lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)),
        lambda: torch.cov(torch.ones(1, 1)),
        lambda: torch.var(torch.ones(1)),
    )
    for call in calls:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        assert told and told[0].filename == here


def test_the_former_order_of_numbers() -> None:
    z = torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert z.clone().add_(2, z).tolist() == [[3, 3], [3, 3]]
        assert torch.add(z, 2, z).tolist() == [[3, 3], [3, 3]]
        assert z.addcdiv(2, z, z).tolist() == [[3, 3], [3, 3]]
        assert torch.addmm(2, z, 3, z, z).tolist() == [[8, 8], [8, 8]]
        assert z.addmm(2, z, z).tolist() == [[4, 4], [4, 4]]
        for bad in (lambda: z.add_(z, 2), lambda: z.add(2, z, alpha=3), lambda: z.add(1, 2, 3)):
            with pytest.raises(TypeError):
                bad()
    assert str(inspect.signature(torch.Tensor.add_)) == "(self, other, *, alpha=1)"


def test_foreach() -> None:
    a = [torch.ones(2), torch.full((3,), 2.0)]
    assert torch._foreach_mul_(a, 3.0) is a and a[1].tolist() == [6, 6, 6]
    assert [t.tolist() for t in torch._foreach_add(a, a, alpha=2)] == [[9, 9], [18, 18, 18]]
    assert [t.item() for t in torch._foreach_norm(a, ord=1)] == [6, 18]
    torch._foreach_lerp_(a, [torch.zeros(2), torch.zeros(3)], 0.5)
    torch._foreach_addcmul_(a, a, a, [1.0, 0.0])
    assert [t.tolist() for t in a] == [[3.75, 3.75], [3, 3, 3]]
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(a, a[:1])
    with pytest.raises(RuntimeError, match="at least one"):
        torch._foreach_zero_([])
    p = [torch.ones(2, requires_grad=True)]
    torch._foreach_mul(p, 3.0)[0].sum().backward()
    assert p[0].grad.tolist() == [3, 3]


def test_parameter_dict_sorts_a_plain_dict() -> None:
    one = torch.ones(1)
    assert list(nn.ParameterDict({"src": one, "dst": one})) == ["dst", "src"]
    in_order = nn.ParameterDict(OrderedDict([("b", one), ("a", one)]))
    assert list(in_order) == ["b", "a"] == list(in_order.copy())


def test_numpy_where_no_gradient_is_recorded() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert isinstance(x.numpy(), np.ndarray)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_a_mask_and_causal_at_once() -> None:
    q, k, v = (torch.randn(1, 1, 3, 4) for _ in range(3))
    mask = torch.tensor([[True, True, True], [False, True, True], [True, True, True]])
    both = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask & mask.new_ones(3, 3).tril())
    assert torch.allclose(both, expected)


def test_names_as_they_are_printed() -> None:
    x = torch.ones(2)
    shown = [str(type(v)) for v in (x, x.shape, x.dtype, x.device, torch.Generator())]
    names = ("Tensor", "Size", "dtype", "device", "Generator")
    assert shown == [f"<class 'torchlab.{n}'>" for n in names]
    keys = nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert str(keys).startswith("_IncompatibleKeys(missing_keys=['weight', 'bias']")
    assert torch.linalg.LinAlgError.__name__ == "_LinAlgError"


def test_impl_of_a_library_as_a_decorator() -> None:
    lib = torch.library.Library("written_programs", "DEF")
    lib.define("add1(Tensor x, int n=1) -> Tensor")

    @torch.library.impl(lib, "add1", "CPU")
    def add1(x: torch.Tensor, n: int = 1) -> torch.Tensor:
        return x + n

    assert torch.ops.written_programs.add1(torch.zeros(1)).item() == 1


def test_dynamo_resets() -> None:
    dynamo.reset()
    assert "inductor" in dynamo.list_backends()


def test_numbers_that_a_node_saved() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert x.pow(2).grad_fn._saved_exponent == 2
    assert x.softmax(1).grad_fn._saved_dim == 1
    assert x.view(6).grad_fn._saved_self_sym_sizes == (2, 3)


def test_the_tangent_of_a_dual_is_the_one_given() -> None:
    tangent = torch.ones(2)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.zeros(2), tangent)
        assert torch.autograd.forward_ad.unpack_dual(dual).tangent is tangent


def test_lengths_of_loaders() -> None:
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

        def __len__(self) -> int:
            return 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(data.DataLoader(Stream()))) == 4  # list() asks for the length after iter()
    loader = data.DataLoader(Stream())
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)
    with pytest.raises(ValueError, match="num_samples=0"):
        data.RandomSampler([])


def test_transposing_other_than_matrices_is_told() -> None:
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="dimension other than 2"):
            assert torch.ones(1, 2, 3).T.shape == (3, 2, 1)
    finally:
        torch.set_warn_always(False)
