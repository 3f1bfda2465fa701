"""Whether mixed precision on a GPU can be had.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from torchlab._core.backends import cuda as _gpus

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU."""
    return not _gpus.device_count()
