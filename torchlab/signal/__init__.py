"""`torchlab.signal`: tools for signals.

Source: https://docs.pytorch.org/docs/2.13/signal.html
"""

from __future__ import annotations

from torchlab.signal import windows

__all__ = ["windows"]
