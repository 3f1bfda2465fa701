"""Interpolation: other sizes for the spatial dimensions of (N, C, …).

Note: a resampling is a matrix for each dimension
    Every mode takes, along one dimension, fixed weighted means of the old elements: a matrix
    (new, old). Applied to one dimension after the other it gives the result, its transpose gives
    the
    gradient, and the gradient of the gradient is the resampling itself.
Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.interpolate.html
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops._places import scalar_name
from torchlab._core.ops.kernels import as_format_of
from torchlab._core.settings import warn_user

_NAMES = {
    ("nearest", 1): ("upsample_nearest1d", "UpsampleNearest1D"),
    ("nearest", 2): ("upsample_nearest2d", "UpsampleNearest2D"),
    ("nearest", 3): ("upsample_nearest3d", "UpsampleNearest3D"),
    ("nearest-exact", 1): ("_upsample_nearest_exact1d", "UpsampleNearestExact1D"),
    ("nearest-exact", 2): ("_upsample_nearest_exact2d", "UpsampleNearestExact2D"),
    ("nearest-exact", 3): ("_upsample_nearest_exact3d", "UpsampleNearestExact3D"),
    ("linear", 1): ("upsample_linear1d", "UpsampleLinear1D"),
    ("bilinear", 2): ("upsample_bilinear2d", "UpsampleBilinear2D"),
    ("trilinear", 3): ("upsample_trilinear3d", "UpsampleTrilinear3D"),
    ("bicubic", 2): ("upsample_bicubic2d", "UpsampleBicubic2D"),
    ("bilinear-aa", 2): ("_upsample_smooth_bilinear2d", "UpsampleBilinear2DAa"),
    ("bicubic-aa", 2): ("_upsample_smooth_bicubic2d", "UpsampleBicubic2DAa"),
    ("lanczos-aa", 2): ("_upsample_smooth_lanczos2d", "UpsampleLanczos2DAa"),
}


def _step(old: int, new: int, scale: float | None, corners: bool) -> float:
    """How far the source moves for one new element."""
    if corners:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return 1 / scale if scale else old / new


def nearest_index(old: int, new: int, scale: float | None, exact: bool) -> np.ndarray:
    """The old element for each new one; in float32, as PyTorch computes it."""
    step = np.float32(1 / scale if scale else np.float32(old) / np.float32(new))
    at = np.arange(new, dtype=np.float32)
    if exact:
        at += np.float32(0.5)
    return np.minimum(np.floor(at * step).astype(np.int64), old - 1)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys's cubic kernel (IEEE Transactions on Acoustics 29, 1981)."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _keys(x: np.ndarray) -> np.ndarray:
    return _cubic(x, -0.5)


def _lanczos(x: np.ndarray) -> np.ndarray:
    """The sine cardinal under a window of three of its zeros."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_SMOOTH = {
    "bilinear-aa": (1.0, _triangle),
    "bicubic-aa": (2.0, _keys),
    "lanczos-aa": (3.0, _lanczos),
}
"""How far each kernel reaches, and the kernel."""


def _precision(dtype: np.dtype) -> type:
    """What PyTorch computes positions and weights in; those of bytes are of fixed point later."""
    return np.float64 if dtype in (np.float64, np.uint8) else np.float32


@lru_cache(maxsize=256)
def matrix(
    old: int, new: int, scale: float | None, mode: str, corners: bool, kind: type = np.float64
) -> np.ndarray:
    """The weights (new, old) in float64, computed from positions of type `kind`: far from the
    beginning the last bits of a position show in the result."""
    r = np.zeros((new, old))
    rows = np.arange(new)
    if mode.startswith("nearest"):
        r[rows, nearest_index(old, new, scale, mode == "nearest-exact")] = 1
        return r
    step = _step(old, new, scale, corners)
    if mode.endswith("-aa"):
        return _antialiased(r, old, new, step, mode)
    exact = np.float64(kind(step))  # rounded once, as by a fused multiply-add
    at = (rows * exact if corners else (rows + 0.5) * exact - 0.5).astype(kind)
    if mode == "bicubic":
        low = np.floor(at)
        for k in range(-1, 3):
            np.add.at(
                r, (rows, np.clip(low + k, 0, old - 1).astype(int)), _cubic(at - low - k, -0.75)
            )
        return r
    at = np.maximum(at, 0)
    low = np.minimum(np.floor(at).astype(int), old - 1)
    part = at - low
    np.add.at(r, (rows, low), 1 - part)
    np.add.at(r, (rows, np.minimum(low + 1, old - 1)), part)
    return r


def _antialiased(r: np.ndarray, old: int, new: int, step: float, mode: str) -> np.ndarray:
    """Each new element averages all old ones that it covers."""
    radius, kernel = _SMOOTH[mode]
    reach = radius * max(step, 1.0)
    squeeze = 1 / max(step, 1.0)
    for i in range(new):
        centre = step * (i + 0.5)
        first = max(int(centre - reach + 0.5), 0)
        last = min(int(centre + reach + 0.5), old)
        x = (np.arange(first, last) - centre + 0.5) * squeeze
        w = kernel(x)
        total = w.sum()
        r[i, first:last] = w / total if total else w
    return r


