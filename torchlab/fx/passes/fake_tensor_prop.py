"""Run a graph on tensors without data and note what each value looks like.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Interpreter
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torchlab.fx.experimental.symbolic_shapes import SymTypes
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.interpreter import Interpreter
from torchlab.fx.node import Node, map_aggregate
from torchlab.utils import _pytree as pytree

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph under a FakeTensorMode; every node whose value has a tensor or a size in it gets
    it as `meta["val"]`."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode
        self._mode.allow_non_fake_inputs = True  # the module's own tensors are real

    def run_node(self, n: Node) -> Any:
        """The value of one node, noted."""
        result = super().run_node(n)
        found = False

        def note(x: Any) -> Any:
            nonlocal found
            if isinstance(x, FakeTensor):
                found = True
                return x.snapshot()
            if isinstance(x, Tensor):
                found = True
                return self._mode.from_tensor(x)
            found = found or type(x) in SymTypes
            return x

        value = map_aggregate(result, note)
        if found:
            n.meta["val"] = value
        return result

    def propagate(self, *args: Any) -> Any:
        """Run with fakes of these arguments; the result."""
        fakes = pytree.tree_map_only(Tensor, self._mode.from_tensor, args)
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run with these arguments, which are fake already; the result."""
        with self._mode:
            return super().run(*args)
