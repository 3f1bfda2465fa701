"""Counts in bins: histc, histogram, histogramdd.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.histogram.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._reduce import scalar_name
from torchlab._core.structures import structure, with_out
from torchlab._core.tensor import Tensor

Histogram = structure("histogram", ("hist", "bin_edges"))
HistogramDD = structure("histogramdd", ("hist", "bin_edges"))


def _ends(a: Any, low: float, high: float) -> tuple[float, float]:
    """The outer edges; where both are equal those of the elements, a little wider if need be."""
    if low == high and a.size:
        low, high = float(a.min()), float(a.max())
    return (low - 1, high + 1) if low == high else (low, high)


@op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    out=True,
    half=False,
    meta=lambda a, bins=100, min=0, max=0: MetaArray((bins,), a.dtype),
)
def histc(xp: Any, a: Any, bins: int, min: Any, max: Any) -> Any:
    """Counts in equal bins between min and max (both 0: those of the elements); what lies outside
    is not counted. The result has the operand's type, in which the places are computed."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if dt.from_numpy(a.dtype).category != dt.FLOAT:
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{scalar_name(a)}'")
    low, high = _ends(a, float(min), float(max))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    flat = a.reshape(-1)
    flat = flat[(flat >= low) & (flat <= high)]
    return xp.bincount(_places(xp, flat, low, high, bins), minlength=bins).astype(a.dtype)


def _places(xp: Any, a: Any, low: float, high: float, bins: int) -> Any:
    """The bin of each element of equal bins, computed in the elements' type, step by step."""
    w = a.dtype.type
    at = (a - w(low)) * w(bins) / (w(high) - w(low))
    return xp.minimum(at.astype(np.int64), bins - 1)


# ---- with edges and weights ---------------------------------------------------------------------


def _check_type(x: Any) -> None:
    if x._k.dtype not in (dt.float32, dt.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{x._k.dtype.scalar_name}'")


def _limits(x: Any, bins: Any, range: Any) -> list[tuple[float, float]]:
    """The outer edges of each column of x, shape (points, dims)."""
    n = x.shape[1]
    for d, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}"
            )
    if range is not None:
        range = list(range)
        if len(range) != 2 * n:
            raise RuntimeError(
                f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n}"
                f" elements, but got {len(range)}"
            )
        found = [(float(a), float(b)) for a, b in zip(range[::2], range[1::2], strict=True)]
    elif len(x):
        found = [(float(c.min()), float(c.max())) for c in x.T]
    else:
        found = [(0.0, 1.0)] * n
    for d, (low, high) in enumerate(found):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite"
            )
        if low > high:
            raise RuntimeError(
                "torch.histogramdd: min should not exceed max, but got min"
                f" {low:g} max {high:g} for dimension {d}"
            )
        if low == high:
            found[d] = (low - 0.5, high + 0.5)
    return found


def _edges(x: Tensor, bins: Any, range: Any) -> list[Tensor]:
    """The edges of equal bins along each dimension."""
    points = aten.detach(x).cpu().numpy()
    limits = _limits(points.reshape(math.prod(points.shape[:-1]), points.shape[-1]), bins, range)
    like = {"dtype": x._k.dtype, "device": x._k.device}
    return [aten.linspace(a, b, n + 1, **like) for n, (a, b) in zip(bins, limits, strict=True)]


def _check_edges(x: Any, edges: Any) -> None:
    if len(edges) != x._a.shape[-1]:
        n = x._a.shape[-1]
        raise RuntimeError(
            f"torch.histogramdd: expected {n} sequences of bin edges for a {n}-dimensional"
            f" histogram but got {len(edges)}"
        )
    for d, e in enumerate(edges):
        if e._k.dtype is not x._k.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but"
                f" got input with dtype {x.dtype} and bins for dimension {d} with dtype {e.dtype}"
            )
        if e._a.ndim != 1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got"
                f" {e._a.ndim} dimensions in the bins tensor for dimension {d}"
            )
        if e._a.size == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements"
                f" in the bins tensor for dimension {d}"
            )
        if e._a.size == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {d}")


def _check_weight(x: Any, weight: Any) -> None:
    if weight is None:
        return
    if weight._a.shape != x._a.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the"
            f" input tensor excluding its innermost dimension, but got input with shape"
            f" {list(x._a.shape)} and weight with shape {list(weight._a.shape)}"
        )
    if weight._k.dtype is not x._k.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should"
            f" have the same dtype, but got input({x.dtype}), and weight({weight.dtype})"
        )


