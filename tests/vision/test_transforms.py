"""The transform classes: their draws are torchvision's for the same seed, their forms checked."""

from __future__ import annotations

import random

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import transforms as T

Image = pytest.importorskip("PIL.Image")

BYTES = np.random.default_rng(0).integers(0, 256, (3, 33, 47), dtype=np.uint8)


def image():
    return tl.from_numpy(BYTES.copy())


def test_draws_are_those_of_torchvision():
    """Recorded with torchvision 0.28 on PyTorch after manual_seed(7), one after another."""
    tl.manual_seed(7)
    x = tl.zeros(3, 33, 47)
    assert T.RandomCrop.get_params(x, (20, 21)) == (5, 13, 20, 21)
    assert T.RandomResizedCrop.get_params(x, (0.08, 1.0), (0.75, 4 / 3)) == (1, 11, 31, 34)
    assert T.RandomRotation.get_params([-30.0, 30.0]) == -17.574838638305664
    ranges = ([-5.0, 5.0], (0.2, 0.3), (0.8, 1.2), [-3.0, 3.0, -4.0, 4.0], [47, 33])
    assert T.RandomAffine.get_params(*ranges) == (
        1.2973636388778687,
        (-3, 7),
        1.141977310180664,
        (0.305611252784729, -1.7052879333496094),
    )
    assert T.RandomPerspective.get_params(47, 33, 0.5) == (
        [[0, 0], [46, 0], [46, 32], [0, 32]],
        [[9, 2], [45, 0], [39, 27], [6, 27]],
    )
    order, *factors = T.ColorJitter.get_params((0.5, 1.5), (0.5, 1.5), None, (-0.1, 0.1))
    assert order.tolist() == [0, 3, 1, 2]
    assert factors == [1.0209300518035889, 1.093231201171875, None, 0.07594083994626999]
    assert T.RandomErasing.get_params(x, (0.02, 0.33), (0.3, 3.3), [0.0])[:4] == (5, 1, 25, 13)
    assert tl.rand(1).item() == 0.6720845699310303


def test_moves_of_the_elastic_transform():
    """Recorded with torchvision 0.28 on PyTorch after manual_seed(7)."""
    tl.manual_seed(7)
    moves = T.ElasticTransform.get_params([8.0, 5.0], [0.3, 0.2], [3, 4])
    assert moves.shape == (1, 3, 4, 2)
    np.testing.assert_allclose(
        moves[0, 0].numpy(),
        [
            [0.12936575710773468, -0.7125852704048157],
            [-1.1925578117370605, -0.9748556017875671],
            [0.6297328472137451, -0.1871703863143921],
            [0.627631425857544, -0.46685850620269775],
        ],
        rtol=1e-5,
    )
    assert tl.rand(1).item() == 0.5209300518035889


@pytest.mark.parametrize(("severity", "total"), [(1, 69214), (3, 69555), (5, 68687), (7, 52500)])
def test_augmix(severity, total):
    """Recorded with torchvision 0.28 on PyTorch; the severity is the seed too."""
    y, x = np.mgrid[:12, :16]
    values = np.stack([x * 15 + y, 255 - y * 20, (x * y * 7) % 256]).astype(np.uint8)
    tl.manual_seed(severity)
    out = T.AugMix(severity=severity)(tl.from_numpy(values))
    assert out.dtype == tl.uint8 and int(out.to(tl.int64).sum()) == total
    tl.manual_seed(severity)
    picture = T.AugMix(severity=severity)(Image.fromarray(values.transpose(1, 2, 0)))
    assert int(np.asarray(picture, np.int64).sum()) == total
    assert repr(T.AugMix(all_ops=False)).startswith("AugMix(severity=3, mixture_width=3, chain_")
    with pytest.raises(ValueError, match="severity"):
        T.AugMix(severity=0)


