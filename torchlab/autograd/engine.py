"""The engine: walks the tape backwards and brings every leaf its gradient.

One dictionary maps a node to what is known of it: how many gradients it still waits for, the sum of
those that came, and whether that sum is the engine's own buffer (then it may be added to in place).
Ready nodes run in the order PyTorch runs them: the newest first, leaves' accumulation at once.
There
is no recursion: a graph of 100,000 nodes is a loop.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.python_key import dispatching
from torchlab._core.dispatch.registry import aten
from torchlab._core.kind import Kind
from torchlab._core.ops.backward import sum_to_shape
from torchlab._core.tape import NOGRAD, TLS, AccumulateGrad, Node, Out
from torchlab._core.tensor import Tensor
from torchlab.autograd import anomaly, told

_new = object.__new__
np_add = np.add


LISTENING: list[Any] = []  # the topics of this file that somebody listens to


def _listened(topic: events.Topic) -> None:
    while topic in LISTENING:
        LISTENING.remove(topic)
    if topic.listeners:
        LISTENING.append(topic)


for _topic in (
    events.backward_begin,
    events.backward_step,
    events.backward_end,
    events.grad_accumulated,
):
    _topic.on_change = _listened


class _Work:
    """What the engine knows of one node while it waits."""

    __slots__ = ("waiting", "grads", "owned", "array", "shape", "k")

    array: Any  # of the engine's own sum: what arrives is added here
    shape: Any
    k: Any

    def __init__(self) -> None:
        self.waiting = 0
        self.grads: Any = None  # a tensor; for several outputs a list
        self.owned: Any = False


def run(
    roots: Sequence[tuple[Any, Tensor]],
    *,
    keep: bool,
    create: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
) -> dict[int, Tensor | None]:
    """Run backward from `roots`: (edge, gradient) pairs.

    inputs: edges to stop at; their gradients are returned by index, and accumulated into the leaves
    if `accumulate`. Without `inputs`, all leaves accumulate.
    """
    work, order = _count(roots)
    wanted = _wanted(inputs, work, order) if inputs is not None else None
    captured: dict[int, Tensor | None] = {}
    targets: dict[Any, list[tuple[int, int]]] = {}
    if inputs is not None:
        for i, e in enumerate(inputs):
            node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
            targets.setdefault(node, []).append((i, nr))
            captured[i] = None
    heap: list[tuple[int, int, Node]] = []
    counter = 0
    deliver = _deliver_told if TLS.dispatch_modes else _deliver
    for e, g in roots:
        node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        deliver(work[node], node, nr, g, create)
    for node in dict.fromkeys((e.node if type(e) is Out else e) for e, _ in roots):
        if work[node].waiting == 0:
            counter += 1
            heappush(heap, (-node.seq, counter, node))
    was = TLS.grad
    _set_grad(create)
    listening = events.backward_begin.listeners or events.backward_step.listeners
    if listening:
        events.backward_begin.emit(roots=tuple(e.node if type(e) is Out else e for e, _ in roots))
    try:
        while heap:
            node = heappop(heap)[2]
            if wanted is not None and node not in wanted:
                continue
            w = work[node]
            g = w.grads
            if node.hooks is not None:
                g = _before(node, g)
            if targets and node in targets:
                for i, nr in targets[node]:
                    captured[i] = g[nr] if node.outs is not None and g is not None else g
                if not accumulate or type(node) is not AccumulateGrad:
                    if not _leads_on(node, wanted):
                        continue
            w.grads = None
            if type(node) is AccumulateGrad:
                if accumulate and g is not None:
                    _accumulate(node, g, w.owned, create)
                continue
            if g is None or (node.outs is not None and all(x is None for x in g)):
                results: Any = (None,) * len(node.next)
            else:
                results = node.apply(tuple(g) if node.outs is not None else g)
                if type(results) is not tuple:
                    results = (results,)
            if node.hooks is not None and node.hooks.post:
                results = _after(node, results, g)
            if events.backward_step.listeners:
                given = tuple(g) if node.outs is not None else (g,)
                events.backward_step.emit(node=node, grad_outputs=given, grad_inputs=results)
                if TLS.anomaly:
                    anomaly.raise_if_found()
            if not keep:
                node.release()
            pairs: Any = zip(node.next, results, strict=False)
            if deliver is _deliver_told:  # a gradient that nobody else holds may become a leaf's
                pairs = told.consumed(node.next, told.fitted(_fit, node, results, wanted))
                results = None
            for e, r in pairs:
                if e is None:
                    continue
                to, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
                tw = work[to]
                if r is not None:
                    if wanted is None or to in wanted:
                        deliver(tw, to, nr, r, create, node)
                        r = None
                tw.waiting -= 1
                if tw.waiting == 0:
                    counter += 1
                    heappush(heap, (-to.seq, counter, to))
            del results, g, pairs
    finally:
        _set_grad(was)
        if listening:
            events.backward_end.emit(roots=tuple(e.node if type(e) is Out else e for e, _ in roots))
    return captured


def run_plain(root: Any, g: Any, keep: bool) -> None:
    """The common case on its own: one root, all leaves, no second derivative, nobody listening.

    The same walk as `run`, with what it knows in one dictionary and the checks of a gradient's
    shape and kind inlined.
    """
    node = root.node if type(root) is Out else root
    if node.outs is not None or type(node) is AccumulateGrad:
        run([(root, g)], keep=keep, create=False)
        return
    # How many gradients a node waits for; once one of several has come, a _Work in its place.
    pending: dict[Node, Any] = {}
    count_of = pending.get
    stack = [node]
    while stack:
        for e in stack.pop().next:
            if e is not None:
                if type(e) is Out:
                    e = e.node
                n = count_of(e)
                if n is None:
                    pending[e] = 1
                    if e.next:
                        stack.append(e)
                else:
                    pending[e] = n + 1
    heap: list[tuple[int, int, Node]] = []
    counter = 0
    thread = TLS.__dict__  # one look-up instead of one for every access
    was = thread["grad"]
    if was:
        thread["grad"] = False
        NOGRAD.append(1)
    try:
        while True:  # node has one output and is no leaf, g is its gradient
            if node.hooks is None:
                results: Any = node.apply(g)
            else:
                results = _apply_hooked(node, g)
            if node.saves and not keep:
                node.release()
            while True:
                g = following = None
                for to, r in zip(node.next, results):
                    if to is None:
                        continue
                    w = count_of(to)
                    if w == 1 and r is not None:  # the only gradient it gets
                        if type(to) is AccumulateGrad:
                            leaf = to.leaf()
                            if leaf is None:
                                continue
                            if r._k is not leaf._k or r._a.shape != leaf._a.shape:
                                r = _fit(r, leaf._a.shape, leaf._k, to, node)
                            if to.hooks is None and leaf._g is None:
                                # results, r and the argument: nobody else has it
                                leaf._g = _first_grad(leaf, r, getrefcount(r) <= 3)
                                continue
                        else:
                            if r._k is not to.k or r._a.shape != to.shape or type(r) is not Tensor:
                                r = _fit(r, to.shape, to.k, to, node)
                            if following is None:
                                following, g = to, r
                                continue
                        w = pending[to] = _Work()
                        w.grads = r
                    elif type(w) is _Work:
                        if r is not None:
                            k = r._k
                            if w.owned is True and k is w.k and k.fast and r._a.shape == w.shape:
                                have = w.array  # the engine's own sum: add in place
                                np_add(have, r._a, have)
                            else:
                                _deliver(w, to, 0, r, False, node)
                        w.waiting -= 1
                        if w.waiting:
                            continue
                    else:
                        to = _first_of_several(pending, to, r, node)
                        if to is None:
                            continue
                    counter += 1
                    heappush(heap, (-to.seq, counter, to))
                r = None
                if following is not None:
                    if not heap or -following.seq <= heap[0][0]:
                        node = following
                        break
                    w = pending[following] = _Work()
                    w.grads = g
                    counter += 1
                    heappush(heap, (-following.seq, counter, following))
                if not heap:
                    return
                node = heappop(heap)[2]
                w = pending[node]
                g = w.grads
                w.grads = w.array = None
                if g is not None and node.outs is None and node.next:
                    break
                results = _apply_other(node, g, w.owned)
                if node.saves and not keep:
                    node.release()
    finally:
        if was:
            thread["grad"] = True
            NOGRAD.pop()


def _first_of_several(pending: dict[Node, Any], to: Any, r: Any, source: Node) -> Node | None:
    """Deliver what comes first to a node that waits for several gradients, to a node with several
    outputs, or nothing to any. Gives back the node if it has now got all."""
    nr = 0
    if type(to) is Out:
        nr = to.nr
        to = to.node
    w = pending[to]
    if type(w) is int:
        n = w
        w = pending[to] = _Work()
        w.waiting = n
    if r is not None:
        _deliver(w, to, nr, r, False, source)
    w.waiting -= 1
    return None if w.waiting else to


def _apply_hooked(node: Node, g: Any) -> tuple[Any, ...]:
    g = _before(node, g)
    results = node.apply(g) if g is not None else (None,) * len(node.next)
    assert node.hooks is not None
    return _after(node, results, g) if node.hooks.post else results


def _apply_other(node: Node, g: Any, owned: Any) -> tuple[Any, ...]:
    """Leaves, nodes with several outputs, and nodes that got nothing; their hooks, too."""
    hooks = node.hooks
    if hooks is not None:
        g = _before(node, g)
    if type(node) is AccumulateGrad:
        results: Any = ()
        if g is not None:
            _accumulate(node, g, owned, False)
    elif g is None or (node.outs is not None and all(x is None for x in g)):
        results = (None,) * len(node.next)
    else:
        results = node.apply(g if node.outs is None else tuple(g))
        results = results if type(results) is tuple else (results,)
    return _after(node, results, g) if hooks is not None and hooks.post else results


def _first_grad(leaf: Tensor, g: Tensor, alone: bool) -> Tensor:
    """The leaf's first gradient: the buffer itself if nobody else can reach it, else a copy."""
    k = g._k
    if alone and k is leaf._k and type(g) is Tensor and g._e is None:
        v, s = g._v, g._s
        if v is None:
            if s is None or getrefcount(s) <= 3:
                return g
        elif type(v) is Tensor and getrefcount(v) <= 3 and getrefcount(s) <= 4:
            g._v = None  # a view of a buffer that only this view can reach
            return g
    if k.plain and k is leaf._k and k.contiguous:
        t = _new(Tensor)
        t._a = g._a.copy()
        t._k = k
        t._e = t._s = t._v = t._g = None
        return t
    return _in_layout(leaf, g)


