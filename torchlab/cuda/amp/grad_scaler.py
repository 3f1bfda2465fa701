"""The old name `torch.cuda.amp.GradScaler`: `torch.amp.GradScaler("cuda", ...)`.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

from torchlab.amp.former import scaler_of

__all__ = ["GradScaler"]

GradScaler = scaler_of("cuda")
