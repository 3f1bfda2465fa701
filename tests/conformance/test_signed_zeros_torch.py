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
