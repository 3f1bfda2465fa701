"""`float`, `int`, `bool` and `complex` where a dtype is asked for."""

from __future__ import annotations

import pytest

import torchlab


def test_they_stand_for_the_widest_dtype() -> None:
    x = torchlab.ones(2)
    results = [
        x.to(float),
        x.to(dtype=float),
        x.sum(dtype=float),
        x.cumsum(0, dtype=float),
        x.softmax(0, dtype=float),
        torchlab.mean(x, dtype=float),
        torchlab.linalg.norm(x, dtype=float),
        torchlab.nn.functional.log_softmax(x, 0, dtype=float),
        torchlab.tensor([1], dtype=float),
        torchlab.as_tensor([1], dtype=float),
        torchlab.asarray([1], dtype=float),
        x.new_tensor([1], dtype=float),
        torchlab.nn.Linear(2, 2, dtype=float).weight,
    ]
    assert {r.dtype for r in results} == {torchlab.float64}
    assert x.to(bool).dtype is torchlab.bool
    assert x.to(complex).dtype is torchlab.complex128
    assert x.view(torchlab.float32).view(int).dtype is torchlab.int64


def test_types_alone() -> None:
    assert torchlab.promote_types(float, torchlab.float32) is torchlab.float64
    assert not torchlab.can_cast(float, int)
    assert torchlab.finfo(float).bits == 64
    assert torchlab.iinfo(int).bits == 64


def test_others_do_not() -> None:
    x = torchlab.ones(2)
    for call in (
        lambda: x.sum(dtype=str),
        lambda: x.to(list),
        lambda: torchlab.zeros(2, dtype=object),
        lambda: x.cumsum(0, dtype=str),
    ):
        with pytest.raises(TypeError):
            call()