def _count(roots: Sequence[tuple[Any, Tensor]]) -> tuple[dict[Node, _Work], list[Node]]:
    """All reachable nodes with the number of gradients that each will get."""
    work: dict[Node, _Work] = {}
    stack = []
    for e, _ in roots:
        node = e.node if type(e) is Out else e
        if node not in work:
            work[node] = _Work()
            stack.append(node)
    order = []
    while stack:
        node = stack.pop()
        order.append(node)
        for e in node.next:
            if e is None:
                continue
            to = e.node if type(e) is Out else e
            w = work.get(to)
            if w is None:
                w = work[to] = _Work()
                stack.append(to)
            w.waiting += 1
    return work, order


def _wanted(inputs: Sequence[Any], work: dict[Node, _Work], order: list[Node]) -> set[Node]:
    """The nodes on some path from a root to an input."""
    users: dict[Node, list[Node]] = {}
    for node in order:
        for e in node.next:
            if e is not None:
                users.setdefault(e.node if type(e) is Out else e, []).append(node)
    goal = [e.node if type(e) is Out else e for e in inputs]
    found = {n for n in goal if n in work}
    stack = list(found)
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in found:
                found.add(user)
                stack.append(user)
    return found


def _leads_on(node: Node, wanted: set[Node] | None) -> bool:
    return wanted is None or any(
        e is not None and (e.node if type(e) is Out else e) in wanted for e in node.next
    )


