"""The engine: walks the tape backwards and brings every leaf its gradient.

One dictionary maps a node to what is known of it: how many gradients it still waits for, the sum of
those that came, and whether that sum is the engine's own buffer (then it may be added to in place).
Ready nodes run in the order PyTorch runs them: the newest first, leaves' accumulation at once.
There is no recursion: a graph of a million nodes is a loop.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.dispatch.compute import wrap
from torchlab._core.tape import (
    ANOMALY,
    NOGRAD,
    OTHER_THREADS,
    TLS,
    AccumulateGrad,
    Node,
    Out,
    Packed,
    next_task,
    nobody,
    unpack,
)
from torchlab._core.tensor import Tensor
from torchlab.autograd import anomaly_mode as anomaly
from torchlab.autograd import node_hooks, ready, told
from torchlab.autograd.sums import (
    LOCK,
    Work,
    accumulate,
    deliver,
    deliver_told,
    fit,
    fit_revived,
    fitted,
    fresh_grad,
)

_new = object.__new__
np_add = np.add


LISTENING: list[Any] = []  # the topics of this file that somebody listens to
# Functions to be called when a backward pass has ended, by its number.
CALLBACKS: dict[int, list[Callable[[], Any]]] = {}


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
    events.grad_captured,
):
    _topic.on_change = _listened


def run(
    roots: Sequence[tuple[Any, Tensor]],
    *,
    keep: bool,
    create: bool,
    inputs: Sequence[Any] | None = None,
    accumulating: bool = True,
) -> dict[int, Tensor | None]:
    """Run backward from `roots`: (edge, gradient) pairs.

    inputs: edges to stop at. Their gradients are returned by index; or, if `accumulating`, these
    nodes run, too, so that leaves accumulate. Without `inputs`, all leaves accumulate.
    """
    work, order, hooked = _count(roots)
    captured: dict[int, Tensor | None] = {}
    targets: dict[Any, list[tuple[int, int]]] = {}
    needed = live = None
    if inputs is not None:
        goals = []
        for i, e in enumerate(inputs):
            node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
            goals.append(node)
            captured[i] = None
            if not accumulating:
                targets.setdefault(node, []).append((i, nr))
        needed = _needed(goals, work, order, accumulating)
        live = needed.union(targets) if targets else needed
    heap: list[tuple[int, int, Node]] = []
    push, pop = (ready.push, ready.pop) if hooked or LISTENING else (heappush, heappop)
    counter = 0
    telling = bool(TLS.dispatch_modes)
    bring = deliver_told if telling else deliver
    starts = [e.node if type(e) is Out else e for e, _ in roots]
    was = TLS.inference_grad if TLS.inference else TLS.grad
    task, all_leaves, executes = TLS.graph_task, TLS.all_leaves, TLS.executes
    TLS.executes = _asked(roots, work, live, accumulating)
    number = TLS.graph_task = next_task()
    TLS.all_leaves = all_leaves and inputs is None
    _set_grad(create)
    last = {node: i for i, node in enumerate(starts)}
    listening = events.backward_begin.listeners or events.backward_step.listeners
    if listening:
        events.backward_begin.emit(roots=tuple(starts))
    try:
        for i, (e, g) in enumerate(roots):
            node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
            if live is not None and len(roots) > 1 and node not in live:
                bring(Work(), node, nr, g, create)  # what does not fit is refused here, too
                continue
            bring(work[node], node, nr, g, create)
            if work[node].waiting == 0 and last[node] == i:
                counter += 1
                push(heap, (-node._seq, counter, node))
        while heap:
            node = pop(heap)[2]
            if type(node) is AccumulateGrad and node.leaf is nobody:
                continue
            w = work[node]
            g = w.grads
            w.grads = None
            hooks = node._hooks
            if needed is not None:
                runs = node in needed
                if not runs and hooks is not None:
                    g = node_hooks.of_tensors(node, g)
                if node in targets:
                    for i, nr in targets[node]:
                        captured[i] = g[nr] if node._outs is not None and g is not None else g
                    if events.grad_captured.listeners:
                        events.grad_captured.emit(
                            node=node, grads=g if node._outs is not None else (g,)
                        )
                if not runs:
                    continue
            if hooks is not None:
                g = node_hooks.before(node, g)
            if type(node) is AccumulateGrad:
                if g is not None:
                    accumulate(node, g, w.owned is True and hooks is None, create)
                if hooks is not None:
                    if g is None and (leaf := node.variable) is not None:
                        node_hooks.accumulated(node, leaf)
                    node_hooks.after(node, (), g)
                continue
            asked = node if live is None else _for(live, node)
            results: Any = anomaly.applied(_applied, asked, g) if ANOMALY else _applied(asked, g)
            if telling or LISTENING or ANOMALY or hooks is not None and hooks.post:
                results = _seen(node, results, g, live)
            if not keep:
                node.release()
            if ANOMALY:
                anomaly.check(node, results)
            pairs: Any = zip(node.next, results, strict=False)
            if telling:  # a gradient that nobody else holds may become a leaf's
                pairs = told.consumed(node.next, results)
                results = None
            for e, r in pairs:
                if e is None:
                    continue
                to, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
                if live is not None and to not in live:
                    if node.runs_on_nothing and r is not None:
                        bring(Work(), to, nr, r, create, node)  # a user's must fit all the same
                    continue
                tw = work[to]
                if r is not None:
                    bring(tw, to, nr, r, create, node)
                    r = None
                tw.waiting -= 1
                if tw.waiting == 0:
                    counter += 1
                    push(heap, (-to._seq, counter, to))
            del results, g, pairs
        if CALLBACKS:
            _call_back(number)
    finally:
        CALLBACKS.pop(number, None)
        _set_grad(was)
        TLS.graph_task, TLS.all_leaves, TLS.executes = task, all_leaves, executes
        if listening:
            events.backward_end.emit(roots=tuple(starts), last=node)
    return captured


def _for(live: set[Node], node: Node) -> Node:
    """The node, or a copy without the edges that do not run: it computes no gradient for them."""
    if node.runs_on_nothing or node.op is None or node.of_lists:
        return node
    edges = node.next
    kept = tuple(
        None if e is None or (e.node if type(e) is Out else e) not in live else e for e in edges
    )
    if kept == edges:
        return node
    fewer = _new(type(node))
    for c in type(node).__mro__[:-1]:
        for name in c.__dict__.get("__slots__", ()):
            if name != "__weakref__":
                setattr(fewer, name, getattr(node, name))
    fewer.next = kept
    for slot in node.saves:  # its own results lead to the node itself, not to the copy
        saved = getattr(node, slot)
        if type(saved) is Packed and type(saved.edge) is int:
            return node
        if type(saved) is tuple and len(saved) == 5 and type(saved[4]) is int:
            e = Out(node, saved[4]) if node._outs is not None else node
            setattr(fewer, slot, (*saved[:4], e))
    return fewer


def _asked(roots: Any, work: Any, live: Any, accumulating: bool) -> Callable[[Node], bool]:
    """Whether a node runs, for hooks of several tensors. As in PyTorch a single root does not
    count."""
    only = roots[0][0] if len(roots) == 1 else None
    only = only.node if type(only) is Out else only

    def ask(node: Node) -> bool:
        found = node is not only and node in work and (live is None or node in live)
        if found and not accumulating and type(node) is AccumulateGrad:
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running"
                " autograd.grad(). This is currently not supported."
            )
        return found

    return ask


def _call_back(number: int) -> None:
    """What was asked for at the end of this backward pass, also by what is called here."""
    waiting = CALLBACKS.get(number, [])
    for callback in waiting:
        callback()


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function when the backward pass that this thread is in has ended."""
    number = TLS.graph_task
    if number == -1:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    CALLBACKS.setdefault(number, []).append(callback)


