"""`torch.export`: a module as a graph that holds for all inputs of a kind.

    program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    program.module()(other)

Source: https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

from torchlab.export import _decompositions as _decompositions
from torchlab.export._export import export
from torchlab.export._saving import load, save
from torchlab.export.dynamic_shapes import Dim, ShapesCollection, dims
from torchlab.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from torchlab.export.graph_signature import ExportGraphSignature
from torchlab.utils._pytree import register_dataclass

__all__ = [
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "dims",
    "export",
    "load",
    "register_dataclass",
    "save",
]
