"""Images of noise, for trying things out.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import generator
from torchlab._core.dispatch.registry import aten
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image


class FakeData(VisionDataset):
    """`size` Pillow images of normal noise, each with a random class.

    image_size: (C, H, W). random_offset: image i is drawn with the seed i + random_offset; the
    default generator goes on as if nothing had been drawn.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.image_size = image_size
        self.num_classes = num_classes
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range: {index} of {len(self)}")
        own = generator.Generator()
        own.manual_seed(index + self.random_offset)
        noise = aten.randn(tuple(self.image_size), generator=own)
        target = int(aten.randint(0, self.num_classes, (1,), generator=own).item())
        return self._changed(to_pil_image(noise), target)

    def __len__(self) -> int:
        return self.size
