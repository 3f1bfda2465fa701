"""`torchvision.transforms.transforms`: the transform classes (version 1).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#v1-api-reference
"""

from torchlab.vision.transforms._colours import (
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from torchlab.vision.transforms._containers import (
    Compose,
    Lambda,
    RandomApply,
    RandomChoice,
    RandomOrder,
)
from torchlab.vision.transforms._crops import (
    CenterCrop,
    FiveCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms._values import (
    ConvertImageDtype,
    LinearTransformation,
    Normalize,
    PILToTensor,
    RandomErasing,
    ToPILImage,
    ToTensor,
)
from torchlab.vision.transforms._warps import (
    ElasticTransform,
    GaussianBlur,
    RandomAffine,
    RandomPerspective,
    RandomRotation,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "ElasticTransform",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "LinearTransformation",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToPILImage",
    "ToTensor",
]
