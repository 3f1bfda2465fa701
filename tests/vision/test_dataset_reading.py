"""What the data sets give for small files in their formats; torchvision 0.28 gives the same."""

from __future__ import annotations

import bz2
import functools

import numpy as np
import pytest

pytest.importorskip("PIL.Image")

import torchlab as tl
from tests.vision import dataset_files as files
from torchlab.utils.data import DataLoader
from torchlab.vision import datasets as D
from torchlab.vision import transforms as T
from torchlab.vision.datasets import imagenet
from torchlab.vision.datasets.mnist import read_idx


def targets(data):
    return [target for _, target in data]


def test_emnist(tmp_path):
    files.emnist(tmp_path / "EMNIST" / "raw")
    data = D.EMNIST(tmp_path, "letters", train=False)
    labels = read_idx(data.labels_file)
    assert targets(data) == data.targets.tolist() == labels.tolist()
    assert data.classes[0] == "N/A" and len(data.classes) == 27
    assert [len(c) for c in D.EMNIST.classes_split_dict.values()] == [62, 47, 47, 27, 10, 10]
    np.testing.assert_array_equal(np.asarray(data[1][0]), data.data[1].numpy())
    assert len(D.EMNIST(tmp_path, split="letters")) == 4
    with pytest.raises(RuntimeError, match="not found"):
        D.EMNIST(tmp_path, "digits")
    with pytest.raises(ValueError, match="Unknown value 'all' for argument split"):
        D.EMNIST(tmp_path, "all")


def test_qmnist(tmp_path):
    files.qmnist(tmp_path / "QMNIST" / "raw")
    assert len(D.QMNIST(tmp_path)) == 3 and len(D.QMNIST(tmp_path, train=False)) == 10002
    assert len(D.QMNIST(tmp_path, "test10k")) == 10000
    rest = D.QMNIST(tmp_path, "test50k", compat=False)
    assert len(rest) == 2 and rest[0][1].shape == (8,) and rest[0][1].dtype == tl.int64
    nist = D.QMNIST(tmp_path, "nist")
    assert targets(nist) == nist.targets[:, 0].tolist() and "Split: nist" in repr(nist)
    with pytest.raises(ValueError, match="argument what"):
        D.QMNIST(tmp_path, "validation")


def test_usps(tmp_path):
    files.usps(tmp_path)
    data = D.USPS(tmp_path)
    assert targets(data) == [0, 1, 2] and data.data.shape == (3, 16, 16)
    assert data.data[0, 0, :2].tolist() == [0, 255]
    with bz2.open(tmp_path / "usps.bz2", "rt") as file:
        value = float(file.readline().split()[5].split(":")[1])
    assert data.data[0, 0, 4] == int((np.float32(value) + 1) / 2 * 255)
    assert len(D.USPS(tmp_path, train=False)) == 2


def test_svhn(tmp_path, monkeypatch):
    files.svhn(tmp_path)
    known = {
        part: [url, name, files.md5(tmp_path / name)]
        for part, (url, name, _) in D.SVHN.split_list.items()
    }
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        D.SVHN(tmp_path)
    monkeypatch.setattr(D.SVHN, "split_list", known)
    data = D.SVHN(tmp_path, transform=T.PILToTensor())
    assert targets(data) == [1, 0, 3] and data.data.shape == (3, 3, 32, 32)
    np.testing.assert_array_equal(data[2][0].numpy(), data.data[2])
    assert targets(D.SVHN(tmp_path, "extra")) == [7, 0]


def test_stl10(tmp_path, monkeypatch):
    files.stl10(tmp_path)
    for part in ("train_list", "test_list"):
        known = [
            [name, files.md5(tmp_path / "stl10_binary" / name)]
            for name, _ in getattr(D.STL10, part)
        ]
        monkeypatch.setattr(D.STL10, part, known)
    data = D.STL10(tmp_path, transform=T.PILToTensor())
    assert targets(data) == [0, 9, 2, 3] and data.classes == ["airplane", "bird", "car"]
    raw = np.fromfile(tmp_path / "stl10_binary" / "train_X.bin", np.uint8).reshape(4, 3, 96, 96)
    np.testing.assert_array_equal(data[1][0].numpy(), raw[1].transpose(0, 2, 1))
    assert targets(D.STL10(tmp_path, folds=2)) == [2, 3]
    assert targets(D.STL10(tmp_path, "train+unlabeled", folds=2)) == [2, 3, -1]
    assert targets(D.STL10(tmp_path, "unlabeled")) == [-1]
    with pytest.raises(ValueError, match=r"range \[0, 10\), but got 10"):
        D.STL10(tmp_path, folds=10)
    with pytest.raises(ValueError, match="Expected type None or int for argument folds"):
        D.STL10(tmp_path, folds="2")


