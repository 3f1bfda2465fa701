"""Old names of `torch.amp` for GPUs. Without one, autocast and the scaler warn and stay off.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from torchlab.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from torchlab.cuda.amp.common import amp_definitely_not_available
from torchlab.cuda.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "custom_bwd",
    "custom_fwd",
]
