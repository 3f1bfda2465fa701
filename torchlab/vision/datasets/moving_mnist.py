"""Moving MNIST (Srivastava et al. 2015, arXiv:1502.04681): films of two digits that bounce.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.MovingMNIST.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab.vision.datasets.utils import download_url, verify_str_arg
from torchlab.vision.datasets.vision import Transform, VisionDataset


class MovingMNIST(VisionDataset):
    """Films, tensors (T, 1, 64, 64) of bytes, of 20 frames. split: None, all frames; "train", the
    first `split_ratio` of them; "test", the others. The file is in root/MovingMNIST.

    Attributes: data (N, T, 1, 64, 64).
    """

    _URL = "http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy"
    _MD5 = "be083ec986bfe91a449d63653c411eb2"

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None = None,
        split_ratio: int = 10,
        download: bool = False,
        transform: Transform | None = None,
    ) -> None:
        super().__init__(root, transform=transform)
        self._base_folder = os.path.join(str(self.root), type(self).__name__)
        self._filename = os.path.basename(self._URL)
        if split is not None:
            verify_str_arg(split, "split", ("train", "test"))
        self.split = split
        if not isinstance(split_ratio, int):
            raise TypeError(f"`split_ratio` should be an integer, but got {type(split_ratio)}")
        if not 1 <= split_ratio <= 19:
            raise ValueError(
                f"`split_ratio` should be `1 <= split_ratio <= 19`, but got {split_ratio} instead."
            )
        self.split_ratio = split_ratio
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it.")
        frames = np.load(os.path.join(self._base_folder, self._filename))
        if split == "train":
            frames = frames[:split_ratio]
        elif split == "test":
            frames = frames[split_ratio:]
        self.data = aten.from_numpy(frames).transpose(0, 1).unsqueeze(2).contiguous()

    def __getitem__(self, idx: int) -> Any:
        film = self.data[idx]
        return film if self.transform is None else self.transform(film)

    def __len__(self) -> int:
        return len(self.data)

    def _check_exists(self) -> bool:
        return os.path.exists(os.path.join(self._base_folder, self._filename))

    def download(self) -> None:
        """The file."""
        if not self._check_exists():
            download_url(self._URL, self._base_folder, self._filename, self._MD5)
