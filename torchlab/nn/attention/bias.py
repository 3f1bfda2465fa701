"""`torch.nn.attention.bias`: causal masks for attention, aligned with one corner or the other.

Source: https://docs.pytorch.org/docs/2.13/nn.attention.bias.html
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from torchlab._core.dispatch import watching
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import bool_
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor
from torchlab.nn.functional import scaled_dot_product_attention

_PARAMETERS = (
    "query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa",
)  # fmt: skip


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask begins.

    UPPER_LEFT: query i looks at keys up to i. LOWER_RIGHT: the last query looks at all keys, as the
    queries are the end of a sequence whose keys are cached.
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of shape (seq_len_q, seq_len_kv) that is made where it is needed.

    Only `scaled_dot_product_attention` takes it, as `attn_mask`. Raises AssertionError if variant
    is no CausalVariant or a length not positive.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        watching.class_made()  # attention, which is written in Python, asks from now on
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warn_user(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!"
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor of bool, True where a query may look."""
        later = 0
        if self.variant == CausalVariant.LOWER_RIGHT:
            later = self.seq_len_kv - self.seq_len_q
        ones = aten.ones((self.seq_len_q, self.seq_len_kv), dtype=bool_, device=device)
        return aten.tril(ones, later)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = {} if kwargs is None else kwargs
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[misc]
        given = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
        if given.get("is_causal"):
            raise ValueError("CausalBias should not be used with causal=True")
        if isinstance(given["attn_mask"], CausalBias):
            given["attn_mask"] = given["attn_mask"]._materialize(given["query"].device)
        return func(**given)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of two sizes, of queries and keys, whose diagonal begins in the upper left corner:
    what `is_causal=True` means. Raises AssertionError for other than two sizes."""
    return _of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of two sizes, of queries and keys, whose diagonal ends in the lower right corner.
    Warns where there are fewer keys than queries. Raises AssertionError for other than two sizes.
    """
    return _of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def _of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors, got {len(size)} sizes")
    return CausalBias(variant, *size)  # type: ignore[no-untyped-call]


__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]
