"""How `linear_cross_entropy` cuts its batch into chunks.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.LinearCrossEntropyOptions.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchlab._core import dtype as dt

_POLICIES = ("accurate", "balanced", "compact", "auto")
_DTYPES = (None, dt.float16, dt.bfloat16, dt.float32, dt.float64)


def _is_ratio(method: str) -> bool:
    name, _, number = method.partition(":")
    try:
        return name == "aspect_ratio" and float(number) > 0
    except ValueError:
        return False


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of `torchlab.nn.functional.linear_cross_entropy`'s chunks.

    batch_chunk_size: rows at a time; without it chunking_method tells: "auto" is "aspect_ratio:2",
    by which a chunk's logits are at most twice as large as the whole input; None is one chunk.
    allow_retain_graph, acc_policy, acc_dtype: taken for PyTorch's sake. Here backward may run
    again in any case, and 16-bit types are accumulated in float32.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: dt.dtype | None = None

    def __post_init__(self) -> None:
        size = self.batch_chunk_size
        if size is not None and (type(size) is not int or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        method = self.chunking_method
        if method not in (None, "auto") and not _is_ratio(method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.acc_dtype not in _DTYPES:
            raise ValueError(
                f"acc_dtype must be one of {_DTYPES}, got {self.acc_dtype}. Pass acc_dtype=None to "
                "let the operator pick."
            )
