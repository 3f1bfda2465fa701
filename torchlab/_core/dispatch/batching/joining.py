"""Batching rules of `cat` and `stack`."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, rule, wrap_dim


@rule("cat")
def cat(c: Call) -> Any:
    tensors = c.raw("tensors")
    ranks = {len(x._a.shape) for x in tensors}
    if len(ranks) != 1 or 0 in ranks:  # an empty one-dimensional tensor fits all; 0-d is refused
        return c.loop()
    dim = wrap_dim(c.raw("dim"), ranks.pop(), "cat") + 1
    return c.run(tensors=[c.filled(x) for x in tensors], dim=dim)


@rule("stack")
def stack(c: Call) -> Any:
    tensors = c.raw("tensors")
    dim = wrap_dim(c.raw("dim"), len(tensors[0]._a.shape) + 1, "stack") + 1
    return c.run(tensors=[c.filled(x) for x in tensors], dim=dim)
