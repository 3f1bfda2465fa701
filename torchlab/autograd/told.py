"""Backward as dispatch modes see it: sums and the leaves' gradients are operators, too.

The engine adds gradients in NumPy where it may. While a mode with `__torch_dispatch__` is on, it
uses these functions instead, which call what PyTorch's engine calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.python_key import detached
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import AccumulateGrad, Node
from torchlab._core.tensor import strides_of


def deliver(fit: Callable[..., Any], w: Any, node: Node, nr: int, g: Any, source: Any) -> None:
    """Add one incoming gradient to what a node has got."""
    if node._outs is not None:
        g = fit(g, *node._outs[nr], node, source)
        if w.grads is None:
            w.grads = [None] * len(node._outs)
            w.owned = [False] * len(node._outs)
        have = w.grads[nr]
        w.grads[nr] = g if have is None else aten.add(have, g)
        return
    if type(node) is AccumulateGrad:
        leaf = node.leaf()
        if leaf is None:
            leaf = node.revived()
            if leaf is None:
                return
        g = fit(g, *node.expects(leaf), node, source)
    else:
        g = fit(g, node.shape, node.k, node, source)
    w.grads = g if w.grads is None else aten.add(w.grads, g)


def consumed(edges: Any, results: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of edges and gradients; a gradient that is handed out is no longer held here."""
    results.reverse()
    for e in edges:
        if not results:
            return
        yield e, results.pop()


def accumulate(leaf: Any, g: Any, create: bool) -> None:
    """Bring a leaf its gradient. A first one is taken over, detached, if nobody else holds it and
    its strides suit the leaf; else it is copied."""
    have = leaf._g
    if have is None:
        if create:
            leaf._g = g
        elif getrefcount(g) <= 4 and _suits(leaf, g):
            leaf._g = detached(g)
        else:
            wanted = strides_of(leaf)
            if not layout.is_non_overlapping_and_dense(leaf._a.shape, wanted):
                wanted = layout.contiguous_strides(leaf._a.shape)
            fresh = aten.new_empty_strided(
                g,
                list(g.shape),
                list(wanted),
                dtype=g.dtype,
                layout=g.layout,
                device=g.device,
                pin_memory=None,
            )
            leaf._g = fresh.copy_(g)
    elif create:
        leaf._g = aten.add(have, g)
    else:
        have.add_(g)


def _suits(leaf: Any, g: Any) -> bool:
    if layout.is_non_overlapping_and_dense(leaf._a.shape, strides_of(leaf)):
        mine = zip(leaf._a.shape, strides_of(leaf), strides_of(g), strict=True)
        return all(n == 1 or a == b for n, a, b in mine)
    return bool(g._k.contiguous)


__all__ = ["accumulate", "consumed", "deliver"]
