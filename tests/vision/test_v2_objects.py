"""Transforms of boxes, points, masks and values in version 2, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import datasets
from torchlab.vision.transforms import v2
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

PIL = pytest.importorskip("PIL.Image")


def boxes(rows, **kwargs):
    return BoundingBoxes(tl.tensor(rows), format="XYXY", canvas_size=(20, 30), **kwargs)


def sample():
    return {
        "boxes": boxes([[0.0, 0, 9, 9], [5, 5, 5.5, 9], [4, 4, 40, 8], [1, 1, 3, 3]]),
        "masks": Mask(tl.arange(4).reshape(4, 1, 1).expand(4, 20, 30)),
        "segments": Mask(tl.zeros(20, 30)),
        "Labels": tl.tensor([5, 6, 7, 8]),
        "areas": tl.tensor([81.0, 2, 144, 4]),
    }


def test_bad_boxes_go_with_their_labels_and_masks():
    out = v2.SanitizeBoundingBoxes()(sample())
    assert out["boxes"].tolist() == [[0, 0, 9, 9], [1, 1, 3, 3]]
    assert type(out["boxes"]) is BoundingBoxes and out["boxes"].canvas_size == (20, 30)
    assert out["Labels"].tolist() == [5, 8] and out["masks"][:, 0, 0].tolist() == [0, 3]
    assert out["segments"].shape == (20, 30) and len(out["areas"]) == 4
    image = Image(tl.zeros(3, 20, 30))
    both = v2.SanitizeBoundingBoxes(
        min_area=50, labels_getter=lambda s: (s[1]["Labels"], s[1]["areas"])
    )
    out = both(image, sample())[1]
    assert out["Labels"].tolist() == [5] and out["areas"].tolist() == [81]
    out = v2.SanitizeBoundingBoxes(min_size=5, labels_getter=None)(sample())
    assert len(out["boxes"]) == 1 and len(out["Labels"]) == 4
    for bad, text in (
        ({"boxes": sample()["boxes"]}, "labels_getter"),
        ({"boxes": sample()["boxes"], "labels": tl.zeros(3)}, "3.*4 objects"),
        ({"boxes": sample()["boxes"], "labels": "abcd"}, "must be a tensor"),
        ({"labels": tl.zeros(3)}, "No bounding boxes"),
    ):
        with pytest.raises(ValueError, match=text):
            v2.SanitizeBoundingBoxes()(bad)


def test_points_outside_go():
    points = KeyPoints(tl.tensor([[1.0, 2], [30, 2], [3, -1], [29, 19]]), canvas_size=(20, 30))
    assert v2.SanitizeKeyPoints()(points).tolist() == [[1, 2], [29, 19]]
    out = v2.SanitizeKeyPoints("default")({"p": points, "label": tl.arange(4)})
    assert out["label"].tolist() == [0, 3] and type(out["p"]) is KeyPoints
    clamped = v2.ClampKeyPoints()(points)
    assert clamped.tolist() == [[1, 2], [29, 2], [3, 0], [29, 19]]


def test_boxes_alone():
    far = boxes([[-3.0, 2, 50, 9]])
    image = tl.zeros(3, 20, 30)
    out = v2.ClampBoundingBoxes()(far, image)
    assert out[0].tolist() == [[0, 2, 30, 9]] and out[1] is image
    free = v2.SetClampingMode(None)(far)
    assert free.clamping_mode is None and far.clamping_mode == "soft"
    assert v2.ClampBoundingBoxes()(free).tolist() == far.tolist()
    wide = v2.ConvertBoundingBoxFormat("cxcywh")(far)
    assert wide.tolist() == [[23.5, 5.5, 53, 7]] and wide.format.value == "CXCYWH"


def test_an_overlap_is_kept_or_the_image_is_whole():
    tl.manual_seed(0)
    given = {"image": Image(tl.zeros(3, 20, 30)), "boxes": boxes([[3.0, 4, 13, 15]])}
    whole = v2.RandomIoUCrop(sampler_options=[1.0])(given)
    assert whole["image"].shape == (3, 20, 30)
    crop = v2.RandomIoUCrop(sampler_options=[0.5])
    for _ in range(10):
        params = crop.make_params(list(given.values()))
        top, left = params["top"], params["left"]
        bottom, right = top + params["height"], left + params["width"]
        shared = (min(right, 13) - max(left, 3)) * (min(bottom, 15) - max(top, 4))
        together = params["height"] * params["width"] + 110 - shared
        assert shared / together >= 0.5
        assert left < 8 < right and top < 9.5 < bottom
        assert 0.5 <= params["width"] / params["height"] <= 2.0


def test_fills_by_type():
    image, masks = Image(tl.ones(3, 2, 2)), Mask(tl.ones(1, 2, 2))
    pad = v2.Pad(1, fill={Image: (0.25, 0.5, 0.75), "others": 7})
    out = pad(image, masks)
    assert out[0][:, 0, 0].tolist() == [0.25, 0.5, 0.75] and out[1][0, 0, 0].item() == 7
    assert v2.Pad(1, fill={Image: 3})(image, masks)[1][0, 0, 0].item() == 0
    plain = v2.RandomCrop(4, pad_if_needed=True, fill=5)(tl.ones(1, 2, 4))
    assert sorted(set(plain.flatten().tolist())) == [1, 5]


def test_dtypes_by_type():
    image, label = Image(tl.full((3, 2, 2), 255, dtype=tl.uint8)), tl.tensor(3)
    parts = (image, Mask(tl.ones(2, 2, dtype=tl.uint8)), label)
    out = v2.ToDtype(tl.float32, scale=True)(*parts)
    assert [x.dtype for x in out] == [tl.float32, tl.uint8, tl.int64] and out[0].max() == 1
    table = {Image: tl.float64, Mask: tl.int64, "others": None}
    out = v2.ToDtype(table)(*parts)
    assert [x.dtype for x in out] == [tl.float64, tl.int64, tl.int64] and out[0].max() == 255
    assert type(out[1]) is Mask
    assert v2.ConvertImageDtype()(image).max() == 1
    with pytest.warns(UserWarning, match="plain `torch.Tensor` will"):
        v2.ToDtype({tl.Tensor: tl.float32, Image: tl.float32})


def test_values():
    x = tl.arange(12.0).reshape(3, 2, 2)
    out = v2.Normalize([1, 2, 3], [1, 2, 4])(Image(x), Mask(x))
    wanted = (x.numpy() - [[[1]], [[2]], [[3]]]) / [[[1]], [[2]], [[4]]]
    np.testing.assert_allclose(out[0].numpy(), wanted)
    assert out[1].tolist() == x.tolist()
    swap = tl.eye(12).flip(0)
    out = v2.LinearTransformation(swap, tl.ones(12))(Image(x[None]))
    np.testing.assert_array_equal(out.numpy().ravel(), x.numpy().ravel()[::-1] - 1)
    assert type(out) is Image
    with pytest.raises(ValueError, match="incompatible shape"):
        v2.LinearTransformation(tl.eye(4), tl.ones(4))(x)
    video = Video(tl.arange(5.0).reshape(5, 1, 1, 1).expand(5, 3, 2, 2))
    assert v2.UniformTemporalSubsample(3)(video)[:, 0, 0, 0].tolist() == [0, 2, 4]
    five = v2.FiveCrop(1)(Image(x))
    assert [c[0].item() for c in five] == [0, 1, 2, 3, 0]
    assert len(v2.TenCrop(1)(PIL.new("L", (3, 3)))) == 10


def test_folders_of_images_can_be_wrapped(tmp_path):
    (tmp_path / "a").mkdir()
    PIL.new("RGB", (6, 5)).save(tmp_path / "a" / "0.png")
    plain = datasets.ImageFolder(tmp_path, transform=v2.Resize(3))
    wrapped = datasets.wrap_dataset_for_transforms_v2(plain)
    assert isinstance(wrapped, datasets.ImageFolder) and len(wrapped) == 1
    assert wrapped.classes == ["a"]
    image, target = wrapped[0]
    assert image.size == (3, 3) and target == 0 and plain[0][0].size == (6, 5)
    for bad, keys, error in (
        (3, None, TypeError),
        (datasets.FakeData(2), None, TypeError),
        (plain, "all", ValueError),
        (plain, 3, ValueError),
    ):
        with pytest.raises(error):
            datasets.wrap_dataset_for_transforms_v2(bad, keys)
