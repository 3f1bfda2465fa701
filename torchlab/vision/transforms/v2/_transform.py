"""The base of all transforms.

Note [What a transform changes]
A sample is any nest of tuples, lists and dictionaries. A transform takes it apart, draws its
parameters once for the whole sample, changes what it has a kernel for and puts the nest together
again; the rest passes through. A plain tensor could be an image or a label: where the sample holds
an `Image`, a `Video` or a Pillow image, plain tensors pass through; otherwise the first one is
taken for the image.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.Transform.html
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from torchlab import nn
from torchlab._core.pytree import tree_flatten, tree_unflatten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms._containers import chance
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms.v2._arguments import check_probability
from torchlab.vision.transforms.v2._samples import Check, check_type, has_any
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.transforms.v2.functional._registry import find
from torchlab.vision.tv_tensors import Image, Video


class Transform(nn.Module):
    """The base class: override `transform`, and `make_params` and `check_inputs` where needed.

    Called with a sample of any form, it returns one of the same form.
    """

    _transformed_types: tuple[Check, ...] = (Tensor, is_picture)
    """What is handed to `transform`; the rest of a sample passes through."""

    def __init__(self) -> None:
        super().__init__()

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples, given as a list of all parts, that do not fit."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw what holds for the whole sample, of which the parts to be changed are given."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One part of the sample, changed."""
        raise NotImplementedError(f"{type(self).__name__} does not say what `transform` does")

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        """`functional` of `inpt`, or `inpt` itself where that has no kernel for its type."""
        kernel = find(functional, type(inpt), allow_passthrough=True)
        return kernel(inpt, *args, **kwargs)

    def _chosen(self, flat_inputs: list[Any]) -> list[bool]:
        """For each part of the sample whether it is handed to `transform`."""
        takes_plain = not has_any(flat_inputs, Image, Video, is_picture)
        chosen = []
        for inpt in flat_inputs:
            takes = check_type(inpt, self._transformed_types)
            if takes and is_pure_tensor(inpt):
                takes, takes_plain = takes_plain, False
            chosen.append(takes)
        return chosen

    def forward(self, *inputs: Any) -> Any:
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)
        return tree_unflatten(self._changed(flat), form)

    def _changed(self, flat_inputs: list[Any]) -> list[Any]:
        chosen = self._chosen(flat_inputs)
        taken = [inpt for inpt, takes in zip(flat_inputs, chosen, strict=True) if takes]
        params = self.make_params(taken)
        return [
            self.transform(inpt, params) if takes else inpt
            for inpt, takes in zip(flat_inputs, chosen, strict=True)
        ]

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, Enum)
        return ", ".join(
            f"{name}={value}"
            for name, value in vars(self).items()
            if not name.startswith("_") and name != "training" and isinstance(value, shown)
        )


class RandomApplyTransform(Transform):
    """A transform that happens with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = check_probability(p)

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, form = tree_flatten(sample)
        self.check_inputs(flat)
        if chance() >= self.p:
            return sample
        return tree_unflatten(self._changed(flat), form)
