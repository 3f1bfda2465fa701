"""A deterministic layered drawing of a directed graph, in plain Python: no `dot` binary is needed.

The method is Sugiyama's (K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of
Hierarchical System Structures", IEEE Trans. SMC 11(2), 1981): ranks, virtual nodes on long edges,
barycenter sweeps against crossings, then coordinates. Coordinates come from isotonic regression, so
that boxes of a rank cannot overlap. Nothing recurses, so that deep tapes can be drawn.
"""

from __future__ import annotations

from torchlab.viz.layout.layered import layered
from torchlab.viz.layout.nested import nested
from torchlab.viz.layout.result import Box, Layout, Route

__all__ = ["Box", "Layout", "Route", "layered", "nested"]
