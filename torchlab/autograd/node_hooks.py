"""What runs before and after a node: the hooks of tensors and of nodes, and `retain_grad`.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html#backward-hooks-execution
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.tape import Node
from torchlab._core.tensor import Tensor


def before(node: Node, g: Any) -> Any:
    """The gradient (for nodes with several outputs: the list) as the hooks leave it."""
    g = of_tensors(node, g)
    hooks = node._hooks
    if hooks is None or not hooks.pre:
        return g
    grads = _listed(node, g)
    numbers = _numbers(node)
    shown = tuple(grads[i] for i in numbers)
    for hook in list(hooks.pre.values()):
        r = hook(shown)
        if r is not None:
            shown = _checked_tuple(shown, r, hook)
    for i, x in zip(numbers, shown, strict=True):
        grads[i] = x
    return grads if node._outs is not None else grads[0]


def of_tensors(node: Node, g: Any) -> Any:
    """The tensors' hooks alone, then what `retain_grad` keeps."""
    hooks = node._hooks
    if hooks is None or not (hooks.tensor or hooks.retain):
        return g
    grads = _listed(node, g)
    for nr, table in hooks.tensor.items():
        for hook in list(table.values()):
            r = hook(grads[nr])
            if r is not None:
                _check(grads[nr], r, hook)
                grads[nr] = r
    for nr, ref in hooks.retain.items():
        t = ref()
        new = grads[nr]
        if t is not None and new is not None:
            t._g = _copied(new) if t._g is None else aten.add(t._g, new)
    return grads if node._outs is not None else grads[0]


def _copied(g: Tensor) -> Any:
    return aten.clone(g) if g._exotic else aten.clone(g, memory_format=contiguous_format)


def after(node: Node, results: tuple[Any, ...], g: Any) -> tuple[Any, ...]:
    """The results as the node's own hooks leave them."""
    hooks = node._hooks
    if hooks is None or not hooks.post:
        return results
    grads = _listed(node, g)
    given = tuple(grads[i] for i in _numbers(node))
    shown = node.shown(results)
    for hook in list(hooks.post.values()):
        r = hook(shown, given)
        if r is not None:
            shown = _checked_tuple(shown, r, hook)
    if node.places is None:
        return shown
    found = list(results)
    for i, r in zip(node.places, shown, strict=True):
        if i is not None:
            found[i] = r
    return tuple(found)


def accumulated(node: Node, leaf: Tensor) -> None:
    """The hooks of a leaf whose `.grad` has been updated."""
    hooks = node._hooks
    if hooks is None:
        return
    for hook in list(hooks.accumulated.values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _listed(node: Node, g: Any) -> list[Any]:
    if node._outs is None:
        return [g]
    return [None] * len(node._outs) if g is None else list(g)


def _numbers(node: Node) -> Sequence[int]:
    """Which outputs PyTorch's node has: of an operator's those that are differentiable (not the
    places beside the values of a sort)."""
    if node._outs is None:
        return (0,)
    if node.op is None:
        return range(len(node._outs))
    used = node.used
    return [
        i
        for i, (_, k) in enumerate(node._outs)
        if (used is None or i in used) and (k is None or k.differentiable)
    ]


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def _checked_tuple(old: tuple[Any, ...], new: Any, hook: Any) -> tuple[Any, ...]:
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(new)}, but"
            f" expected {len(old)})"
        )
    for a, b in zip(old, new, strict=True):
        if b is not None:
            _check(a, b, hook)
    return new


def _check(old: Any, new: Any, hook: Any) -> None:
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if new._k.dtype is not old._k.dtype or new._k.device is not old._k.device:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was {old.type()} got"
            f" {new.type()})"
        )
    if new._a.shape != old._a.shape:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the size of value, from {list(old.shape)} to"
            f" {list(new.shape)}"
        )


__all__ = ["accumulated", "after", "before", "of_tensors"]
