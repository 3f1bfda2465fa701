"""Makers of tensors against PyTorch: every option of every maker, one at a time and in pairs."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

MAKERS = {
    "empty": lambda t, **how: t.empty(2, 3, **how),
    "zeros": lambda t, **how: t.zeros(2, 3, **how),
    "zeros of a size": lambda t, **how: t.zeros((2, 3), **how),
    "ones": lambda t, **how: t.ones(2, 3, **how),
    "full": lambda t, **how: t.full((2, 3), 2.0, **how),
    "full of an integer": lambda t, **how: t.full((2, 3), 2, **how),
    "rand": lambda t, **how: t.rand(2, 3, **how),
    "randn": lambda t, **how: t.randn(2, 3, **how),
    "rand of a generator": lambda t, **how: t.rand(2, 3, generator=t.Generator(), **how),
    "randint": lambda t, **how: t.randint(3, (2, 3), **how),
    "randint from": lambda t, **how: t.randint(1, 3, (2, 3), **how),
    "randperm": lambda t, **how: t.randperm(4, **how),
    "arange": lambda t, **how: t.arange(4, **how),
    "arange of floats": lambda t, **how: t.arange(0.0, 4, 2, **how),
    "linspace": lambda t, **how: t.linspace(0, 1, 3, **how),
    "logspace": lambda t, **how: t.logspace(0, 1, 3, **how),
    "eye": lambda t, **how: t.eye(3, 2, **how),
    "normal": lambda t, **how: t.normal(0.0, 1.0, (2, 3), **how),
    "scalar_tensor": lambda t, **how: t.scalar_tensor(2.0, **how),
    "empty_strided": lambda t, **how: t.empty_strided((2, 3), (3, 1), **how),
    "empty_permuted": lambda t, **how: t.empty_permuted((2, 3), (1, 0), **how),
    "tril_indices": lambda t, **how: t.tril_indices(3, 3, **how),
    "triu_indices": lambda t, **how: t.triu_indices(3, 3, **how),
    "empty_like": lambda t, **how: t.empty_like(t.ones(2, 3), **how),
    "zeros_like": lambda t, **how: t.zeros_like(t.ones(2, 3), **how),
    "ones_like": lambda t, **how: t.ones_like(t.ones(2, 3), **how),
    "full_like": lambda t, **how: t.full_like(t.ones(2, 3), 2.0, **how),
    "rand_like": lambda t, **how: t.rand_like(t.ones(2, 3), **how),
    "randn_like": lambda t, **how: t.randn_like(t.ones(2, 3), **how),
    "randint_like": lambda t, **how: t.randint_like(t.ones(2, 3), 3, **how),
    "new_empty": lambda t, **how: t.ones(1).new_empty((2, 3), **how),
    "new_zeros": lambda t, **how: t.ones(1).new_zeros(2, 3, **how),
    "new_ones": lambda t, **how: t.ones(1).new_ones((2, 3), **how),
    "new_full": lambda t, **how: t.ones(1).new_full((2, 3), 2.0, **how),
    "new_empty_strided": lambda t, **how: t.ones(1).new_empty_strided((2, 3), (3, 1), **how),
    "hann_window": lambda t, **how: t.hann_window(4, **how),
    "hamming_window": lambda t, **how: t.hamming_window(4, True, 0.5, **how),
    "bartlett_window": lambda t, **how: t.bartlett_window(4, **how),
    "blackman_window": lambda t, **how: t.blackman_window(4, False, **how),
    "kaiser_window": lambda t, **how: t.kaiser_window(4, **how),
    "windows.hann": lambda t, **how: t.signal.windows.hann(4, **how),
    "windows.kaiser": lambda t, **how: t.signal.windows.kaiser(4, **how),
    "fftfreq": lambda t, **how: t.fft.fftfreq(4, **how),
    "rfftfreq": lambda t, **how: t.fft.rfftfreq(4, **how),
    "sparse_csr_tensor": lambda t, **how: t.sparse_csr_tensor([0, 1], [0], [1.0], (1, 3), **how),
}
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
DTYPES = ("int64", "bool", "uint8", "float16", "bfloat16", "float64", "complex64")


def named(option: str, constant: str) -> Any:
    return lambda t: {option: getattr(t, constant)}


OPTIONS: dict[str, Any] = {
    **{f"layout {n}": named("layout", n) for n in LAYOUTS},
    "layout of int": lambda t: {"layout": 1},
    "layout of str": lambda t: {"layout": "strided"},
    "pinned": lambda t: {"pin_memory": True},
    "not pinned": lambda t: {"pin_memory": False},
    "pinned of int": lambda t: {"pin_memory": 1},
    "gradient": lambda t: {"requires_grad": True},
    "gradient of int": lambda t: {"requires_grad": 1},
    "gradient of integers": lambda t: {"requires_grad": True, "dtype": t.int64},
    "gradient of complex": lambda t: {"requires_grad": True, "dtype": t.complex64},
    "meta": lambda t: {"device": "meta"},
    "cpu": lambda t: {"device": t.device("cpu")},
    "cpu with a number": lambda t: {"device": "cpu:0"},
    "no device": lambda t: {"device": "nope"},
    "device of float": lambda t: {"device": 1.5},
    "meta with gradient": lambda t: {"device": "meta", "requires_grad": True},
    "meta integers": lambda t: {"device": "meta", "dtype": t.int64},
    "COO with gradient": lambda t: {"layout": t.sparse_coo, "requires_grad": True},
    "COO integers": lambda t: {"layout": t.sparse_coo, "dtype": t.int64},
    "COO pinned": lambda t: {"layout": t.sparse_coo, "pin_memory": True},
    "CSR integers": lambda t: {"layout": t.sparse_csr, "dtype": t.int64},
    **{n: named("dtype", n) for n in DTYPES},
    "Python's float": lambda t: {"dtype": float},
    "Python's int": lambda t: {"dtype": int},
    "Python's bool": lambda t: {"dtype": bool},
    "dtype of int": lambda t: {"dtype": 1},
    "dtype of str": lambda t: {"dtype": "float32"},
    "contiguous": lambda t: {"memory_format": t.contiguous_format},
    "preserved": lambda t: {"memory_format": t.preserve_format},
    "channels last": lambda t: {"memory_format": t.channels_last},
    "format of int": lambda t: {"memory_format": 1},
    "COO with a format": lambda t: {"layout": t.sparse_coo, "memory_format": t.preserve_format},
    "out": lambda t: {"out": t.empty(0)},
    "out of integers": lambda t: {"out": t.empty(0, dtype=t.int64)},
    "out of another dtype": lambda t: {"out": t.empty(0), "dtype": t.float64},
    "out of another layout": lambda t: {"out": t.empty(0), "layout": t.sparse_coo},
    "out of another device": lambda t: {"out": t.empty(0), "device": "meta"},
    "out with gradient": lambda t: {"out": t.empty(0), "requires_grad": True},
    "out of a leaf": lambda t: {"out": t.empty(0, requires_grad=True)},
    "out of int": lambda t: {"out": 1},
    "an unknown name": lambda t: {"junk": 1},
}
# Windows of PyTorch's Python are computed from a leaf, so that they are none
NO_LEAF = {
    (f"windows.{w}", o) for w in ("hann", "kaiser") for o in ("gradient", "meta with gradient")
}
# torchlab's sparse tensors are on the CPU only
META = {("sparse_csr_tensor", o) for o in ("meta", "meta with gradient", "meta integers")}
# PyTorch checks the dtype of all windows on meta but of this one
META.add(("hann_window", "meta integers"))


def outcome(t: Any, maker: str, option: str) -> str:
    how = OPTIONS[option](t)
    try:
        r = MAKERS[maker](t, **how)
    except Exception as error:
        return type(error).__name__
    stride = tuple(r.stride()) if r.layout is t.strided else ""
    facts: list[Any] = [r.layout, r.dtype, r.device, r.requires_grad, tuple(r.shape), stride]
    if (maker, option) not in NO_LEAF:
        facts.append(r.is_leaf)
    if "out" in how:
        facts.append(r is how["out"])
    return " ".join(str(x) for x in facts).replace("torchlab.", "torch.")


@pytest.mark.parametrize("maker", MAKERS)
def test_options(maker: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {o: outcome(torchlab, maker, o) for o in OPTIONS if (maker, o) not in META}
        wanted = {o: outcome(torch, maker, o) for o in OPTIONS if (maker, o) not in META}
    assert found == wanted


def test_out_draws_in_its_own_type() -> None:
    drawn = []
    for t in (torch, torchlab):
        t.manual_seed(3)
        wide = t.empty(0, dtype=t.float64)
        drawn.append([t.rand(5, out=wide).tolist(), t.randn(5, out=wide).tolist()])
    assert drawn[0] == drawn[1]


def test_complex_numbers_are_drawn_as_pytorch_does() -> None:
    for name in ("rand", "randn"):
        torch.manual_seed(5)
        torchlab.manual_seed(5)
        a = getattr(torch, name)(4, dtype=torch.complex64)
        b = getattr(torchlab, name)(4, dtype=torchlab.complex64)
        torch.testing.assert_close(torch.tensor(b.tolist()), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 5, 8, 15, 16, 17, 37, 1003])
def test_ranges_to_the_bit(dtype: str, n: int) -> None:
    for start, step in ((0.1, 0.013), (-2.7, 0.1), (0.0, 2.5), (5, -0.3), (1e5, 1e-3), (0, 3)):
        end = start + step * (n - 0.5)
        a = torch.arange(start, end, step, dtype=getattr(torch, dtype)).double()
        b = torchlab.arange(start, end, step, dtype=getattr(torchlab, dtype)).double()
        assert a.tolist() == b.tolist(), (start, step)
