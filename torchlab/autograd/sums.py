"""Gradients on their way: made to fit what they belong to, added up, brought to their leaves.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from torchlab._core import events, layout
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.python_key import dispatching
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.forks import free_at_fork
from torchlab._core.kind import Kind
from torchlab._core.ops.backward import sum_to_shape
from torchlab._core.tape import TLS, AccumulateGrad, LeafRef, Node, Out, Reshaped, steps_of_leaf
from torchlab._core.tensor import Tensor, strides_of
from torchlab.autograd import node_hooks, told

_new = object.__new__
np_add = np.add
LOCK = free_at_fork(threading.RLock())  # one thread at a time reads and writes a leaf's `.grad`


class Work:
    """What the engine knows of one node while it waits."""

    __slots__ = ("waiting", "grads", "owned", "array", "shape", "k")

    array: Any  # of the engine's own sum: what arrives is added here
    shape: Any
    k: Any

    def __init__(self) -> None:
        self.waiting = 0
        self.grads: Any = None  # a tensor; for several outputs a list
        self.owned: Any = False


def fit(g: Any, shape: Any, k: Kind, node: Node, source: Node | None, index: int = -1) -> Tensor:
    """Check a gradient against what it belongs to: sum broadcast dimensions, convert the type."""
    if not isinstance(g, Tensor):
        raise TypeError(
            f"expected a Tensor or None as a gradient of {node.name()}, not {type(g).__name__}"
        )
    if g._a.shape != shape:
        if len(g._a.shape) >= len(shape) and _expandable(shape, g._a.shape):
            g = sum_to_shape(g, shape)
        else:
            by = f"Function {source.name()} returned an" if source is not None else "got an"
            raise RuntimeError(
                f"{by} invalid gradient at index {_place(source, node, index)} - got"
                f" {list(g._a.shape)} but expected shape compatible with {list(shape)}"
            )
    gk = g._k
    if gk.dtype is not k.dtype:
        if gk.dtype.is_complex and not k.dtype.is_complex:
            g = aten.real(g)
        if g._k.dtype is not k.dtype:
            g = aten.to(g, k.dtype)
    if gk.device is not k.device:
        if g._a.ndim:
            raise RuntimeError(
                f"Function {source.name() if source else ''} returned an invalid gradient at index"
                f" {_place(source, node, index)} - expected device {k.device} but got {gk.device}"
            )
        g = aten.to(g, k.device)
    return g


def _place(source: Node | None, node: Node, index: int) -> int:
    """Which of the gradients that `source` gave is the one for `node`, where nobody said it."""
    if index >= 0 or source is None:
        return max(index, 0)
    goals = [e.node if type(e) is Out else e for e in source.next]
    return next((i for i, goal in enumerate(goals) if goal is node), 0)


def _expandable(small: Any, big: Any) -> bool:
    return all(a == b or a == 1 for a, b in zip(small[::-1], big[::-1], strict=False))


def fit_revived(g: Any, to: AccumulateGrad, source: Node) -> Any:
    """As `fit`, for a leaf that is gone or has changed: Note [Leaves that changed] in tape."""
    leaf = to.revived()
    return g if leaf is None else fit(g, *to.expects(leaf), to, source)


def fitted(node: Node, results: Any, live: Any = None) -> list[Any]:
    """All gradients that a node gives, in the shapes and types of what they belong to. `live`: the
    nodes that run at all; None: all do."""
    found = list(results)
    for i, (e, g) in enumerate(zip(node.next, found, strict=False)):
        if e is None or g is None:
            continue
        to, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        if live is not None and to not in live:
            continue
        if type(to) is AccumulateGrad:
            leaf = to.leaf()
            if leaf is None:
                leaf = to.revived()
            if leaf is not None:
                found[i] = fit(g, *to.expects(leaf), to, node, i)
        elif to._outs is not None:
            shape, k = to._outs[nr]
            found[i] = fit(g, shape, k, to, node, i)
        else:
            found[i] = fit(g, to.shape, to.k, to, node, i)
    return found


def deliver(w: Work, node: Node, nr: int, g: Any, create: bool, source: Node | None = None) -> None:
    """Add one incoming gradient to what a node has got."""
    if node._outs is not None:
        shape, k = node._outs[nr]
        g = fit(g, shape, k, node, source)
        if w.grads is None:
            w.grads = [None] * len(node._outs)
            w.owned = [False] * len(node._outs)
        w.grads[nr], w.owned[nr] = _add(w.grads[nr], g, w.owned[nr], create)
        return
    if type(node) is AccumulateGrad:
        leaf = node.leaf()
        if leaf is None:
            leaf = node.revived()
            if leaf is None:
                return
        shape, k = node.expects(leaf)
    else:
        shape, k = node.shape, node.k
    if type(g) is not Tensor or g._a.shape != shape or g._k.c is not k.c:
        g = fit(g, shape, k, node, source)
    w.grads, w.owned = g, owned = _add(w.grads, g, w.owned, create)
    if owned:
        w.array, w.shape, w.k = g._a, g._a.shape, g._k


def deliver_told(
    w: Work, node: Node, nr: int, g: Any, create: bool, source: Node | None = None
) -> None:
    """As `deliver`, by operators that dispatch modes see."""
    told.deliver(fit, w, node, nr, g, source)


def _add(have: Any, g: Tensor, owned: bool, create: bool) -> tuple[Tensor, bool]:
    if have is None:
        return g, False
    k = have._k
    if (
        not create
        and k is g._k
        and k.fast
        and type(g) is Tensor
        and have._a.shape == g._a.shape
        and k.contiguous
    ):
        if owned:
            have._a += g._a
            return have, True
        t = _new(Tensor)
        t._a = np_add(have._a, g._a) if have._a.ndim else np.asarray(have._a + g._a)
        t._k = k
        t._e = t._s = t._v = t._g = None
        return t, True
    if have._exotic:  # sparse + dense is there as dense + sparse only
        have, g = g, have
    return aten.add(have, g), False


# ---- leaves -------------------------------------------------------------------------------------


def accumulate(node: AccumulateGrad, g: Tensor, owned: bool, create: bool) -> None:
    """Add what came to the leaf's `.grad`, then call the hooks that wait for it."""
    leaf = node.leaf()
    gone = leaf is None
    if gone:
        leaf = node.revived()
        if leaf is None:
            return
        if type(node.leaf) is Reshaped:  # Note [Leaves that changed] in tape
            gone = False
        # Whoever brought the gradient had no leaf to ask what it has to look like.
        g = fit(g, *node.expects(leaf), node, None)
    e = leaf._e
    if e is not node:
        if e is None:  # it wants no gradients any more; its hooks run
            node_hooks.accumulated(node, leaf)
            return
        if type(e) is not AccumulateGrad:
            raise RuntimeError(
                "leaf variable has been moved into the graph interior: it was written in place"
                " after it had been used as a leaf"
            )
    with LOCK:
        have = leaf._g
        if SLOW and TLS.dispatch_modes or type(g) is not Tensor and dispatching(g):
            told.accumulate(leaf, g, create)
        elif have is None:
            changed = g._a.shape != leaf._a.shape or g._k.dtype is not leaf._k.dtype
            if changed and not (g._exotic or leaf._exotic):
                leaf._g = _for_changed(leaf, g)
            else:
                leaf._g = _in_layout(leaf, g) if create else fresh_grad(leaf, g, owned)
        elif create:
            leaf._g = aten.add(g, have) if have._exotic else aten.add(have, g)
        else:
            k = have._k
            gk = g._k
            fast = k.dtype is gk.dtype and k.c.fast and gk.plain and k.plain
            if fast and have._a.shape == g._a.shape and type(have) is Tensor:
                have._a += g._a
                wrote(have)
            elif have._exotic and not g._exotic:
                leaf._g = aten.add(g, have)
            else:
                have.add_(g)  # type: ignore[attr-defined]
        if gone:
            node.leaf.grad = leaf._g
        elif node._hooks is not None and type(node.leaf) is LeafRef:
            node.leaf.grad_ref = weakref.ref(leaf._g)
    if events.grad_accumulated.listeners:
        events.grad_accumulated.emit(
            tensor=leaf, grad=leaf._g, incoming=g, in_place=have is not None
        )
    if node._hooks is not None and node._hooks.accumulated:
        node_hooks.accumulated(node, leaf)


