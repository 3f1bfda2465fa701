"""`torch._dynamo`: where programs reset the compiler, ask it what it captures, and catch its errors
from. The compiler is `torchlab.compiler`.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_api.html
"""

from __future__ import annotations

from torchlab._dynamo import eval_frame, exc
from torchlab._dynamo.marks import (
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
)
from torchlab.compiler import (
    InvalidBackend,
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    disable,
    explain,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "InvalidBackend",
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "eval_frame",
    "exc",
    "explain",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
]