def along(xp: Any, x: Any, axis: int, m: Any) -> Any:
    """A matrix (new, old) applied along one axis."""
    return xp.moveaxis(xp.tensordot(x, xp.asarray(m.astype(x.dtype)), axes=(axis, 1)), -1, axis)


def _bytes_along(xp: Any, x: Any, axis: int, m: Any) -> Any:
    """`along` for bytes, as image libraries do it: weights of 16 bits in fixed point, with as many
    places as the largest of them leaves, and a result that is rounded and limited to 0 … 255."""
    places = 0
    while places < 22 and int(0.5 + m.max() * (1 << (places + 1))) < 1 << 15:
        places += 1
    weights = np.trunc(m * (1 << places) + np.copysign(0.5, m))
    total = along(xp, x.astype(np.float64), axis, weights)
    return xp.clip(xp.floor((total + (1 << places >> 1)) / (1 << places)), 0, 255).astype(np.uint8)


def _last(x: Any) -> bool:
    """Whether a result that follows x has its channels last in memory."""
    strides = tuple(s // x.itemsize for s in x.strides)
    return layout.suggest_memory_format(tuple(x.shape), strides) != "contiguous"


def _in_format_of(xp: Any, r: Any, x: Any) -> Any:
    """The result in the memory format that follows x."""
    if not _last(x):
        return xp.ascontiguousarray(r)
    return xp.moveaxis(xp.ascontiguousarray(xp.moveaxis(r, 1, -1)), -1, 1)


def _declare(mode: str, n: int) -> None:
    name, node = _NAMES[mode, n]

    def check(x: Any, size: Any) -> None:
        if x.ndim != n + 2 or any(s == 0 for s in x.shape[1:]):
            raise RuntimeError(
                f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes "
                f"{list(x.shape)}"
            )
        if any(s <= 0 for s in size):
            raise RuntimeError(
                "Input and output sizes should be greater than 0, but got input "
                f"{list(x.shape[2:])} output {list(size)}"
            )

    def meta(x: Any, size: Any, scales: Any, corners: bool) -> Any:
        check(x, size)
        shape = (*x.shape[:2], *size)
        return MetaArray(shape, x.dtype, layout.channels_last_strides(shape) if _last(x) else None)

    def forward(xp: Any, x: Any, size: Any, scales: Any, corners: bool) -> Any:
        """Other sizes for the spatial dimensions."""
        check(x, size)
        r = x
        if x.dtype == np.uint8 and n == 2 and not mode.startswith("nearest"):
            for i in (1, 0):  # the width first
                m = matrix(x.shape[2 + i], size[i], scales[i], mode, corners)
                r = _bytes_along(xp, r, 2 + i, m)
            return as_format_of(xp, xp.ascontiguousarray(r), x)
        if x.dtype.kind in "iub" and not mode.startswith("nearest"):
            raise NotImplementedError(
                f"\"{name.lstrip('_')}\" not implemented for '{scalar_name(x)}'"
            )
        if x.dtype.kind in "iubc" and x.dtype != np.uint8:
            need(FLOATS, name.lstrip("_") + ("_channels_last" if _last(x) else ""), x)
        for i in range(n):
            if mode.startswith("nearest"):
                r = r.take(
                    xp.asarray(
                        nearest_index(x.shape[2 + i], size[i], scales[i], mode != "nearest")
                    ),
                    axis=2 + i,
                )
            else:
                old, kind = x.shape[2 + i], _precision(x.dtype)
                r = along(xp, r, 2 + i, matrix(old, size[i], scales[i], mode, corners, kind))
        return _in_format_of(xp, r, x)

    def backward(xp: Any, g: Any, size: Any, scales: Any, corners: bool) -> Any:
        """The gradient of the input, whose spatial dimensions are `size`."""
        r = g
        for i in range(n):
            new, kind = g.shape[2 + i], _precision(g.dtype)
            r = along(xp, r, 2 + i, matrix(size[i], new, scales[i], mode, corners, kind).T)
        return _in_format_of(xp, r, g) if keeps else xp.ascontiguousarray(r)

    # What PyTorch's kernels for the gradient write in the format of `g`
    keeps = mode not in ("nearest", "nearest-exact", "bicubic") or n == 2 and mode != "bicubic"

    def backward_meta(g: Any, size: Any, *_: Any) -> Any:
        shape = (*g.shape[:2], *size)
        last = keeps and _last(g)
        return MetaArray(shape, g.dtype, layout.channels_last_strides(shape) if last else None)

    rest = "scale_factors, align_corners"
    op(
        f"{name}(Tensor self, int[] output_size, float?[] scale_factors, bool align_corners) -> "
        "Tensor",
        public=False,
        meta=meta,
        autocast="float32:accelerator",
        grad_name=f"{node}Backward0",
        vjp={"self": f"{name.lstrip('_')}_backward(g, self.shape[2:], {rest})"},
    )(forward)
    op(
        f"{name.lstrip('_')}_backward(Tensor grad_output, int[] size, float?[] scale_factors, bool "
        "align_corners) -> Tensor",
        public=False,
        meta=backward_meta,
        vjp={"grad_output": f"{name}(g, grad_output.shape[2:], {rest})"},
    )(backward)


for _mode, _n in _NAMES:
    _declare(_mode, _n)


def _declare_smooth(mode: str) -> None:
    name = f"_upsample_{mode}2d_aa"
    doc = f"{mode} resampling in which each new element averages all that it covers."
    inner = _NAMES[f"{mode}-aa", 2][0]

    def by_scales(
        self: Any, output_size: Any, align_corners: bool, scales_h: Any, scales_w: Any
    ) -> Any:
        return getattr(aten, inner)(self, output_size, [scales_h, scales_w], align_corners)

    def by_factors(input: Any, output_size: Any, align_corners: bool, scale_factors: Any) -> Any:
        sizes, scales = _sizes(input._a.shape[2:], output_size, scale_factors, None)
        return getattr(aten, inner)(input, sizes, scales, align_corners)

    def smooth(
        self: Any,
        output_size: Any,
        align_corners: bool,
        scales_h: Any = None,
        scales_w: Any = None,
        *,
        scale_factors: Any = None,
    ) -> Any:
        if output_size is None or scale_factors is not None or isinstance(scales_h, (list, tuple)):
            factors = scales_h if scale_factors is None else scale_factors
            return by_factors(self, output_size, align_corners, factors)
        return by_scales(self, output_size, align_corners, scales_h, scales_w)

    by_scales.__doc__ = by_factors.__doc__ = smooth.__doc__ = doc
    composite(
        f"{name}(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        public=False,
        autocast="float32:accelerator",
    )(by_scales)
    composite(
        f"{name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor",
        public=False,
        autocast="float32:accelerator",
    )(by_factors)
    face(name, spaces=(), method=False)(smooth)


for _mode in ("bilinear", "bicubic", "lanczos"):
    _declare_smooth(_mode)


def _sizes(
    shape: Any, size: Any, scale_factor: Any, recompute: Any
) -> tuple[list[int], list[float | None]]:
    """The new spatial sizes, and the scales that were asked for."""
    n = len(shape)
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "only one of size or scale_factor should be defined"
            if size is not None
            else "either size or scale_factor should be defined"
        )
    if size is not None:
        sizes = [size] * n if isinstance(size, int) else [layout.as_size(s) for s in size]
        if len(sizes) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                "with spatial dimensions "
                f"of {list(shape)} and output size of {size}. Please provide input tensor in (N, "
                "C, d1, d2, ...,dK) format "
                "and output size in (o1, o2, ...,oK) format."
            )
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return sizes, [None] * n
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * n
    if len(factors) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got "
            "input with spatial dimensions "
            f"of {list(shape)} and scale_factor of shape {scale_factor}."
        )
    sizes = [math.floor(s * float(f)) for s, f in zip(shape, factors, strict=True)]
    return sizes, [None] * n if recompute else [float(f) for f in factors]


