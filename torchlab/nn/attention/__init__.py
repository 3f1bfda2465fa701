"""`torch.nn.attention`: which kernels attention may use.

Source: https://docs.pytorch.org/docs/2.13/nn.attention.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from torchlab._core.attention_backends import Allowed
from torchlab.nn.attention import bias


class SDPBackend(IntEnum):
    """The kinds of kernel."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<{self}: {int(self)}>"

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Within it, `scaled_dot_product_attention` may use these kinds of kernel only.

    The result is the same: torchlab has one kernel. Where PyTorch has none of these kinds on the
    device, the call raises RuntimeError. set_priority changes nothing.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = [backends] if isinstance(backends, SDPBackend) else backends
    before = Allowed.kinds
    Allowed.kinds = frozenset(int(b) for b in wanted)
    try:
        yield
    finally:
        Allowed.kinds = before


__all__ = ["SDPBackend", "bias", "sdpa_kernel"]
