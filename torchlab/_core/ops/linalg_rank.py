"""What small singular values decide: rank, pseudo-inverse, condition, least squares.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.pinv.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._lapack import check_square, offer
from torchlab._core.ops._matrices import mH
from torchlab._core.ops._reduce import scalar_name

# ---- tolerances ---------------------------------------------------------------------------------


def _tensor(value: Any, like: Any, name: str, what: str) -> Any:
    """A tolerance as a tensor, None as it is."""
    if value is None:
        return None
    if not hasattr(value, "_k"):
        return aten.tensor(float(value), dtype=like.dtype.to_real(), device=like.device)
    if value._k.dtype.is_complex:
        raise RuntimeError(
            f"{name}: {what} tensor of complex type is not supported. Got "
            f"{value._k.dtype.scalar_name}"
        )
    return value


def _threshold(xp: Any, a: Any, s: Any, atol: Any, rtol: Any) -> Any:
    """max(atol, rtol · the largest singular value), along s. Without either tolerance rtol is ε
    times the longer side."""
    real = s.dtype.type
    if rtol is None:
        none = atol is None
        rtol = xp.asarray(real(np.finfo(s.dtype).eps * max(a.shape[-2:])))
        if not none:  # an absolute tolerance alone decides, where it is not 0
            rtol = xp.where(atol > 0, real(0), rtol)
    atol = xp.asarray(real(0)) if atol is None else atol
    largest = s.max(axis=-1) if s.shape[-1] else xp.zeros(s.shape[:-1], s.dtype)
    return xp.maximum(atol, rtol * largest)[..., None]


# ---- rank ---------------------------------------------------------------------------------------


def _rank_check(a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if a.dtype.char not in "fdFD":
        raise RuntimeError(
            "torch.linalg.matrix_rank: This function doesn't handle types other than float and "
            f"double, real or complex; got {scalar_name(a)}"
        )


def _rank_meta(a: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> MetaArray:
    _rank_check(a)
    tolerances = [t.shape for t in (atol, rtol) if t is not None]
    return MetaArray(np.broadcast_shapes(a.shape[:-2], *tolerances), np.dtype(np.int64))


@op(
    "_matrix_rank(Tensor self, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor",
    method=False,
    public=False,
    half=False,
    meta=_rank_meta,
)
def matrix_rank_(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """How many singular values are larger than the tolerance."""
    _rank_check(a)
    if hermitian:
        check_square("linalg.eigh", a)
        s = xp.abs(xp.linalg.eigvalsh(a))
    elif a.shape[-1] and a.shape[-2]:
        s = xp.linalg.svd(a, compute_uv=False)
    else:
        s = xp.zeros((*a.shape[:-2], 0), a.real.dtype)
    return xp.asarray((s > _threshold(xp, a, s, atol, rtol)).sum(axis=-1, dtype=np.int64))


@face("linalg_matrix_rank", method=False, spaces=(), out=True, autocast="float32:cpu")
def matrix_rank(
    self: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The number of singular values above max(atol, rtol · the largest); `tol` is an old name of
    atol that leaves rtol 0."""
    name = "torch.linalg.matrix_rank"
    _rank_check(self._a)
    if tol is not None:
        atol, rtol = tol, 0.0
    return matrix_rank_.core(
        self, _tensor(atol, self, name, "atol"), _tensor(rtol, self, name, "rtol"), bool(hermitian)
    )


# ---- pseudo-inverse -----------------------------------------------------------------------------


