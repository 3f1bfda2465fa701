"""Run a graph and note each value's shape and dtype.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Interpreter
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torchlab._core import formats
from torchlab._core.dtype import dtype
from torchlab._core.formats import memory_format
from torchlab._core.tensor import Size, Tensor
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.interpreter import Interpreter
from torchlab.fx.node import Node, map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    layout_name = None
    if include_contiguity:
        for candidate in (
            formats.contiguous_format,
            formats.channels_last,
            formats.channels_last_3d,
        ):
            wrong_rank = {formats.channels_last: 4, formats.channels_last_3d: 5}.get(candidate)
            if wrong_rank is not None and result.dim() != wrong_rank:
                continue
            if result.is_contiguous(memory_format=candidate):
                layout_name = candidate
                break
    qparams: dict[str, Any] = {}
    if result.is_quantized:
        scheme = result.qscheme()
        qparams["qscheme"] = scheme
        if str(scheme).endswith("per_tensor_affine"):
            qparams["scale"] = result.q_scale()
            qparams["zero_point"] = result.q_zero_point()
        else:
            qparams["scale"] = result.q_per_channel_scales().tolist()
            qparams["zero_point"] = result.q_per_channel_zero_points().tolist()
            qparams["axis"] = result.q_per_channel_axis()
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        tuple(result.stride()),
        layout_name,
        result.is_quantized,
        qparams,
    )


class ShapeProp(Interpreter):
    """Runs a graph; every node gets `meta["tensor_meta"]` (nested as its value is) and
    `meta["type"]`.

    fake_mode: a context manager to run under, such as one of fake tensors.
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """The value of one node, noted."""
        with _entered(self.fake_mode):
            result = super().run_node(n)
        found = False

        def note(obj: Any) -> Any:
            nonlocal found
            if not isinstance(obj, Tensor):
                return obj
            found = True
            return _extract_tensor_metadata(obj)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run with these arguments; the result."""
        return super().run(*args)


@contextmanager
def _entered(mode: Any) -> Iterator[None]:
    if mode is None:
        yield
    else:
        with mode:
            yield