@op(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool"
    " density=False) -> Tensor",
    public=False,
    meta=lambda a, bins, weight=None, density=False: MetaArray(
        tuple(e.shape[0] - 1 for e in bins), a.dtype
    ),
)
def _counted(xp: Any, a: Any, bins: Any, weight: Any, density: bool) -> Any:
    """Points (…, N) counted, or their weights added up, in the cells between N lists of edges; the
    last cell of a list has its right edge."""
    points = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    shape = tuple(e.shape[0] - 1 for e in bins)
    if not shape:  # points without coordinates lie in no cell
        return xp.zeros((), a.dtype)
    inside = xp.ones(len(points), bool)
    where = xp.zeros(len(points), np.int64)
    for column, e in zip(points.T, bins, strict=True):
        at = xp.searchsorted(e, column, side="right") - 1
        at = xp.where(column == e[-1], e.shape[0] - 2, at)
        inside &= (column >= e[0]) & (column <= e[-1])
        where = where * (e.shape[0] - 1) + at
    w = None if weight is None else weight.reshape(-1).astype(np.float64)[inside]
    size = math.prod(shape)
    hist = xp.bincount(where[inside], weights=w, minlength=size).astype(np.float64)
    hist = hist.reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(bins):
            widths = xp.diff(e).reshape((-1,) + (1,) * (len(shape) - d - 1))
            hist = hist / widths
    return hist.astype(a.dtype)


def _histogram(x: Any, edges: Any, weight: Any, density: bool) -> Any:
    _check_edges(x, edges)
    _check_weight(x, weight)
    return _counted.function(x, list(edges), weight=weight, density=density)


@face("histogram")
def histogram(
    self: Any,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """(counts, edges) of all elements in `bins` equal bins between the numbers of `range` (default:
    the least and the largest element), or in the bins between given edges. With `weight` the
    weights are added up; with `density` the integral over all bins is 1."""
    flat = aten.reshape(self, (-1, 1))
    weight = None if weight is None else aten.reshape(weight, (-1,))
    _check_type(self)
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram() takes either a tensor of bin edges or a range, not both")
        edges = aten.clone(bins)
    else:
        edges = _edges(flat, (bins,), range)[0]
    hist = _histogram(flat, (edges,), weight, density)
    if out is not None:
        for o in out:
            if o._k.dtype is not self._k.dtype:
                raise RuntimeError(
                    "torch.histogram: input tensor and hist and bin_edges tensors should have the"
                    f" same dtype, but got input {self.dtype} and {o.dtype}"
                )
        for o, r in zip(out, (hist, edges), strict=True):
            _put(o, r)
        return with_out(Histogram)(*out)
    return Histogram(hist, edges)


def _put(out: Tensor, r: Tensor) -> None:
    out.resize_(r._a.shape).copy_(r)  # type: ignore[attr-defined]


def _tensors(bins: Any) -> bool:
    return isinstance(bins, (list, tuple)) and bool(bins) and isinstance(bins[0], Tensor)


@face("histogramdd", method=False)
def histogramdd(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """(counts, edges of each dimension) of points (…, N) in an N-dimensional grid of bins: as many
    as `bins` says for all dimensions or for each, or between given edges. `range` lists the least
    and the largest coordinate of each dimension."""
    x = input
    if x._a.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    n = x._a.shape[-1]
    if x._a.ndim < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions, but got"
            f" {x._a.ndim}"
        )
    if not _tensors(bins):
        counts = (bins,) * n if isinstance(bins, int) else tuple(bins)
        for i, count in enumerate(counts):
            if not isinstance(count, int):
                raise TypeError(
                    f"histogramdd(): argument 'bins' must be tuple of ints, but the one at {i} is"
                    f" {type(count).__name__}"
                )
        if len(counts) != n:
            raise RuntimeError(
                "histogramdd: The size of bins must be equal to the innermost dimension of the"
                f" input ({n}), but got {len(counts)}"
            )
        _check_type(x)
        bins = _edges(x, counts, range)
    _check_type(x)
    return HistogramDD(_histogram(x, bins, weight, density), tuple(bins))
