"""make_tensor: ranges, layouts, refusals."""

from __future__ import annotations

import math

import pytest

import torchlab as tl
from torchlab.testing import make_tensor


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (tl.bool, 0, 1),
        (tl.uint8, 0, 9),
        (tl.int64, -9, 9),
        (tl.float16, -9, 9),
        (tl.float64, -9, 9),
    ],
)
def test_default_ranges(dtype, low, high):
    tl.manual_seed(0)
    x = make_tensor(1000, dtype=dtype, device="cpu")
    assert x.dtype is dtype and x.shape == (1000,)
    assert x.double().min().item() >= low and x.double().max().item() <= high
    assert x.double().std().item() > (high - low) / 5


def test_bounds():
    x = make_tensor((4, 50), dtype=tl.int8, device="cpu", low=-math.inf, high=math.inf)
    assert x.min().item() < -64 and x.max().item() > 64
    assert make_tensor(9, dtype=tl.int32, device="cpu", low=3, high=4).unique().tolist() == [3]
    z = make_tensor(20, dtype=tl.complex64, device="cpu", low=0, high=1)
    assert z.real.min().item() >= 0 and z.imag.min().item() >= 0 and z.is_complex()
    whole = make_tensor(100, dtype=tl.float32, device="cpu", low=-math.inf, high=math.inf)
    assert whole.isfinite().all() and whole.abs().max().item() > 1e37


def test_layouts():
    x = make_tensor(2, 3, dtype=tl.float32, device="cpu", noncontiguous=True, requires_grad=True)
    assert x.stride() == (6, 2) and x.is_leaf and x.requires_grad
    assert make_tensor((), dtype=tl.float32, device="cpu", noncontiguous=True).shape == ()
    y = make_tensor(2, 3, 4, 5, dtype=tl.float32, device="cpu", memory_format=tl.channels_last)
    assert y.stride() == (60, 1, 15, 3)


def test_without_zeros():
    ones = make_tensor(5, dtype=tl.int64, device="cpu", low=0, high=1, exclude_zero=True)
    assert ones.tolist() == [1] * 5
    assert make_tensor(5, dtype=tl.bool, device="cpu", exclude_zero=True).all()


def test_refusals():
    def make(dtype=tl.float32, **kwargs):
        return make_tensor(3, dtype=dtype, device="cpu", **kwargs)

    with pytest.raises(ValueError, match="not supported for boolean and integral dtypes"):
        make(tl.int32, requires_grad=True)
    with pytest.raises(ValueError, match="`low` must be less than `high`, but got 3 >= 1"):
        make(low=3, high=1)
    with pytest.raises(ValueError, match="cannot be NaN"):
        make(low=math.nan)
    with pytest.raises(ValueError, match=r"only supports \[0, 256\)"):
        make(tl.uint8, low=300, high=400)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make(noncontiguous=True, memory_format=tl.contiguous_format)
    with pytest.warns(FutureWarning, match="low==high"):
        assert make(low=2, high=2).tolist() == [2, 2, 2]
