"""`torch.onnx`: models as ONNX, through `torch.export`.

    program = torch.onnx.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    program.save("model.onnx")

Needs the package `onnx`: `pip install torchlab[onnx]`.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

from torchlab.onnx import errors
from torchlab.onnx._api import export, is_in_onnx_export
from torchlab.onnx._program import ONNXProgram
from torchlab.onnx.errors import OnnxExporterError

__all__ = ["ONNXProgram", "OnnxExporterError", "errors", "export", "is_in_onnx_export"]
