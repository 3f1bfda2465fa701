"""Colours of bytes by transforms v2, against torchvision's formulas in PyTorch's own operators: to
the last bit, since a sum that is rounded otherwise is another byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL.Image")

import torchlab as tl
from torchlab.vision.transforms.v2 import functional as F

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(3)
FACTORS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 1.7, 2.5)


def whole(x: Any) -> Any:
    return x.clamp(0, 255).to(torch.uint8)


def blended(x: Any, other: Any, factor: float) -> Any:
    return whole(x.mul(factor).add(other, alpha=1.0 - factor))


def bright(x: Any) -> Any:
    if x.shape[-3] == 1:
        return x.float()
    r, g, b = x.unbind(-3)
    return r.mul(0.2989).add(g, alpha=0.587).add(b, alpha=0.114).unsqueeze(-3).floor()


def sharper(x: Any, factor: float) -> Any:
    weight = torch.full((3, 3), 1 / 13)
    weight[1, 1] = 5 / 13
    n = x.shape[-3]
    out = x.float()
    smooth = torch.nn.functional.conv2d(out, weight.expand(n, 1, 3, 3), groups=n).round()
    inner = out[..., 1:-1, 1:-1]
    inner.add_(smooth - inner, alpha=1.0 - factor)
    return whole(out)


FORMULAS: dict[str, Callable[[Any, float], Any]] = {
    "brightness": lambda x, f: whole(x.mul(f)),
    "contrast": lambda x, f: blended(x, bright(x).mean((-3, -2, -1), keepdim=True), f),
    "saturation": lambda x, f: blended(x, bright(x), f) if x.shape[-3] == 3 else x,
    "sharpness": sharper,
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("shape", [(3, 64, 67), (2, 3, 33, 31), (1, 40, 41), (3, 224, 224)])
def test_bytes(name: str, shape: tuple[int, ...]) -> None:
    x = RNG.integers(0, 256, shape, dtype=np.uint8)
    for factor in FACTORS:
        found = getattr(F, f"adjust_{name}")(tl.from_numpy(x.copy()), factor)
        expected = FORMULAS[name](torch.from_numpy(x.copy()), factor)
        assert found.dtype is tl.uint8
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), str(factor))
