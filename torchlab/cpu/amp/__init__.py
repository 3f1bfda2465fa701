"""Old names of `torch.amp` for the CPU.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from torchlab.cpu.amp.autocast_mode import autocast
from torchlab.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
