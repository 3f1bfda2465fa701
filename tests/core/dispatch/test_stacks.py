"""Stacks of small tensors, before and after the compiled copy is made."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import torchlab
from torchlab._core.codegen import stacking, toolchain
from torchlab._core.dispatch.stacks import STACKS, Stacks

needs_compiler = pytest.mark.skipif(
    toolchain.find_compiler() is None, reason="there is no compiler"
)


def fills():
    yield "numpy", Stacks().fill
    compiled = stacking.stack_rows()
    if compiled is not None:
        yield "compiled", compiled


@pytest.mark.parametrize("shape", [(), (1,), (10,), (3, 1), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "c16", "?"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_rows_are_the_arrays(shape, dtype, n):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 2, shape).astype(dtype) for _ in range(n)]
    for name, fill in fills():
        out = np.empty((n, *shape), dtype)
        assert fill(out, arrays) is out, name
        assert all(np.array_equal(row, a) for row, a in zip(out, arrays, strict=True)), name


def test_another_shape_is_refused():
    arrays = [np.zeros(3), np.zeros(3), np.zeros((1, 3)), np.zeros(2)]
    for other in (arrays[2], arrays[3]):
        for name, fill in fills():
            given = [arrays[0], arrays[1], other]
            try:
                r = fill(np.empty((3, 3)), given)
            except ValueError:
                continue
            assert type(r) is not np.ndarray, name


@needs_compiler
def test_references_are_counted_right():
    fill = stacking.stack_rows()
    out, good, bad = np.empty((2, 3)), [np.zeros(3)] * 2, [np.zeros(3), np.zeros(2)]
    before = [sys.getrefcount(x) for x in (out, good, bad, good[0])]
    for _ in range(100):
        fill(out, good)
        fill(out, bad)
    assert [sys.getrefcount(x) for x in (out, good, bad, good[0])] == before


@needs_compiler
def test_the_copy_is_compiled_when_stack_is_called_often(monkeypatch):
    monkeypatch.setattr(STACKS, "fill", STACKS._counted)
    monkeypatch.setattr(STACKS, "_calls", 0)
    a = torchlab.arange(4.0)
    for i in range(150):
        b = a + i
        assert torchlab.stack([a, b]).tolist() == [a.tolist(), b.tolist()]
        with pytest.raises(RuntimeError, match=r"equal size, but got \[4\] at entry 0"):
            torchlab.stack([a, b[:2].clone()])
    assert STACKS.fill.__name__ == "stack_rows"


def test_what_is_no_list_of_plain_tensors_of_one_kind():
    a, p = torchlab.ones(2), torchlab.nn.Parameter(torchlab.zeros(2))
    assert torchlab.stack((a, p)).grad_fn is not None
    assert torchlab.stack([a, torchlab.ones(2).double()]).dtype is torchlab.float64
    assert torchlab.stack([a[:1], a[1:]]).tolist() == [[1.0], [1.0]]
    assert torchlab.stack([torchlab.ones(3, 2).t()] * 2).shape == (2, 2, 3)
    assert torchlab.stack([torchlab.ones(0, 3)] * 2).shape == (2, 0, 3)
    with pytest.raises(RuntimeError, match="non-empty TensorList"):
        torchlab.stack([])
    with pytest.raises(TypeError):
        torchlab.stack(torchlab.ones(2, 2))
