"""The compiler's own backend: aten graph → decomposed graph → program → generated kernels."""

from torchlab.compiler.inductor.compile import compile_captured

__all__ = ["compile_captured"]
