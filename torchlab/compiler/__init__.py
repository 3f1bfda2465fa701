"""`torch.compiler`: a function as graphs, and the graphs as generated kernels.

    @torch.compile
    def f(x, w): return torch.nn.functional.gelu(x * w).sum(-1)

Source: https://docs.pytorch.org/docs/2.13/torch.compiler.html
"""

from torchlab.compiler.api import (
    ExplainOutput,
    allow_in_graph,
    assume_constant_result,
    compile,
    cudagraph_mark_step_begin,
    disable,
    explain,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    reset,
)
from torchlab.compiler.backends import InvalidBackend, list_backends
from torchlab.compiler.function import CompiledFunction, Unsupported
from torchlab.compiler.optimized_module import OptimizedModule

__all__ = [
    "CompiledFunction",
    "ExplainOutput",
    "InvalidBackend",
    "OptimizedModule",
    "Unsupported",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]
