"""Sequences of numbers, and matrices made of them: arange, linspace, logspace, eye, vander.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.layout import as_size
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How
from torchlab._core.ops._spread import in_lanes, spread
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor


def _number(x: Any, name: str, what: str) -> Any:
    """A Python number, or the one element of a tensor."""
    if isinstance(x, Tensor):
        return x.item()  # type: ignore[attr-defined]
    if not isinstance(x, (bool, int, float, complex, np.number, np.bool_)):
        raise TypeError(f"{name}(): argument '{what}' must be Number, not {type(x).__name__}")
    return x


def _refuse(d: dt.dtype, name: str, *, also_complex: bool) -> None:
    if d.category == dt.BOOL or (also_complex and d.is_complex):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{d.scalar_name}'")


def _whole(x: Any, d: dt.dtype) -> int:
    """The number cut off to an integer that `d` can hold."""
    n, info = int(x), np.iinfo(d.np)
    if n < 0 and n == x and info.min == 0 and n >= -info.max:
        return n + info.max + 1  # C's rule for unsigned numbers
    if not info.min <= n <= info.max:
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow: {x}")
    return n


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(isinstance(x, int) or x - x == 0 for x in (start, end)):  # finite
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: {start} -> {end} by {step}"
        )


def _steps(start: Any, step: Any, n: int, w: Any) -> np.ndarray:
    """start, start + step …: integers are cut off before they are added, as PyTorch does."""
    if np.dtype(w).kind in "iu":
        return (np.arange(n, dtype=np.int64) * int(step) + int(start)).astype(w)
    return (np.arange(n, dtype=np.float64) * step + start).astype(w)


@maker("arange", out=True)
def arange(how: How, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """start, start + step, … below end."""
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange() missing 1 required argument: 'end'")
    start = 0 if start is None else start
    given = (("start", start), ("end", end), ("step", step))
    start, end, step = (_number(x, "arange", what) for what, x in given)
    if how.layout is not None:
        return how.unlike((0,), "arange.start_out")
    if how.dtype is None and all(isinstance(x, (int, np.integer)) for x in (start, end, step)):
        how.dtype = dt.int64
    d = how.kind
    _refuse(d, "arange", also_complex=True)
    _check_range(start, end, step)
    if d is dt.int64:
        start, end, step = (x if isinstance(x, int) else int(x) for x in (start, end, step))
        if step == 0:
            raise ValueError("step must be nonzero: an int64 range counts in whole numbers")
        for x in (start, end, step):
            if type(x) is int and not -(2**63) <= x < 2**63:
                raise OverflowError(f"arange(): {x} does not fit into int64")
    if all(isinstance(x, int) for x in (start, end, step)):
        n = max(0, -((start - end) // step))
    else:
        n = max(0, math.ceil((end - start) / step))
    if how.place.type == "meta":
        return how.done(how.empty((n,), d))
    fill = in_lanes if d.is_floating_point else _steps
    return how.around(fill(start, step, n, d.np), d, in_order=True)


@maker("range", out=True, options=("dtype", "layout", "device", "requires_grad"))
def range_(how: How, start: Any, end: Any, step: Any = 1) -> Any:
    """start, start + step, … up to end, which is included. Deprecated: see `arange`."""
    warn_user(
        "torch.range is deprecated because it includes its end, unlike Python's range. Use"
        " torch.arange, which gives values in [start, end).",
    )
    given = (("start", start), ("end", end), ("step", step))
    start, end, step = (_number(x, "range", what) for what, x in given)
    if how.layout is not None:
        return how.unlike((0,), "range.out")
    d = how.kind
    _refuse(d, "range", also_complex=True)
    _check_range(start, end, step)
    if d.category == dt.INT and int(step) == 0:
        raise RuntimeError("step must be nonzero: a range of integers counts in whole numbers")
    if d.category == dt.INT:
        start, end, step = (_whole(x, d) for x in (start, end, step))
    n = math.floor((end - start) / step) + 1
    return how.around(_steps(start, step, n, d.np), d, in_order=True)


# ---- given the number of steps ------------------------------------------------------------------


def _ends(start: Any, end: Any, steps: Any, name: str) -> tuple[Any, Any, int]:
    for what, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x._a.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {what} with"
                f" {x._a.ndim} dimension(s)."
            )
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: steps must be int, not"
            f" {type(steps).__name__}"
        )
    steps = as_size(steps)
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    return _number(start, name, "start"), _number(end, name, "end"), steps


def _spread(start: Any, end: Any, steps: int, d: dt.dtype) -> np.ndarray:
    """From both ends, as PyTorch, in the result's own precision."""
    if d.category == dt.INT:
        start = _whole(start, d) if steps else 0
        end = _whole(end, d) if steps > 1 else start
    w = d.np.type if d.category > dt.INT else np.float64
    return spread(start, end, steps, w)


