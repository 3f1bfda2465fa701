"""The list of models by name, and the trained weights that each has.

How a family of models has weights (see `alexnet` for one whole):

    class AlexNet_Weights(WeightsEnum):
        IMAGENET1K_V1 = imagenet("alexnet-owt-7be5be79", 224, ...)  # facts, by `_weights.imagenet`
        DEFAULT = IMAGENET1K_V1

    alexnet = builder("alexnet", AlexNet, AlexNet_Weights, "AlexNet.")

`_weights.builder` makes and registers `alexnet(*, weights=None, progress=True, **kwargs)`, which
takes torchvision's old arguments too, fits `num_classes` to the weights, and loads them. Where a
family needs more before it is built, `builder(..., fit=function)`; where its files have other
names, `rename=function`. `_weights.built` does the same for a model without a name. What fits into
neither (detectors, whose backbones have weights too: `with_backbone`) is a function of its own:

    @register_model()
    @handle_legacy_interface(weights=("pretrained", Some_Weights.COCO_V1))
    def some_model(*, weights: Some_Weights | None = None, progress: bool = True, **kwargs):
        chosen = Some_Weights.verify(weights)
        ...
        return loaded(SomeModel(**kwargs), chosen, progress)

The annotation of `weights` says which enum belongs to a model (`get_model_weights`). The enum's
name stands in the file's `__all__`.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

import fnmatch
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, get_args

from torchlab import nn
from torchlab.vision._internally_replaced_utils import load_state_dict_from_url

# ---- weights ------------------------------------------------------------------------------------


@dataclass
class Weights:
    """What is known of a file of trained weights.

    url: where it lies.
    transforms: called without arguments, gives what is done to images before the model.
    meta: the classes ("categories"), the smallest image ("min_size"), measured accuracies and more.
    """

    url: str
    transforms: Callable[..., Any]
    meta: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        # An enum finds a copied or unpickled value by equality, and copies of a partial differ.
        if not isinstance(other, Weights):
            return NotImplemented
        if self.url != other.url or self.meta != other.meta:
            return False
        a, b = self.transforms, other.transforms
        if isinstance(a, partial) and isinstance(b, partial):
            return (a.func, a.args, a.keywords) == (b.func, b.args, b.keywords)
        return a == b


class WeightsEnum(Enum):
    """The files of weights of one model: members with `Weights` as values, and the alias DEFAULT
    for the best of them."""

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """The member that is meant: a member, its name (also "Class.NAME"), or None.

        KeyError for an unknown name, TypeError for anything else.
        """
        if obj is not None:
            if type(obj) is str:
                obj = cls[obj.replace(cls.__name__ + ".", "")]
            elif not isinstance(obj, cls):
                raise TypeError(
                    f"Invalid Weight class provided; expected {cls.__name__} but received"
                    f" {obj.__class__.__name__}."
                )
        return obj

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The weights, downloaded once: `torch.hub.load_state_dict_from_url` with the arguments.

        A file runs no code (`weights_only=True`) unless the caller says otherwise.
        """
        if len(args) < 6:  # weights_only is the seventh parameter, the address the first
            kwargs.setdefault("weights_only", True)
        return load_state_dict_from_url(self.url, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}.{self._name_}"

    @property
    def url(self) -> str:
        """Where the file lies."""
        return self.value.url

    @property
    def transforms(self) -> Callable[..., Any]:
        """Gives what is done to images before the model."""
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of the weights."""
        return self.value.meta


def get_weight(name: str) -> WeightsEnum:
    """The weights of a full name such as "ResNet50_Weights.IMAGENET1K_V1".

    ValueError if there is no such enum, KeyError if it has no such member.
    """
    try:
        enum_name, member = name.split(".")
    except ValueError:
        raise ValueError(f"Invalid weight name provided: '{name}'.") from None
    models = sys.modules[__name__.rpartition(".")[0]]
    packages = [
        m for _, m in inspect.getmembers(models, inspect.ismodule) if hasattr(m, "__path__")
    ]
    for place in (models, *packages):
        found = vars(place).get(enum_name)
        if found is not None and issubclass(found, WeightsEnum):
            return found[member]
    raise ValueError(
        f"The weight enum '{enum_name}' for the specific method couldn't be retrieved."
    )


def get_model_weights(name: Callable[..., Any] | str) -> type[WeightsEnum]:
    """The enum with the weights of a model, which is given by name or as the function."""
    return _get_enum_from_fn(get_model_builder(name) if isinstance(name, str) else name)


def _get_enum_from_fn(fn: Callable[..., Any]) -> type[WeightsEnum]:
    try:
        parameters = inspect.signature(fn, eval_str=True).parameters
    except NameError:  # an annotation that only type checkers can read
        parameters = inspect.signature(fn).parameters
    if "weights" not in parameters:
        raise ValueError("The method is missing the 'weights' argument.")
    kind = parameters["weights"].annotation
    for part in (kind, *get_args(kind)):
        if isinstance(part, type) and issubclass(part, WeightsEnum):
            return part
    raise ValueError(
        "The WeightsEnum class for the specific method couldn't be retrieved. Make sure the typing"
        " info is correct."
    )


# ---- models -------------------------------------------------------------------------------------

BUILTIN_MODELS: dict[str, Callable[..., nn.Module]] = {}


def register_model(name: str | None = None) -> Callable[[Any], Any]:
    """Enter the decorated function in the list, under `name` or its own name.

    ValueError if the name is taken.
    """

    def enter(builder: Any) -> Any:
        key = builder.__name__ if name is None else name
        if key in BUILTIN_MODELS:
            raise ValueError(f"An entry is already registered under the name '{key}'.")
        BUILTIN_MODELS[key] = builder
        return builder

    return enter


def list_models(
    module: Any = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """The names of the models, sorted; of one module, or that match shell patterns."""
    every = {
        k for k, v in BUILTIN_MODELS.items()
        if module is None or v.__module__.rsplit(".", 1)[0] == module.__name__
    }  # fmt: skip

    def matching(patterns: Iterable[str] | str) -> set[str]:
        patterns = [patterns] if isinstance(patterns, str) else patterns
        return {k for p in patterns for k in fnmatch.filter(every, p)}

    found = set(every) if not include else matching(include)
    return sorted(found - (matching(exclude) if exclude else set()))


def get_model_builder(name: str) -> Callable[..., nn.Module]:
    """The function that builds the model of this name. ValueError if there is none."""
    name = name.lower()
    try:
        return BUILTIN_MODELS[name]
    except KeyError:
        raise ValueError(f"Unknown model {name}") from None


def get_model(name: str, **config: Any) -> nn.Module:
    """The model of this name, built with `config`."""
    return get_model_builder(name)(**config)


__all__ = [
    "Weights", "WeightsEnum", "get_model", "get_model_builder", "get_model_weights", "get_weight",
    "list_models",
]  # fmt: skip