def test_caltech(tmp_path):
    files.caltech101(tmp_path / "caltech101")
    data = D.Caltech101(tmp_path)
    assert data.categories == ["Faces", "accordion"]
    assert data.annotation_categories == ["Faces_2", "accordion"]
    assert targets(data) == [0, 0, 1, 1, 1] and data[2][0].mode == "L"
    assert D.Caltech101(tmp_path, "annotation")[0][1].shape == (2, 7)
    with pytest.raises(ValueError, match="target_type"):
        D.Caltech101(tmp_path, ["category", "box"])
    files.caltech256(tmp_path / "caltech256")
    assert targets(D.Caltech256(tmp_path)) == [0, 0, 1, 1, 1]


def box(*corners):
    return dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))


def test_voc(tmp_path):
    files.voc(tmp_path)
    files.voc(tmp_path, "2007")
    first, second = targets(D.VOCDetection(tmp_path))
    assert first["annotation"] == {
        "folder": "VOC2012",
        "filename": "a.jpg",
        "source": {"database": "The VOC2007 Database"},
        "size": {"width": "6", "height": "5", "depth": "3"},
        "segmented": "0",
        "object": [{"name": "dog", "pose": "Left", "bndbox": box("1", "2", "4", "5")}],
    }
    dog, person = second["annotation"]["object"]
    assert dog == {"name": "dog", "bndbox": box("1", "1", "3", "2")}
    assert [part["name"] for part in person["part"]] == ["head", "foot"]
    masks = D.VOCSegmentation(tmp_path, image_set="val", transforms=lambda x, y: (x.size, y.mode))
    assert list(masks[0]) == [(6, 5), "L"] and masks.masks[0].endswith("b.png")
    assert len(D.VOCDetection(tmp_path, "2007", "test")) == 1
    with pytest.raises(ValueError, match="Unknown value 'test' for argument image_set"):
        D.VOCDetection(tmp_path, image_set="test")


def test_coco(tmp_path):
    files.coco(tmp_path)
    data = D.CocoDetection(tmp_path / "images", str(tmp_path / "instances.json"))
    assert data.ids == [4, 7, 9] and len(data) == 3
    assert [[a["id"] for a in anns] for anns in targets(data)] == [[2], [], [1, 3]]
    assert data[0][0].mode == "RGB" and data[2][1][0]["bbox"] == [0, 1, 2, 3.5]
    assert data.coco.loadImgs(9)[0]["file_name"] == "b.jpg"
    assert [data.coco.loadCats(k)[0]["name"] for k in data.coco.getCatIds()] == ["person", "car"]
    said = D.CocoCaptions(tmp_path / "images", str(tmp_path / "captions.json"))
    assert targets(said) == [["a person"], [], ["a car", "a crowd"]]
    with pytest.raises(ValueError, match="Index must be of type integer"):
        data[[0]]


def test_oxford_iiit_pet(tmp_path):
    files.oxford_iiit_pet(tmp_path / "oxford-iiit-pet")
    data = D.OxfordIIITPet(tmp_path, target_types=["category", "binary-category", "segmentation"])
    assert data.classes == ["Abyssinian", "American Bulldog"]
    assert [t[:2] for t in targets(data)] == [(0, 0), (1, 1), (0, 0)]
    assert data[0][1][2].mode == "L" and data.bin_class_to_idx == {"Cat": 0, "Dog": 1}
    assert D.OxfordIIITPet(tmp_path, "test", [])[0][1] is None