def _pinv_check(a: Any) -> None:
    if a.ndim < 2 or a.dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({scalar_name(a)}{{{list(a.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )


def _pinv_meta(a: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> MetaArray:
    _pinv_check(a)
    return MetaArray((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


@op(
    "_pinv(Tensor self, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor",
    method=False,
    public=False,
    half=False,
    vjp={"self": "pinv_backward(g, result, self)"},
    grad_name="LinalgPinvBackward0",
    meta=_pinv_meta,
)
def pinv_(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """V S⁺ Uᴴ: singular values under the tolerance count as 0."""
    _pinv_check(a)
    if hermitian:
        check_square("linalg.eigh", a)
    if not a.size:
        return xp.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, u = xp.linalg.eigh(a)
        size, vh = xp.abs(s), xp.conj(u).swapaxes(-1, -2)
    else:
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        size = s
    keep = size > _threshold(xp, a, size, atol, rtol)
    inverse = xp.where(keep, 1 / xp.where(keep, s, s.dtype.type(1)), s.dtype.type(0))
    v = xp.conj(vh).swapaxes(-1, -2)
    return xp.ascontiguousarray(
        xp.matmul(v * inverse[..., None, :].astype(s.dtype), xp.conj(u).swapaxes(-1, -2))
    )


@vjp_helper
def pinv_backward(g: Any, p: Any, a: Any) -> Any:
    """Golub and Pereyra (1973), https://doi.org/10.1137/0710036: with P = A⁺,
    dP = −P dA P + P Pᴴ dAᴴ (1 − A P) + (1 − P A) dAᴴ Pᴴ P."""
    mm, ph, gh = aten.matmul, mH(p), mH(g)
    m, n = a._a.shape[-2:]
    if m <= n:  # the smaller products
        k = mm(gh, p)
        r = mm(k - mm(a, mm(p, k)), ph)
        q = mm(mm(ph, p), gh - mm(mm(gh, p), a))
        return r + q - mm(ph, mm(g, ph))
    k = mm(p, gh)
    r = mm(gh - mm(a, k), mm(p, ph))
    q = mm(ph, k - mm(mm(k, p), a))
    return r + q - mm(ph, mm(g, ph))


@face("linalg_pinv", method=False, spaces=(), out=True, autocast="rounded")
def pinv(
    self: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The Moore–Penrose pseudo-inverses: (…, m, n) → (…, n, m). Singular values up to
    max(atol, rtol · the largest) count as 0; `rcond` is an old name of rtol."""
    name = "torch.linalg.pinv"
    _pinv_check(self._a)
    if rcond is not None:
        atol, rtol = 0.0, rcond
    call = pinv_.call
    return call(
        self, _tensor(atol, self, name, "atol"), _tensor(rtol, self, name, "rtol"), bool(hermitian)
    )


@face("pinverse", autocast="float32:cpu")
def pinverse(self: Any, rcond: float = 1e-15) -> Any:
    """The pseudo-inverses of matrices (`torchlab.linalg.pinv`)."""
    return pinv.function(self, rcond)


# ---- condition ----------------------------------------------------------------------------------


@face(
    "linalg_cond",
    method=False,
    spaces=(),
    out=True,
    autocast="float32:cpu",
    tags=("out_copied",),
)
def cond(self: Any, p: Any = None) -> Any:
    """‖A‖ · ‖A⁻¹‖ in the norm p: by default the ratio of the largest to the smallest singular
    value."""
    a = self._a
    if a.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, str) and p not in ("fro", "nuc") or not isinstance(p, str) and (
        p not in (None, 1, -1, 2, -2, math.inf, -math.inf)
    ):  # fmt: skip
        shown = p if isinstance(p, str) else f"{p:g}"
        raise RuntimeError(f"linalg.cond got an invalid norm type: {shown}")
    if not a.size and (p is None or p in (2, -2)):
        kind = self._k.dtype.to_real() if self._k.dtype.differentiable else self._k.dtype
        return aten.zeros(a.shape[:-2], dtype=kind, device=self.device)
    if p is None or p in (2, -2):
        s = aten.linalg_svdvals(self)
        n = s._a.shape[-1]
        first, last = aten.narrow(s, -1, 0, 1), aten.narrow(s, -1, n - 1, 1)
        return aten.squeeze(last / first if p == -2 else first / last, -1)
    if a.shape[-1] != a.shape[-2]:
        check_square(f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')})", a)
    if not a.size:
        kind = self._k.dtype.to_real()
        return aten.zeros(a.shape[:-2], dtype=kind, device=self.device)
    if p == "nuc":
        s = aten.linalg_svdvals(self)
        return aten.sum(s, -1) * aten.sum(aten.reciprocal(s), -1)
    inverse = aten.linalg_inv_ex(self)[0]
    r = aten.matrix_norm(self, p) * aten.matrix_norm(inverse, p)
    return aten.nan_to_num(r, math.inf, math.inf, -math.inf)


offer("matrix_rank", "pinv", "cond")