def _applied(node: Node, g: Any) -> tuple[Any, ...]:
    """What a node gives. Those of users' Functions run also if nothing came."""
    many = node._outs is not None
    if g is None or (many and all(x is None for x in g)):
        if not node.runs_on_nothing:
            for slot in node.saves:  # PyTorch's nodes look at what they saved before they look at g
                saved = getattr(node, slot)
                if saved is not None:
                    unpack(saved, node)
            if not node.refuses or all(e is None for e in node.next):
                return (None,) * len(node.next)
        g = [None] * len(node._outs)
    results = node.apply(tuple(g) if many else g)
    return results if type(results) is tuple else (results,)


def _seen(node: Node, results: Any, g: Any, live: Any) -> list[Any]:
    """What a node gives as hooks and listeners see it, and leave it: in the right shapes, and
    without what nobody gets."""
    own = node.runs_on_nothing  # a user's Function gives what it gives
    if live is not None and not own:
        runs = [e is not None and (e.node if type(e) is Out else e) in live for e in node.next]
        if not (node.of_lists and any(runs)):  # a list of tensors counts as one
            results = [r if run else None for run, r in zip(runs, results, strict=False)]
    found = fitted(node, results, None if own else live)
    hooks = node._hooks
    if hooks is not None and hooks.post:
        found = list(node_hooks.after(node, _as_many(found, node), g))
    if events.backward_step.listeners:
        given = g if node._outs is not None else (g,)
        given = (None,) if given is None else tuple(given)
        events.backward_step.emit(node=node, grad_outputs=given, grad_inputs=tuple(found))
    return found