@face("interpolate", method=False, spaces=("nn.functional",))
def interpolate(
    self: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """(N, C, …) resampled to `size`, or by `scale_factor`.

    mode: nearest, nearest-exact, linear (3-d), bilinear and bicubic (4-d), trilinear (5-d), area;
        lanczos (4-d) with `antialias` only.
    """
    n = self._a.ndim - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | "
                "bicubic | trilinear"
            )
    sizes, scales = _sizes(self._a.shape[2:], size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a"
            " 4-D tensor as input"
        )
    if mode == "lanczos" and n == 2:
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "area":
        return getattr(aten, f"adaptive_avg_pool{n}d")(self, sizes)
    found = _NAMES.get((mode + "-aa" if antialias else mode, n))
    if found is None:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {self._a.ndim}D) for "
            "the modes: nearest | linear | "
            f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    return getattr(aten, found[0])(self, sizes, scales, bool(align_corners))


@face("upsample", method=False, spaces=("nn.functional",))
def upsample(
    self: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
) -> Any:
    """Deprecated: use `interpolate`."""
    warn_user(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
    )
    return interpolate.body(self, size, scale_factor, mode, align_corners)


@face("upsample_nearest", method=False, spaces=("nn.functional",))
def upsample_nearest(self: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Deprecated: use `interpolate`."""
    return interpolate.body(self, size, scale_factor, "nearest")


@face("upsample_bilinear", method=False, spaces=("nn.functional",))
def upsample_bilinear(self: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Deprecated: use `interpolate(…, mode="bilinear", align_corners=True)`."""
    return interpolate.body(self, size, scale_factor, "bilinear", True)
