"""The sign of a zero against PyTorch: limits keep the zero they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchlab as tl

torch = pytest.importorskip("torch")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "clamp above": lambda m, x: x.clamp(max=0),
    "clamp below": lambda m, x: x.clamp(min=0),
    "clamp below -0.0": lambda m, x: x.clamp(min=-0.0),
    "clamp between": lambda m, x: x.clamp(0, 0),
    "clamp_": lambda m, x: x.clone().clamp_(max=0),
    "clamp of strides": lambda m, x: x[::2].clamp(max=0),
    "relu": lambda m, x: m.relu(x),
    "relu_": lambda m, x: x.clone().relu_(),
    "relu of strides": lambda m, x: x[::2].relu(),
    "hardtanh": lambda m, x: m.nn.functional.hardtanh(x, 0.0, 1.0),
    "relu6": lambda m, x: m.nn.functional.relu6(x),
    "elu": lambda m, x: m.nn.functional.elu(x),
    "celu": lambda m, x: m.nn.functional.celu(x),
    "selu": lambda m, x: m.nn.functional.selu(x),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x),
    "erfinv": lambda m, x: m.erfinv(x),
    "expm1": lambda m, x: m.expm1(x),
    "round": lambda m, x: m.round(x),
    "nan_to_num": lambda m, x: m.nan_to_num(x),
}  # fmt: skip


def _signs(lib: Any, call: Any, dtype: str) -> list[bool]:
    x = lib.tensor([-0.0] * 17 + [0.0] * 17 + [-1.0, 1.0], dtype=getattr(lib, dtype))
    return lib.signbit(call(lib, x)).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_signs(name: str, dtype: str) -> None:
    assert _signs(tl, CALLS[name], dtype) == _signs(torch, CALLS[name], dtype)


@pytest.mark.parametrize("name", ["clamp above", "clamp below", "clamp between", "relu", "elu"])
def test_signs_of_compiled_code(name: str) -> None:
    def compiled(lib: Any, x: Any) -> Any:
        return lib.compile(lambda x: CALLS[name](lib, x) * 1)(x)

    assert _signs(tl, compiled, "float32") == _signs(torch, CALLS[name], "float32")


# ---- complex sums: alpha is a complex number even if it is 1 -------------------------------------

PARTS = [0.0, -0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan")]
NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]
SUMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda m, x, y: x + y,
    "-": lambda m, x, y: x - y,
    "rsub": lambda m, x, y: m.rsub(x, y),
    "add_": lambda m, x, y: x.clone().add_(y),
    "sub_": lambda m, x, y: x.clone().sub_(y),
    "add out": lambda m, x, y: m.add(x, y, out=m.empty_like(x)),
    "sub out": lambda m, x, y: m.sub(x, y, out=m.empty_like(x)),
    "alpha 2": lambda m, x, y: m.add(x, y, alpha=2),
    "alpha -1": lambda m, x, y: m.sub(x, y, alpha=-1),
    "alpha 1j": lambda m, x, y: m.sub(x, y, alpha=1j),
    "strides": lambda m, x, y: m.stack([x, x], 1)[:, 0] + m.stack([y, y], 1)[:, 0],
    "real + complex": lambda m, x, y: x.real + y,
    "complex - real": lambda m, x, y: x - y.real,
    "number": lambda m, x, y: x + complex(0.0, -0.0),
    "number - tensor": lambda m, x, y: 1 - y,
    "0-d tensor": lambda m, x, y: x - y[8],
    "addcmul": lambda m, x, y: m.addcmul(x, y, x),
    "addcdiv": lambda m, x, y: m.addcdiv(x, y, y + 2),
    "index_add": lambda m, x, y: x.index_add(0, m.arange(len(x)), y),
}  # fmt: skip


def _parts(lib: Any, call: Any, size: int, dtype: str) -> list[str]:
    found = []
    pairs = [(x, y) for x in NUMBERS for y in NUMBERS]
    for i in range(0, len(pairs), size):
        a, b = zip(*pairs[i : i + size], strict=True)
        if len(a) > 8:
            x, y = (lib.tensor(list(v), dtype=getattr(lib, dtype)) for v in (a, b))
            found += [f"{v.real} {v.imag}" for v in call(lib, x, y).tolist()]
    return found


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [9, 40])
@pytest.mark.parametrize("name", SUMS)
def test_parts_of_complex_sums(name: str, size: int, dtype: str) -> None:
    assert _parts(tl, SUMS[name], size, dtype) == _parts(torch, SUMS[name], size, dtype)


@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 3), (3, 1), (2, 2), (3, 20), (20, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_signs_of_products_of_one_term(dtype: str, rows: int, columns: int) -> None:
    def signs(lib: Any, product: Any) -> list[Any]:
        kind = getattr(lib, dtype)
        a = lib.tensor(([0.0, -0.0, -2.0] * rows)[:rows], dtype=kind)[:, None]
        b = lib.tensor(([-1.0, -0.0, 0.0, 3.0] * columns)[:columns], dtype=kind)[None]
        return lib.signbit(product(lib, a, b)).tolist()

    for product in (
        lambda m, a, b: m.mm(a, b),
        lambda m, a, b: m.matmul(a[None, None], b),
        lambda m, a, b: m.bmm(a[None], b[None]),
        lambda m, a, b: m.outer(a[:, 0], b[0]),
        lambda m, a, b: m.nn.functional.linear(a, b.T.contiguous()),
        lambda m, a, b: m.addmm(b.expand(len(a), -1), a, b, beta=0),
        lambda m, a, b: m.mm(a, b, out=b.new_empty(len(a), b.shape[1])),
    ):
        assert signs(tl, product) == signs(torch, product)