def _as_many(results: Sequence[Any], node: Node) -> tuple[Any, ...]:
    """A result for each edge, as hooks see them; None where there is nobody to get it."""
    if not (node.runs_on_nothing or node.of_lists):
        pairs = zip(node.next, results, strict=False)
        results = [None if e is None else r for e, r in pairs]
    return (*results, *(None,) * (len(node.next) - len(results)))


def run_plain(root: Any, g: Any, keep: bool | None) -> None:
    """The common case on its own: one root, all leaves, no second derivative, nobody listening.

    The same walk as `run`, with what it knows in one dictionary and the checks of a gradient's
    shape and kind inlined.
    """
    node = root.node if type(root) is Out else root
    if node._outs is not None or type(node) is AccumulateGrad:
        run([(root, g)], keep=bool(keep), create=False)
        return
    # How many gradients a node waits for, True for one (an `is` costs a third of an `==`); once one
    # of several has come, a Work in its place.
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
                    pending[e] = True
                    if e.next:
                        stack.append(e)
                    elif e._hooks is not None:  # whose order counts
                        run([(root, g)], keep=bool(keep), create=False)
                        return
                else:
                    pending[e] = n + 1
    heap: list[tuple[int, int, Node]] = []
    counter = 0
    thread = TLS.__dict__  # one look-up instead of one for every access
    was, task, executes = thread["grad"], thread["graph_task"], thread["executes"]
    thread["executes"] = pending
    number = thread["graph_task"] = next_task()
    if was:
        thread["grad"] = False
        NOGRAD.append(1)
    try:
        while True:  # node has one output and is no leaf, g is its gradient
            if node._hooks is not None:
                results: Any = _apply_hooked(node, g)
                if not keep:
                    node.release()
            else:
                results = node.apply(g) if keep else node.spend(g)
            while True:
                g = following = None
                i = -1  # an index costs half of a zip
                for to in node.next:
                    i += 1
                    if to is None:
                        continue
                    r = results[i]
                    w = count_of(to)
                    if w is True and r is not None:  # the only gradient it gets
                        if type(to) is AccumulateGrad:
                            leaf = to.leaf()
                            if leaf is not None and leaf._e is to:
                                if r._k is not leaf._k or r._a.shape != leaf._a.shape:
                                    r = fit(r, leaf._a.shape, leaf._k, to, node)
                                if not OTHER_THREADS:  # (a lock takes 250 ns)
                                    if to._hooks is None and leaf._g is None:
                                        # results, r and the argument: nobody else has it
                                        leaf._g = _first_grad(leaf, r, getrefcount(r) <= 3)
                                        continue
                                else:
                                    with LOCK:
                                        if to._hooks is None and leaf._g is None:
                                            leaf._g = _first_grad(leaf, r, getrefcount(r) <= 3)
                                            continue
                            elif leaf is None:
                                r = fit_revived(r, to, node)
                        else:
                            if r._k is not to.k or r._a.shape != to.shape or type(r) is not Tensor:
                                r = fit(r, to.shape, to.k, to, node)
                            if following is None:
                                following, g = to, r
                                continue
                        w = pending[to] = Work()
                        w.grads = r
                    elif type(w) is Work:
                        if r is not None:
                            k = r._k
                            if w.owned is True and k is w.k and r._a.shape == w.shape:
                                have = w.array  # the engine's own sum: add in place
                                np_add(have, r._a, have)
                            else:
                                deliver(w, to, 0, r, False, node)
                        w.waiting -= 1
                        if w.waiting:
                            continue
                    else:
                        to = _first_of_several(pending, to, r, node)
                        if to is None:
                            continue
                    counter += 1
                    heappush(heap, (-to._seq, counter, to))
                r = None
                if following is not None:
                    if not heap or -following._seq <= heap[0][0]:
                        node = following
                        break
                    w = pending[following] = Work()
                    w.grads = g
                    counter += 1
                    heappush(heap, (-following._seq, counter, following))
                if not heap:
                    if CALLBACKS:
                        _call_back(number)
                    return
                node = heappop(heap)[2]
                w = pending[node]
                g = w.grads
                w.grads = w.array = None
                if g is not None and node._outs is None and node.next:
                    break
                results = _apply_other(node, g, w.owned)
                if node.saves and not keep:
                    node.release()
    finally:
        if CALLBACKS:
            CALLBACKS.pop(number, None)
        thread["graph_task"], thread["executes"] = task, executes
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
    if type(w) is not Work:
        n = int(w)
        w = pending[to] = Work()
        w.waiting = n
    if r is not None:
        deliver(w, to, nr, r, False, source)
    w.waiting -= 1
    return None if w.waiting else to


