"""Mixed precision: `torch.amp`.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from torchlab.amp import autocast_mode, grad_scaler
from torchlab.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from torchlab.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
