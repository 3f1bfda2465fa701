"""Models of images with torchvision's constructors and the names of its state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

from torchlab.vision.models import (
    alexnet as _alexnet,
)
from torchlab.vision.models import (
    convnext as _convnext,
)
from torchlab.vision.models import (
    densenet as _densenet,
)
from torchlab.vision.models import (
    detection,
    inception,
    maxvit,
    mobilenetv2,
    mobilenetv3,
    optical_flow,
    regnet,
    segmentation,
    shufflenetv2,
    swin_transformer,
    video,
    vision_transformer,
)
from torchlab.vision.models import (
    efficientnet as _efficientnet,
)
from torchlab.vision.models import (
    googlenet as _googlenet,
)
from torchlab.vision.models import (
    mnasnet as _mnasnet,
)
from torchlab.vision.models import (
    resnet as _resnet,
)
from torchlab.vision.models import (
    squeezenet as _squeezenet,
)
from torchlab.vision.models import (
    vgg as _vgg,
)
from torchlab.vision.models._api import (
    Weights,
    WeightsEnum,
    get_model,
    get_model_builder,
    get_model_weights,
    get_weight,
    list_models,
)

_PARTS = (
    _alexnet, _convnext, _densenet, _efficientnet, _googlenet, inception, maxvit, _mnasnet,
    mobilenetv2, mobilenetv3, regnet, _resnet, shufflenetv2, _squeezenet, swin_transformer, _vgg,
    vision_transformer,
)  # fmt: skip
for _part in _PARTS:
    globals().update({name: getattr(_part, name) for name in _part.__all__})

__all__ = [
    "Weights", "WeightsEnum", "detection", "get_model", "get_model_builder", "get_model_weights",
    "get_weight", "list_models", "optical_flow", "segmentation", "video",
]  # fmt: skip
__all__ += [name for part in _PARTS for name in part.__all__]
