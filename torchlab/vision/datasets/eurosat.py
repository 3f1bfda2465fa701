"""EuroSAT (Helber et al. 2019, arXiv:1709.00029): satellite images of ten kinds of land.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.EuroSAT.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import ImageFolder, default_loader
from torchlab.vision.datasets.listed import Loader
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive
from torchlab.vision.datasets.vision import Transform


class EuroSAT(ImageFolder):
    """(image, class's number). The files are in root/eurosat/2750."""

    _URL = (
        "https://huggingface.co/datasets/torchgeo/eurosat/resolve/"
        "c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip"
    )
    _MD5 = "c8fa014336c82ac7804f0398fcb19387"

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        self.root = os.path.expanduser(root)
        self._base_folder = os.path.join(self.root, "eurosat")
        self._data_folder = os.path.join(self._base_folder, "2750")
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        super().__init__(self._data_folder, transform, target_transform, loader)
        self.root = os.path.expanduser(root)

    def _check_exists(self) -> bool:
        return os.path.exists(self._data_folder)

    def download(self) -> None:
        """The archive, unpacked."""
        if not self._check_exists():
            download_and_extract_archive(self._URL, self._base_folder, md5=self._MD5)
