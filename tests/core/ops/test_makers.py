"""What makers of tensors share: their options, and how a maker is declared."""

from __future__ import annotations

import inspect
import re

import pytest

import torchlab
from torchlab._core.dispatch import registry
from torchlab._core.ops._makers import Maker

MAKERS = {n: f for n, f in registry.FACES.items() if isinstance(f, Maker)}


def test_every_maker_takes_the_options() -> None:
    for name, maker in MAKERS.items():
        names = list(inspect.signature(maker.body).parameters)
        assert set(maker.options) <= set(names), name
        assert {"dtype", "device", "requires_grad"} <= set(names), name
        assert "how" not in names


def test_the_function_with_options_is_written_when_it_is_needed() -> None:
    maker = MAKERS["hamming_window"]
    assert torchlab.hamming_window(3, dtype=torchlab.float64).dtype is torchlab.float64
    assert maker.body is maker.body
    assert maker.body.__doc__ == maker.written.__doc__


@pytest.mark.parametrize("layout", [torchlab.sparse_coo, torchlab.sparse_csr])
def test_a_layout_that_a_maker_cannot_fill(layout: object) -> None:
    with pytest.raises(NotImplementedError, match="uniform_"):
        torchlab.rand(2, 3, layout=layout)
    with pytest.raises(NotImplementedError, match="empty_strided"):
        torchlab.rand_like(torchlab.ones(2), layout=layout)


def test_layouts_without_elements() -> None:
    for make in (torchlab.zeros, torchlab.empty):
        t = make(2, 3, layout=torchlab.sparse_coo, dtype=torchlab.int32)
        assert (t.layout, t.dtype, t._nnz()) == (torchlab.sparse_coo, torchlab.int32, 0)
    assert torchlab.ones(2, 3, layout=torchlab.sparse_csr).values().numel() == 0
    with pytest.raises(RuntimeError, match="not implemented for sparse"):
        torchlab.ones(2, 3, layout=torchlab.sparse_coo)


def test_out_decides_the_type() -> None:
    out = torchlab.empty(0, dtype=torchlab.float64)
    assert torchlab.arange(3, out=out) is out
    assert out.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="arange.*Float does not match.*Double"):
        torchlab.arange(3, out=out, dtype=torchlab.float32)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        torchlab.ones(2, out=torchlab.empty(2, requires_grad=True))
    assert out.tolist() == [0.0, 1.0, 2.0]


def test_pythons_types() -> None:
    wanted = {
        float: torchlab.float64,
        int: torchlab.int64,
        bool: torchlab.bool,
        complex: torchlab.complex128,
    }
    for python, dtype in wanted.items():
        assert torchlab.zeros(2, dtype=python).dtype is dtype
        assert torchlab.tensor([1], dtype=python).dtype is dtype
    with pytest.raises(TypeError, match="zeros.*'dtype' must be torch.dtype, not type"):
        torchlab.zeros(2, dtype=str)


def test_wrong_options_name_themselves() -> None:
    with pytest.raises(TypeError, match="rand.*'pin_memory' must be bool, not int"):
        torchlab.rand(2, pin_memory=1)
    with pytest.raises(TypeError, match="eye.*'layout' must be torch.layout, not str"):
        torchlab.eye(2, layout="strided")
    with pytest.raises(RuntimeError, match="pin_memory=True requires"):
        torchlab.ones(2, pin_memory=True)
    assert torchlab.ones(2, device="meta", pin_memory=True).device.type == "meta"


def test_a_mode_is_told_all_sizes() -> None:
    class Seen(torchlab.overrides.TorchFunctionMode):
        calls: list[object] = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls.append(args)
            return func(*args, **(kwargs or {}))

    with Seen() as mode:
        made = torchlab.zeros(2, 3), torchlab.logspace(0, 1, 3)
    assert [t.shape for t in made] == [(2, 3), (3,)]
    assert mode.calls == [(2, 3), (0, 1, 3)]


def test_numbers_that_a_type_cannot_hold() -> None:
    with pytest.raises(RuntimeError, match="out of bounds for"):
        torchlab.randint(0, 300, (2,), dtype=torchlab.uint8)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torchlab.rand(2, dtype=torchlab.int64)


def test_more_memory_than_there_is() -> None:
    n = 1 << 50
    for make in (torchlab.empty, torchlab.zeros, torchlab.ones, torchlab.randn, torchlab.arange):
        with pytest.raises(RuntimeError, match="tried to allocate [0-9]+ bytes"):
            make(n)
    with pytest.raises(RuntimeError, match=f"tried to allocate {4 * n} bytes"):
        torchlab.empty_strided((n,), (1,))
    one = torchlab.ones(1)
    for call in (one.expand(n).contiguous, lambda: one.expand(n) + 1, lambda: one.repeat(n)):
        with pytest.raises(RuntimeError, match=f"tried to allocate {4 * n} bytes"):
            call()
    with pytest.raises(RuntimeError, match="tried to allocate"):
        torchlab.ones(3).resize_(n)


def test_sizes_beyond_64_bits() -> None:
    for make in (torchlab.empty, torchlab.zeros, torchlab.ones):
        for size in ((1 << 62,), (1 << 40, 1 << 40)):
            text = f"Storage size calculation overflowed with sizes={list(size)}"
            with pytest.raises(RuntimeError, match=re.escape(text)):
                make(size)
        with pytest.raises(TypeError, match="Overflow when unpacking long long"):
            make(1 << 63)
        with pytest.raises(RuntimeError, match="negative dimension -1"):
            make(-1)