def _set_grad(on: bool) -> None:
    if TLS.grad != on:
        TLS.grad = on
        if on:
            NOGRAD.pop()
        else:
            NOGRAD.append(1)


def _fit(g: Any, shape: Any, k: Kind, node: Node, source: Node | None) -> Tensor:
    """Check a gradient against what it belongs to: sum broadcast dimensions, convert the type."""
    if not isinstance(g, Tensor):
        raise TypeError(
            f"expected a Tensor or None as a gradient of {node.name()}, not {type(g).__name__}"
        )
    if g._a.shape != shape:
        if len(g._a.shape) >= len(shape) and _expandable(shape, g._a.shape):
            g = sum_to_shape(g, shape)
        elif g._a.size == 1 and _size(shape) == 1:
            g = aten.reshape(g, tuple(shape))
        else:
            by = f"Function {source.name()} returned an" if source is not None else "got an"
            raise RuntimeError(
                f"{by} invalid gradient at index 0 - got {list(g._a.shape)} but expected shape"
                f" compatible with {list(shape)}"
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
                f"Function {source.name() if source else ''} returned a gradient on {gk.device},"
                f" expected {k.device}"
            )
        g = aten.to(g, k.device)
    return g


def _expandable(small: Any, big: Any) -> bool:
    return all(a == b or a == 1 for a, b in zip(small[::-1], big[::-1], strict=False))


