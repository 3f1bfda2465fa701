"""torchvision's public names on torchlab; under the alias of torchlab.compat it is `torchvision`.

The parts are loaded when they are first asked for.

Source: https://docs.pytorch.org/vision/0.28/
"""

from __future__ import annotations

import importlib
from types import ModuleType

from torchlab.vision.version import __version__

__all__ = [
    "datasets",
    "disable_beta_transforms_warning",
    "get_image_backend",
    "io",
    "models",
    "ops",
    "set_image_backend",
    "transforms",
    "utils",
]


def get_image_backend() -> str:
    """What reads images from files: always "PIL"."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Choose what reads images from files. ValueError for anything but "PIL"."""
    if backend != "PIL":
        raise ValueError(f"Invalid backend '{backend}'. Images are read with 'PIL' only")


def disable_beta_transforms_warning() -> None:
    """Nothing: `transforms.v2` warns no longer. Programs from when it did still ask for silence."""


def __getattr__(name: str) -> ModuleType:
    try:
        if name.startswith("__"):
            raise ModuleNotFoundError(name=f"{__name__}.{name}")
        return importlib.import_module(f"{__name__}.{name}")  # which puts it into this module
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(
            f"module '{__name__}' has no attribute '{name}': that part of torchvision is missing"
            " from torchlab"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
