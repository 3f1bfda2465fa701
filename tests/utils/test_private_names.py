"""Small private modules that libraries import from."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import _utils
from torchlab._subclasses.fake_tensor import FakeTensorMode, is_fake
from torchlab.utils import _pytree
from torchlab.utils._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
)
from torchlab.utils.data._utils import collate, worker


def test_decorating_context_managers():
    seen: list[str] = []

    class Noting(_DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *exc):
            seen.append(f"not {self.name}")

        def clone(self):
            return type(self)(self.name)

    @Noting("a")
    def f(x):
        return x + 1

    with Noting("b"):
        assert f(1) == 2 and f(2) == 3
    assert seen == ["b", "a", "not a", "a", "not a", "not b"]

    @Noting("g")
    def generator():
        yield 1
        yield 2

    assert list(generator()) == [1, 2] and seen.count("g") == 3

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self):
            seen.append("plain")

        def __exit__(self, *exc):
            pass

    @Plain
    def h():
        return 3

    assert h() == 3 and seen[-1] == "plain"


def test_flat_tensors_and_devices():
    tensors = [torch.ones(2, 3), torch.zeros(4)]
    flat = _utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1] * 6 + [0] * 4
    back = _utils._unflatten_dense_tensors(flat, tensors)
    assert [t.shape for t in back] == [(2, 3), (4,)] and back[0].data_ptr() == flat.data_ptr()
    assert _utils._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="corresponding module registered as 'torch.nope'"):
        _utils._get_device_module("nope")


def test_workers_and_collating():
    words = [388367306, 2732186161, 3264781304, 1215154576]
    assert worker._generate_state(12345, 3) == words and worker._worker_info is None
    assert collate.np_str_obj_array_pattern.search("<U3") is not None
    assert collate.np_str_obj_array_pattern.search("<f4") is None


def test_named_tuples_of_operators():
    made = torch.ones(2).max(0)
    assert _pytree.is_structseq_instance(made) and not _pytree.is_structseq_instance((1, 2))
    assert _pytree.is_structseq_class(type(made)) and not _pytree.is_structseq_class(tuple)


def test_fakes():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(2))
        assert is_fake(x) and not is_fake(3)
        torch.vmap(lambda y: [is_fake(y)] and y)(x)
    assert not is_fake(torch.ones(2))


def test_switches():
    assert torch.is_autocast_enabled("mps") is False
    assert torch.get_autocast_dtype("mps") is torch.float16
    assert torch.get_autocast_dtype("hpu") is torch.bfloat16
    with torch.backends.__allow_nonbracketed_mutation():
        torch.backends.cudnn.deterministic = torch.backends.cudnn.deterministic


def test_sizes_that_are_tensors():
    theta = torch.eye(2, 3)[None]
    size = [1, 1, torch.tensor(4), torch.tensor(5)]
    grid = torch.nn.functional.affine_grid(theta, size, align_corners=False)
    assert grid.shape == (1, 4, 5, 2)
