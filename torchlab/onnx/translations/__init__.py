"""ATen operators in ONNX, by families; every file registers its own.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from torchlab.onnx.translations import (
    activations,
    indexing,
    losses,
    makers,
    norms,
    pointwise,
    products,
    reductions,
    shapes,
    sizes,
    windows,
)
from torchlab.onnx.translations._registry import TRANSLATIONS, find

__all__ = [
    "TRANSLATIONS", "activations", "find", "indexing", "losses", "makers", "norms", "pointwise",
    "products", "reductions", "shapes", "sizes", "windows",
]  # fmt: skip
