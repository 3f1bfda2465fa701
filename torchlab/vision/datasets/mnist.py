"""MNIST and its sisters: 28 x 28 pixels in gray, ten classes, in LeCun's IDX files.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#image-classification
"""

from __future__ import annotations

import gzip
import os
import shutil
import urllib.error
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.datasets.utils import download_url
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image

# The third byte of an IDX file says the type; numbers are big-endian.
_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """The array in an IDX file. ValueError for another file or one that ends early."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise ValueError(f"{path} is no IDX file: it begins with {data[:4]!r}")
    dims = data[3]
    shape = tuple(int(n) for n in np.frombuffer(data[: 4 + 4 * dims], ">i4", dims, 4))
    kind = np.dtype(_TYPES[data[2]])
    wanted = 4 + 4 * dims + int(np.prod(shape)) * kind.itemsize
    if len(data) != wanted:
        raise ValueError(f"{path} has {len(data)} bytes; its head {shape} says {wanted}")
    array = np.frombuffer(data, kind, offset=4 + 4 * dims).reshape(shape)
    return array.astype(kind.newbyteorder("="))


class MNIST(VisionDataset):
    """Handwritten digits: (Pillow image, digit). 60000 for training, 10000 for tests.

    root: the files are in root/MNIST/raw. Attributes: data (N, 28, 28) uint8, targets (N) int64.
    RuntimeError if the files are not there, without `download`.
    """

    mirrors = [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        self.data, self.targets = self._load_data()

    def _load_data(self) -> tuple[Tensor, Tensor]:
        part = "train" if self.train else "t10k"
        images = read_idx(os.path.join(self.raw_folder, f"{part}-images-idx3-ubyte"))
        labels = read_idx(os.path.join(self.raw_folder, f"{part}-labels-idx1-ubyte"))
        if images.dtype != np.uint8 or images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"{self.raw_folder}: {part} has images {images.dtype}{images.shape} and labels"
                f" {labels.shape}; (N, H, W) bytes and (N) were expected"
            )
        return aten.from_numpy(images), aten.from_numpy(labels.astype(np.int64))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(to_pil_image(self.data[index]), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    @property
    def raw_folder(self) -> str:
        return os.path.join(str(self.root), type(self).__name__, "raw")

    @property
    def processed_folder(self) -> str:
        return os.path.join(str(self.root), type(self).__name__, "processed")

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.classes)}

    def _check_exists(self) -> bool:
        return all(
            os.path.isfile(os.path.join(self.raw_folder, name.removesuffix(".gz")))
            for name, _ in self.resources
        )

    def download(self) -> None:
        """The files, from the first mirror that answers."""
        if self._check_exists():
            return
        for name, md5 in self.resources:
            errors = []
            for mirror in self.mirrors:
                try:
                    download_url(mirror + name, self.raw_folder, name, md5)
                    break
                except urllib.error.URLError as e:
                    errors.append(f"{mirror}: {e}")
            else:
                raise RuntimeError(f"Error downloading {name}: " + "; ".join(errors))
            packed = os.path.join(self.raw_folder, name)
            # The name without .gz appears when all is there.
            with gzip.open(packed) as source, open(packed + ".partial", "wb") as target:
                shutil.copyfileobj(source, target)
            os.replace(packed + ".partial", packed.removesuffix(".gz"))

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Zalando's articles (Xiao et al. 2017, arXiv:1708.07747)."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """Cursive Japanese characters (Clanuwat et al. 2018, arXiv:1812.01718)."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