def test_flowers102(tmp_path, monkeypatch):
    base = tmp_path / "flowers-102"
    files.flowers102(base)
    known = {
        what: (name, files.md5(base / name) if name.endswith(".mat") else md5)
        for what, (name, md5) in D.Flowers102._file_dict.items()
    }
    monkeypatch.setattr(D.Flowers102, "_file_dict", known)
    parts = [targets(D.Flowers102(tmp_path, part)) for part in ("train", "val", "test")]
    assert parts == [[0, 76], [76], [2, 2, 101]]
    assert D.Flowers102.classes[0] == "pink primrose" and len(D.Flowers102.classes) == 102
    (base / "setid.mat").write_bytes(b"other")
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        D.Flowers102(tmp_path)


def test_food101_and_dtd(tmp_path):
    files.food101(tmp_path)
    data = D.Food101(tmp_path, loader=lambda path: path.name)
    assert data.classes == ["apple_pie", "waffles"]
    assert list(data) == [("10.jpg", 1), ("9.jpg", 1), ("1.jpg", 0)]
    files.dtd(tmp_path / "dtd")
    assert targets(D.DTD(tmp_path)) == [0, 1, 0]
    assert repr(D.DTD(tmp_path, "val", 3)).endswith("split=val, partition=3")
    with pytest.raises(ValueError, match="partition"):
        D.DTD(tmp_path, partition="1")


def test_gtsrb(tmp_path):
    files.gtsrb(tmp_path / "gtsrb")
    assert targets(D.GTSRB(tmp_path)) == [0, 0, 1, 1]
    assert targets(D.GTSRB(tmp_path, "test")) == [14, 3]


def test_folders_of_images(tmp_path):
    files.classes(tmp_path / "eurosat" / "2750", ("Forest", "River"), ".jpg")
    land = D.EuroSAT(tmp_path)
    assert targets(land) == [0, 0, 1, 1] and land.root == str(tmp_path)
    files.rendered_sst2(tmp_path)
    assert targets(D.RenderedSST2(tmp_path, "val")) == [0, 0, 1, 1]
    files.country211(tmp_path)
    assert D.Country211(tmp_path, "test").classes == ["AD", "CH"]
    files.imagenette(tmp_path)
    few = D.Imagenette(tmp_path, "val", "160px")
    assert targets(few) == [0, 0, 1, 1] and few.class_to_idx["tench"] == 0
    assert few.wnids == ["n01440764", "n02102040"] and few.classes[1][0] == "English springer"
    with pytest.raises(RuntimeError, match="not found"):
        D.Imagenette(tmp_path, size="320px")


def test_fgvc_aircraft_and_stanford_cars(tmp_path):
    files.fgvc_aircraft(tmp_path)
    assert targets(D.FGVCAircraft(tmp_path)) == [1, 0]
    family = D.FGVCAircraft(tmp_path, "test", "family")
    assert targets(family) == [0] and family.classes == ["Boeing 707", "Boeing 737"]
    files.stanford_cars(tmp_path / "stanford_cars")
    cars = D.StanfordCars(tmp_path)
    assert targets(cars) == [1, 0] and cars.classes[1] == "Acura RL Sedan 2012"
    assert targets(D.StanfordCars(tmp_path, "test")) == [0, 0]


def test_semeion_and_moving_mnist(tmp_path, monkeypatch):
    files.semeion(tmp_path)
    monkeypatch.setattr(D.SEMEION, "md5_checksum", files.md5(tmp_path / "semeion.data"))
    data = D.SEMEION(tmp_path, download=False)
    assert targets(data) == [7, 0, 9] and set(np.unique(data.data)) == {0, 255}
    files.moving_mnist(tmp_path / "MovingMNIST")
    assert D.MovingMNIST(tmp_path)[0].shape == (20, 1, 64, 64)
    first, rest = D.MovingMNIST(tmp_path, "train", 7), D.MovingMNIST(tmp_path, "test", 7)
    whole = D.MovingMNIST(tmp_path).data
    assert tl.equal(tl.cat([first.data, rest.data], 1), whole)
    with pytest.raises(ValueError, match="split_ratio"):
        D.MovingMNIST(tmp_path, split_ratio=20)


