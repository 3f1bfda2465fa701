"""`make_tensor`: tensors with random values that suit their type.

Source of the semantics: https://docs.pytorch.org/docs/2.13/testing.html#torch.testing.make_tensor
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor

ml_dtypes = lazy("ml_dtypes")


def make_tensor(
    *shape: Any,
    dtype: dt.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with values drawn uniformly from [low, high).

    Args:
        shape: sizes, or one sequence of sizes.
        dtype: bool, integer, floating point or complex. Of complex numbers both parts are drawn.
        device: where the tensor is made.
        low, high: by default [0, 2) for bool, [0, 10) for uint8, [-9, 10) for other integers,
            [-9, 9) for the rest; clamped to what the type can hold.
        noncontiguous: whether the elements shall have gaps between them (tensors of one element
            have none).
        exclude_zero: replace zeros by 1 (integers, bool) or the smallest normal number.
        memory_format: as `empty`; not together with `noncontiguous`.

    The numbers come from the default generator and are PyTorch's for the same seed.

    Raises:
        ValueError: bounds that are NaN, empty or outside the type; `requires_grad` for integers.
        TypeError: a type without numbers to draw.
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if requires_grad and not inexact:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype}"
        )
    gaps = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if gaps else shape
    if dtype is dt.bool_:
        bounds = _bounds(low, high, dtype, (0, 2), 0, 2)
        result = aten.randint(*bounds, drawn, dtype=dtype, device=device)
    elif inexact:
        info = _float_info(dtype)
        smallest, largest = float(info.min), float(info.max)
        bounds = _bounds(low, high, dtype, (-9, 9), smallest, largest)
        result = aten.empty(drawn, dtype=dtype, device=device)
        _draw(aten.view_as_real(result) if dtype.is_complex else result, *bounds, largest)
    else:
        whole = np.iinfo(dtype.np)
        default = (0, 10) if dtype is dt.uint8 else (-9, 10)
        end = int(whole.max) + (dtype is not dt.int64)
        bounds = _bounds(low, high, dtype, default, int(whole.min), end)
        result = aten.randint(*bounds, drawn, dtype=dtype, device=device)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = aten.clone(result, memory_format=memory_format)
    if exclude_zero:
        least: Any = float(_float_info(dtype).tiny) if inexact else 1
        result[result == 0] = complex(least, least) if dtype.is_complex else least
    return result.requires_grad_() if requires_grad else result


def _float_info(dtype: dt.dtype) -> Any:
    real = dtype.to_real()
    return np.finfo(real.np) if real in dt.NATIVE else ml_dtypes.finfo(real.np)


def _draw(t: Tensor, low: float, high: float, largest: float) -> None:
    """Fill with uniform numbers; a range wider than the type's largest number in two halves."""
    if high - low >= largest:
        t.uniform_(low / 2, high / 2).mul_(2)  # type: ignore[attr-defined]
    else:
        t.uniform_(low, high)  # type: ignore[attr-defined]


def _bounds(
    low: Any, high: Any, dtype: dt.dtype, default: tuple[int, int], smallest: Any, end: Any
) -> tuple[Any, Any]:
    """The interval to draw from, checked and clamped to [smallest, end)."""
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    inexact = dtype.is_floating_point or dtype.is_complex
    if low == high and inexact:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated; use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < smallest or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            "only "
            f"supports [{smallest}, {end})"
        )
    low, high = min(max(low, smallest), end), min(max(high, smallest), end)
    return (low, high) if inexact else (math.ceil(low), math.ceil(high))
