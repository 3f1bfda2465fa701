"""The list of models by name.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from typing import Any

from torchlab import nn

BUILDERS: dict[str, Callable[..., nn.Module]] = {}


def register_model(name: str | None = None) -> Callable[[Any], Any]:
    """Enter the decorated function in the list, under `name` or its own name.

    ValueError if the name is taken.
    """

    def enter(builder: Any) -> Any:
        key = builder.__name__ if name is None else name
        if key in BUILDERS:
            raise ValueError(f"An entry is already registered under the name '{key}'.")
        BUILDERS[key] = builder
        return builder

    return enter


def no_weights(weights: Any, model: str) -> None:
    """ValueError if pretrained weights are asked for."""
    if weights is not None:
        raise ValueError(
            f"{model}: torchlab.vision bundles no pretrained weights. Build the model with"
            " weights=None and load a file: model.load_state_dict(torch.load(path)); the names in"
            " torchvision's files are those of this model."
        )


def list_models(
    module: Any = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """The names of the models, sorted; of one module, or that match shell patterns."""
    every = {
        k for k, v in BUILDERS.items()
        if module is None or v.__module__.rsplit(".", 1)[0] == module.__name__
    }  # fmt: skip

    def matching(patterns: Iterable[str] | str) -> set[str]:
        patterns = [patterns] if isinstance(patterns, str) else patterns
        return {k for p in patterns for k in fnmatch.filter(every, p)}

    found = set(every) if not include else matching(include)
    return sorted(found - (matching(exclude) if exclude else set()))


def get_model_builder(name: str) -> Callable[..., nn.Module]:
    """The function that builds the model of this name. ValueError if there is none."""
    try:
        return BUILDERS[name.lower()]
    except KeyError:
        raise ValueError(f"Unknown model {name}") from None


def get_model(name: str, **config: Any) -> nn.Module:
    """The model of this name, built with `config`."""
    return get_model_builder(name)(**config)


__all__ = ["get_model", "get_model_builder", "list_models", "register_model"]