def test_in_a_loader_with_workers(tmp_path):
    files.food101(tmp_path)
    data = D.Food101(tmp_path, transform=T.ToTensor())
    images, labels = next(iter(DataLoader(data, 3, num_workers=1)))
    assert images.shape == (3, 3, 5, 6) and labels.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(getattr(D, name), **({"split": "letters"} if name == "EMNIST" else {}))
        for name in (
            "Caltech101", "Caltech256", "CelebA", "Cityscapes", "Country211", "DTD", "EMNIST",
            "EuroSAT", "FGVCAircraft", "Flowers102", "Food101", "GTSRB", "Imagenette", "Kitti",
            "MovingMNIST", "Omniglot", "OxfordIIITPet", "QMNIST", "RenderedSST2", "STL10", "SVHN",
            "StanfordCars", "VOCDetection",
        )
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(make, tmp_path):
    with pytest.raises(RuntimeError, match="Dataset not found"):
        make(tmp_path)


def celeba_files(folder):
    return [
        (number, files.md5(folder / name) if (folder / name).exists() else md5, name)
        for number, md5, name in D.CelebA.file_list
    ]


def test_celeba(tmp_path, monkeypatch):
    files.celeba(tmp_path / "celeba")
    with pytest.raises(RuntimeError, match="Dataset not found or corrupted"):
        D.CelebA(tmp_path)
    monkeypatch.setattr(D.CelebA, "file_list", celeba_files(tmp_path / "celeba"))
    data = D.CelebA(tmp_path)
    assert data.filename == ["000001.jpg", "000003.jpg"] and len(data) == 2
    image, attributes = data[1]
    assert image.size == (6, 5) and attributes.dtype is tl.int64
    assert attributes.tolist() == [int((2 + i) % 3 > 0) for i in range(40)]
    assert data.attr_names[:2] == ["Attribute_0", "Attribute_1"]
    assert data.attr_names[40] == "" and len(data.attr_names) == 41  # the line ends with a space
    several = D.CelebA(tmp_path, "all", ["identity", "bbox", "landmarks"])
    number, box, points = several[3][1]
    assert number.shape == () and number == 2883 and box.tolist() == [98, 71, 226, 313]
    assert points.tolist() == [*range(72, 82)] and several.landmarks_align.shape == (4, 10)
    assert D.CelebA(tmp_path, "Valid").filename == ["000004.jpg"]
    assert D.CelebA(tmp_path, "test", "identity", target_transform=int)[0][1] == 2881
    assert D.CelebA(tmp_path, target_type=[], transform=lambda x: 3)[0] == (3, None)
    with pytest.raises(RuntimeError, match="target_transform is specified but target_type is"):
        D.CelebA(tmp_path, target_type=[], target_transform=int)
    with pytest.raises(ValueError, match="Unknown value 'val' for argument split"):
        D.CelebA(tmp_path, "val")
    with pytest.raises(ValueError, match="Unknown value 'age' for argument target_type"):
        D.CelebA(tmp_path, target_type="age")[0]
    assert "    Target type: ['attr']\n    Split: train" in repr(data)


def test_omniglot(tmp_path, monkeypatch):
    folder = tmp_path / "omniglot-py"
    files.omniglot(folder / "images_background")
    files.write(folder / "images_background.zip", b"packed")
    md5 = files.md5(folder / "images_background.zip")
    monkeypatch.setitem(D.Omniglot.zips_md5, "images_background", md5)
    data = D.Omniglot(tmp_path)
    assert data._alphabets == ["Greek", "Tagalog"] and targets(data) == [0, 0, 1, 1, 2, 2]
    assert data._flat_character_images[2] == ("0001_01.png", 1)
    image, number = data[0]
    assert (image.mode, image.size, number) == ("L", (6, 5), 0)
    path = D.Omniglot(tmp_path, loader=str, target_transform=str)[4]
    assert path == (str(folder / "images_background/Tagalog/character02/0002_01.png"), "2")
    with pytest.raises(RuntimeError, match="Dataset not found or corrupted"):
        D.Omniglot(tmp_path, background=False)


def test_kitti(tmp_path):
    files.kitti(tmp_path / "Kitti" / "raw")
    data = D.Kitti(tmp_path)
    assert len(data) == 3 and data[1][1] == []
    image, objects = data[0]
    assert image.size == (6, 5) and [o["type"] for o in objects] == ["Car", "DontCare"]
    assert objects[0] == {
        "type": "Car",
        "truncated": 0.0,
        "occluded": 1,
        "alpha": 1.85,
        "bbox": [387.63, 181.54, 423.81, 203.12],
        "dimensions": [1.67, 1.87, 3.69],
        "location": [-16.53, 2.39, 58.49],
        "rotation_y": 1.57,
    }
    assert objects[1]["occluded"] == -1 and type(objects[1]["occluded"]) is int
    test = D.Kitti(tmp_path, train=False, transforms=lambda x, y: (x.size, y))
    assert list(test) == [((6, 5), None)] * 2
    assert D.Kitti(tmp_path, target_transform=len)[2][1] == 2


