"""Sampling an image at the points of a grid.

Note: taps
    Every mode takes, for each point and each dimension, a few places of the input with a weight:
    one (nearest), two (linear) or four (cubic). A sample is the sum over all combinations of the
    dimensions' taps of the product of their weights times the element there; places outside count
    as zero. The gradient of the input puts back the same products; the gradient of the grid
    takes, for one dimension after the other, the weights' slopes in place of the weights.
Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.grid_sample.html;
spatial transformer networks: arXiv:1506.02025.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops._places import add_at
from torchlab._core.settings import warn_user

_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
_A = -0.75  # of Keys's cubic kernel (IEEE Transactions on Acoustics 29, 1981)


@dataclass(slots=True)
class Tap:
    """One place along one dimension for each point: (N, points)."""

    at: Any  # the index, 0 where it is outside
    inside: Any
    weight: Any
    slope: Any  # of the weight, by the grid's coordinate


# ---- coordinates --------------------------------------------------------------------------------


def _clip(xp: Any, at: Any, size: int) -> tuple[Any, Any]:
    """Into 0 … size − 1, and the slope of that: 0 at the border and beyond."""
    top = at.dtype.type(size - 1)
    clipped = xp.where(at > 0, xp.minimum(at, top), at.dtype.type(0))  # NaN becomes 0
    return clipped, ((at > 0) & (at < top)).astype(at.dtype)


def _reflect(xp: Any, at: Any, size: int, corners: bool) -> tuple[Any, Any]:
    """Mirrored at the centres of the outermost elements (corners) or at their outer edges."""
    low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
    kind = at.dtype.type
    if span == 0:
        return xp.zeros_like(at), xp.zeros_like(at)
    moved = at - kind(low)
    slope = xp.where(moved < 0, kind(-1), kind(1))
    moved = xp.abs(moved)
    extra = xp.fmod(moved, kind(span))
    odd = xp.fmod(xp.floor(moved / kind(span)), kind(2)) != 0
    mirrored = xp.where(odd, kind(span) - extra, extra) + kind(low)
    return mirrored, xp.where(odd, -slope, slope)


def _padded(xp: Any, at: Any, size: int, padding: int, corners: bool) -> tuple[Any, Any]:
    """Coordinates under the padding mode, and their slope."""
    if padding == ZEROS:
        return at, xp.ones_like(at)
    if padding == BORDER:
        return _clip(xp, at, size)
    mirrored, slope = _reflect(xp, at, size, corners)
    clipped, inner = _clip(xp, mirrored, size)
    return clipped, slope * inner


def _tap(xp: Any, at: Any, size: int, weight: Any, slope: Any) -> Tap:
    inside = (at >= 0) & (at <= size - 1)  # false for NaN
    zero = at.dtype.type(0)
    index = xp.where(inside, at, zero).astype(xp.int64)
    counts = inside | xp.isnan(weight)  # a point that is nowhere gives NaN
    return Tap(index, inside, xp.where(counts, weight, zero), xp.where(counts, slope, zero))


def _cubic(xp: Any, t: Any) -> tuple[list[Any], list[Any]]:
    """The weights of the places −1, 0, 1, 2 for the fraction t, and their slopes."""
    weights, slopes = [], []
    for distance, sign in ((t + 1, 1), (t, 1), (1 - t, -1), (2 - t, -1)):
        d = distance
        if len(weights) in (1, 2):
            weights.append(((_A + 2) * d - (_A + 3)) * d * d + 1)
            slopes.append(sign * (3 * (_A + 2) * d - 2 * (_A + 3)) * d)
        else:
            weights.append(((_A * d - 5 * _A) * d + 8 * _A) * d - 4 * _A)
            slopes.append(sign * ((3 * _A * d - 10 * _A) * d + 8 * _A))
    return weights, slopes


def _position(g: Any, size: int, corners: bool, plane: bool) -> Any:
    """Coordinates −1 … 1 as positions among the elements. PyTorch's kernels for planes round once
    (a fused multiply-add), those for volumes after each step; far out the last bit shows."""
    kind = g.dtype.type
    if corners:
        return (g + 1) * kind((size - 1) / 2)
    if plane:
        return ((g + 1).astype(np.float64) * (size / 2) - 0.5).astype(kind)
    return ((g + 1) * kind(size) - 1) / kind(2)


def _taps(
    xp: Any, g: Any, size: int, mode: int, padding: int, corners: bool, plane: bool
) -> list[Tap]:
    """The taps of one dimension; g: its coordinates, −1 … 1 across the input; `plane`: it is one of
    two."""
    kind = g.dtype.type
    scale = kind((size - 1) / 2 if corners else size / 2)
    at = _position(g, size, corners, plane)
    if mode == CUBIC:
        low = xp.floor(at)
        weights, slopes = _cubic(xp, at - low)
        places = [_padded(xp, low + i, size, padding, corners)[0] for i in range(-1, 3)]
        return [
            _tap(xp, xp.rint(p), size, w, s * scale)
            for p, w, s in zip(places, weights, slopes, strict=True)
        ]
    at, slope = _padded(xp, at, size, padding, corners)
    if mode == NEAREST:
        return [_tap(xp, xp.rint(at), size, xp.ones_like(at), xp.zeros_like(at))]
    low = xp.floor(at)
    part, slope = at - low, slope * scale
    return [_tap(xp, low, size, 1 - part, -slope), _tap(xp, low + 1, size, part, slope)]


def _between(
    xp: Any, g: Any, size: int, mode: int, padding: int, corners: bool, plane: bool
) -> tuple[Any, Any]:
    """How far each point is from its lower tap, and the slope of that by the coordinate."""
    if mode == NEAREST:
        return xp.zeros_like(g), xp.zeros_like(g)
    kind = g.dtype.type
    scale = kind((size - 1) / 2 if corners else size / 2)
    at = _position(g, size, corners, plane)
    slope = xp.ones_like(at)
    if mode == LINEAR:
        at, slope = _padded(xp, at, size, padding, corners)
    return at - xp.floor(at), slope * scale


def _all_taps(
    xp: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool
) -> list[list[Tap]]:
    spatial = x.shape[2:]
    plane = len(spatial) == 2
    points = grid.reshape(grid.shape[0], -1, len(spatial)).astype(x.dtype, copy=False)
    with xp.errstate(invalid="ignore"):
        return [
            _taps(xp, points[..., len(spatial) - 1 - d], n, mode, padding, corners, plane)
            for d, n in enumerate(spatial)
        ]


def _rows(xp: Any, taps: tuple[Tap, ...], spatial: Any, batch: int) -> Any:
    """Where a combination of taps is in the input as rows of channels."""
    at = taps[0].at
    for tap, n in zip(taps[1:], spatial[1:], strict=True):
        at = at * n + tap.at
    return (at + (xp.arange(batch) * layout.numel(spatial))[:, None]).reshape(-1)


def _inside(taps: tuple[Tap, ...]) -> Any:
    r = taps[0].inside
    for tap in taps[1:]:
        r = r & tap.inside
    return r.reshape(-1, 1)


def _product(factors: list[Any]) -> Any:
    r = factors[0]
    for f in factors[1:]:
        r = r * f
    return r.reshape(-1, 1)


def _channels_last(xp: Any, x: Any) -> Any:
    """(N, C, …) as rows of channels."""
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1)).reshape(-1, x.shape[1])


# ---- operators ----------------------------------------------------------------------------------


def _check(x: Any, grid: Any, mode: int, padding: int) -> None:
    n = x.ndim - 2
    if x.dtype != grid.dtype:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{x.dtype.name} and grid has {grid.dtype.name}"
        )
    if n not in (2, 3) or grid.ndim != x.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
            f"but got input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if x.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with "
            f"sizes {list(grid.shape)}"
        )
    for i, size in enumerate(x.shape[1:], 1):
        if size <= 0 and i > 1:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(x.shape)} with dimension {i} being empty"
            )
    need(FLOATS, f"grid_sampler_{n}d_cpu_kernel_impl", x)
    if mode == CUBIC and n != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if mode not in (LINEAR, NEAREST, CUBIC) or padding not in (ZEROS, BORDER, REFLECTION):
        raise RuntimeError(
            f"grid_sampler(): interpolation_mode {mode} or padding_mode {padding} is unknown; both "
            "go from 0 to 2"
        )


def _declare(n: int) -> None:
    name = f"grid_sampler_{n}d"
    geometry = "int interpolation_mode, int padding_mode, bool align_corners"
    rest = "interpolation_mode, padding_mode, align_corners"

    def meta(x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
        _check(x, grid, mode, padding)
        return MetaArray((*x.shape[:2], *grid.shape[1:-1]), x.dtype)

    def forward(xp: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
        """The input (N, C, …) at the points of the grid (N, …, dimensions)."""
        if x.ndim != n + 2:
            raise RuntimeError(
                f"{name}(): expected {n + 2}D input and grid, but got input with sizes "
                f"{list(x.shape)} and grid with sizes {list(grid.shape)}"
            )
        _check(x, grid, mode, padding)
        rows = _channels_last(xp, x)
        points = layout.numel(grid.shape[:-1])
        r = xp.zeros((points, x.shape[1]), x.dtype)
        if rows.size:
            for taps in itertools.product(*_all_taps(xp, x, grid, mode, padding, corners)):
                at = _rows(xp, taps, x.shape[2:], x.shape[0])
                r += rows.take(at, axis=0) * _product([t.weight for t in taps])
        shape = (x.shape[0], *grid.shape[1:-1], x.shape[1])
        return xp.moveaxis(r.reshape(shape), -1, 1).copy()  # of one channel, too: for its strides

    def backward(
        xp: Any,
        g: Any,
        x: Any,
        grid: Any,
        mode: int,
        padding: int,
        corners: bool,
        mask: Any,
    ) -> Any:
        """The gradients of input and grid; an empty array where the mask says no."""
        rows, gr = _channels_last(xp, x), _channels_last(xp, g)
        batch, spatial, c = x.shape[0], x.shape[2:], x.shape[1]
        gx = xp.zeros(rows.shape if mask[0] else (0,), x.dtype)
        gg = xp.zeros(grid.shape if mask[1] else (0,), grid.dtype)
        if rows.size:
            for taps in itertools.product(*_all_taps(xp, x, grid, mode, padding, corners)):
                at = _rows(xp, taps, spatial, batch)
                if mask[0]:
                    places = at[:, None] * c + xp.arange(c)
                    part = gr * _product([t.weight for t in taps])
                    add_at(xp, gx, places, xp.where(_inside(taps), part, part.dtype.type(0)))
                if mask[1] and mode != NEAREST:
                    dots = (rows.take(at, axis=0) * gr).sum(axis=1, keepdims=True)
                    _add_slopes(gg, taps, dots)
        if mask[0]:
            gx = xp.moveaxis(gx.reshape(batch, *spatial, c), -1, 1).copy()
        return gx, gg

    op(
        f"{name}(Tensor input, Tensor grid, {geometry}) -> Tensor",
        method=False,
        out=True,
        half=False,
        meta=meta,
        autocast="float32:cpu",
        grad_name=f"GridSampler{n}DBackward0",
        vjp={"input, grid": f"grid_sampler_vjp(g, input, grid, {rest}, needs)"},
    )(forward)
    op(
        f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {geometry}, bool[2] "
        "output_mask) -> (Tensor, Tensor)",
        public=False,
        meta=lambda g, x, grid, mode, padding, corners, mask: (
            MetaArray(x.shape if mask[0] else (0,), x.dtype),
            MetaArray(grid.shape if mask[1] else (0,), grid.dtype),
        ),
    )(backward)


def _add_slopes(gg: Any, taps: tuple[Tap, ...], dots: Any) -> None:
    """Add a combination's part of the gradient of the grid."""
    n = len(taps)
    for d in range(n):
        parts = [t.slope if i == d else t.weight for i, t in enumerate(taps)]
        part = _product(parts) * dots * _inside(taps)
        gg[..., n - 1 - d] += part.reshape(gg.shape[:-1])