def fresh_grad(leaf: Tensor, g: Tensor, owned: bool) -> Tensor:
    """The first gradient: the buffer itself if nobody else can see it, else a copy in the leaf's
    layout."""
    if (
        type(g) is Tensor
        and g._v is None
        and g._e is None
        and (g._s is None or owned)
        and g._k is leaf._k
    ):
        if owned:
            return g
        # Not the engine's own buffer: the same object may go to other leaves, too.
        if g._k.plain:
            return wrap(g._a.copy()) if g._k.contiguous else _in_layout(leaf, aten.detach(g))
    return _in_layout(leaf, aten.detach(g))


def _for_changed(leaf: Tensor, g: Tensor) -> Any:
    """The first gradient of a leaf that has another shape or type now. A dense leaf: g if its
    strides are the leaf's, else a copy of the leaf's shape (RuntimeError where that cannot be).
    Another leaf: g in row-major order."""
    steps = steps_of_leaf(leaf) or strides_of(leaf)
    if not layout.is_non_overlapping_and_dense(leaf._a.shape, steps):
        return aten.detach(aten.contiguous(g))
    mine = zip(g._a.shape, strides_of(g), (*steps, *(None,) * g._a.ndim), strict=False)
    if all(n == 1 or a == b for n, a, b in mine):
        return aten.detach(g)
    return aten.copy_(aten.empty_like(aten.detach(leaf)), g)


def _in_layout(leaf: Tensor, g: Tensor) -> Any:
    """A copy of the gradient with the leaf's strides; recorded if the tape records."""
    if any(t._exotic and not t.strided for t in (g, leaf)):  # sparse gradients stay what they are
        return aten.clone(g)
    r = aten.empty_like(aten.detach(leaf))
    if g._e is not None and TLS.grad:
        return aten.copy_(r, g)
    if r._k.device.type != "meta":
        r._a[...] = g._a
    return r


__all__ = ["LOCK", "Work", "accumulate", "deliver", "deliver_told", "fit", "fitted", "fresh_grad"]
