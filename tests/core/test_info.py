"""finfo and iinfo: limits against NumPy's, and how they print."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as torch


@pytest.mark.parametrize("name", ("float16", "float32", "float64"))
def test_floats_have_numpys_limits(name: str) -> None:
    ours, theirs = torch.finfo(getattr(torch, name)), np.finfo(name)
    assert ours.bits == theirs.bits
    assert (ours.eps, ours.max, ours.min) == (theirs.eps, theirs.max, theirs.min)
    assert ours.tiny == ours.smallest_normal == theirs.smallest_normal
    assert ours.resolution == pytest.approx(float(theirs.resolution), rel=1e-3)


def test_bfloat16_is_float32_with_eight_bits_of_precision() -> None:
    info = torch.finfo(torch.bfloat16)
    assert info.eps == 2.0**-7
    assert info.max == (2 - 2.0**-7) * 2.0**127
    assert info.smallest_normal == 2.0**-126
    assert repr(info) == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125,"
        " smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)"
    )


def test_float8() -> None:
    assert torch.finfo(torch.float8_e4m3fn).max == 448.0
    assert torch.finfo(torch.float8_e5m2).max == 57344.0


@pytest.mark.parametrize("name", ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"))
def test_integers_have_numpys_limits(name: str) -> None:
    ours, theirs = torch.iinfo(getattr(torch, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (
        theirs.bits, theirs.min, theirs.max, name,
    )  # fmt: skip


def test_the_default_is_the_default_dtype_and_complex_types_tell_of_their_parts() -> None:
    assert torch.finfo() == torch.finfo(torch.float32) == torch.finfo(torch.complex64)
    assert torch.finfo() != torch.finfo(torch.float64)
    assert math.isclose(torch.finfo(torch.complex128).eps, 2.0**-52)


def test_the_wrong_kind_of_type_is_refused_with_the_other_function_named() -> None:
    with pytest.raises(TypeError, match="iinfo"):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError, match="finfo"):
        torch.iinfo(torch.float32)
    with pytest.raises(TypeError, match="bool"):
        torch.iinfo(torch.bool)
    with pytest.raises(TypeError, match="must be torch.dtype, not int"):
        torch.finfo(3)
    with pytest.raises(AttributeError):
        torch.finfo().eps = 1
