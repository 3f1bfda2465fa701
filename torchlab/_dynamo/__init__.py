"""`torch._dynamo`: where programs catch its errors from. The compiler is `torchlab.compiler`.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_api.html
"""

from __future__ import annotations

from torchlab._dynamo import exc

__all__ = ["exc"]
