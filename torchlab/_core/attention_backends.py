"""Which kinds of attention kernel the caller allows: PyTorch's switch, which here decides nothing
but whether `scaled_dot_product_attention` may run at all, since there is one kernel.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.attention.sdpa_kernel.html
"""

from __future__ import annotations

MATH, FLASH, EFFICIENT, CUDNN, OVERRIDEABLE = range(5)
_ON_CPU = frozenset({MATH, FLASH})
_ELSEWHERE = frozenset({MATH, FLASH, EFFICIENT, CUDNN})


class Allowed:
    """The kinds that are allowed now; None is all."""

    kinds: frozenset[int] | None = None


def fused_allowed() -> bool:
    """Whether the fused kernel of the CPU may be taken."""
    return Allowed.kinds is None or FLASH in Allowed.kinds


def check_allowed(on_cpu: bool) -> None:
    """Raise RuntimeError if none of the allowed kinds exists on the device."""
    if Allowed.kinds is not None and not Allowed.kinds & (_ON_CPU if on_cpu else _ELSEWHERE):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to "
            "turning off both the math kernel and the fused kernels."
        )
