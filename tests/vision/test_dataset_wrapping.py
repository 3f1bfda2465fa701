"""Data sets for transforms.v2. The expected values are torchvision 0.28's."""

from __future__ import annotations

import pickle
import sys
import types

import numpy as np
import pytest

pytest.importorskip("PIL.Image")

import torchlab as tl
from tests.vision import dataset_files as files
from torchlab.utils.data import DataLoader
from torchlab.vision import datasets as D
from torchlab.vision import tv_tensors

wrap = D.wrap_dataset_for_transforms_v2


def test_voc(tmp_path):
    files.voc(tmp_path)
    plain = D.VOCDetection(tmp_path)
    data = wrap(plain)
    assert isinstance(data, D.VOCDetection) and type(data).__name__ == "WrappedVOCDetection"
    image, target = data[1]
    assert sorted(target) == ["boxes", "labels"] and target["labels"].tolist() == [12, 15]
    boxes = target["boxes"]
    assert isinstance(boxes, tv_tensors.BoundingBoxes) and boxes.dtype is tl.int64
    assert boxes.tolist() == [[1, 1, 3, 2], [2, 1, 6, 5]] and tuple(boxes.canvas_size) == (5, 6)
    assert boxes.format is tv_tensors.BoundingBoxFormat.XYXY and image.size == (6, 5)
    assert sorted(wrap(plain, "all")[0][1]) == ["annotation", "boxes", "labels"]
    assert list(wrap(plain, ["labels"])[0][1]) == ["labels"]
    assert data.year == "2012" and data.images == plain.images and len(data) == 2
    mask = wrap(D.VOCSegmentation(tmp_path))[0][1]
    assert isinstance(mask, tv_tensors.Mask) and mask.shape == (1, 5, 6)


def test_transforms_come_after(tmp_path):
    files.voc(tmp_path)
    seen = []
    plain = D.VOCDetection(tmp_path, transforms=lambda x, y: seen.append(sorted(y)) or (x, y))
    wrap(plain)[0]
    assert seen == [["boxes", "labels"]]
    data = wrap(D.VOCDetection(tmp_path, transform=lambda x: "image", target_transform=sorted))
    assert data[0] == ("image", ["boxes", "labels"])
    assert pickle.loads(pickle.dumps(wrap(D.VOCDetection(tmp_path), ["labels"])))[0][1].keys() == {
        "labels"
    }
    loader = DataLoader(data, None, num_workers=1, multiprocessing_context="fork")
    assert list(loader) == [["image", ["boxes", "labels"]]] * 2


def test_coco(tmp_path, monkeypatch):
    files.coco(tmp_path)
    plain = D.CocoDetection(tmp_path / "images", str(tmp_path / "instances.json"))
    target = wrap(plain)[2][1]
    assert sorted(target) == ["boxes", "image_id", "labels"] and target["image_id"] == 9
    assert target["boxes"].tolist() == [[0.0, 1.0, 2.0, 4.5], [1.0, 1.0, 3.0, 2.0]]
    assert target["labels"].tolist() == [3, 1] and wrap(plain)[1][1] == {"image_id": 7}
    calls = []
    fake = types.ModuleType("pycocotools.mask")
    fake.frPyObjects = lambda found, h, w: calls.append((h, w)) or found
    fake.merge = lambda found: found
    fake.decode = lambda found: np.ones((5, 6), np.uint8)
    monkeypatch.setitem(sys.modules, "pycocotools", types.ModuleType("pycocotools"))
    monkeypatch.setitem(sys.modules, "pycocotools.mask", fake)
    found = wrap(plain, ["masks", "area"])[2][1]
    assert found["masks"].shape == (2, 5, 6) and found["area"] == [7.0, 2.0]
    assert isinstance(found["masks"], tv_tensors.Mask) and calls == [(5, 6)] * 2
    said = D.CocoCaptions(tmp_path / "images", str(tmp_path / "captions.json"))
    assert wrap(said)[0][1] == ["a person"]