def _size(shape: Any) -> int:
    n = 1
    for x in shape:
        n *= x
    return n


def _deliver(
    w: _Work, node: Node, nr: int, g: Any, create: bool, source: Node | None = None
) -> None:
    """Add one incoming gradient to what a node has got."""
    if node.outs is not None:
        shape, k = node.outs[nr]
        g = _fit(g, shape, k, node, source)
        if w.grads is None:
            w.grads = [None] * len(node.outs)
            w.owned = [False] * len(node.outs)
        w.grads[nr], w.owned[nr] = _add(w.grads[nr], g, w.owned[nr], create)
        return
    if type(node) is AccumulateGrad:
        leaf = node.leaf()
        if leaf is None:
            return
        shape, k = leaf._a.shape, leaf._k
    else:
        shape, k = node.shape, node.k
    if type(g) is not Tensor or g._a.shape != shape or g._k.c is not k.c:
        g = _fit(g, shape, k, node, source)
    w.grads, w.owned = g, owned = _add(w.grads, g, w.owned, create)
    if owned:
        w.array, w.shape, w.k = g._a, g._a.shape, g._k


def _deliver_told(
    w: _Work, node: Node, nr: int, g: Any, create: bool, source: Node | None = None
) -> None:
    told.deliver(_fit, w, node, nr, g, source)


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


def _accumulate(node: AccumulateGrad, g: Tensor, owned: bool, create: bool) -> None:
    leaf = node.leaf()
    if leaf is None:
        return
    have = leaf._g
    if SLOW and TLS.dispatch_modes or type(g) is not Tensor and dispatching(g):
        told.accumulate(leaf, g, create)
    elif have is None:
        leaf._g = g if create else _fresh_grad(leaf, g, owned)
    elif create:
        leaf._g = aten.add(g, have) if have._exotic else aten.add(have, g)
    else:
        k = have._k
        gk = g._k
        if k.dtype is gk.dtype and k.c.fast and gk.plain and k.plain and type(have) is Tensor:
            have._a += g._a
            s = have._s
            if s is not None:
                s.version += 1
        elif have._exotic and not g._exotic:
            leaf._g = aten.add(g, have)
        else:
            have.add_(g)  # type: ignore[attr-defined]
    if events.grad_accumulated.listeners:
        events.grad_accumulated.emit(tensor=leaf, grad=leaf._g, in_place=have is not None)
    if node.hooks is not None and node.hooks.accumulated:
        for hook in list(node.hooks.accumulated.values()):
            hook(leaf)


def _fresh_grad(leaf: Tensor, g: Tensor, owned: bool) -> Tensor:
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
            return wrap(g._a.copy()) if g._k.contiguous else _in_layout(leaf, g)
    return _in_layout(leaf, g)


def _in_layout(leaf: Tensor, g: Tensor) -> Tensor:
    if any(t._exotic and not t.strided for t in (g, leaf)):  # sparse gradients stay what they are
        return aten.clone(aten.detach(g))
    r = aten.empty_like(aten.detach(leaf))
    if r._k.device.type != "meta":
        r._a[...] = g._a
    return r


# ---- hooks --------------------------------------------------------------------------------------


def _before(node: Node, g: Any) -> Any:
    hooks = node.hooks
    assert hooks is not None
    many = node.outs is not None
    grads = list(g) if many else [g]
    for nr, table in hooks.tensor.items():
        for hook in list(table.values()):
            if grads[nr] is None:
                continue
            r = hook(grads[nr])
            if r is not None:
                if not isinstance(r, Tensor):
                    raise TypeError(f"hook must return a Tensor or None, not {type(r).__name__}")
                if r._a.shape != grads[nr]._a.shape:
                    raise RuntimeError(
                        f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value: "
                        f"{list(grads[nr].shape)} to {list(r.shape)}"
                    )
                grads[nr] = r
    for hook in list(hooks.pre.values()):
        r = hook(tuple(grads))
        if r is not None:
            grads = list(r) if isinstance(r, (tuple, list)) else [r]
    for nr, ref in hooks.retain.items():
        t = ref()
        if t is not None and grads[nr] is not None:
            t._g = grads[nr] if t._g is None else aten.add(t._g, grads[nr])
    return grads if many else grads[0]


def _after(node: Node, results: tuple[Any, ...], g: Any) -> tuple[Any, ...]:
    assert node.hooks is not None
    given = tuple(g) if node.outs is not None else (g,)
    for hook in list(node.hooks.post.values()):
        r = hook(results, given)
        if r is not None:
            results = r if isinstance(r, tuple) else (r,)
    return results
