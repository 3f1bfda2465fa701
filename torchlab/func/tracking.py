"""What the transforms of reverse mode have in common: inputs that stand for the caller's, and
results that know nothing of them.

A transform differentiates aliases of its inputs, of the innermost level that is running (Note
[Levels] in torchlab._core.dispatch.levels). What it gives back may have them in its history; if
nobody else is there who wants gradients, the history is dropped.

Source: https://docs.pytorch.org/docs/2.13/func.ux_limitations.html
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torchlab._core import pytree
from torchlab._core.dispatch import levels
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import AccumulateGrad, Node, Out, edge_of
from torchlab._core.tensor import Tensor

# The leaves of transforms that have ended.
_ENDED: weakref.WeakSet[Any] = weakref.WeakSet()


def stand_in(x: Any) -> Tensor:
    """An alias of `x` that wants gradients. ValueError if it is no tensor."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    level = len(levels.LEVELS.running)
    found = levels.lifted(x)
    own = levels.edge_at(level, found) if found._level == level else None  # type: ignore[attr-defined]
    y = aten.alias(found)
    return y if own is not None and y.requires_grad else y.requires_grad_()


def stand_ins(tree: Any) -> Any:
    """The tree with aliases in its tensors' places."""
    return pytree.tree_map(stand_in, tree)


def run(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run the function that is differentiated."""
    running = levels.LEVELS
    running.reverse += 1
    try:
        return func(*args, **kwargs)
    finally:
        running.reverse -= 1


def ended(inputs: Any) -> None:
    """Say that the transform of these stand-ins gives its results now."""
    for x in inputs:
        e = edge_of(x)
        if type(e) is AccumulateGrad:
            _ENDED.add(e)


def wanted_outside(tensors: Any, own: Any = ()) -> bool:
    """Whether the histories of tensors lead to a leaf that is none of `own`, nor of a transform
    that has ended."""
    mine = {edge_of(x) for x in own}
    stack: list[Any] = [edge_of(t) for t in tensors]
    seen: set[Node] = set()
    while stack:
        e = stack.pop()
        if e is None:
            continue
        node: Node = e.node if type(e) is Out else e
        if node in seen:
            continue
        seen.add(node)
        if type(node) is not AccumulateGrad:
            stack += node.next
        elif node not in mine and node not in _ENDED and node.leaf() is not None:
            return True
    return False


def result(x: Any, keep: bool = True) -> Any:
    """A result as the caller gets it: without history if nobody outside wants gradients, or if the
    caller does not record (`keep`)."""
    if not isinstance(x, Tensor) or edge_of(x) is None:
        return x
    if keep and wanted_outside((x,)):
        return x
    if x._level:  # type: ignore[attr-defined]
        return x.again("alias")  # tapes and tangents further out go on
    return aten.detach(x)


def results(tree: Any, keep: bool = True) -> Any:
    """`result` of each tensor in a tree."""
    return pytree.tree_map(lambda x: result(x, keep), tree)


__all__ = [
    "ended", "result", "results", "stand_in", "stand_ins", "wanted_outside",
]  # fmt: skip
