"""`autograd.graph`: the tape's nodes and edges, and hooks that see what it saves.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#autograd-graph
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torchlab._core.dispatch.writes import wrote
from torchlab._core.hooks import RemovableHandle
from torchlab._core.tape import (
    TLS,
    AccumulateGrad,
    GradientEdge,
    Node,
    Out,
    edge_of,
    nobody,
    node_of_leaf,
)
from torchlab._core.tensor import Tensor
from torchlab.autograd.mutation import allow_mutation_on_saved_tensors
from torchlab.autograd.packing import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor, leaf or not."""
    e = edge_of(tensor)
    if e is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require"
            " gradients"
        )
    if type(e) is AccumulateGrad and e.leaf is nobody:  # a view that was made under no_grad
        raise AssertionError("Expected gradient function to be set: the tensor has none")
    if type(e) is AccumulateGrad:
        e = node_of_leaf(e)
    return GradientEdge(e.node, e.nr) if type(e) is Out else GradientEdge(e, 0)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that torchlab could not see. (Those to inference tensors are not counted.)"""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not t._k.inference:
            wrote(t)


class _MultiHandle(RemovableHandle):
    """Takes back the hooks that `register_multi_grad_hook` put on several tensors."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Forget the hooks."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state

    def __enter__(self) -> _MultiHandle:
        return self


def _task() -> int:
    number = TLS.graph_task
    if number == -1:
        raise RuntimeError("expected this hook to be called inside a backward call")
    return number


def will_execute(node: Node) -> bool:
    """Whether the backward pass that this thread is in runs `node`."""
    executes = TLS.executes
    if executes is None:
        raise RuntimeError("expected to be called inside a backward call")
    return node in executes if type(executes) is dict else executes(node)


class _Waiting:
    """What a hook of several tensors knows of one backward pass."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.wanted = sum(will_execute(node) for node in nodes)
        self.came = 0
        self.grads: list[Any] = [None] * len(nodes)


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[..., None],
    *,
    mode: str = "all",
) -> _MultiHandle:
    """Call `fn` once in a backward pass for several tensors.

    mode: "all" calls `fn(grads)` when every gradient that this pass computes is known, None for
    those that it does not; "any" calls `fn(grad)` with the first.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: set[int] = set()

        @functools.wraps(fn)
        def first(grad: Any) -> None:
            task = _task()
            with lock:
                if task in ran:
                    return
                ran.add(task)
            fn(grad)

        return _MultiHandle([t.register_hook(first) for t in tensors if t.requires_grad])
    nodes = []
    for t in tensors:
        if edge_of(t) is None:
            raise AssertionError("Expected gradient function to be set: a tensor has none")
        nodes.append(get_gradient_edge(t).node)
    tasks: dict[int, _Waiting] = {}

    def hook(index: int) -> Callable[[Any], None]:
        def arrived(grad: Any) -> None:
            task = _task()
            with lock:
                waiting = tasks.get(task)
                if waiting is None:
                    waiting = tasks[task] = _Waiting(nodes)
                waiting.came += 1
                waiting.grads[index] = grad
                last = waiting.came == waiting.wanted
            if last:
                fn(waiting.grads)
                del tasks[task]

        return arrived

    return _MultiHandle([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


class _Regions(threading.local):
    """The memory budgets of the regions that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.budgets: list[float] = []


REGIONS = _Regions()
tracing: list[Callable[[], bool]] = []  # torchlab.compiler.api: whether a capture is running


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """Within `torch.compile`: how much of what backward needs of the operators inside is kept; the
    rest is computed again in backward.

    budget: from 0.0 (nothing but the graph's inputs and outputs) to 1.0 (everything, as without
    this). It must be around all operators of a graph, which otherwise raises RuntimeError, as it
    does outside of `torch.compile`.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    if not any(ask() for ask in tracing):
        raise RuntimeError(
            f"{name} can only be used inside a torch.compile region; it has no effect in eager"
            " mode."
        )
    return _region(float(budget))


@contextlib.contextmanager
def _region(budget: float) -> Iterator[None]:
    REGIONS.budgets.append(budget)
    try:
        yield
    finally:
        REGIONS.budgets.pop()


_streams = {"warn": True, "override": False}


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn where a leaf's gradient comes from another stream than the leaf's. Backward
    runs on the stream that is current where it is called, so there is nothing to warn of here."""
    _streams["warn"] = bool(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether a node that remembers a stream which is not being captured runs on the one that is.
    Nodes remember no stream here: what runs always runs on the current one."""
    _streams["override"] = bool(enabled)


__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]
