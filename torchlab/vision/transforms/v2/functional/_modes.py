"""Interpolation modes as v2 takes them: by name, too.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#functionals
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab.vision.transforms._image import InterpolationMode, interpolation_mode


def mode_of(given: Any) -> InterpolationMode:
    """An `InterpolationMode`, which may be given by name or as Pillow's number.

    ValueError for another name or type, KeyError for another number.
    """
    if isinstance(given, str):
        names = [mode.value for mode in InterpolationMode]
        if given not in names:
            raise ValueError(
                f"Invalid interpolation mode: '{given}'. Supported string values are: {names}."
            )
        return InterpolationMode(given)
    try:
        return interpolation_mode(given)
    except TypeError as error:
        raise (KeyError(given) if isinstance(given, int) else ValueError(str(error))) from None


def with_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, a transform of v1, with a mode as v2 takes it."""

    @functools.wraps(function)
    def run(inpt: Any, *args: Any, interpolation: Any, **kwargs: Any) -> Any:
        return function(inpt, *args, interpolation=mode_of(interpolation), **kwargs)

    return run
