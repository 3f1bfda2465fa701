"""One pass over a graph module.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import abc
from typing import NamedTuple

from torchlab.fx.graph_module import GraphModule
from torchlab.nn.module import Module

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The module after a pass, and whether it was changed."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: calling it checks `requires`, runs `call`, and checks `ensures`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 — may be left as it is
        """Raise if the module is not fit for the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027 — may be left as it is
        """Raise if the pass has not done what it promises."""
