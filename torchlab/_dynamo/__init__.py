"""`torch._dynamo`: where programs reset the compiler, ask it what it captures, and catch its errors
from. The compiler is `torchlab.compiler`.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_api.html
"""

from __future__ import annotations

from torchlab._dynamo import exc
from torchlab.compiler import (
    InvalidBackend,
    OptimizedModule,
    disable,
    explain,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "InvalidBackend",
    "OptimizedModule",
    "disable",
    "exc",
    "explain",
    "is_compiling",
    "list_backends",
    "reset",
]
