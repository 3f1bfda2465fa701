"""Kernels over rows, against formulas in float64 and SciPy."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from scipy import special

import torchlab
from torchlab._core.codegen import fastcall, toolchain
from torchlab._core.codegen.rows import row_kernel
from torchlab._core.ops import _rows

needs_compiler = pytest.mark.skipif(
    toolchain.find_compiler() is None, reason="needs a C++ compiler"
)
SHAPES = [(1,), (5,), (4, 5), (3, 1), (2, 3, 17), (2, 1000), (2, 1024), (3, 1025), (1, 70001)]


def kernel_of(name, dtype="float32", **options):
    arrays, steps = _rows.STEPS[name]
    return row_kernel(steps, arrays=arrays, dtype=dtype, name=name, **options)


def gradient_of_softmax(g, y):
    return y * (g - (g * y).sum(-1, keepdims=True))


def gradient_of_log_softmax(g, y):
    return g - np.exp(y) * g.sum(-1, keepdims=True)


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "within"), [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name, dtype, within, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype) * 4
    expected = getattr(special, name)(x.astype(np.longdouble), axis=-1)
    kernel = kernel_of(name, dtype)
    for call in (kernel.call, kernel.short):
        out = np.full(shape, 7.0, dtype)
        assert call(out, x) is out
        np.testing.assert_allclose(out, expected.astype(dtype), rtol=within, atol=within / 10)


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "within"), [("float32", 2e-6), ("float64", 1e-14)])
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("softmax_backward", gradient_of_softmax),
        ("log_softmax_backward", gradient_of_log_softmax),
    ],
)
def test_gradients(name, formula, dtype, within, shape):
    rng = np.random.default_rng(1)
    g, x = rng.normal(size=shape).astype(dtype), rng.normal(size=shape)
    y = (special.softmax if name == "softmax_backward" else special.log_softmax)(x, axis=-1)
    y = y.astype(dtype)
    expected = formula(g.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    kernel = kernel_of(name, dtype)
    for call in (kernel.call, kernel.short):
        out = np.empty(shape, dtype)
        assert call(out, g, y) is out
        np.testing.assert_allclose(out, expected, rtol=within, atol=within * np.abs(g).max())


@needs_compiler
def test_rows_are_shared_out_among_threads():
    x = np.random.default_rng(2).normal(size=(333, 257)).astype("f")
    one, many = np.empty_like(x), np.empty_like(x)
    kernel_of("softmax", num_threads=1).call(one, x)
    kernel_of("softmax", num_threads=3).call(many, x)
    assert np.array_equal(one, many)


@needs_compiler
def test_the_short_call_counts_references_right():
    kernel = kernel_of("softmax")
    x, out = np.ones((2, 3), "f"), np.empty((2, 3), "f")
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(1000):
        kernel.short(out, x)
    kept = [kernel.short(out, x) for _ in range(10)]
    assert (sys.getrefcount(x), sys.getrefcount(out)) == (before[0], before[1] + 10)
    del kept
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before


@needs_compiler
def test_without_the_short_call(monkeypatch):
    monkeypatch.setattr(fastcall, "available", lambda: False)
    kernel = kernel_of("softmax")
    assert kernel.short is kernel.call
    assert kernel.short(np.empty((1, 2), "f"), np.zeros((1, 2), "f")).tolist() == [[0.5, 0.5]]


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("TORCHLAB_CXX", "none")
    assert kernel_of("softmax") is None


SPECIAL = [
    ([[np.nan, 1.0, 2.0]], [[np.nan] * 3]),
    ([[np.inf, 1.0, 2.0]], [[np.nan] * 3]),
    ([[-np.inf, -np.inf, -np.inf]], [[np.nan] * 3]),
    ([[-np.inf, 1.0, 1.0]], [[0.0, 0.5, 0.5]]),
    ([[3e38, 3e38, -3e38]], [[0.5, 0.5, 0.0]]),
]


@pytest.mark.parametrize(("row", "expected"), SPECIAL)
def test_special_numbers(row, expected):
    """PyTorch 2.13's answers."""
    np.testing.assert_array_equal(torchlab.softmax(torchlab.tensor(row), -1).numpy(), expected)


def test_layouts_give_the_same_numbers():
    """A kernel for rows in memory order, NumPy for all else."""
    x = torchlab.randn(6, 7, 8, generator=torchlab.Generator().manual_seed(3))
    for function in (torchlab.softmax, torchlab.log_softmax):
        for dim in (-1, 2):
            rows = function(x, dim)
            for other in (
                function(x.transpose(0, 1), dim).transpose(0, 1),
                function(x.transpose(-1, 0), 0).transpose(-1, 0),
                function(x.double(), dim).float(),
            ):
                torchlab.testing.assert_close(rows, other, rtol=2e-6, atol=1e-6)
