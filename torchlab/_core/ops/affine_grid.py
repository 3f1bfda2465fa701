"""Grids of affine maps, for `grid_sample`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.affine_grid.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.ops._spread import spread
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor


def _base(xp: Any, size: Any, corners: bool, dtype: Any) -> Any:
    """The points of an untransformed grid, each as (x, y, …, 1): (points, dimensions + 1)."""
    axes = []
    for n in size[2:]:
        # Bit for bit: under the identity every point falls on a pixel, where sampling has a kink.
        line = xp.asarray(spread(-1, 1, n, dtype.type)) if n > 1 else xp.zeros(n, dtype)
        axes.append(line if corners or n < 2 else line * dtype.type(n - 1) / dtype.type(n))
    columns = list(reversed(xp.meshgrid(*axes, indexing="ij")))
    columns.append(xp.ones(tuple(size[2:]), dtype))
    return xp.stack([c.reshape(-1) for c in columns], axis=-1)


@op(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    method=False,
    out=True,
    meta=lambda t, size, corners: MetaArray((size[0], *size[2:], len(size) - 2), t.dtype),
    vjp={"theta": "affine_grid_generator_backward(g, size, align_corners)"},
)
def affine_grid_generator(xp: Any, theta: Any, size: Any, align_corners: bool) -> Any:
    """The grid of points that each matrix of theta maps the untransformed grid to."""
    n = len(size) - 2
    if n not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.shape != (size[0], n, n + 1):
        raise RuntimeError(
            f"affine_grid_generator: Expected a batch of {n}x{n + 1} affine matrices of shape "
            f"{size[0]}x{n}x{n + 1} for size {list(size)}. Got {list(theta.shape)}."
        )
    base = _base(xp, size, align_corners, theta.dtype)
    r = xp.matmul(base, xp.swapaxes(theta, 1, 2))
    return xp.ascontiguousarray(r).reshape(size[0], *size[2:], n)


@op(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    public=False,
    meta=lambda g, size, corners: MetaArray((size[0], len(size) - 2, len(size) - 1), g.dtype),
    vjp={"grad": "affine_grid_generator(g, size, align_corners)"},
)
def affine_grid_generator_backward(xp: Any, g: Any, size: Any, align_corners: bool) -> Any:
    """The gradient of theta."""
    base = _base(xp, size, align_corners, g.dtype)
    rows = xp.swapaxes(g.reshape(size[0], -1, len(size) - 2), 1, 2)
    return xp.ascontiguousarray(xp.matmul(rows, base))


@face("affine_grid", method=False, spaces=("nn.functional",))
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    """The grid of an affine map, for `grid_sample`: theta (N, 2, 3) or (N, 3, 4), size (N, C, …)
    of the result → (N, …, 2) or (N, …, 3)."""
    size = [n.item() if isinstance(n, Tensor) else n for n in size]
    if align_corners is None:
        warn_user(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since"
            " 1.3.0. Please specify align_corners=True if the old behavior is desired. See the"
            " documentation of grid_sample for details.",
        )
        align_corners = False
    if not theta._k.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {tuple(size)}."
        )
    if theta._a.ndim != 3 or theta._a.shape[-2:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size "
            f"{tuple(size)}. Got {tuple(theta._a.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    return affine_grid_generator.call(theta, tuple(size), align_corners)
