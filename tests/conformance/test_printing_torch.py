"""Printed tensors against PyTorch's: random values, shapes, dtypes and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from torchlab._core.printing import format_tensor, get_printoptions, printoptions, set_printoptions

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
SHAPES = (
    (), (1,), (5,), (40,), (1001,), (3, 4), (2, 0, 3), (0,), (0, 3), (1, 30), (2, 3, 4), (7, 200),
    (2, 3, 1, 2, 2), (30, 1, 40), (8, 8, 8, 8), (2000, 2), (6, 400), (1, 1, 1), (1, 0),
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"precision": 2}, {"precision": 0}, {"profile": "short"}, {"sci_mode": True},
    {"sci_mode": False}, {"linewidth": 40}, {"threshold": 10, "edgeitems": 1},
    {"threshold": 20, "edgeitems": 2, "precision": 7, "linewidth": 120},
    {"threshold": 0, "edgeitems": 0}, {"linewidth": 8},
)  # fmt: skip


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")
    torch.set_printoptions(profile="default")


def to_numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        bits = tensor.view(torch.int16 if name == "bfloat16" else torch.uint8)
        return bits.numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()


def ours(tensor: Any) -> str:
    grad_fn = tensor.grad_fn
    meta = tensor.device.type == "meta"
    return format_tensor(
        None if meta else to_numpy(tensor),
        shape=tensor.shape,
        dtype_name=str(tensor.dtype),
        device=str(tensor.device),
        requires_grad=tensor.requires_grad,
        grad_fn_name=None if grad_fn is None else grad_fn.name(),
        default_dtype=str(torch.get_default_dtype()),
        is_parameter=isinstance(tensor, torch.nn.Parameter),
    )


def random_tensor(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
    dtype = getattr(torch, name)
    if name == "bool":
        return torch.from_numpy(rng.integers(0, 2, shape).astype(bool))
    if name.startswith(("int", "uint")):
        bits = min(torch.iinfo(dtype).bits - 1, int(rng.integers(1, 63)))
        return torch.from_numpy(np.asarray(rng.integers(0, 2**bits, shape))).to(dtype)

    def floats() -> np.ndarray:
        x = np.asarray(rng.normal(size=shape)) * 10.0 ** rng.integers(-6, 10)
        kind = rng.integers(0, 5)
        if kind == 0:
            x = np.round(x)
        elif kind == 1:
            x = x * 10.0 ** rng.integers(-4, 4, shape)
        elif kind == 2:
            special = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf])
            x = np.where(rng.random(shape) < 0.3, special, x)
        elif kind == 3:
            x = np.round(np.asarray(rng.normal(size=shape)) * 3) / rng.choice([1, 2])
        return np.asarray(x)

    value = floats() + 1j * floats() if name.startswith("complex") else floats()
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.asarray(value)).to(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_random_tensors(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(name) * 1000 + sum(shape) * 7 + len(shape))
    for i in range(3 if np.prod(shape) > 100 else 12):
        tensor = random_tensor(rng, name, shape)
        if tensor.is_floating_point() and i % 3 == 1:
            tensor.requires_grad_()
        elif tensor.is_floating_point() and i % 3 == 2 and not name.startswith("float8"):
            tensor = tensor.requires_grad_() * 1
        options = OPTIONS[int(rng.integers(len(OPTIONS)))] if i else {}
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        with printoptions(**options):
            assert ours(tensor) == repr(tensor)


def test_views() -> None:
    base = torch.arange(3000.0).reshape(50, 60)
    for tensor in (base.t(), base[::2, 1::3], base[3].expand(40, 60), base.flip(0)):
        assert ours(tensor) == repr(tensor)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float64"))
def test_default_dtypes(dtype: str) -> None:
    try:
        torch.set_default_dtype(getattr(torch, dtype))
        for name in NAMES:
            for shape in ((2,), (0,)):
                tensor = torch.ones(shape).to(getattr(torch, name))
                assert ours(tensor) == repr(tensor)
    finally:
        torch.set_default_dtype(torch.float32)


def test_parameters_and_meta() -> None:
    parameter = torch.nn.Parameter(torch.randn(4, 300))
    assert ours(parameter) == repr(parameter)
    for tensor in (torch.empty(2, 3, device="meta"), torch.empty(0, device="meta"),
                   torch.empty((), device="meta", dtype=torch.int64)):  # fmt: skip
        assert ours(tensor) == repr(tensor)


def test_options_are_pytorchs() -> None:
    for options in (*OPTIONS, {"profile": "full"}, {"profile": "short", "precision": 5}):
        set_printoptions(**options)
        torch.set_printoptions(**options)
        theirs = torch._tensor_str.PRINT_OPTS
        assert get_printoptions() == {name: getattr(theirs, name) for name in get_printoptions()}
