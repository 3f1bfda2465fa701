"""Which kernel does a transform for which type.

Note [Dispatch by type]
A functional (`resize`) has a kernel for each type that it knows: plain tensors, Pillow images, the
TVTensors. It is found by the class of the first argument and its bases. For a TVTensor the search
ends at TVTensor: a kind that someone defined has to name its own kernels, as nobody knows whether
its values are an image's.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.functional.register_kernel.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms._image import is_picture_class
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    Image,
    KeyPoints,
    Mask,
    TVTensor,
    Video,
    wrap,
)

Kernel = Callable[..., Any]


class Picture:
    """Stands in the tables for Pillow's image class, which is not loaded for a table."""


_BUILTIN = frozenset({Image, Video, Mask, BoundingBoxes, KeyPoints})
_KERNELS: dict[Kernel, dict[type, Kernel]] = {}


def kernel(functional: Kernel, *kinds: type, whole: bool = False) -> Callable[[Kernel], Kernel]:
    """Declares the decorated function as what `functional` does for these types.

    A kernel for a TVTensor gets a plain tensor, and what it returns gets the type and metadata of
    the argument; with `whole` it gets the TVTensor and gives back one.
    """

    def declare(function: Kernel) -> Kernel:
        table = _KERNELS.setdefault(functional, {})
        for kind in kinds:
            wraps = issubclass(kind, TVTensor) and not whole
            table[kind] = _as_given(function) if wraps else function
        return function

    return declare


def _as_given(function: Kernel) -> Kernel:
    @functools.wraps(function)
    def run(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        output = function(inpt.as_subclass(Tensor), *args, **kwargs)
        if isinstance(output, Tensor):
            return wrap(output, like=inpt)
        # The crops come as tuples; sizes and numbers as they are.
        return tuple(wrap(part, like=inpt) for part in output) if type(output) is tuple else output

    return run


def find(functional: Kernel, kind: type, *, allow_passthrough: bool = False) -> Kernel:
    """The kernel of `functional` for values of the type `kind`.

    Where there is none: one that returns its argument if `allow_passthrough`, else TypeError.
    ValueError for a function without kernels.
    """
    table = _KERNELS.get(functional)
    if table is None:
        raise ValueError(f"No kernel registered for functional {functional.__name__}.")
    for base in kind.__mro__:
        if base in table:
            return table[base]
        if base is TVTensor:
            break
    if Picture in table and is_picture_class(kind):
        return table[Picture]
    if allow_passthrough:
        return _unchanged
    known = [_name(base) for base in table]
    raise TypeError(
        f"Functional F.{functional.__name__} supports inputs of type {known}, but got {kind}"
        " instead."
    )


def run(functional: Kernel, inpt: Any, *args: Any, **kwargs: Any) -> Any:
    """What the kernel of `functional` for the type of `inpt` makes of these arguments."""
    return find(functional, type(inpt))(inpt, *args, **kwargs)


def _unchanged(inpt: Any, *args: Any, **kwargs: Any) -> Any:
    return inpt


def _name(kind: type) -> str:
    if kind is Picture:
        return "PIL.Image.Image"
    return f"{kind.__module__}.{kind.__qualname__}"


def register_kernel(functional: Kernel | str, tv_tensor_cls: type) -> Callable[[Kernel], Kernel]:
    """Decorates the kernel of `functional` (or its name) for a TVTensor that is not torchlab's.

    The kernel gets the TVTensor and its result stays as it is. ValueError for a function that is
    no functional, for another class, and for a second kernel.
    """
    if isinstance(functional, str):
        found = next((f for f in _KERNELS if f.__name__ == functional), None)
        if found is None:
            raise ValueError(
                f"Could not find functional with name '{functional}' in"
                " torchlab.vision.transforms.v2.functional."
            )
        functional = found
    elif not getattr(functional, "__module__", "").startswith(__package__):
        raise ValueError(
            "Kernels can only be registered on functionals from the"
            f" torchlab.vision.transforms.v2.functional namespace, but got {functional}."
        )
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, TVTensor)):
        raise ValueError(
            "Kernels can only be registered for subclasses of torchlab.vision.tv_tensors.TVTensor,"
            f" but got {tv_tensor_cls}."
        )
    if tv_tensor_cls in _BUILTIN:
        raise ValueError(
            f"Kernels cannot be registered for the builtin tv_tensor classes, but got"
            f" {tv_tensor_cls}"
        )
    if tv_tensor_cls in _KERNELS.get(functional, ()):
        raise ValueError(
            f"Functional {functional} already has a kernel registered for type {tv_tensor_cls}."
        )
    return kernel(functional, tv_tensor_cls, whole=True)


def is_pure_tensor(inpt: Any) -> bool:
    """Whether this is a tensor and no TVTensor."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)
