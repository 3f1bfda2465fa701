"""The singular value decomposition A = U diag(S) Vᴴ of matrices and batches of them.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.svd.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.errors import LinAlgError
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    check_matrix,
    check_phase,
    column_empty,
    column_major,
    column_meta,
    columns,
    diag,
    differences,
    each,
    in_single,
    mH,
    named,
    offer,
    routine,
    rows,
    wants_gradient,
)

lapack = lazy("scipy.linalg.lapack")


def _check(a: Any, driver: Any) -> None:
    check_matrix("linalg.svd", a, "linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with"
            " cuSOLVER backend."
        )


def _shapes(a: Any, full: bool) -> Any:
    *batch, m, n = a.shape
    k = min(m, n)
    return (*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)


def _real(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


def _svd_meta(
    a: Any, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None
) -> Any:
    _check(a, driver)
    u, s, vh = _shapes(a, full_matrices)
    values = MetaArray(s, _real(a.dtype))
    if not compute_uv:
        return MetaArray((0,), a.dtype), values, MetaArray((0,), a.dtype)
    return column_meta(u, a.dtype), values, column_meta(vh, a.dtype)


def _not_converged(xp: Any, a: Any) -> LinAlgError:
    flat = a.reshape(-1, *a.shape[-2:])
    bad = [i for i, matrix in enumerate(flat) if not bool(xp.isfinite(matrix).all())]
    batch = f"(Batch element {bad[0] if bad else 0}): " if a.ndim > 2 else ""
    why = (
        "contained non-finite values"
        if bad
        else "is ill-conditioned or has too many repeated singular values"
    )
    return LinAlgError(
        f"linalg.svd: {batch}The algorithm failed to converge because the input matrix {why}."
    )


def _single(a: Any, u_shape: Any, s_shape: Any, vh_shape: Any, full: bool, vectors: bool) -> Any:
    s = np.empty(s_shape, _real(a.dtype))
    gesdd = routine(lapack, "gesdd", a.dtype)
    how = {"compute_uv": vectors, "full_matrices": full}
    work = int(routine(lapack, "gesdd_lwork", a.dtype)(*a.shape[-2:], **how)[0].real)
    u, vh = (column_empty(np, x, a.dtype) for x in (u_shape, vh_shape))
    for i in each(a.shape[:-2]):
        left, s[i], right, info = gesdd(a[i], lwork=work, **how)
        if info:
            raise np.linalg.LinAlgError
        if vectors:
            u[i], vh[i] = left, right
    return (u, s, vh) if vectors else s


@op(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) ->"
    " (Tensor U, Tensor S, Tensor Vh)",
    method=False,
    spaces=(),
    half=False,
    vjp={"A": "svd_backward(g0, g1, g2, result0, result1, result2, full_matrices, compute_uv)"},
    grad_name="LinalgSvdBackward0",
    autocast="float32:cpu",
    meta=_svd_meta,
)
def _linalg_svd(xp: Any, a: Any, full_matrices: bool, compute_uv: bool, driver: Any) -> Any:
    """(U, S, Vh), singular values in descending order; without vectors only S."""
    _check(a, driver)
    u_shape, s_shape, vh_shape = _shapes(a, full_matrices)
    if not s_shape[-1] or not a.size:  # nothing to factor: orthonormal bases of any kind
        s = xp.empty(s_shape, _real(a.dtype))
        if not compute_uv:
            return xp.empty(0, a.dtype), s, xp.empty(0, a.dtype)
        u, vh = column_empty(xp, u_shape, a.dtype), column_empty(xp, vh_shape, a.dtype)
        u[...] = xp.eye(*u_shape[-2:])
        vh[...] = xp.eye(*vh_shape[-2:])
        return u, s, vh
    if not bool(xp.isfinite(a).all()):
        raise _not_converged(xp, a)
    try:
        if in_single(xp, a):
            r = _single(a, u_shape, s_shape, vh_shape, full_matrices, compute_uv)
        else:
            r = xp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    except np.linalg.LinAlgError:
        raise _not_converged(xp, a) from None
    s = r[1] if compute_uv else r
    if not compute_uv:
        return xp.empty(0, a.dtype), xp.asarray(s), xp.empty(0, a.dtype)
    return column_major(xp, r[0]), xp.ascontiguousarray(s), column_major(xp, r[2])


@vjp_helper
def svd_backward(
    gu: Any, gs: Any, gvh: Any, u: Any, s: Any, vh: Any, full: bool, with_vectors: bool
) -> Any:
    """Wan and Zhang (2019), "Automatic differentiation for complex valued SVD",
    https://arxiv.org/abs/1909.02659. The vectors that complete a full U or V have no derivative."""
    if gu is None and gs is None and gvh is None:
        return None
    if not with_vectors:
        raise RuntimeError(
            "_linalg_svd: the gradient needs the singular vectors; call with compute_uv=True"
        )
    k = s._a.shape[-1]
    if full:
        u, vh = aten.narrow(u, -1, 0, k), aten.narrow(vh, -2, 0, k)
        gu = None if gu is None else aten.narrow(gu, -1, 0, k)
        gvh = None if gvh is None else aten.narrow(gvh, -2, 0, k)
    if gu is None and gvh is None:
        return (u * columns(gs)) @ vh
    left = None if gu is None else mH(u) @ gu
    right = None if gvh is None else vh @ mH(gvh)
    if u._k.dtype.is_complex:
        _check_gauge(left, right)
    e = differences(s * s)
    inner = None
    if left is not None:
        inner = (left - mH(left)) / e * columns(s)
    if right is not None:
        part = rows(s) * ((right - mH(right)) / e)
        inner = part if inner is None else inner + part
    if gs is not None:
        inner = inner + aten.diag_embed(gs)
    if u._k.dtype.is_complex and left is not None and right is not None:
        turned = diag(left - right)
        inner = inner + aten.diag_embed((turned - aten.conj(turned)) / (4 * s))
    result = u @ inner @ vh
    if gu is not None and u._a.shape[-2] > k:
        x = gu / columns(s)
        result = result + (x - u @ (mH(u) @ x)) @ vh
    if gvh is not None and vh._a.shape[-1] > k:
        x = gvh / rows(s)
        result = result + u @ (x - (x @ mH(vh)) @ vh)
    return result