@pytest.mark.parametrize(("mode", "split"), [("fine", "val"), ("coarse", "train_extra")])
def test_cityscapes(tmp_path, mode, split):
    folder = "gtFine" if mode == "fine" else "gtCoarse"
    with pytest.raises(RuntimeError, match="Dataset not found or incomplete"):
        D.Cityscapes(tmp_path, split, mode)
    files.cityscapes(tmp_path, folder, split)
    kinds = ["instance", "semantic", "color", "polygon"]
    data = D.Cityscapes(tmp_path, split, mode, kinds)
    assert [path.rpartition("/")[2] for path in data.images] == [
        f"{name}_000019_leftImg8bit.png"
        for name in ("aachen_000000", "bochum_000000", "bochum_000001")
    ]
    image, (instances, labels, colors, polygons) = data[2]
    assert (image.mode, labels.mode, colors.mode) == ("RGB", "L", "RGB")
    assert np.unique(np.asarray(instances)).tolist() == [7, 26001, 26002]
    assert polygons["imgWidth"] == 6
    alone = D.Cityscapes(tmp_path, split, mode, "polygon", transforms=lambda x, y: (x.size, y))
    assert alone[0] == ((6, 5), polygons)
    assert f"    Split: {split}\n    Mode: {folder}\n    Type: ['polygon']" in repr(alone)
    with pytest.raises(ValueError, match="Unknown value 'all' for argument split if mode is"):
        D.Cityscapes(tmp_path, "all", mode)
    with pytest.raises(ValueError, match="Unknown value 'depth' for argument target_type"):
        D.Cityscapes(tmp_path, split, mode, ["color", "depth"])


def test_classes_of_cityscapes():
    """Some of https://github.com/mcordts/cityscapesScripts, labels.py."""
    classes = D.Cityscapes.classes
    assert [c.id for c in classes] == [*range(34), -1]
    learned = [c for c in classes if c.train_id not in (255, -1)]
    assert [c.train_id for c in learned] == [*range(19)]
    assert all(c.ignore_in_eval == (c not in learned) for c in classes)
    assert tuple(classes[26]) == ("car", 26, 13, "vehicle", 7, True, False, (0, 0, 142))
    assert tuple(classes[17]) == ("pole", 17, 5, "object", 3, False, False, (153, 153, 153))
    assert tuple(classes[5]) == ("dynamic", 5, 255, "void", 0, False, True, (111, 74, 0))
    assert isinstance(classes[34], D.Cityscapes.CityscapesClass)
    assert classes[34].name == "license plate" and not classes[34].has_instances


def test_imagenet(tmp_path, monkeypatch):
    files.imagenet(tmp_path / "root")
    root = tmp_path / "root"
    with pytest.raises(RuntimeError, match=r"devkit_t12.tar.gz is not present .* or is corrupted"):
        D.ImageNet(root)
    known = {k: (name, files.md5(root / name)) for k, (name, _) in imagenet.ARCHIVE_META.items()}
    monkeypatch.setattr(imagenet, "ARCHIVE_META", known)
    data = D.ImageNet(root, transform=T.PILToTensor())
    assert data.wnids == ["n02100735", "n02119789"] and targets(data) == [0, 0, 1]
    assert data.classes == [("English setter",), ("kit fox", "Vulpes macrotis")]
    assert data.class_to_idx == {"English setter": 0, "kit fox": 1, "Vulpes macrotis": 1}
    names = [path.rpartition("/")[2] for path, _ in D.ImageNet(root, "val").samples]
    assert names == [f"ILSVRC2012_val_0000000{i}.JPEG" for i in (1, 3, 2)]
    for name, _ in known.values():
        (root / name).unlink()
    again = D.ImageNet(root, "val")  # all is unpacked
    assert targets(again) == [0, 0, 1] and "Split: val" in repr(again)
    assert sorted(p.name for p in root.iterdir()) == ["meta.bin", "train", "val"]
