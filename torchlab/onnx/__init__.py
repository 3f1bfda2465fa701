"""`torchlab.onnx`: programs may ask whether an export is going on. Exporting is missing.

Source: https://docs.pytorch.org/docs/2.13/onnx.html
"""

from __future__ import annotations

from typing import Any

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never, torchlab exports none."""
    return False


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.onnx' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab cannot export to ONNX")
    )