def _apply_hooked(node: Node, g: Any) -> tuple[Any, ...]:
    g = node_hooks.before(node, g)
    results = _applied(node, g)
    assert node._hooks is not None
    if node._hooks.post:
        return node_hooks.after(node, _as_many(fitted(node, results), node), g)
    return results


def _apply_other(node: Node, g: Any, owned: Any) -> tuple[Any, ...]:
    """Leaves, nodes with several outputs, and nodes that got nothing; their hooks, too."""
    if type(node) is AccumulateGrad:
        if g is not None:
            accumulate(node, g, owned, False)
        return ()
    return _applied(node, g) if node._hooks is None else _apply_hooked(node, g)


def _first_grad(leaf: Tensor, g: Tensor, alone: bool) -> Tensor:
    """The leaf's first gradient: the buffer itself if nobody else can reach it, else a copy."""
    k = g._k
    fits = k is leaf._k
    if fits and not alone and k.plain and k.contiguous:  # what is as a rule
        t = _new(Tensor)
        t._a = g._a.copy()
        t._k = k
        t._e = t._s = t._v = t._g = None
        return t
    if not (fits and k.contiguous or g._exotic):  # not in row-major order: then in the leaf's own
        free = not TLS.leaf_layout and k.c is leaf._k.c and 0 not in g._a.strides
        fits = free or fits and g._a.strides == leaf._a.strides
    if alone and fits and type(g) is Tensor and g._e is None:
        v, s = g._v, g._s
        if v is None:
            if s is None or getrefcount(s) <= 3:
                return g
        elif type(v) is Tensor and getrefcount(v) <= 3 and getrefcount(s) <= 4:
            g._v = None  # a view of a buffer that only this view can reach
            return g
    if fits and k.plain and k.contiguous:
        return wrap(g._a.copy())
    if fits and not TLS.leaf_layout and k.plain and g._v is None and g._e is None:
        return wrap(g._a.copy(order="K"))
    return fresh_grad(leaf, g, False)


def _count(roots: Sequence[tuple[Any, Tensor]]) -> tuple[dict[Node, Work], list[Node], bool]:
    """All reachable nodes with the number of gradients that each will get, and whether a leaf has
    hooks."""
    work: dict[Node, Work] = {}
    stack = []
    hooked = False
    for e, _ in roots:
        node = e.node if type(e) is Out else e
        if node not in work:
            work[node] = Work()
            stack.append(node)
    order = []
    while stack:
        node = stack.pop()
        order.append(node)
        if not node.next and node._hooks is not None:
            hooked = True
        for e in node.next:
            if e is None:
                continue
            to = e.node if type(e) is Out else e
            w = work.get(to)
            if w is None:
                w = work[to] = Work()
                stack.append(to)
            w.waiting += 1
    return work, order, hooked


def _needed(
    goals: list[Node], work: dict[Node, Work], order: list[Node], themselves: bool
) -> set[Node]:
    """The nodes that lead from a root to a goal; with the goals `themselves` or only those that
    lead on to another."""
    users: dict[Node, list[Node]] = {}
    for node in order:
        for e in node.next:
            if e is not None:
                users.setdefault(e.node if type(e) is Out else e, []).append(node)
    stack = [n for n in dict.fromkeys(goals) if n in work]
    found: set[Node] = set(stack) if themselves else set()
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in found:
                found.add(user)
                stack.append(user)
    return found


def _set_grad(on: bool) -> None:
    if TLS.inference:  # which never records: see grad_mode
        TLS.inference_grad = on
    elif TLS.grad != on:
        TLS.grad = on
        if on:
            NOGRAD.pop()
        else:
            NOGRAD.append(1)
