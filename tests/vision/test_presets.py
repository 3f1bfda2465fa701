"""What is done to images before a model: printed and computed as torchvision 0.28 does."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import torchlab as torch
from torchlab.vision.transforms import InterpolationMode, _presets
from torchlab.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")

PIXELS = (np.arange(20 * 30 * 3).reshape(20, 30, 3) * 7 % 251).astype(np.uint8)
HALF = (0.5, 0.5, 0.5)


def _kinds() -> tuple[Any, ...]:
    """A PIL image, its bytes and its floats as tensors."""
    tensor = torch.from_numpy(PIXELS).permute(2, 0, 1)
    return Image.fromarray(PIXELS), tensor, tensor.float() / 255


def _check(out: Any, shape: tuple[int, ...], values: list[float], total: float) -> None:
    assert tuple(out.shape) == shape and out.dtype == torch.float32
    assert out.flatten()[[0, 7, -1]].tolist() == pytest.approx(values, abs=1e-4)
    assert out.double().sum().item() == pytest.approx(total, abs=0.02)


# The shape; for each kind of image the first, eighth and last value and the sum.
IMAGES = [
    (
        _presets.ImageClassification(crop_size=8, resize_size=10), (3, 8, 8),
        ([-0.0116, 0.4508, 0.0256], 44.12), ([-0.0287, 0.4337, 0.0082], 41.79),
        ([-0.0287, 0.439, 0.0115], 41.91),
    ),
    (
        _presets.ImageClassification(
            crop_size=24, resize_size=16, interpolation=InterpolationMode.BICUBIC, mean=HALF,
            std=HALF,
        ),
        (3, 24, 24), ([-1.0, -1.0, -1.0], -601.81), ([-1.0, -1.0, -1.0], -601.81),
        ([-1.0, -1.0, -1.0], -601.83),
    ),
    (
        _presets.SemanticSegmentation(resize_size=10), (3, 10, 15),
        ([-0.902, -0.2342, -0.323], 85.95), ([-0.902, -0.2513, -0.323], 82.18),
        ([-0.9094, -0.2501, -0.3208], 82.18),
    ),
    (
        _presets.SemanticSegmentation(resize_size=None), (3, 20, 30),
        *[([-2.1179, 0.3994, -1.055], 315.83)] * 3,
    ),
    (_presets.ObjectDetection(), (3, 20, 30), *[([0.0, 0.5765, 0.1686], 879.17)] * 3),
]  # fmt: skip


@pytest.mark.parametrize("case", IMAGES, ids=lambda c: type(c[0]).__name__)
def test_images(case: Any) -> None:
    preset, shape, *expected = case
    for image, (values, total) in zip(_kinds(), expected, strict=True):
        _check(preset(image), shape, values, total)
    _, tensor, _ = _kinds()
    batch = preset(tensor[None].repeat(2, 1, 1, 1))
    assert torch.equal(batch[1], preset(tensor))


def test_frames() -> None:
    _, frame, _ = _kinds()
    frames = frame[None].repeat(4, 1, 1, 1)
    preset = _presets.VideoClassification(crop_size=(6, 8), resize_size=(10,))
    first = [0.2889, 1.0284, -0.2168]
    _check(preset(frames), (3, 4, 6, 8), first, 261.47)
    _check(preset(frames[None].repeat(2, 1, 1, 1, 1)), (2, 3, 4, 6, 8), first, 522.93)
    other = _presets.VideoClassification(crop_size=(6, 8), resize_size=(7, 9))
    _check(other(frames), (3, 4, 6, 8), [0.5641, 0.3577, 1.211], 210.65)
    assert "resize_size=[10]" in repr(preset) and "(..., C, T, H, W)" in preset.describe()


def test_pairs() -> None:
    image, tensor, _ = _kinds()
    preset = _presets.OpticalFlow()
    for out in preset(image, tensor):
        _check(out, (3, 20, 30), [-1.0, 0.1529, -0.6627], -41.65)
        assert out.is_contiguous()
    assert repr(preset) == "OpticalFlow()" and "``[-1.0, 1.0]``" in preset.describe()


def test_printed() -> None:
    preset = _presets.ImageClassification(crop_size=224)
    assert repr(preset) == (
        "ImageClassification(\n    crop_size=[224]\n    resize_size=[256]\n"
        "    mean=[0.485, 0.456, 0.406]\n    std=[0.229, 0.224, 0.225]\n"
        "    interpolation=InterpolationMode.BILINEAR\n)"
    )
    assert repr(pickle.loads(pickle.dumps(preset))) == repr(preset)
    assert repr(_presets.SemanticSegmentation(resize_size=None)) == (
        "SemanticSegmentation(\n    resize_size=None\n    mean=[0.485, 0.456, 0.406]\n"
        "    std=[0.229, 0.224, 0.225]\n    interpolation=InterpolationMode.BILINEAR\n)"
    )
    assert repr(_presets.ObjectDetection()) == "ObjectDetection()"
    assert preset.describe() == (
        "Accepts ``PIL.Image``, batched ``(B, C, H, W)`` and single ``(C, H, W)`` image"
        " ``torch.Tensor`` objects. The images are resized to ``resize_size=[256]`` using"
        " ``interpolation=InterpolationMode.BILINEAR``, followed by a central crop of"
        " ``crop_size=[224]``. Finally the values are first rescaled to ``[0.0, 1.0]`` and then"
        " normalized using ``mean=[0.485, 0.456, 0.406]`` and ``std=[0.229, 0.224, 0.225]``."
    )
    with pytest.raises(TypeError, match="positional"):
        _presets.ImageClassification(224)  # type: ignore[misc]


def test_pillow_always_averages() -> None:
    image, tensor, _ = _kinds()
    with pytest.warns(UserWarning, match="Anti-alias option is always applied for PIL Image"):
        F.resize(image, [5], antialias=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.resize(image, [5])
        F.resize(tensor, [5], antialias=False)