def _check_gauge(left: Any, right: Any) -> None:
    parts = [aten.imag(diag(x)) for x in (left, right) if x is not None]
    check_phase(
        "svd_backward",
        parts[0] if len(parts) == 1 else parts[0] + parts[1],
        "singular vectors",
        "phase term, making it ill-defined.",
    )


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S,"
    " Tensor Vh)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    autocast="float32:cpu",
)
def linalg_svd(a: Any, full_matrices: bool, driver: Any) -> Any:
    """(U, S, Vh) with A = U diag(S) Vh; reduced to min(m, n) vectors if not `full_matrices`."""
    return named(linalg_svd, _linalg_svd.call(a, full_matrices, True, driver=driver))


@composite(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    autocast="float32:cpu",
)
def linalg_svdvals(a: Any, driver: Any) -> Any:
    """The singular values in descending order: (…, m, n) → (…, min(m, n))."""
    return _linalg_svd.call(a, False, wants_gradient(a), driver=driver)[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    out=True,
    tags=("lapack", "out_same_dtype"),
    autocast="float32:cpu",
)
def svd(self: Any, some: bool, compute_uv: bool) -> Any:
    """(U, S, V) with A = U diag(S) Vᴴ; `torchlab.linalg.svd` is preferred."""
    if self._a.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has"
            f" {self._a.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = _linalg_svd.call(self, not some)
        return named(svd, (u, s, mH(vh)))
    *batch, m, n = self._a.shape
    u = aten.new_zeros(self, (*batch, m, m))
    v = aten.new_zeros(self, (*batch, n, n))
    return named(svd, (u, linalg_svdvals.function(self), aten.transpose(v, -2, -1)))


offer("svd", "svdvals")
