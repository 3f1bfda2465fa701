"""Tensor images under maps of the plane, and blurred: everything that needs a batch (N, C, H, W).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#geometry
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F


def to_batch(img: Tensor, kind: Any) -> Tensor:
    """(…, C, H, W) or (H, W) as (N, C, H, W) of the type `kind`."""
    shape = img.shape if img.ndim > 2 else (1, *img.shape)
    return aten.reshape(img, (math.prod(shape[:-3]), *shape[-3:])).to(kind)


_ROUNDED = (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64)


def from_batch(batch: Tensor, img: Tensor, fused: bool = False) -> Tensor:
    """Back to the leading dimensions and the type of `img`. Signed integers and bytes are rounded;
    bool and the wider unsigned ones only in v2 (`fused`), elsewhere they are cut."""
    whole = not img.is_floating_point() if fused else img.dtype in _ROUNDED
    if whole and batch.is_floating_point():
        batch = aten.round(batch)
    lead = img.shape[:-2] if img.ndim == 2 else (*img.shape[:-3], batch.shape[1])
    return aten.reshape(batch, (*lead, *batch.shape[-2:])).to(img.dtype)


def wide_type(img: Tensor) -> Any:
    return img.dtype if img.dtype in (dt.float32, dt.float64) else dt.float32


def resize(
    img: Tensor, size: Sequence[int], mode: str, antialias: bool, as_bytes: bool = False
) -> Tensor:
    """`as_bytes`: bytes are resized in fixed point, not in float32."""
    smooth = mode in ("bilinear", "bicubic", "lanczos")
    kind = dt.uint8 if as_bytes and img.dtype == dt.uint8 else wide_type(img)
    batch = F.interpolate(
        to_batch(img, kind),
        size=tuple(size),
        mode=mode,
        align_corners=False if smooth else None,
        antialias=antialias and smooth,
    )
    if mode == "bicubic" and img.dtype == dt.uint8 and batch.dtype != dt.uint8:
        batch = aten.clamp(batch, 0, 255)
    return from_batch(batch, img)


def sample(img: Tensor, grid: Tensor, mode: str, fill: Any, fused: bool = False) -> Tensor:
    """The image where `grid` (1, H, W, 2) points; `fill` where that is outside.

    `fused`: see `from_batch`.
    """
    if img.numel() == 0:
        return aten.reshape(img, (*img.shape[:-2], *grid.shape[1:3]))
    batch = to_batch(img, grid.dtype)
    if isinstance(fill, (list, tuple)) and len(fill) not in (1, batch.shape[1]):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of"
            f" the image ({len(fill)} != {batch.shape[1]})"
        )
    grid = grid.expand(batch.shape[0], *grid.shape[1:])
    if fill is None:
        out = F.grid_sample(batch, grid, mode=mode, padding_mode="zeros", align_corners=False)
        return from_batch(out, img, fused)
    # A channel of ones goes along: it shows how much of each result lies inside.
    ones = aten.ones_like(batch[:, :1])
    out = F.grid_sample(
        aten.cat((batch, ones), 1), grid, mode=mode, padding_mode="zeros", align_corners=False
    )
    out, inside = out[:, :-1], out[:, -1:]
    values = [float(f) for f in fill] if isinstance(fill, (list, tuple)) else [float(fill)]
    colour = aten.tensor(values, dtype=out.dtype, device=out.device)
    colour = aten.reshape(colour, (1, -1, 1, 1)).expand_as(out)
    if mode == "nearest":
        out = aten.where(inside < 0.5, colour, out)
    else:
        out = out * inside + (1.0 - inside) * colour
    return from_batch(out, img, fused)


def _pixels(height: int, width: int, kind: Any, device: Any, centred: bool) -> Tensor:
    """(H * W, 3): the pixels' middles as (x, y, 1)."""
    x0, y0 = (-width * 0.5, -height * 0.5) if centred else (0.0, 0.0)
    x = aten.linspace(x0 + 0.5, x0 + 0.5 + width - 1, width, dtype=kind, device=device)
    y = aten.linspace(y0 + 0.5, y0 + 0.5 + height - 1, height, dtype=kind, device=device)
    x, y = x.expand(height, width), aten.unsqueeze(y, -1).expand(height, width)
    return aten.reshape(aten.stack((x, y, aten.ones_like(x)), -1), (-1, 3))


def grid_type(img: Tensor) -> Any:
    return img.dtype if img.is_floating_point() else dt.float32


def _mapped(base: Tensor, theta: Tensor) -> Tensor:
    """Points (N, 3) by a matrix (3, 2), summed from the left: where a point lies in the middle
    between two pixels, the last bit says which one is nearest."""
    x, y, one = (base[:, i : i + 1] * theta[i] for i in range(3))
    return x + y + one


def affine_grid(matrix: Sequence[float], img: Tensor, size: tuple[int, int]) -> Tensor:
    """(1, *size, 2): where in `img` each pixel of the result comes from. The matrix (6 numbers)
    maps results to sources, in pixels from the middle."""
    height, width = img.shape[-2:]
    theta = aten.tensor(list(matrix), dtype=grid_type(img), device=img.device).reshape(2, 3)
    half = aten.tensor([0.5 * width, 0.5 * height], dtype=theta.dtype, device=img.device)
    base = _pixels(*size, theta.dtype, img.device, True)
    return aten.reshape(_mapped(base, theta.T / half), (1, *size, 2))


