"""Distances and directions of vectors.

Source of the semantics: https://docs.pytorch.org/docs/2.13/nn.functional.html#distance-functions
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_tensor
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper, vjp_helpers
from torchlab._core.ops._reduce import is_half, scalar_name

_F = ("nn.functional",)


@face("pairwise_distance", spaces=("torch", "nn.functional"), method=False)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """‖x1 − x2 + eps‖ₚ over the last dimension."""
    check_tensor("pairwise_distance", "x1", x1)
    check_tensor("pairwise_distance", "x2", x2, 2)
    return aten.norm(x1 - x2 + eps, p, -1, keepdim)


@face(
    "cosine_similarity",
    spaces=("torch", "nn.functional"),
    method=False,
    autocast="float32:accelerator",
)
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
def normalize(self: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
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


# ---- the distances of all pairs -----------------------------------------------------------------

_BLOCK = 1 << 22  # differences held at once
_MODES = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def _lengths(xp: Any, d: Any, p: float) -> Any:
    """The p-norms along the last axis; `d` is overwritten."""
    if p == 2:
        return xp.sqrt(xp.multiply(d, d, out=d).sum(axis=-1))
    if p == 0:
        return (d != 0).sum(axis=-1).astype(d.dtype)
    d = xp.abs(d, out=d)
    if p == 1:
        return d.sum(axis=-1)
    if p == math.inf:
        return d.max(axis=-1) if d.shape[-1] else xp.zeros(d.shape[:-1], d.dtype)
    return xp.power(d, d.dtype.type(p), out=d).sum(axis=-1) ** d.dtype.type(1 / p)


def _check_pair(x1: Any, x2: Any, p: float) -> tuple[int, ...]:
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dtype.kind in "iubc":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {scalar_name(x)}"
            )
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if is_half(x1.dtype):
        raise NotImplementedError(f"\"cdist\" not implemented for '{scalar_name(x1)}'")
    if x1.dtype != x2.dtype:
        raise RuntimeError(
            f"cdist: expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}"
        )
    lead = layout.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return (*lead, x1.shape[-2], x2.shape[-2])


@op(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    method=False,
    public=False,
    half=False,
    vjp={"x1, x2": "cdist_backward(g, x1, x2, p, result, needs)"},
    grad_name="CdistBackward0",
    meta=lambda a, b, p, mode: MetaArray(_check_pair(a, b, p), a.dtype),
)
def cdist_forward(xp: Any, x1: Any, x2: Any, p: float, compute_mode: Any) -> Any:
    """‖x1ᵢ − x2ⱼ‖ₚ of all rows i, j."""
    shape = _check_pair(x1, x2, p)
    rows, columns, width = *shape[-2:], x1.shape[-1]
    large = rows > 25 or columns > 25
    if p == 2 and width and (compute_mode == 1 or compute_mode in (None, 0) and large):
        return _by_product(xp, x1, x2)
    r = xp.empty(shape, x1.dtype)
    step = max(1, _BLOCK // max(1, layout.numel(shape[:-2]) * columns * width))
    for i in range(0, rows, step):
        d = x1[..., i : i + step, None, :] - x2[..., None, :, :]
        r[..., i : i + step, :] = _lengths(xp, d, p)
    return r


def _by_product(xp: Any, x1: Any, x2: Any) -> Any:
    """√(‖x‖² + ‖y‖² − 2 x·y), one product of matrices: fast, but close points lose digits."""
    one = xp.ones((*x1.shape[:-1], 1), x1.dtype)
    other = xp.ones((*x2.shape[:-1], 1), x1.dtype)
    left = xp.concatenate([-2 * x1, (x1 * x1).sum(axis=-1, keepdims=True), one], axis=-1)
    right = xp.concatenate([x2, other, (x2 * x2).sum(axis=-1, keepdims=True)], axis=-1)
    squares = xp.matmul(left, right.swapaxes(-1, -2))
    return xp.sqrt(xp.maximum(squares, squares.dtype.type(1e-30), out=squares), out=squares)


@vjp_helper
def cdist_backward(g: Any, x1: Any, x2: Any, p: float, result: Any, needs: Any) -> Any:
    """Along every pair's direction, once for each of the two."""
    if p == 2:
        w = aten.masked_fill(g / result, result == 0, 0)
        to1 = aten.unsqueeze(aten.sum(w, -1), -1) * x1 - aten.matmul(w, x2) if needs[0] else None
        if not needs[1]:
            return to1, None
        w = aten.transpose(w, -1, -2)
        return to1, aten.unsqueeze(aten.sum(w, -1), -1) * x2 - aten.matmul(w, x1)
    d = aten.unsqueeze(x1, -2) - aten.unsqueeze(x2, -3)
    part = vjp_helpers["norm_backward"](g, d, p, result, -1, False)
    return (
        aten.sum(part, -2) if needs[0] else None,
        -aten.sum(part, -3) if needs[1] else None,
    )


@face("cdist", method=False, autocast="float32")
def cdist(
    x1: Any,
    x2: Any,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Any:
    """The p-distances of all pairs of rows: (…, n, k), (…, m, k) → (…, n, m)."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return cdist_forward.call(x1, x2, float(p), _MODES[compute_mode])


def _pdist_check(a: Any, p: float) -> tuple[int]:
    if a.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {a.ndim}D")
    if a.dtype.kind in "iubc":
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {scalar_name(a)}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    if is_half(a.dtype):
        raise NotImplementedError(f"\"pdist\" not implemented for '{scalar_name(a)}'")
    return (a.shape[0] * (a.shape[0] - 1) // 2,)


@op(
    "_pdist_forward(Tensor self, float p=2.) -> Tensor",
    method=False,
    public=False,
    half=False,
    vjp={"self": "pdist_backward(g, self, p, result)"},
    grad_name="PdistBackward0",
    meta=lambda a, p=2.0: MetaArray(_pdist_check(a, p), a.dtype),
)
def pdist_forward(xp: Any, a: Any, p: float) -> Any:
    """‖xᵢ − xⱼ‖ₚ of all rows i < j."""
    (count,) = _pdist_check(a, p)
    r = xp.empty(count, a.dtype)
    first, second = xp.triu_indices(a.shape[0], 1)
    step = max(1, _BLOCK // max(1, a.shape[1]))
    for i in range(0, count, step):
        r[i : i + step] = _lengths(xp, a[first[i : i + step]] - a[second[i : i + step]], p)
    return r


@vjp_helper
def pdist_backward(g: Any, x: Any, p: float, result: Any) -> Any:
    n = x._a.shape[0]
    first, second = aten.unbind(aten.triu_indices(n, n, 1, device=x.device))
    d = aten.index_select(x, 0, first) - aten.index_select(x, 0, second)
    part = vjp_helpers["norm_backward"](g, d, p, result, -1, False)
    zero = aten.zeros(x._a.shape, dtype=x.dtype, device=x.device)
    return aten.index_add(aten.index_add(zero, 0, first, part), 0, second, -part)


@face("pdist", spaces=("torch", "nn.functional"), method=False, autocast="float32:accelerator")
def pdist(self: Any, p: float = 2) -> Any:
    """The p-distances of all pairs of rows i < j: (n, k) → (n (n − 1) / 2)."""
    return pdist_forward.call(self, float(p))
