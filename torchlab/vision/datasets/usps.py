"""USPS (Hull 1994): 16 x 16 pixels in gray of digits on envelopes, in LIBSVM's text format.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.USPS.html
"""

from __future__ import annotations

import bz2
import os
from typing import Any

import numpy as np

from torchlab.vision.datasets.utils import download_url
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image

_FROM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


class USPS(VisionDataset):
    """(Pillow image, digit). The file is root/usps.bz2 (usps.t.bz2 for tests).

    Attributes: data (N, 16, 16), a NumPy array of bytes; targets, a list.
    """

    split_list = {
        "train": [_FROM + "usps.bz2", "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"],
        "test": [_FROM + "usps.t.bz2", "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"],
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        url, name, md5 = self.split_list["train" if train else "test"]
        path = os.path.join(str(self.root), name)
        if download and not os.path.exists(path):
            download_url(url, str(self.root), name, md5)
        with bz2.open(path, "rt") as file:
            rows = [line.split() for line in file]
        # A line is "label 1:value 2:value …", labels from 1, values from -1 to 1.
        values = [[item.partition(":")[2] for item in row[1:]] for row in rows]
        pixels = np.asarray(values, np.float32).reshape(-1, 16, 16)
        self.data = ((pixels + 1) / 2 * 255).astype(np.uint8)
        self.targets = [int(row[0]) - 1 for row in rows]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(to_pil_image(self.data[index]), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)
