"""Masked reductions: elements whose mask is False do not count.

`dim` is an int or a tuple; None means all dims. Where no element counts the result is what an empty
sum, product, maximum … is: 0, 1, -inf; for mean and var nan.

Source: https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.masked.masking import (
    checked,
    converted,
    dims_of,
    filled,
    full_mask,
    highest,
    lowest,
)


def _wide(input: Tensor, dtype: Any) -> Any:
    """The type of a sum: integers add up in int64."""
    if dtype is None and input.dtype.category < dt.FLOAT:
        return dt.int64
    return dtype or input.dtype


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that count."""
    x = checked("sum", input)
    d = _wide(x, dtype)
    dims = dims_of(x, dim)
    kept = filled(x, mask, 0)
    return aten.sum(kept, dims, keepdim, dtype=d)


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that count."""
    x = checked("prod", input)
    d = _wide(x, dtype)
    result = filled(x, mask, 1)
    axes = dims_of(x, dim) or ((0,) if isinstance(dim, int) else ())  # of no dimensions
    for axis in reversed(axes):
        result = aten.prod(result, axis, keepdim, dtype=dtype)
    return result if axes else aten.to(result, d)


def _extremum(name: str, identity: Any, reduce: Any) -> Any:
    def reduction(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = converted(checked(name, input), dtype)
        start = identity(name, x.dtype)
        return reduce(filled(x, mask, start), dims_of(x, dim), keepdim)

    reduction.__name__ = reduction.__qualname__ = name
    return reduction


amax = _extremum("amax", lowest, lambda x, dims, keepdim: aten.amax(x, dims, keepdim))
amax.__doc__ = "The largest of the elements that count; -inf (the smallest integer) if none does."
amin = _extremum("amin", highest, lambda x, dims, keepdim: aten.amin(x, dims, keepdim))
amin.__doc__ = "The smallest of the elements that count; inf (the largest integer) if none does."


def _place_of(name: str, identity: Any, find: Any) -> Any:
    def reduction(
        input: Tensor,
        dim: int | None = None,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = checked(name, input)
        start = identity(name, x.dtype)
        return aten.to(find(filled(x, mask, start), dim, keepdim), dtype or x.dtype)

    reduction.__name__ = reduction.__qualname__ = name
    return reduction


argmax = _place_of("argmax", lowest, lambda x, dim, keepdim: aten.argmax(x, dim, keepdim))
argmax.__doc__ = "Where the largest element that counts is; in the input's type, as PyTorch gives."
argmin = _place_of("argmin", highest, lambda x, dim, keepdim: aten.argmin(x, dim, keepdim))
argmin.__doc__ = "Where the smallest element that counts is; in the input's type, as PyTorch gives."


def _count(x: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Any:
    """How many elements count: a tensor, or a number without a mask."""
    if mask is None:
        return math.prod(x._a.shape[i] for i in dims)
    kept = full_mask(x, mask)
    return aten.sum(kept, dims, keepdim) if x.ndim else aten.to(kept, dt.int64)


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that count; nan if none does."""
    x = checked("mean", input)
    if (dtype or x.dtype).category < dt.FLOAT:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or"
            f" complex dtype. Got: {x.dtype}; give dtype="
        )
    dims = dims_of(x, dim)
    if mask is None:
        return aten.mean(x, dims, keepdim, dtype=dtype)
    total = sum(x, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return aten.div(total, _count(x, dims, keepdim, mask))


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The (lower) median of the elements that count; nan if none does, which integers cannot say:
    ValueError."""
    x = checked("median", input)
    if not x.dtype.is_floating_point:
        if mask is not None and not bool(aten.all(aten.any(full_mask(x, mask), dim))):
            raise ValueError(
                "masked median expects no fully masked out rows if dtype is not floating point"
            )
        x = aten.to(x, dt.float64)
    values, _ = aten.nanmedian(filled(x, mask, math.nan), dim, keepdim)
    return aten.to(values, dtype or input.dtype)


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(x))) of the elements that count; -inf if none does."""
    x = checked("logsumexp", input)
    d = dtype or x.dtype
    start = -math.inf if x.dtype.is_complex else lowest("logsumexp", x.dtype)
    kept = filled(x, mask, start)
    return aten.to(aten.logsumexp(kept, dims_of(x, dim), keepdim), d)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(x) + exp(y)); an element that does not count adds nothing."""
    x, y = (converted(checked("logaddexp", t), dtype) for t in (input, other))
    return aten.logaddexp(filled(x, input_mask, -math.inf), filled(y, other_mask, -math.inf))


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` of the elements that count."""
    x = checked("norm", input)
    start = math.inf if ord == -math.inf else 0
    kept = filled(x, mask, start)
    return aten.linalg_vector_norm(
        kept, 2.0 if ord is None else ord, dims_of(x, dim), keepdim, dtype=dtype
    )


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that count: squared distances from the mean over their number
    less `correction` (1; with unbiased=False 0). nan where that is not positive."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = 1.0 if unbiased is None else float(unbiased)
    less = less if correction is None else correction
    x = checked("var", input)
    d = dtype or (x.dtype if x.dtype.category >= dt.FLOAT else dt.float32)
    dims = dims_of(x, dim)
    x = aten.to(x, d)
    count = _count(x, dims, True, mask)
    center = aten.div(sum(x, dims, keepdim=True, mask=mask), count)
    distance = aten.sub(x, center)
    squares = aten.mul(distance, aten.conj(distance))
    total = sum(squares, dims, keepdim=keepdim, mask=mask)
    if mask is None:
        return aten.to(aten.div(total, max(count - less, 0)), d)
    number = aten.reshape(count, total._a.shape)
    if less:
        number = aten.clamp(aten.sub(number, less), min=0)
    return aten.to(aten.div(total, number), d)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The root of `var`."""
    x = checked("std", input)
    spread = var(x, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return aten.sqrt(spread)
