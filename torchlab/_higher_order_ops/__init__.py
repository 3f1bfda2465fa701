"""`torch._higher_order_ops`: operators that take functions.

Source: https://docs.pytorch.org/docs/2.13/higher_order_ops/index.html
"""

from __future__ import annotations

from torchlab._core.control_flow import cond, while_loop
from torchlab._higher_order_ops.associative_scan import associative_scan

__all__ = ["associative_scan", "cond", "while_loop"]
