"""Small files in the formats of the public data sets, as their archives hold them."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import json
import lzma
import pathlib
import tarfile
import zipfile
from typing import Any

import numpy as np
import scipy.io
from PIL import Image

RNG = np.random.default_rng(5)


def md5(path: pathlib.Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def write(path: pathlib.Path, content: str | bytes) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content)
    else:
        path.write_bytes(content)
    return path


def image(path: pathlib.Path, size: tuple[int, int] = (6, 5), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
    Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8)).save(path)


def matrix(path: pathlib.Path, **values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, values)


def idx(array: np.ndarray, code: int = 8) -> bytes:
    shape = np.asarray(array.shape, ">i4").tobytes()
    return bytes([0, 0, code, array.ndim]) + shape + array.tobytes()


def digits(n: int) -> np.ndarray:
    return RNG.integers(0, 256, (n, 28, 28), dtype=np.uint8)


def emnist(folder: pathlib.Path, packed: bool = False) -> None:
    """Unpacked files, or the folder `gzip` of the archive."""
    for part, n in (("train", 4), ("test", 2)):
        labels = RNG.integers(1, 27, n, dtype=np.uint8)
        for what, array in (("images-idx3", digits(n)), ("labels-idx1", labels)):
            name, content = f"emnist-letters-{part}-{what}-ubyte", idx(array)
            if packed:
                write(folder / "gzip" / f"{name}.gz", gzip.compress(content))
            else:
                write(folder / name, content)


def qmnist(folder: pathlib.Path, packed: bool = False) -> None:
    for what, n, pack, end in (
        ("qmnist-train", 3, gzip.compress, "gz"),
        ("qmnist-test", 10002, gzip.compress, "gz"),
        ("xnist", 2, lzma.compress, "xz"),
    ):
        labels = RNG.integers(0, 10, (n, 8)).astype(">i4")
        for name, content in (
            (f"{what}-images-idx3-ubyte", idx(digits(n))),
            (f"{what}-labels-idx2-int", idx(labels, 12)),
        ):
            if packed:
                write(folder / f"{name}.{end}", pack(content))
            else:
                write(folder / name, content)


def usps(folder: pathlib.Path) -> None:
    for name, n in (("usps.bz2", 3), ("usps.t.bz2", 2)):
        rows = RNG.uniform(-1, 1, (n, 256)).round(4)
        rows[0, :2] = -1, 1
        text = "\n".join(
            f"{k + 1} " + " ".join(f"{i + 1}:{x}" for i, x in enumerate(row)) + " "
            for k, row in enumerate(rows)
        )
        write(folder / name, bz2.compress((text + "\n").encode()))


def svhn(folder: pathlib.Path) -> None:
    for part, labels in (("train", [1, 10, 3]), ("test", [10, 2]), ("extra", [7, 10])):
        pixels = RNG.integers(0, 256, (32, 32, 3, len(labels)), dtype=np.uint8)
        matrix(folder / f"{part}_32x32.mat", X=pixels, y=np.array(labels, np.uint8)[:, None])


def stl10(folder: pathlib.Path) -> None:
    base = folder / "stl10_binary"
    for part, labels in (("train", [1, 10, 3, 4]), ("test", [2, 5]), ("unlabeled", [0])):
        pixels = RNG.integers(0, 256, (len(labels), 3, 96, 96), dtype=np.uint8)
        write(base / f"{part}_X.bin", pixels.tobytes())
        if part != "unlabeled":
            write(base / f"{part}_y.bin", bytes(labels))
    write(base / "class_names.txt", "airplane\nbird\ncar\n")
    write(base / "fold_indices.txt", "\n".join(f"{i % 4} {(i + 1) % 4} " for i in range(10)) + "\n")


def caltech101(folder: pathlib.Path) -> None:
    for name, other, n in (
        ("BACKGROUND_Google", None, 1), ("Faces", "Faces_2", 2), ("accordion", "accordion", 3),
    ):  # fmt: skip
        for i in range(1, n + 1):
            path = folder / "101_ObjectCategories" / name / f"image_{i:04d}.jpg"
            image(path, mode="L" if name == "accordion" and i == 1 else "RGB")
            if other is not None:
                path = folder / "Annotations" / other / f"annotation_{i:04d}.mat"
                matrix(path, obj_contour=RNG.uniform(0, 5, (2, 7)))


def caltech256(folder: pathlib.Path) -> None:
    for k, name in enumerate(("ak47", "american-flag")):
        base = folder / "256_ObjectCategories" / f"{k + 1:03d}.{name}"
        for i in range(1, 3 + k):
            image(base / f"{k + 1:03d}_{i:04d}.jpg")
        write(base / "RENAME2", "")


ONE_OBJECT = """<annotation><folder>VOC2012</folder><filename>a.jpg</filename>
<source><database>The VOC2007 Database</database></source><empty/>
<size><width>6</width><height>5</height><depth>3</depth></size><segmented>0</segmented>
<object><name>dog</name><pose>Left</pose>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>4</xmax><ymax>5</ymax></bndbox></object>
</annotation>
"""
TWO_OBJECTS = """<annotation>
    <folder>VOC2012</folder>
    <object><name>dog</name>
    <bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>2</ymax></bndbox></object>
    <object>
        <name>person</name>
        <bndbox><xmin>2</xmin><ymin>1</ymin><xmax>6</xmax><ymax>5</ymax></bndbox>
        <part><name>head</name><bndbox><xmin>1.5</xmin></bndbox></part>
        <part><name>foot</name><bndbox><xmin>2</xmin></bndbox></part>
    </object>