@vjp_helper
def grid_sampler_vjp(
    g: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, needs: Any
) -> Any:
    """The gradients of input and grid that are needed; where they will be differentiated again,
    out of operators."""
    if grad_enabled():
        return _in_operators(g, x, grid, mode, padding, corners, needs)
    backward = getattr(aten, f"grid_sampler_{x._a.ndim - 2}d_backward")
    r = backward(g, x, grid, mode, padding, corners, list(needs))
    return tuple(v if k else None for v, k in zip(r, needs, strict=True))


@op(
    "_grid_taps(Tensor grid, SymInt[] size, int interpolation_mode, int padding_mode, bool "
    "align_corners) -> (Tensor at, Tensor inside, Tensor part, Tensor slope)",
    public=False,
    meta=lambda grid, size, mode, padding, corners: _grid_taps_meta(grid, size, mode),
)
def _grid_taps(
    xp: Any, grid: Any, size: Any, mode: int, padding: int, corners: bool
) -> tuple[Any, Any, Any, Any]:
    """Indices of the taps and whether they are inside, (dimensions, taps, N, points) each; where
    the point is between its taps, and the slope of that, (dimensions, N, points)."""
    n = len(size)
    points = grid.reshape(grid.shape[0], -1, n)
    taps, parts, slopes = [], [], []
    for d, m in enumerate(size):
        one = points[..., n - 1 - d]
        taps.append(_taps(xp, one, m, mode, padding, corners, n == 2))
        part, slope = _between(xp, one, m, mode, padding, corners, n == 2)
        parts.append(part)
        slopes.append(slope)
    at = xp.stack([xp.stack([t.at for t in one]) for one in taps])
    inside = xp.stack([xp.stack([t.inside for t in one]) for one in taps])
    return at, inside, xp.stack(parts), xp.stack(slopes)


