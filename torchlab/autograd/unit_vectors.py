"""All rows of a Jacobian at once: unit vectors, and a function of each under one vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dispatch import batches
from torchlab._core.dispatch.registry import aten


def unit_vectors(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """For each tensor its share of the unit vectors of all: (N, *shape), N elements together."""
    total = sum(t.numel() for t in tensors)
    made, first = [], 0
    for t in tensors:
        n = t.numel()
        block = aten.zeros(total, n, dtype=t.dtype, device=t.device)
        aten.diagonal(block, -first)[:n].fill_(1)
        made.append(aten.view(block, (total, *t.shape)))
        first += n
    return tuple(made)


def mapped_rows(fn: Callable[..., Sequence[Any]], vectors: Sequence[Any]) -> tuple[Any, ...]:
    """`fn` of each row of the vectors, with all rows at once (as `torch.func.vmap`); what it gives
    has the rows in front. None stays None."""
    n = len(vectors[0])
    level = batches.enter(n, "error")
    try:
        found = fn(*(batches.batched(v, 0, level) for v in vectors))
        return tuple(None if x is None else batches.whole(x, n, level) for x in found)
    finally:
        batches.leave()


__all__ = ["mapped_rows", "unit_vectors"]
