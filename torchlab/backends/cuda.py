"""`torchlab.backends.cuda`: switches of products and of attention.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-cuda
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from torchlab._core import attention_backends as attention
from torchlab._core import settings

_KINDS = frozenset(
    {
        attention.MATH,
        attention.FLASH,
        attention.EFFICIENT,
        attention.CUDNN,
        attention.OVERRIDEABLE,
    }
)


def is_built() -> bool:
    """Whether CUDA is built in: no, GPUs are reached through CuPy; see `cuda.is_available`."""
    return False


class cuBLASModule:
    """`torch.backends.cuda.matmul`: what products of matrices may round to on a GPU."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be rounded to TF32: `get_float32_matmul_precision()` is
        not "highest"."""
        return settings.get_float32_matmul_precision() != "highest"

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            if type(value) is not bool:
                raise RuntimeError(
                    f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}"
                )
            settings.set_float32_matmul_precision("high" if value else "highest")
            return
        if name not in vars(cuBLASModule) or name.startswith("_"):
            raise AttributeError("Unknown attribute " + name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError("Unknown attribute " + name)


matmul = cuBLASModule()


def _allowed(kind: int) -> bool:
    return attention.Allowed.kinds is None or kind in attention.Allowed.kinds


def _allow(kind: int, enabled: bool) -> None:
    if type(enabled) is not bool:
        raise RuntimeError(f"enabled expects a bool, but got {type(enabled).__name__}")
    kinds = _KINDS if attention.Allowed.kinds is None else attention.Allowed.kinds
    kinds = kinds | {kind} if enabled else kinds - {kind}
    attention.Allowed.kinds = None if kinds == _KINDS else kinds


def flash_sdp_enabled() -> bool:
    """Whether attention may use the flash kind of kernel. See `torch.nn.attention.sdpa_kernel`."""
    return _allowed(attention.FLASH)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow the flash kind of kernel for attention, or not."""
    _allow(attention.FLASH, enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may use the memory-efficient kind of kernel."""
    return _allowed(attention.EFFICIENT)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow the memory-efficient kind of kernel for attention, or not."""
    _allow(attention.EFFICIENT, enabled)


def math_sdp_enabled() -> bool:
    """Whether attention may be computed step by step."""
    return _allowed(attention.MATH)


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention to be computed step by step, or not."""
    _allow(attention.MATH, enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether attention may use cuDNN's kind of kernel."""
    return _allowed(attention.CUDNN)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow cuDNN's kind of kernel for attention, or not."""
    _allow(attention.CUDNN, enabled)


_reduced = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` has set."""
    return _reduced


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow sums in 16 bits in attention computed step by step. They are taken in 32 anyway."""
    global _reduced
    if type(enabled) is not bool:
        raise RuntimeError(f"enabled expects a bool, but got {type(enabled).__name__}")
    _reduced = enabled


def is_flash_attention_available() -> bool:
    """Whether PyTorch's flash kernels for GPUs are built in: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether AMD's kernels for attention are built in: no."""
    return False


@contextlib.contextmanager
def _only(kinds: dict[int, bool]) -> Iterator[Any]:
    before = attention.Allowed.kinds
    for kind, on in kinds.items():
        _allow(kind, on)
    try:
        yield {}
    finally:
        attention.Allowed.kinds = before


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> contextlib.AbstractContextManager[Any]:
    """Deprecated: `torch.nn.attention.sdpa_kernel`."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will"
        " be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager,"
        " with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    return _only(
        {
            attention.FLASH: enable_flash,
            attention.EFFICIENT: enable_mem_efficient,
            attention.MATH: enable_math,
            attention.CUDNN: enable_cudnn,
        }
    )