def _spread_type(how: How, start: Any, end: Any, steps: int) -> dt.dtype:
    d = how.kind
    if how.dtype is None and any(isinstance(x, complex) for x in (start, end)):
        d = d.to_complex()
    if steps > 1:
        _refuse(d, how.name, also_complex=False)
    return d


@maker("linspace", out=True)
def linspace(how: How, start: Any, end: Any, steps: int) -> Any:
    """`steps` values from start to end, both included."""
    start, end, steps = _ends(start, end, steps, "linspace")
    if how.layout is not None:
        return how.unlike((steps,), "linspace.out")
    d = _spread_type(how, start, end, steps)
    if how.place.type == "meta":
        return how.done(how.empty((steps,), d))
    return how.around(_spread(start, end, steps, d).astype(d.np), d, in_order=True)


@maker("logspace", out=True)
def logspace(how: How, start: Any, end: Any, steps: int, base: float = 10.0) -> Any:
    """`steps` powers of `base` whose exponents go from start to end, both included."""
    start, end, steps = _ends(start, end, steps, "logspace")
    if how.layout is not None:
        return how.unlike((steps,), "logspace.out")
    d = _spread_type(how, start, end, steps)
    exponents = _spread(start, end, steps, d)
    wide = exponents.astype(np.complex128 if d.is_complex else np.float64)
    a = np.power(wide.dtype.type(base), wide)
    return how.around(a.astype(d.np), d, in_order=True)


# ---- matrices -----------------------------------------------------------------------------------


@maker("eye", out=True)
def eye(how: How, n: int, m: int | None = None) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    m = n if m is None else m
    for what, x in (("n", n), ("m", m)):
        if not hasattr(x, "__index__"):
            raise TypeError(f"eye(): argument '{what}' must be int, not {type(x).__name__}")
        if x < 0:
            raise RuntimeError(f"{what} must be greater or equal to 0, got {x}")
    if how.layout is not None:
        return how.unlike((0,), "eye.m_out")
    d = how.kind
    if how.place.type == "meta":
        return how.done(how.empty((as_size(n), as_size(m)), d))
    return how.around(np.eye(n, m, dtype=d.np), d)


@face("vander", method=False)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of a vector's elements as columns: x^(N−1) … x^0, or the other way round; shape
    (len(x), N), N = len(x) by default."""
    if x._a.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got shape {list(x._a.shape)}.")
    n = x._a.shape[0]
    columns = n if N is None else N
    if columns < 0:
        raise RuntimeError(f"N must be non-negative, got {columns}.")
    d = dt.int64 if x._k.dtype.category <= dt.INT else x._k.dtype
    ones = aten.new_ones(x, (n, min(columns, 1)), dtype=d)
    if columns < 2:
        return ones
    repeated = aten.expand(aten.unsqueeze(aten.to(x, d), 1), (n, columns - 1))
    powers = aten.cat([ones, aten.cumprod(repeated, 1)], 1)
    return powers if increasing else aten.flip(powers, (1,))
