"""`autograd.graph`: saved-tensor hooks and the view of the tape's nodes.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#autograd-graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchlab._core.tape import TLS, AccumulateGrad, Node, Out, edge_of
from torchlab._core.tensor import Tensor


class saved_tensors_hooks:
    """Inside, what the tape saves goes through `pack_hook`, and back through `unpack_hook`."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        TLS.saved_hooks = [*TLS.saved_hooks, (self.pack_hook, self.unpack_hook)]

    def __exit__(self, *exc: object) -> None:
        TLS.saved_hooks = TLS.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory and bring them back to their device when needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))  # type: ignore[attr-defined]


class GradientEdge(NamedTuple):
    """A place on the tape: output `output_nr` of `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor, leaf or not."""
    e = edge_of(tensor)
    if e is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require"
            " gradients"
        )
    return GradientEdge(e.node, e.nr) if type(e) is Out else GradientEdge(e, 0)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count a write that torchlab could not see."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t._s is not None:
            t._s.version += 1


__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "get_gradient_edge",
    "increment_version",
    "save_on_cpu",
    "saved_tensors_hooks",
]
