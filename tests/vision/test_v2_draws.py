"""The random transforms of version 2 draw what torchvision draws from the same seed.

All numbers were recorded with torchvision 0.28 on PyTorch, the generator seeded before each draw.
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision.transforms import v2
from torchlab.vision.tv_tensors import BoundingBoxes, Image, Mask


def sample():
    y, x = np.mgrid[:12, :16]
    values = np.stack([x * 15 + y, 255 - y * 20, (x * y * 7) % 256]).astype(np.uint8)
    corners = [[1.0, 2, 6, 9], [5, 1, 15, 8]]
    return {
        "image": Image(tl.from_numpy(values)),
        "boxes": BoundingBoxes(tl.tensor(corners), format="XYXY", canvas_size=(12, 16)),
        "masks": Mask(tl.from_numpy((values[:2] > 100).astype(np.uint8))),
        "labels": tl.tensor([4, 2]),
    }


PARAMETERS = [
    (v2.RandomResize(5, 30), {"size": [20]}),
    (v2.RandomShortestSize([5, 9, 20], max_size=14), {"size": (5, 6)}),
    (v2.ScaleJitter((8, 10)), {"size": (6, 8)}),
    (
        v2.RandomCrop((5, 6)),
        {
            "needs_crop": True,
            "top": 7,
            "left": 3,
            "height": 5,
            "width": 6,
            "needs_pad": False,
            "padding": [0, 0, 0, 0],
        },
    ),
    (
        v2.RandomCrop((20, 9), padding=[1, 2], pad_if_needed=True),
        {
            "needs_crop": True,
            "top": 0,
            "left": 2,
            "height": 20,
            "width": 9,
            "needs_pad": True,
            "padding": [1, 6, 1, 6],
        },
    ),
    (v2.RandomResizedCrop(8), {"top": 1, "left": 1, "height": 11, "width": 10}),
    (v2.RandomZoomOut(), {"padding": [4, 12, 21, 7]}),
    (
        v2.RandomIoUCrop(),
        {"top": 0, "left": 9, "height": 9, "width": 5, "is_within_crop_area": [False, True]},
    ),
    (v2.RandomRotation(30), {"angle": 2.0953524112701416}),
    (
        v2.RandomAffine(20, (0.3, 0.3), (0.5, 2.0), 9),
        {
            "angle": 1.3969016075134277,
            "translate": (-3, 1),
            "scale": 1.485335350036621,
            "shear": (-4.810291767120361, 0.0),
        },
    ),
    (
        v2.ColorJitter(0.2, 0.3, 0.4, 0.1),
        {
            "fn_idx": [3, 2, 0, 1],
            "brightness_factor": 1.0627561807632446,
            "contrast_factor": 0.8396568894386292,
            "saturation_factor": 0.9400491118431091,
            "hue_factor": -0.058582793921232224,
        },
    ),
    (v2.RandomChannelPermutation(), {"permutation": [0, 1, 2]}),
    (
        v2.RandomPhotometricDistort(),
        {
            "brightness_factor": None,
            "contrast_factor": 1.1592116355895996,
            "saturation_factor": None,
            "hue_factor": -0.007493859622627497,
            "contrast_before": True,
            "channel_permutation": None,
        },
    ),
    (v2.RandomGrayscale(), {"num_input_channels": 3}),
    (v2.GaussianBlur(3), {"sigma": [1.1163527965545654, 1.1163527965545654]}),
    (
        v2.RandomErasing(value=(1, 2, 3)),
        {"i": 7, "j": 6, "h": 4, "w": 9, "v": [[[1.0]], [[2.0]], [[3.0]]]},
    ),
    (v2.JPEG((5, 60)), {"quality": 52}),
    (v2.CutMix(num_classes=3), {"box": (6, 0, 16, 10), "lam_adjusted": 0.47916666666666663}),
    (v2.MixUp(num_classes=3, alpha=0.5), {"lam": 0.9398998618125916}),
]


@pytest.mark.parametrize(
    ("t", "wanted"),
    PARAMETERS,
    ids=[f"{type(t).__name__}-{i}" for i, (t, _) in enumerate(PARAMETERS)],
)
def test_parameters(t, wanted):
    parts = sample()
    tl.manual_seed(7)
    params = t.make_params([parts["image"], parts["boxes"], parts["masks"]])
    plain = {k: v.tolist() if isinstance(v, tl.Tensor) else v for k, v in params.items()}
    assert plain == wanted


PLAIN = [[1.0, 2.0, 6.0, 9.0], [5.0, 1.0, 15.0, 8.0]]
OUTPUTS = [
    (v2.RandomCrop((2, 3)), (2, 3), 2790, [[0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 3.0, 2.0]], 10),
    (v2.RandomHorizontalFlip(0.9), (12, 16), 70096, [[10, 2, 15, 9], [1, 1, 11, 8]], 237),
    (
        v2.RandomRotation(30, fill=9),
        (12, 16),
        70096,
        [[0.858, 2.076, 6.111, 9.254], [4.819, 0.747, 15.068, 8.108]],
        237,
    ),
    (
        v2.RandomAffine(20, (0.3, 0.3), (0.5, 2.0), 9),
        (12, 16),
        84747,
        [[0.0, 0.795, 2.296, 11.391], [0.102, 0.0, 15.572, 10.229]],
        311,
    ),
    (
        v2.RandomPerspective(p=1.0),
        (12, 16),
        29121,
        [[2.95, 2.53, 6.97, 7.88], [5.102, 2.331, 12.755, 9.043]],
        108,
    ),
    (v2.RandomZoomOut(fill=7, side_range=(1.0, 1.5), p=1.0), (13, 17), 70705, PLAIN, 643),
    (v2.RandomIoUCrop(), (9, 5), 20892, [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 5.0, 8.0]], 85),
    (v2.ColorJitter(0.2, 0.3, 0.4, 0.1), (12, 16), 77156, PLAIN, 237),
    (v2.RandomPhotometricDistort(p=0.8), (12, 16), 64302, PLAIN, 237),
    (v2.GaussianBlur(5), (12, 16), 70645, PLAIN, 237),
    (v2.GaussianNoise(), (12, 16), 70452, PLAIN, 237),
]


@pytest.mark.parametrize(
    ("t", "size", "total", "boxes", "masks"), OUTPUTS, ids=[type(c[0]).__name__ for c in OUTPUTS]
)
def test_samples(t, size, total, boxes, masks):
    parts = sample()
    tl.manual_seed(7)
    out = t(parts)
    assert tuple(out["image"].shape[1:]) == size and type(out["image"]) is Image
    assert int(out["image"].to(tl.int64).sum()) == total
    np.testing.assert_allclose(out["boxes"].numpy(), boxes, atol=6e-4)
    assert out["boxes"].canvas_size == size
    assert int(out["masks"].to(tl.int64).sum()) == masks
    assert out["labels"] is parts["labels"]


def test_erasing_passes_boxes_and_masks_and_says_so():
    parts = sample()
    tl.manual_seed(7)
    with pytest.warns(UserWarning, match="passing through inputs of type tv_tensors"):
        out = v2.RandomErasing(p=1.0)(parts)
    assert int(out["image"].to(tl.int64).sum()) == 66421
    assert out["masks"] is parts["masks"]


@pytest.mark.parametrize(
    ("t", "totals"),
    [
        (v2.AutoAugment(), {0: 70096, 1: 70096, 2: 67534, 3: 59336, 4: 59293, 5: 59624}),
        (
            v2.AutoAugment(v2.AutoAugmentPolicy.SVHN, fill=3),
            {0: 76784, 1: 33773, 2: 62282, 3: 88108, 4: 68364, 5: 55084},
        ),
        (v2.RandAugment(), {0: 67281, 1: 67281, 2: 40492, 3: 68240, 4: 50658}),
        (v2.TrivialAugmentWide(), {0: 0, 1: 74473, 2: 34115, 3: 68509, 4: 61280, 5: 62379}),
        (v2.AugMix(), {1: 69146, 2: 69335, 3: 69850, 6: 68002, 7: 57245}),
        (
            v2.AugMix(9, 2, 2, 0.5, False),
            {0: 56664, 1: 69789, 2: 62554, 3: 66004, 4: 69570, 5: 67959},
        ),
    ],
)
def test_automatic_augmentation(t, totals):
    for seed, total in totals.items():
        tl.manual_seed(seed)
        image, label = t(sample()["image"], 3)
        assert int(image.to(tl.int64).sum()) == total, seed
        assert type(image) is Image and label == 3


def test_mixed_batches():
    images, labels = tl.arange(24.0).reshape(3, 1, 2, 4), tl.tensor([0, 2, 1])
    tl.manual_seed(5)
    mixed, shares = v2.MixUp(num_classes=3)(images, labels)
    lam = 0.5459829568862915
    np.testing.assert_allclose(
        mixed.numpy(), lam * images.numpy() + (1 - lam) * images.roll(1, 0).numpy(), rtol=1e-6
    )
    np.testing.assert_allclose(
        shares.numpy(), [[lam, 1 - lam, 0], [1 - lam, 0, lam], [0, lam, 1 - lam]], rtol=1e-6
    )
    tl.manual_seed(0)
    out = v2.CutMix(num_classes=3)({"images": Image(images), "my_labels": labels})
    part = (out["images"] != images).reshape(3, -1)
    share = 1 - float(part[0].sum()) / 8
    assert bool((part == part[0]).all()) and type(out["images"]) is Image
    np.testing.assert_allclose(
        out["my_labels"].numpy(),
        [[share, 1 - share, 0], [1 - share, 0, share], [0, share, 1 - share]],
        rtol=1e-6,
    )


def test_mixed_batches_refuse():
    images, labels = tl.zeros(3, 1, 2, 4), tl.tensor([0, 2, 1])
    for t, given, text in (
        (v2.MixUp(), (images, labels), "num_classes must be passed"),
        (v2.MixUp(num_classes=3), (images[0], labels), "Expected a batched input with 4 dims"),
        (v2.MixUp(num_classes=3), (images, labels[:2]), "batch size"),
        (v2.MixUp(num_classes=4), (images, tl.zeros(3, 3)), "3 != 4"),
        (v2.CutMix(num_classes=3), (images, Mask(tl.zeros(2, 4))), "does not support"),
        (v2.CutMix(num_classes=3), (images, "a"), "labels_getter"),
        (v2.CutMix(num_classes=3, labels_getter=None), (images, labels), "must be a tensor"),
        (v2.CutMix(num_classes=3, labels_getter=lambda s: s[1] + 1), (images, labels), "not in"),
    ):
        with pytest.raises(ValueError, match=text):
            t(*given)
