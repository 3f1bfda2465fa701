"""The old name `torch.cpu.amp.GradScaler`: `torch.amp.GradScaler("cpu", ...)`.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

from torchlab.amp.former import scaler_of

__all__ = ["GradScaler"]

GradScaler = scaler_of("cpu")