</annotation>
"""


def voc(folder: pathlib.Path, year: str = "2012") -> None:
    base = folder / "VOCdevkit" / f"VOC{year}"
    for name, text in (("a", ONE_OBJECT), ("b", TWO_OBJECTS)):
        image(base / "JPEGImages" / f"{name}.jpg")
        image(base / "SegmentationClass" / f"{name}.png", mode="L")
        write(base / "Annotations" / f"{name}.xml", text)
    for kind in ("Main", "Segmentation"):
        write(base / "ImageSets" / kind / "train.txt", "a\nb\n")
        write(base / "ImageSets" / kind / "val.txt", "b\n")
        write(base / "ImageSets" / kind / "test.txt", "a\n")


def coco(folder: pathlib.Path) -> None:
    image(folder / "images" / "b.jpg")
    image(folder / "images" / "a.png", mode="L")
    image(folder / "images" / "none.jpg")
    images = [
        {"id": 9, "file_name": "b.jpg", "height": 5, "width": 6},
        {"id": 4, "file_name": "a.png", "height": 5, "width": 6},
        {"id": 7, "file_name": "none.jpg", "height": 5, "width": 6},
    ]
    objects = [
        {"id": 1, "image_id": 9, "category_id": 3, "bbox": [0, 1, 2, 3.5], "area": 7.0,
         "iscrowd": 0, "segmentation": [[0, 1, 2, 1, 2, 4]]},
        {"id": 2, "image_id": 4, "category_id": 1, "bbox": [1, 1, 1, 1], "area": 1.0, "iscrowd": 0,
         "segmentation": []},
        {"id": 3, "image_id": 9, "category_id": 1, "bbox": [1, 1, 2, 1], "area": 2.0, "iscrowd": 1,
         "segmentation": {"counts": [1, 2], "size": [5, 6]}},
    ]  # fmt: skip
    kinds = [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}]
    said = [
        {"id": 1, "image_id": 9, "caption": "a car"},
        {"id": 2, "image_id": 4, "caption": "a person"},
        {"id": 3, "image_id": 9, "caption": "a crowd"},
    ]
    write(
        folder / "instances.json",
        json.dumps({"images": images, "annotations": objects, "categories": kinds}),
    )
    write(folder / "captions.json", json.dumps({"images": images, "annotations": said}))


def oxford_iiit_pet(folder: pathlib.Path) -> None:
    pets = (("Abyssinian_1", 1, 1), ("american_bulldog_12", 2, 2), ("Abyssinian_3", 1, 1))
    for name, _, _ in pets:
        image(folder / "images" / f"{name}.jpg")
        image(folder / "annotations" / "trimaps" / f"{name}.png", mode="L")
    lines = [f"{name} {breed} {kind} 1\n" for name, breed, kind in pets]
    write(folder / "annotations" / "trainval.txt", "".join(lines))
    write(folder / "annotations" / "test.txt", lines[1])


def flowers102(folder: pathlib.Path) -> None:
    for i in range(1, 7):
        image(folder / "jpg" / f"image_{i:05d}.jpg")
    labels = np.array([[77, 77, 3, 3, 102, 1]], np.uint8)
    matrix(folder / "imagelabels.mat", labels=labels)
    ids = {"trnid": [[6, 1]], "valid": [[2]], "tstid": [[3, 4, 5]]}
    matrix(folder / "setid.mat", **{k: np.array(v, np.uint16) for k, v in ids.items()})


def food101(folder: pathlib.Path) -> None:
    parts = {
        "train": {"waffles": ["waffles/10", "waffles/9"], "apple_pie": ["apple_pie/1"]},
        "test": {"waffles": ["waffles/8"], "apple_pie": ["apple_pie/2"]},
    }
    for part, names in parts.items():
        write(folder / "food-101" / "meta" / f"{part}.json", json.dumps(names))
        for name in sum(names.values(), []):
            image(folder / "food-101" / "images" / f"{name}.jpg")


def dtd(folder: pathlib.Path) -> None:
    names = ("banded/banded_0002.jpg", "zigzagged/zigzagged_1.jpg", "banded/banded_0005.jpg")
    for name in names:
        image(folder / "dtd" / "images" / name)
    write(folder / "dtd" / "labels" / "train1.txt", "\n".join(names) + "\n")
    write(folder / "dtd" / "labels" / "val3.txt", names[1] + "\n")


def gtsrb(folder: pathlib.Path) -> None:
    for k in (0, 14):
        for i in range(2):
            image(folder / "GTSRB" / "Training" / f"{k:05d}" / f"0000{i}.ppm")
        write(folder / "GTSRB" / "Training" / f"{k:05d}" / "GT.csv", "no image")
    rows = [["Filename", "Width", "ClassId"], ["00001.ppm", "6", "14"], ["00000.ppm", "6", "3"]]
    for name in ("00000.ppm", "00001.ppm"):
        image(folder / "GTSRB" / "Final_Test" / "Images" / name)
    with open(folder / "GT-final_test.csv", "w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)


def classes(folder: pathlib.Path, names: tuple[str, ...], end: str) -> None:
    """Two images for each class."""
    for name in names:
        for i in range(2):
            image(folder / name / f"{name}_{i}{end}")


def rendered_sst2(folder: pathlib.Path) -> None:
    for part in ("train", "valid", "test"):
        classes(folder / "rendered-sst2" / part, ("negative", "positive"), ".png")


def country211(folder: pathlib.Path) -> None:
    for part in ("train", "valid", "test"):
        classes(folder / "country211" / part, ("AD", "CH"), ".jpg")


def imagenette(folder: pathlib.Path, end: str = "-160") -> None:
    for part in ("train", "val"):
        classes(folder / f"imagenette2{end}" / part, ("n02102040", "n01440764"), ".JPEG")


def fgvc_aircraft(folder: pathlib.Path) -> None:
    data = folder / "fgvc-aircraft-2013b" / "data"
    write(data / "variants.txt", "707-320\nBoeing 737-700\n")
    write(data / "families.txt", "Boeing 707\nBoeing 737\n")
    write(data / "manufacturers.txt", "Airbus\nBoeing\n")
    write(data / "images_variant_trainval.txt", "0034309 Boeing 737-700\n0034310 707-320\n")
    write(data / "images_family_test.txt", "0034311 Boeing 707\n")
    write(data / "images_manufacturer_val.txt", "0034309 Boeing\n")
    for i in (309, 310, 311):
        image(data / "images" / f"0034{i}.jpg")


def stanford_cars(folder: pathlib.Path) -> None:
    kind = [(name, "O") for name in ("bbox_x1", "class", "fname")]
    for part, path, cars in (
        ("train", "devkit/cars_train_annos.mat", [(2, "00001.jpg"), (1, "00002.jpg")]),
        ("test", "cars_test_annos_withlabels.mat", [(1, "00001.jpg"), (1, "00002.jpg")]),
    ):
        rows = np.array([(1, number, name) for number, name in cars], dtype=kind)
        matrix(folder / path, annotations=rows)
        for _, name in cars:
            image(folder / f"cars_{part}" / name)
    names = np.array(["AM General Hummer SUV 2000", "Acura RL Sedan 2012"], dtype=object)
    matrix(folder / "devkit" / "cars_meta.mat", class_names=names)


def semeion(folder: pathlib.Path) -> None:
    rows = np.zeros((3, 266))
    rows[:, :256] = RNG.integers(0, 2, (3, 256))
    rows[range(3), [256 + 7, 256, 256 + 9]] = 1
    lines = (
        " ".join(f"{x:.4f}" for x in row[:256]) + " " + " ".join(f"{x:.0f}" for x in row[256:])
        for row in rows
    )
    write(folder / "semeion.data", " \n".join(lines) + " \n")


def moving_mnist(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "mnist_test_seq.npy", RNG.integers(0, 256, (20, 3, 64, 64), dtype=np.uint8))


def imagenet(folder: pathlib.Path) -> None:
    """The three archives, with two classes."""
    source = folder.parent / "imagenet_sources"
    kit = source / "kit" / "ILSVRC2012_devkit_t12" / "data"
    kind = [(name, "O") for name in ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")]
    synsets = np.array(
        [
            (1, "n02119789", "kit fox, Vulpes macrotis", "a fox", 0),
            (2, "n02100735", "English setter", "a dog", 0),
            (3, "n00000003", "animal", "a group", 2),
        ],
        dtype=kind,
    )
    matrix(kit / "meta.mat", synsets=synsets)
    write(kit / "ILSVRC2012_validation_ground_truth.txt", "2\n1\n2\n")
    for i in (3, 1, 2):
        image(source / "val" / f"ILSVRC2012_val_0000000{i}.JPEG")
    for k, wnid in enumerate(("n02119789", "n02100735")):
        for i in range(k + 1):
            image(source / wnid / f"{wnid}_{i}.JPEG")
        (source / "train").mkdir(exist_ok=True)
        with tarfile.open(source / "train" / f"{wnid}.tar", "w") as archive:
            for path in sorted((source / wnid).iterdir()):
                archive.add(path, path.name)
    folder.mkdir(parents=True, exist_ok=True)
    for part, name in (
        ("kit", "ILSVRC2012_devkit_t12.tar.gz"),
        ("train", "ILSVRC2012_img_train.tar"),
        ("val", "ILSVRC2012_img_val.tar"),
    ):
        with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as archive:
            for path in sorted((source / part).iterdir()):
                archive.add(path, path.name)


CELEBA = (("000001.jpg", 0), ("000002.jpg", 2), ("000003.jpg", 0), ("000004.jpg", 1))


def celeba(folder: pathlib.Path, unpacked: bool = True) -> None:
    """The tables, and the images as a folder or in their archive."""
    names = [name for name, _ in CELEBA]

    def table(name: str, rows: Any, *head: str) -> None:
        lines = [*head, *(f"{a}  {' '.join(str(x) for x in row)}" for a, row in rows)]
        write(folder / name, "\n".join(lines) + "\n")

    attributes = " ".join(f"Attribute_{i}" for i in range(40)) + " "
    signs = [(n, [1 if (k + i) % 3 else -1 for i in range(40)]) for k, n in enumerate(names)]
    table("list_attr_celeba.txt", signs, "4", attributes)
    table("identity_CelebA.txt", [(n, [2880 + k]) for k, n in enumerate(names)])
    boxes = [(n, [95 + k, 71, 226, 313]) for k, n in enumerate(names)]
    table("list_bbox_celeba.txt", boxes, "4", "image_id x_1 y_1 width height")
    points = [(n, range(69 + k, 79 + k)) for k, n in enumerate(names)]
    table("list_landmarks_align_celeba.txt", points, "4", "lefteye_x lefteye_y righteye_x")
    table("list_eval_partition.txt", [(name, [part]) for name, part in CELEBA])
    for name in names:
        image(folder / "img_align_celeba" / name)
    if not unpacked:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            for name in names:
                path = folder / "img_align_celeba" / name
                archive.write(path, f"img_align_celeba/{name}")
                path.unlink()
        (folder / "img_align_celeba").rmdir()


def omniglot(folder: pathlib.Path) -> None:
    for alphabet, characters in (("Tagalog", 2), ("Greek", 1)):
        for c in range(1, characters + 1):
            for k in (2, 1):
                name = f"{c:04d}_{k:02d}.png"
                image(folder / alphabet / f"character{c:02d}" / name, mode="L")


KITTI = """\
Car 0.00 1 1.85 387.63 181.54 423.81 203.12 1.67 1.87 3.69 -16.53 2.39 58.49 1.57
DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10
"""


def kitti(folder: pathlib.Path) -> None:
    for i in range(3):
        image(folder / "training" / "image_2" / f"{i:06d}.png")
        write(folder / "training" / "label_2" / f"{i:06d}.txt", KITTI if i != 1 else "")
    for i in range(2):
        image(folder / "testing" / "image_2" / f"{i:06d}.png")


def cityscapes(folder: pathlib.Path, mode: str = "gtFine", split: str = "train") -> None:
    for city, n in (("bochum", 2), ("aachen", 1)):
        for i in range(n):
            start = f"{city}_{i:06d}_000019"
            image(folder / "leftImg8bit" / split / city / f"{start}_leftImg8bit.png")
            labels = folder / mode / split / city
            numbers = np.full((5, 6), 7, np.uint16)
            numbers[1:3], numbers[3:] = 26001, 26002
            labels.mkdir(parents=True, exist_ok=True)
            Image.fromarray(numbers).save(labels / f"{start}_{mode}_instanceIds.png")
            image(labels / f"{start}_{mode}_labelIds.png", mode="L")
            image(labels / f"{start}_{mode}_color.png")
            found = {"imgHeight": 5, "imgWidth": 6, "objects": [{"label": "car", "polygon": []}]}
            write(labels / f"{start}_{mode}_polygons.json", json.dumps(found))
