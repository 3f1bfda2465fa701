"""Transforms made of other transforms.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#composition-of-transforms
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab.vision.transforms._containers import chance
from torchlab.vision.transforms.v2._arguments import check_probability
from torchlab.vision.transforms.v2._transform import Transform


def _check(transforms: Any, also: tuple[type, ...] = ()) -> None:
    if not isinstance(transforms, (Sequence, *also)):
        wanted = " or a `nn.ModuleList`" if also else ""
        raise TypeError(f"Argument transforms should be a sequence of callables{wanted}")
    if not transforms:
        raise ValueError("Pass at least one transform")


class _Several(Transform):
    """What passes a sample, of one argument or several, through transforms."""

    def _through(self, transforms: Any, inputs: tuple[Any, ...]) -> Any:
        several = len(inputs) > 1
        outputs: Any = inputs if several else inputs[0]
        for t in transforms:
            outputs = t(*outputs) if several else t(outputs)
        return outputs


class Compose(_Several):
    """The transforms one after another."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        _check(transforms)
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        return self._through(self.transforms, inputs)

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class RandomApply(_Several):
    """All the transforms, with probability `p`; or none."""

    def __init__(
        self, transforms: Sequence[Callable[..., Any]] | nn.ModuleList, p: float = 0.5
    ) -> None:
        super().__init__()
        _check(transforms, (nn.ModuleList,))
        self.transforms = transforms
        self.p = check_probability(p)

    def forward(self, *inputs: Any) -> Any:
        return self._through(() if chance() >= self.p else self.transforms, inputs)

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class RandomChoice(_Several):
    """One of the transforms, drawn with the probabilities `p`, which need not sum to 1."""

    def __init__(
        self, transforms: Sequence[Callable[..., Any]], p: list[float] | None = None
    ) -> None:
        super().__init__()
        _check(transforms)
        if p is None:
            p = [1] * len(transforms)
        elif len(p) != len(transforms):
            raise ValueError(
                f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}"
            )
        self.transforms = transforms
        total = sum(p)
        self.p = [share / total for share in p]

    def forward(self, *inputs: Any) -> Any:
        drawn = int(aten.multinomial(aten.tensor(self.p), 1))
        return self._through((self.transforms[drawn],), inputs)


class RandomOrder(_Several):
    """All the transforms, in an order that is drawn."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        _check(transforms)
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        order = aten.randperm(len(self.transforms)).tolist()
        return self._through([self.transforms[i] for i in order], inputs)
