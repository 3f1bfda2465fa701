"""Masked normalisations and running sums: the result has the input's shape; what stands where the
mask is False says nothing.

Source: https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.masked.masking import checked, converted, filled, highest, lowest
from torchlab.masked.reductions import norm


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax along `dim` of the elements that count; nan where none does."""
    x = converted(checked("softmax", input), dtype)
    return aten.softmax(filled(x, mask, lowest("softmax", x.dtype)), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    x = converted(checked("log_softmax", input), dtype)
    return aten.log_softmax(filled(x, mask, lowest("log_softmax", x.dtype)), dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of -x along `dim` of the elements that count."""
    x = converted(checked("softmin", input), dtype)
    return aten.softmax(aten.neg(filled(x, mask, highest("softmin", x.dtype))), dim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """x / max(norm of the elements along `dim` that count, eps)."""
    x = converted(checked("normalize", input), dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    at_least = aten.clamp(length, min=eps)
    return aten.div(filled(x, mask, 0), at_least)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along `dim` of the elements that count."""
    x = checked("cumsum", input)
    return aten.cumsum(filled(x, mask, 0), dim, dtype=dtype or x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running product along `dim` of the elements that count."""
    x = checked("cumprod", input)
    return aten.cumprod(filled(x, mask, 1), dim, dtype=dtype or x.dtype)