def _grid_taps_meta(grid: Any, size: Any, mode: int) -> Any:
    n = len(size)
    per = (grid.shape[0], layout.numel(grid.shape[1:-1]))
    shape = (n, {LINEAR: 2, NEAREST: 1, CUBIC: 4}[mode], *per)
    line = MetaArray((n, *per), grid.dtype)
    return MetaArray(shape, np.dtype(np.int64)), MetaArray(shape, np.dtype(bool)), line, line


def _weights(t: Any, k: Any, mode: int) -> tuple[list[Any], list[Any]]:
    """The taps' weights and slopes out of operators, for the fraction t with the slope k."""
    if mode == NEAREST:
        return [aten.ones_like(aten.detach(t))], [aten.zeros_like(aten.detach(t))]
    if mode == LINEAR:
        return [1 - t, t], [-k, k]
    weights, slopes = _cubic(None, t)
    return weights, [s * k for s in slopes]


def _in_operators(
    g: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, needs: Any
) -> Any:
    """The gradients of input and grid as sums over combinations of taps."""
    batch, c, *spatial = x._a.shape
    n = len(spatial)
    at, inside, parts, slopes = aten._grid_taps(
        aten.detach(grid), tuple(spatial), mode, padding, corners
    )
    points = aten.reshape(grid, (batch, -1, n))
    moved = points - aten.detach(points)  # zeros that carry the derivative
    every = []
    for d in range(n):
        k = slopes[d]
        t = parts[d] + k * aten.select(moved, -1, n - 1 - d)
        every.append(_weights(t, k, mode))
    rows = aten.reshape(aten.movedim(x, 1, -1), (-1, c))
    gr = aten.reshape(aten.movedim(g, 1, -1), (-1, c))
    first = aten.reshape(aten.arange(batch, device=x._k.device), (batch, 1)) * layout.numel(spatial)
    gx = aten.zeros_like(aten.detach(rows))
    gg: list[Any] = [0.0] * n
    for choice in itertools.product(range(at._a.shape[1]), repeat=n):
        where, valid = at[0, choice[0]], inside[0, choice[0]]
        for d in range(1, n):
            where = where * spatial[d] + at[d, choice[d]]
            valid = aten.logical_and(valid, inside[d, choice[d]])
        where = aten.reshape(where + first, (-1,))
        weights = [every[d][0][choice[d]] for d in range(n)]
        if needs[0]:
            w = aten.reshape(math.prod(weights[1:], start=weights[0]) * valid, (-1, 1))
            gx = aten.index_add(gx, 0, where, gr * w)
        if needs[1]:
            dots = aten.sum(aten.index_select(rows, 0, where) * gr, 1)
            for d in range(n):
                factors = [every[d][1][choice[d]], *weights[:d], *weights[d + 1 :]]
                s = math.prod(factors[1:], start=factors[0]) * valid
                gg[n - 1 - d] = gg[n - 1 - d] + aten.reshape(s, (-1,)) * dots
    if needs[0]:
        gx = aten.movedim(aten.reshape(gx, (batch, *spatial, c)), -1, 1)
    if needs[1]:
        gg = aten.reshape(aten.stack(gg, -1), grid._a.shape)
    return gx if needs[0] else None, gg if needs[1] else None


for _n in (2, 3):
    _declare(_n)


@composite(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
    "align_corners) -> Tensor",
    method=False,
    autocast="float32:cpu promote:accelerator",
)
def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """`grid_sampler_2d` or `grid_sampler_3d`."""
    _check(input._a, grid._a, interpolation_mode, padding_mode)
    sampler = getattr(aten, f"grid_sampler_{input._a.ndim - 2}d")
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@face("grid_sample", method=False, spaces=("nn.functional",))
def grid_sample(
    self: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Any:
    """The input (N, C, …) at points given by their coordinates, x first, −1 … 1 across the input:
    grid (N, …, 2) or (N, …, 3) → (N, C, …).

    mode: bilinear, nearest, bicubic (4-d input); padding_mode: zeros, border, reflection.
    """
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn_user(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since"
            " 1.3.0. Please specify align_corners=True if the old behavior is desired. See the"
            " documentation of grid_sample for details.",
        )
        align_corners = False
    return grid_sampler.call(self, grid, _MODES[mode], _PADDINGS[padding_mode], align_corners)