def test_a_pipeline_for_pictures():
    pic = Image.fromarray(BYTES.transpose(1, 2, 0))
    steps = T.Compose(
        [T.Resize(24), T.CenterCrop(20), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)]
    )
    small = np.asarray(pic.resize((34, 24), Image.BILINEAR), np.float32)[2:22, 7:27]
    wanted = (small.transpose(2, 0, 1) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(steps(pic).numpy(), wanted, atol=1e-5)
    assert repr(steps).startswith("Compose(\n    Resize(size=24, interpolation=bilinear")


@pytest.mark.parametrize(
    ("always", "wanted"),
    [
        (T.RandomHorizontalFlip(1.0), BYTES[:, :, ::-1]),
        (T.RandomVerticalFlip(1.0), BYTES[:, ::-1]),
        (T.RandomInvert(1.0), 255 - BYTES),
        (T.RandomPosterize(2, 1.0), BYTES & 0b11000000),
        (T.RandomSolarize(256 - 1, 1.0), np.where(BYTES == 255, 0, BYTES)),
        (T.RandomAdjustSharpness(1.0, 1.0), BYTES),
        (T.Pad(1), np.pad(BYTES, [(0, 0), (1, 1), (1, 1)])),
        (T.RandomApply([T.RandomInvert(1.0)], p=1.0), 255 - BYTES),
        (T.Lambda(lambda img: img), BYTES),
        (T.RandomErasing(1.0, scale=(0.999, 1.0), ratio=(1.0, 1.0)), BYTES),
    ],
)
def test_what_is_certain(always, wanted):
    np.testing.assert_array_equal(always(image()).numpy(), wanted)


@pytest.mark.parametrize(
    "never",
    [
        T.RandomHorizontalFlip(0.0),
        T.RandomGrayscale(0.0),
        T.RandomPerspective(p=0.0),
        T.RandomEqualize(0.0),
        T.RandomAutocontrast(0.0),
        T.RandomErasing(0.0),
        T.RandomApply([T.RandomInvert(1.0)], p=0.0),
        T.ColorJitter(),
    ],
)
def test_what_never_happens(never):
    np.testing.assert_array_equal(never(image()).numpy(), BYTES)


def test_shapes():
    assert T.RandomCrop(40, pad_if_needed=True)(image()).shape == (3, 40, 40)
    assert T.RandomResizedCrop((5, 6))(image()).shape == (3, 5, 6)
    assert len(T.TenCrop(8)(image())) == 10 and len(T.FiveCrop(8)(image())) == 5
    assert T.Grayscale(3)(image()).shape == (3, 33, 47)
    assert T.GaussianBlur(5)(image()).shape == (3, 33, 47)
    assert T.ElasticTransform()(image()).shape == (3, 33, 47)
    for auto in (
        T.AutoAugment(),
        T.RandAugment(4),
        T.TrivialAugmentWide(),
        T.RandAugment(3, fill=[7.0]),
    ):
        out = auto(image())
        assert out.shape == (3, 33, 47) and out.dtype == tl.uint8


def test_policies_of_autoaugment():
    for policy in T.AutoAugmentPolicy:
        auto = T.AutoAugment(policy)
        assert len(auto.policies) == 25
        auto.policies = [(("Invert", 1.0, None), ("Posterize", 1.0, 9))]
        np.testing.assert_array_equal(auto(image()).numpy(), (255 - BYTES) & 0b11110000)
    assert T.AutoAugment().policies[0] == (("Posterize", 0.4, 8), ("Rotate", 0.6, 9))
    with pytest.raises(ValueError, match="not recognized"):
        T.AutoAugment("imagenet")


def test_order_and_choice_come_from_pythons_random():
    add, double = T.Lambda(lambda x: x + 1), T.Lambda(lambda x: x * 2)
    random.seed(0)
    assert {T.RandomOrder([add, double])(3) for _ in range(30)} == {7, 8}
    assert {T.RandomChoice([add, double])(3) for _ in range(30)} == {4, 6}
    assert T.RandomChoice([add, double], p=[0, 1])(5) == 10


def test_linear_transformation():
    matrix, mean = tl.eye(4) * 2, tl.ones(4)
    out = T.LinearTransformation(matrix, mean)(tl.ones(1, 2, 2) * 3)
    assert out.tolist() == [[[4.0, 4.0], [4.0, 4.0]]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: T.Resize("a" * 3), ValueError),
        (lambda: T.Resize(2.5), TypeError),
        (lambda: T.CenterCrop((1, 2, 3)), ValueError),
        (lambda: T.Pad("1"), TypeError),
        (lambda: T.Pad(1, padding_mode="wrap"), ValueError),
        (lambda: T.ColorJitter(-1), ValueError),
        (lambda: T.ColorJitter(hue=0.6), ValueError),
        (lambda: T.RandomRotation(-1), ValueError),
        (lambda: T.RandomAffine(1, translate=(2, 0)), ValueError),
        (lambda: T.RandomErasing(2.0), ValueError),
        (lambda: T.RandomErasing(value="x"), ValueError),
        (lambda: T.GaussianBlur(4), ValueError),
        (lambda: T.Lambda(3), TypeError),
        (lambda: T.RandomOrder(3), TypeError),
        (lambda: T.RandomCrop(99)(image()), ValueError),
        (lambda: T.RandomErasing(1.0, value=(1, 2))(image()), ValueError),
    ],
)
def test_bad_arguments(call, error):
    with pytest.raises(error):
        call()
