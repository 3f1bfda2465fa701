"""Facts of trained weights, and the functions that build models with them.

torchvision published the weights, with the accuracies, sizes and counts that the families' tables
repeat here.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab.vision.models import _meta
from torchlab.vision.models._api import Weights, WeightsEnum, register_model
from torchlab.vision.models._utils import (
    _ovewrite_named_param,
    _ovewrite_value_param,
    handle_legacy_interface,
)
from torchlab.vision.transforms._presets import ImageClassification, ObjectDetection

_ADDRESS = "https://download.pytorch.org/models/"
_VISION = "https://github.com/pytorch/vision/"
_PRESET = ("crop_size", "resize_size", "interpolation", "mean", "std")
PAPER = "Trained with a simple recipe, as in the paper."
NEW_RECIPE = "Trained with a recipe of torchvision's that improves upon the paper."
PORTED = "Taken over from the authors' own weights."


def known(
    file: str, transforms: Callable[..., Any], metrics: dict[str, dict[str, float]],
    params: int, ops: float, size: float, recipe: str, *, classes: str | None,
    min_size: int | tuple[int, int] | None = 1, docs: str = PAPER, **more: Any,
) -> Weights:  # fmt: skip
    """The facts of one file of weights.

    file: its name, without ".pth".
    params, ops, size: the number of parameters, 10⁹ multiplications of one image, MiB.
    recipe: where the training is described; "#part" and "pull/1" are below torchvision's pages.
    classes: the list of names in `_meta`.
    min_size: height and width of the smallest image; one number for both.
    more: further entries of `meta`.
    """
    if recipe[0] == "#":
        kind = "classification" if "ImageNet-1K" in metrics else "detection"
        recipe = f"tree/main/references/{kind}{recipe}"
    meta = {
        "num_params": params,
        "categories": None if classes is None else _meta.names(classes),
        "recipe": recipe if "://" in recipe else _VISION + recipe,
        "_metrics": metrics,
        "_ops": ops,
        "_file_size": size,
        "_docs": docs,
        **more,
    }
    if min_size is not None:
        meta["min_size"] = (min_size, min_size) if isinstance(min_size, int) else min_size
    return Weights(url=f"{_ADDRESS}{file}.pth", transforms=transforms, meta=meta)


def imagenet(
    file: str, preset: int | tuple[Any, ...] | dict[str, Any], acc: tuple[float, float],
    params: int, ops: float, size: float, recipe: str, *, classes: str | None = "imagenet",
    **more: Any,
) -> Weights:  # fmt: skip
    """Of a classifier: `preset` has the arguments of ImageClassification, by name or in the order
    crop, resize, interpolation, mean, std; `acc` the percentages of ImageNet's validation images
    whose class is the first, or one of the first five. The rest as for `known`."""
    if not isinstance(preset, dict):
        preset = dict(zip(_PRESET, (preset,) if isinstance(preset, int) else preset, strict=False))
    return known(
        file, partial(ImageClassification, **preset),
        {"ImageNet-1K": {"acc@1": acc[0], "acc@5": acc[1]}},
        params, ops, size, recipe, classes=classes, **more,
    )  # fmt: skip


def coco(
    file: str, metrics: dict[str, float], params: int, ops: float, size: float, recipe: str, *,
    classes: str | None = "coco", **more: Any,
) -> Weights:  # fmt: skip
    """Of a detector: `metrics` has the mean average precisions on COCO's validation images.
    The rest as for `known`."""
    return known(
        file, ObjectDetection, {"COCO-val2017": metrics}, params, ops, size, recipe,
        classes=classes, **more,
    )  # fmt: skip


def loaded(
    model: Any, weights: WeightsEnum | None, progress: bool,
    rename: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Any:  # fmt: skip
    """The model with the weights in it, whose names in the file `rename` mends; None: as it is."""
    if weights is not None:
        state = weights.get_state_dict(progress=progress, check_hash=True)
        model.load_state_dict(state if rename is None else rename(state))
    return model


def with_backbone(
    kind: type[WeightsEnum], weights: Any, backbone_kind: type[WeightsEnum], weights_backbone: Any,
    num_classes: int | None, default: int = 91,
) -> tuple[Any, Any, int]:  # fmt: skip
    """(weights, those of the backbone, the number of classes) of a model on a backbone: weights of
    the whole fix the number, and make those of the backbone unnecessary. ValueError for another
    number."""
    chosen, below = kind.verify(weights), backbone_kind.verify(weights_backbone)
    if chosen is not None:
        n = len(chosen.meta["categories"])
        return chosen, None, _ovewrite_value_param("num_classes", num_classes, n)
    return None, below, default if num_classes is None else num_classes


def built(
    make: Callable[..., Any], weights: WeightsEnum | None, progress: bool, kwargs: dict[str, Any],
    fit: Callable[[dict[str, Any], Any], None] | None = None,
    rename: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Any:  # fmt: skip
    """`make(**kwargs)` with the weights in it. They fix the number of classes, and what `fit` sets
    in `kwargs` for them."""
    if weights is not None:
        if weights.meta["categories"] is not None:
            _ovewrite_named_param(kwargs, "num_classes", len(weights.meta["categories"]))
        if fit is not None:
            fit(kwargs, weights)
    return loaded(make(**kwargs), weights, progress, rename)


_FIRST: Any = object()


def builder(
    name: str, make: Callable[..., Any], weights: type[WeightsEnum], doc: str, *,
    fit: Callable[[dict[str, Any], Any], None] | None = None,
    rename: Callable[[dict[str, Any]], dict[str, Any]] | None = None, legacy: Any = _FIRST,
) -> Any:  # fmt: skip
    """Make and register a function `name(*, weights=None, progress=True, **kwargs)`, which calls
    `make(**kwargs)` and loads the weights.

    fit: changes the keyword arguments, a dictionary, for the weights.
    rename: makes the model's state dict of the file's.
    legacy: what `pretrained=True` means, if not the first of the weights.
    """
    old = next(iter(weights)) if legacy is _FIRST else legacy
    enum = weights

    def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> nn.Module:
        return built(make, enum.verify(weights), progress, kwargs, fit, rename)

    build.__name__ = build.__qualname__ = name
    build.__module__ = enum.__module__
    build.__doc__ = doc
    build.__annotations__ = {
        "weights": enum | None, "progress": bool, "kwargs": Any,
        "return": make if isinstance(make, type) else nn.Module,
    }  # fmt: skip
    return register_model()(handle_legacy_interface(weights=("pretrained", old))(build))