def test_celeba(tmp_path, monkeypatch):
    files.celeba(tmp_path / "celeba")
    known = [
        (number, files.md5(path) if (path := tmp_path / "celeba" / name).exists() else md5, name)
        for number, md5, name in D.CelebA.file_list
    ]
    monkeypatch.setattr(D.CelebA, "file_list", known)
    number, boxes = wrap(D.CelebA(tmp_path, target_type=["identity", "bbox"]))[1][1]
    assert number == 2882 and isinstance(boxes, tv_tensors.BoundingBoxes)
    assert boxes.tolist() == [[97, 71, 97 + 226, 71 + 313]]
    assert boxes.format is tv_tensors.BoundingBoxFormat.XYXY and boxes.canvas_size == (5, 6)
    with pytest.raises(RuntimeError, match=r"CelebA dataset with `target_type=\['attr', 'landm"):
        wrap(D.CelebA(tmp_path))


def test_kitti(tmp_path):
    files.kitti(tmp_path / "Kitti" / "raw")
    plain = D.Kitti(tmp_path)
    target = wrap(plain)[0][1]
    assert sorted(target) == ["boxes", "labels"] and target["labels"].tolist() == [0, -1]
    assert isinstance(target["boxes"], tv_tensors.BoundingBoxes)
    assert target["boxes"].shape == (2, 4) and target["boxes"][0, 0] == np.float32(387.63)
    empty = wrap(plain)[1][1]
    assert empty["boxes"].shape == (0, 4) and empty["labels"].shape == (0,)
    found = wrap(plain, "all")[2][1]
    assert found["type"] == ["Car", "DontCare"] and found["occluded"] == [1, -1]
    assert list(wrap(plain, ["alpha"])[0][1].values()) == [[1.85, -10.0]]
    assert wrap(D.Kitti(tmp_path, train=False))[0][1] is None


def test_cityscapes(tmp_path):
    files.cityscapes(tmp_path)
    target = wrap(D.Cityscapes(tmp_path))[0][1]
    assert target["labels"].tolist() == [7, 26, 26]
    masks = target["masks"]
    assert isinstance(masks, tv_tensors.Mask) and masks.shape == (3, 1, 5, 6)
    assert masks.sum((1, 2, 3)).tolist() == [6, 12, 12] and masks[1, 0, 1:3].all()
    both = wrap(D.Cityscapes(tmp_path, target_type=["semantic", "instance"]))[1][1]
    assert isinstance(both[0], tv_tensors.Mask) and both[0].shape == (1, 5, 6)
    assert both[1]["masks"].shape == (3, 1, 5, 6)
    with pytest.raises(RuntimeError, match=r"Cityscapes dataset with `target_type=\['polygon', "):
        wrap(D.Cityscapes(tmp_path, target_type=["instance", "color"]))


def test_others(tmp_path):
    files.oxford_iiit_pet(tmp_path / "oxford-iiit-pet")
    pets = wrap(D.OxfordIIITPet(tmp_path, target_types=["category", "segmentation"]))
    number, mask = pets[1][1]
    assert number == 1 and isinstance(mask, tv_tensors.Mask)
    assert isinstance(wrap(D.OxfordIIITPet(tmp_path, "test", "segmentation"))[0][1], tl.Tensor)
    files.emnist(tmp_path / "EMNIST" / "raw")
    letters = wrap(D.EMNIST(tmp_path, "letters"))
    assert len(letters.classes) == 27 and repr(letters).startswith("Dataset WrappedEMNIST\n")


def test_what_is_refused(tmp_path):
    files.voc(tmp_path)
    plain = D.VOCDetection(tmp_path)
    with pytest.raises(ValueError, match=r"Target keys \['nope'\] are not available"):
        wrap(plain, ["nope"])
    with pytest.raises(ValueError, match="can be None, 'all', or a collection of strings"):
        wrap(plain, 3)
    with pytest.raises(ValueError, match="only supported for .* but got VOCSegmentation"):
        wrap(D.VOCSegmentation(tmp_path), ["labels"])
    with pytest.raises(TypeError, match="No wrapper exists for dataset class FakeData"):
        wrap(D.FakeData(2))
    with pytest.raises(TypeError, match="but got a 'list' instead"):
        wrap([1])
    files.caltech101(tmp_path / "caltech101")
    with pytest.raises(RuntimeError, match="Caltech101 dataset with"):
        wrap(D.Caltech101(tmp_path, "annotation"))
