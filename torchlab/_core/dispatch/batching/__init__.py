"""The batching rules, by families. Note [Batching] in torchlab._core.dispatch.batches."""

from __future__ import annotations

from torchlab._core.dispatch import asking
from torchlab._core.dispatch.batches import Batched
from torchlab._core.dispatch.batching import (
    dims,
    folded,
    functions,
    joining,
    losses,
    makers,
    matrices,
    places,
    pointwise,
    products,
    random,
    views,
)

asking.prepare(Batched)  # its methods that make tensors ask


def load() -> None:
    """The rules are there once this can be called."""


__all__ = [
    "dims", "folded", "functions", "joining", "load", "losses", "makers", "matrices", "places",
    "pointwise", "products", "random", "views",
]  # fmt: skip
