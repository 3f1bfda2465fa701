"""Interpolation of images of bytes: rounded, limited to 0 … 255, never lost.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.interpolate.html
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    ("mode", "antialias"),
    [
        ("bilinear", False),
        ("bilinear", True),
        ("bicubic", False),
        ("bicubic", True),
        ("lanczos", True),
    ],
)
def test_bytes_follow_the_floats_to_rounding(mode: str, antialias: bool) -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(80, 176, (1, 2, 9, 8), np.uint8))
    got = F.interpolate(image, size=(5, 11), mode=mode, antialias=antialias)
    wide = F.interpolate(image.double(), size=(5, 11), mode=mode, antialias=antialias)
    assert got.dtype is torch.uint8
    assert np.abs(got.numpy() - wide.clamp(0, 255).numpy()).max() <= 2  # rounded on both ways


def test_known_values() -> None:
    image = (torch.arange(16) * 15).to(torch.uint8).reshape(1, 1, 4, 4)
    got = F.interpolate(image, size=(3, 3), mode="bilinear")
    assert got.tolist() == [[[[12, 33, 53], [92, 113, 133], [172, 193, 213]]]]


def test_other_integers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.interpolate(torch.ones(1, 1, 4, 4, dtype=torch.int64), size=3, mode="bilinear")
