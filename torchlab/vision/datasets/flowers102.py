"""Oxford Flowers (Nilsback and Zisserman 2008): 102 kinds of flowers of the United Kingdom.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Flowers102.html
"""

from __future__ import annotations

import os
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.listed import ListedImages, Loader
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    check_integrity,
    download_and_extract_archive,
    download_url,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform

scipy_io = lazy("scipy.io")


_NAMES = """\
pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger
lily, moon orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot, king
protea, spear thistle, yellow iris, globe-flower, purple coneflower, peruvian lily, balloon
flower, giant white arum lily, fire lily, pincushion flower, fritillary, red ginger, grape
hyacinth, corn poppy, prince of wales feathers, stemless gentian, artichoke, sweet william,
carnation, garden phlox, love in the mist, mexican aster, alpine sea holly, ruby-lipped cattleya,
cape flower, great masterwort, siam tulip, lenten rose, barbeton daisy, daffodil, sword lily,
poinsettia, bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, common dandelion,
petunia, wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium, orange
dahlia, pink-yellow dahlia?, cautleya spicata, japanese anemone, black-eyed susan, silverbush,
californian poppy, osteospermum, spring crocus, bearded iris, windflower, tree poppy, gazania,
azalea, water lily, rose, thorn apple, morning glory, passion flower, lotus, toad lily, anthurium,
frangipani, clematis, hibiscus, columbine, desert-rose, tree mallow, magnolia, cyclamen,
watercress, canna lily, hippeastrum, bee balm, ball moss, foxglove, bougainvillea, camellia,
mallow, mexican petunia, bromelia, blanket flower, trumpet creeper, blackberry lily
"""


class Flowers102(ListedImages):
    """(image, class's number). split: "train", "val" or "test". The files are in
    root/flowers-102."""

    _download_url_prefix = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
    _file_dict = {
        "image": ("102flowers.tgz", "52808999861908f626f3c1f4e79d11fa"),
        "label": ("imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        "setid": ("setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    }
    _splits_map = {"train": "trnid", "val": "valid", "test": "tstid"}
    classes = " ".join(_NAMES.split()).split(", ")

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._base_folder = self._below("flowers-102")
        self._images_folder = self._base_folder / "jpg"
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        ids = self._read("setid")[self._splits_map[split]].ravel().tolist()
        labels = self._read("label")["labels"].ravel().tolist()
        self._labels = [labels[i - 1] - 1 for i in ids]  # both count from 1
        self._image_files = [self._images_folder / f"image_{i:05d}.jpg" for i in ids]

    def _read(self, what: str) -> dict[str, Any]:
        found: dict[str, Any] = scipy_io.loadmat(self._base_folder / self._file_dict[what][0])
        return found

    def _check_integrity(self) -> bool:
        files = (self._file_dict[what] for what in ("label", "setid"))
        return self._images_folder.is_dir() and all(
            check_integrity(self._base_folder / name, md5) for name, md5 in files
        )

    def download(self) -> None:
        """The images and the lists of labels and splits."""
        if self._check_integrity():
            return
        for what, (name, md5) in self._file_dict.items():
            load = download_and_extract_archive if what == "image" else download_url
            load(self._download_url_prefix + name, str(self._base_folder), md5=md5)

    def extra_repr(self) -> str:
        return f"split={self._split}"
