"""Models of pixels' classes against what torchvision gave for the same seed and made images."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import torchlab as torch
from tests.vision.model_facts import facts, same, wave
from torchlab.vision import models
from torchlab.vision.models import segmentation
from torchlab.vision.models.segmentation.deeplabv3 import DeepLabHead
from torchlab.vision.models.segmentation.fcn import FCNHead
from torchlab.vision.models.segmentation.lraspp import LRASPP

PLAIN: dict[str, Any] = {"weights_backbone": None}


class Maps(torch.nn.Module):
    """Two maps of an image, a quarter and an eighth of its size."""

    def __init__(self, fine: str, coarse: str) -> None:
        super().__init__()
        self.fine, self.coarse = fine, coarse
        self.first = torch.nn.Conv2d(3, 8, 3, stride=4, padding=1)
        self.second = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)

    def forward(self, x: Any) -> Any:
        fine = self.first(x)
        return OrderedDict([(self.fine, fine), (self.coarse, self.second(fine))])


BATCH = (wave(2, 3, 40, 48),)
CASES: dict[str, Any] = {
    "fcn": (
        lambda: segmentation.FCN(Maps("aux", "out"), FCNHead(16, 3), FCNHead(8, 3)), True,
    ),
    "deeplab": (
        lambda: segmentation.DeepLabV3(Maps("aux", "out"), DeepLabHead(16, 3, (1, 2)), None), False,
    ),
    "lraspp": (lambda: LRASPP(Maps("low", "high"), 8, 16, 3, 8), True),
    "fcn_resnet50": (
        lambda: segmentation.fcn_resnet50(num_classes=3, aux_loss=True, **PLAIN), False,
    ),
    "deeplabv3_mobilenet_v3_large": (
        lambda: segmentation.deeplabv3_mobilenet_v3_large(num_classes=3, aux_loss=True, **PLAIN),
        True,
    ),
    "lraspp_mobilenet_v3_large": (
        lambda: segmentation.lraspp_mobilenet_v3_large(num_classes=3, **PLAIN), False,
    ),
}  # fmt: skip
EXPECTED: dict[str, list[Any]] = {
    "fcn": [
        "08715aae", "027c5d7b", 2148, 8.91301448, 142.988145, -4085.13045, 70.4046671,
        -583.587195, 70.6002544,
    ],
    "deeplab": [
        "901db68e", "49495e8b", 939123, 3084.34181, 17508.7882, -52.4081868, 0.660979897,
    ],
    "lraspp": [
        "5fcebd2b", "a7c4ff12", 1718, 13.2062797, 149.564779, -2320.4962, 33.1671544,
    ],
    "fcn_resnet50": [
        "086e7d64", "52cceb4a", 35308358, 54563.0875, 816867.112, -2935.3194, 136.617664,
        -3413.93258, 177.197407,
    ],
    "deeplabv3_mobilenet_v3_large": [
        "2a5d3cf5", "70e62978", 11024504, 28056.8212, 268659.96, 1910.90015, 55.9111042,
        2043.2156, 41.5788373,
    ],
    "lraspp_mobilenet_v3_large": [
        "b5d1f653", "ed8c088c", 3218478, 24684.4027, 214845.658, 251.484566, 11.6162551,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_facts(name: str) -> None:
    build, train = CASES[name]
    same(facts(build, *BATCH, train=train), EXPECTED[name])


# the numbers in torchvision's tables are with the head that only learns
PARAMETERS = {
    "fcn_resnet50": 35_322_218, "fcn_resnet101": 54_314_346, "deeplabv3_resnet50": 42_004_074,
    "deeplabv3_resnet101": 60_996_202, "deeplabv3_mobilenet_v3_large": 11_029_328,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name, aux_loss=True, **PLAIN)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]
    kind = models.get_model_weights(name)
    assert kind.DEFAULT.meta["num_params"] == PARAMETERS[name]
    assert len(kind.DEFAULT.meta["categories"]) == 21


def test_outputs() -> None:
    model = segmentation.FCN(Maps("aux", "out"), FCNHead(16, 3)).eval()
    out = model(torch.zeros(1, 3, 33, 35))
    assert type(out) is OrderedDict
    assert {k: tuple(v.shape) for k, v in out.items()} == {"out": (1, 3, 33, 35)}
    with torch.device("meta"):
        model = segmentation.deeplabv3_resnet50(aux_loss=True, **PLAIN)
    assert model.backbone.return_layers == {"layer4": "out", "layer3": "aux"}
    with pytest.raises(NotImplementedError, match="does not use auxiliary loss"):
        segmentation.lraspp_mobilenet_v3_large(aux_loss=True)


def test_weights_fix_the_classes() -> None:
    for facts_ in ({"num_classes": 3}, {"aux_loss": False}):
        with pytest.raises(ValueError, match="expected value"):
            segmentation.fcn_resnet50(weights="DEFAULT", **facts_)