def perspective_grid(c: Sequence[float], img: Tensor) -> Tensor:
    """(1, H, W, 2) for x' = (c0 x + c1 y + c2) / (c6 x + c7 y + 1), y' alike with c3, c4, c5."""
    height, width = img.shape[-2:]
    kind = grid_type(img)
    top = aten.tensor([c[:3], c[3:6]], dtype=kind, device=img.device)
    bottom = aten.tensor([[*c[6:8], 1.0]] * 2, dtype=kind, device=img.device)
    half = aten.tensor([0.5 * width, 0.5 * height], dtype=kind, device=img.device)
    base = _pixels(height, width, kind, img.device, False)
    grid = _mapped(base, top.T / half) / _mapped(base, bottom.T) - 1.0
    return aten.reshape(grid, (1, height, width, 2))


def identity_grid(height: int, width: int, kind: Any = dt.float32) -> Tensor:
    """(1, H, W, 2): every pixel from itself."""
    x = aten.linspace((1.0 - width) / width, (width - 1.0) / width, width, dtype=kind)
    y = aten.linspace((1.0 - height) / height, (height - 1.0) / height, height, dtype=kind)
    both = (x.expand(height, width), aten.unsqueeze(y, -1).expand(height, width))
    return aten.unsqueeze(aten.stack(both, -1), 0)


def turned_size(matrix: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """(height, width) that hold the whole of a turned image."""
    theta = np.asarray(matrix, np.float32).reshape(2, 3)
    middle = np.asarray([0.5 * width, 0.5 * height], np.float32)
    ends = np.asarray([[-1, -1], [-1, 1], [1, 1], [1, -1]], np.float32) * middle
    # Summed from the left: the last bit can decide on a row.
    corners = ends[:, :1] * theta[:, 0] + ends[:, 1:] * theta[:, 1] + theta[:, 2]
    low, high = corners.min(0) + middle, corners.max(0) + middle
    # Cut to 1e-4, so that a turn by 90 degrees gets no extra row from rounding.
    steps, step = np.float32(1e4), np.float32(1e-4)
    high = np.ceil(np.trunc(high * steps) * step)
    low = np.floor(np.trunc(low * steps) * step)
    return int(high[1] - low[1]), int(high[0] - low[0])


def _bell(size: int, sigma: float, kind: Any, device: Any) -> Tensor:
    half = (size - 1) * 0.5
    x = aten.linspace(-half, half, size, dtype=kind, device=device)
    weights = aten.exp(-0.5 * (x / sigma) ** 2)
    return weights / weights.sum()


def gaussian_blur(
    img: Tensor, kernel_size: Sequence[int], sigma: Sequence[float], fused: bool = False
) -> Tensor:
    """The image under a bell curve. `fused`: see `from_batch`."""
    kind = grid_type(img)
    (kx, ky), (sx, sy) = kernel_size, sigma
    weights = aten.outer(_bell(ky, sy, kind, img.device), _bell(kx, sx, kind, img.device))
    batch = to_batch(img, kind)
    padded = F.pad(batch, (kx // 2, kx // 2, ky // 2, ky // 2), mode="reflect")
    channels = batch.shape[1]
    out = F.conv2d(padded, weights.expand(channels, 1, ky, kx), groups=channels)
    return from_batch(out, img, fused)


def inverse_affine_matrix(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    inverted: bool = True,
    fused: bool = False,
) -> list[float]:
    """6 numbers of the map that scales, shears and turns around `center`, then moves; or of its
    inverse. Angles in degrees. `fused`: in v2's order of the terms, whose last bits differ.

    The turn and the shears: R(a) Sy(s) Sx(s), each about the centre C; in all T C R Sy Sx s C^-1.
    """
    turn = math.radians(angle)
    sx, sy = (math.radians(s) for s in shear)
    cx, cy = center
    tx, ty = translate
    a, c = math.cos(turn - sy) / math.cos(sy), math.sin(turn - sy) / math.cos(sy)
    if fused:
        b, d = -(a * math.tan(sx) + math.sin(turn)), math.cos(turn) - c * math.tan(sx)
    else:
        b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
        d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    if inverted:
        # The determinant of the turn and the shears is 1.
        p, q, r, s = d / scale, -b / scale, -c / scale, a / scale
        if fused:
            x, y = cx + tx, cy + ty
            return [p, q, cx - p * x - q * y, r, s, cy - r * x - s * y]
        x, y = -cx - tx, -cy - ty
        return [p, q, p * x + q * y + cx, r, s, r * x + s * y + cy]
    p, q, r, s = a * scale, b * scale, c * scale, d * scale
    return [p, q, p * -cx + q * -cy + cx + tx, r, s, r * -cx + s * -cy + cy + ty]


def perspective_coefficients(start: Sequence[Any], end: Sequence[Any]) -> list[float]:
    """The 8 numbers of the map that takes the `end` points back to the `start` points."""
    if len(start) != 4 or len(end) != 4:
        raise ValueError(
            "Please provide exactly four corners, got"
            f" {len(start)} startpoints and {len(end)} endpoints."
        )
    rows = []
    for (x, y), (u, v) in zip(end, start, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    wanted = np.asarray(start, np.float64).reshape(8)
    solution = np.linalg.lstsq(np.asarray(rows, np.float64), wanted, rcond=None)[0]
    return [float(v) for v in solution.astype(np.float32)]
