"""Transforms made of other transforms.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#composition-of-transforms
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten


def chance() -> float:
    """A number from 0 to 1, from the default generator."""
    return aten.rand((1,)).item()


def uniform(low: float, high: float) -> float:
    return aten.empty((1,)).uniform_(low, high).item()


def integer(low: int, high: int) -> int:
    """From `low` to below `high`."""
    return aten.randint(low, high, (1,)).item()


class Perhaps(nn.Module):
    """A transform that changes images with probability `p`: subclasses say how, and name in `_told`
    the options that `repr` shows before p."""

    _told: tuple[str, ...] = ()

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return self._changed(img) if chance() < self.p else img

    def _changed(self, img: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say how it changes an image")

    def __repr__(self) -> str:
        told = ",".join(f"{name}={getattr(self, name)}" for name in (*self._told, "p"))
        return f"{type(self).__name__}({told})"


class Compose:
    """The transforms one after another."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(self, self.transforms, "")


def _listed(owner: Any, transforms: Any, last: str) -> str:
    inner = "".join(f"\n    {t}" for t in transforms)
    return f"{type(owner).__name__}({last}{inner}\n)"


class Lambda:
    """The user's function as a transform."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomTransforms:
    """What holds a list of transforms."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return _listed(self, self.transforms, "")


class RandomApply(nn.Module):
    """All the transforms, with probability `p`; or none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < chance():
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(self, self.transforms, f"\n    p={self.p}")


class RandomOrder(RandomTransforms):
    """All the transforms, in an order drawn from Python's `random`."""

    def __call__(self, img: Any) -> Any:
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms, drawn from Python's `random` with the weights `p`."""

    def __init__(self, transforms: Any, p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        (chosen,) = random.choices(self.transforms, weights=self.p)
        return chosen(*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
