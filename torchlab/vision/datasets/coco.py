"""COCO (Lin et al. 2014, arXiv:1405.0312): photographs with objects or captions, in one JSON file.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.CocoDetection.html
"""

from __future__ import annotations

import json
import os
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")


class Index:
    """What a COCO file holds, with the names that pycocotools' class COCO has for it."""

    def __init__(self, annotation_file: str | os.PathLike[str]) -> None:
        with open(annotation_file) as file:
            self.dataset: dict[str, Any] = json.load(file)
        self.imgs: dict[int, Any] = {img["id"]: img for img in self.dataset.get("images", [])}
        self.cats: dict[int, Any] = {cat["id"]: cat for cat in self.dataset.get("categories", [])}
        self.anns: dict[int, Any] = {}
        self.imgToAnns: dict[int, list[Any]] = {}
        for ann in self.dataset.get("annotations", []):
            self.anns[ann["id"]] = ann
            self.imgToAnns.setdefault(ann["image_id"], []).append(ann)

    def getAnnIds(self, imgIds: Any) -> list[int]:  # pycocotools' names
        """The ids of the annotations of one image or several."""
        ids = imgIds if isinstance(imgIds, (list, tuple)) else [imgIds]
        return [ann["id"] for i in ids for ann in self.imgToAnns.get(i, [])]

    def loadAnns(self, ids: Any) -> list[Any]:  # pycocotools' name
        """Annotations by their ids."""
        return [self.anns[i] for i in (ids if isinstance(ids, (list, tuple)) else [ids])]

    def loadImgs(self, ids: Any) -> list[Any]:  # pycocotools' name
        """What is known of images, by their ids."""
        return [self.imgs[i] for i in (ids if isinstance(ids, (list, tuple)) else [ids])]

    def loadCats(self, ids: Any) -> list[Any]:  # pycocotools' name
        """Categories by their ids."""
        return [self.cats[i] for i in (ids if isinstance(ids, (list, tuple)) else [ids])]

    def getCatIds(self) -> list[int]:  # pycocotools' name
        """The ids of all categories."""
        return list(self.cats)


class CocoDetection(VisionDataset):
    """(Pillow image, list of the image's annotations). root: the images' folder; annFile: the JSON
    file. Attributes: ids, the images in the order of their ids; coco, an Index (masks, which
    pycocotools decodes, stay as the file has them)."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        annFile: str,  # PyTorch's name
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        transforms: Transform | None = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.coco = Index(annFile)
        self.ids = sorted(self.coco.imgs)

    def _load_image(self, id: int) -> Any:
        name = self.coco.loadImgs(id)[0]["file_name"]
        return PIL.open(os.path.join(str(self.root), name)).convert("RGB")

    def _load_target(self, id: int) -> list[Any]:
        return self.coco.loadAnns(self.coco.getAnnIds(id))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        id = self.ids[index]
        image, target = self._load_image(id), self._load_target(id)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """(Pillow image, list of its captions)."""

    def _load_target(self, id: int) -> list[str]:
        return [ann["caption"] for ann in super()._load_target(id)]
