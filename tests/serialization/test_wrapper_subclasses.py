"""Files with tensors whose class keeps the data in its attributes."""

from __future__ import annotations

import io
import pickle

import pytest

import torchlab as torch


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, x, n=3):
        r = torch.Tensor._make_wrapper_subclass(
            cls, x.size(), strides=x.stride(), dtype=x.dtype, requires_grad=x.requires_grad
        )
        r.x, r.n = x, n
        return r

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        return func(*[a.x if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))


class Other(Wrapper):
    pass


def _saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "inner", [torch.ones(3), torch.ones(2, 3).t(), torch.ones(3, requires_grad=True)]
)
def test_round_trip(inner):
    w = Wrapper(inner, 5)
    back = torch.load(_saved({"w": w}), weights_only=False)["w"]
    assert type(back) is Wrapper and back.n == 5 and back.x.tolist() == inner.tolist()
    assert back.shape == w.shape and back.stride() == w.stride()
    assert back.requires_grad == w.requires_grad and back.dtype is w.dtype


def test_the_class_has_to_be_allowed():
    with pytest.raises(pickle.UnpicklingError):
        torch.load(_saved(Wrapper(torch.ones(3))))
    with torch.serialization.safe_globals([Wrapper]):
        assert torch.load(_saved(Wrapper(torch.ones(3)))).x.tolist() == [1, 1, 1]
    with torch.serialization.safe_globals([Other]), pytest.raises(pickle.UnpicklingError):
        torch.load(_saved(Wrapper(torch.ones(3))))


def test_constants_of_the_format():
    s = torch.serialization
    assert (s.DEFAULT_PROTOCOL, s.PROTOCOL_VERSION) == (2, 1001)
    assert s.MAGIC_NUMBER == 119547037146038801333356
    assert (s.SHORT_SIZE, s.INT_SIZE, s.LONG_SIZE) == (2, 4, 4)
