"""Graphs of recorded GPU work, which torchlab does not make: programs may ask, and get "none".

Source: https://docs.pytorch.org/docs/2.13/generated/torch.cuda.CUDAGraph.html
"""

from __future__ import annotations

from typing import Any

__all__ = ["CUDAGraph", "graph", "is_current_stream_capturing"]


class CUDAGraph:
    """What recorded work would be. RuntimeError when one is made, as in PyTorch's builds for the
    CPU."""

    def __new__(cls, *args: Any, **kwargs: Any) -> CUDAGraph:
        """Refused."""
        raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")


class graph:
    """`with torch.cuda.graph(g):` would record what is inside. RuntimeError when it is made."""

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
    ) -> None:
        raise RuntimeError("torch.cuda.graph: torchlab records no graphs of GPU work")


def is_current_stream_capturing() -> bool:
    """Whether work is recorded instead of done: no."""
    return False
