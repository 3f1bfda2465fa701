"""Distances and directions of vectors.

Source of the semantics: https://docs.pytorch.org/docs/2.13/nn.functional.html#distance-functions
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten

_F = ("nn.functional",)


@face("pairwise_distance", spaces=("torch", "nn.functional"), method=False)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """‖x1 − x2 + eps‖ₚ over the last dimension."""
    return aten.norm(x1 - x2 + eps, p, -1, keepdim)


@face("cosine_similarity", spaces=("torch", "nn.functional"), method=False)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """x1·x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`."""
    d = dt.promote_types(x1._k.dtype, x2._k.dtype)
    if not d.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {d.scalar_name}"
        )
    x1, x2 = aten.to(x1, d), aten.to(x2, d)
    shape = layout.broadcast_shapes(x1._a.shape, x2._a.shape)
    x1, x2 = aten.expand(x1, shape), aten.expand(x2, shape)
    n1 = aten.clamp(aten.linalg_vector_norm(x1, 2, dim, True), min=eps)
    n2 = aten.clamp(aten.linalg_vector_norm(x2, 2, dim, True), min=eps)
    return aten.sum((x1 / n1) * (x2 / n2), dim)


@face("normalize", spaces=_F, method=False)
def normalize(self: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """x / max(‖x‖ₚ, eps) along `dim`."""
    if out is not None:
        return aten.div(
            self,
            aten.expand_as(aten.clamp(aten.linalg_vector_norm(self, p, dim, True), min=eps), self),
            out=out,
        )
    return self / aten.expand_as(
        aten.clamp(aten.linalg_vector_norm(self, p, dim, True), min=eps), self
    )
