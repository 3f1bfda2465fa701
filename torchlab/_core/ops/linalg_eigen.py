"""Eigenvalues and eigenvectors of general and of Hermitian matrices.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.eig.html and
https://docs.pytorch.org/docs/2.13/generated/torch.linalg.eigh.html
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
    check_phase,
    check_square,
    column_empty,
    column_major,
    column_meta,
    columns,
    device,
    diag,
    differences,
    each,
    host,
    in_single,
    mH,
    named,
    offer,
    routine,
    rows,
    wants_gradient,
)

lapack = lazy("scipy.linalg.lapack")
_ILL = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many"
    " repeated eigenvalues"
)


# ---- Hermitian matrices -------------------------------------------------------------------------


def _check_eigh(a: Any, uplo: str) -> None:
    check_square("linalg.eigh", a, "linalg_eigh_cpu", integers=True)
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")


def _real(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


def _eigh_meta(a: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    _check_eigh(a, uplo)
    values = MetaArray(a.shape[:-1], _real(a.dtype))
    return values, column_meta(a.shape, a.dtype) if compute_v else MetaArray((0,), a.dtype)


def _single_eigh(a: Any, uplo: str, vectors: bool) -> Any:
    values = np.empty(a.shape[:-1], _real(a.dtype))
    found = column_empty(np, a.shape, a.dtype)
    evd = routine(lapack, "heevd" if a.dtype.kind == "c" else "syevd", a.dtype)
    for i in each(a.shape[:-2]):
        values[i], matrix, info = evd(a[i], compute_v=vectors, lower=uplo.upper() == "L")
        if info:
            raise np.linalg.LinAlgError(f"error code: {info}")
        if vectors:
            found[i] = matrix
    return values, found if vectors else None


@op(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor'
    " eigenvectors)",
    method=False,
    spaces=(),
    half=False,
    vjp={"A": "eigh_backward(g0, g1, result0, result1, compute_v)"},
    grad_name="LinalgEighBackward0",
    meta=_eigh_meta,
)
def _linalg_eigh(xp: Any, a: Any, uplo: str, compute_v: bool) -> Any:
    """(eigenvalues ascending, eigenvectors in the columns), read from one triangle."""
    _check_eigh(a, uplo)
    if not a.size:
        vectors = column_empty(xp, a.shape, a.dtype) if compute_v else xp.empty(0, a.dtype)
        return xp.empty(a.shape[:-1], _real(a.dtype)), vectors
    finite = xp.isfinite(a)
    if not bool(finite.all()):  # only the triangle that is read matters
        unread = xp.tri(a.shape[-1], k=-1, dtype=bool)
        finite |= unread if uplo.upper() == "U" else unread.T
        finite = finite.reshape(-1, a.shape[-1] ** 2).all(-1)
    if not bool(finite.all()):
        batch = f"(Batch element {int(finite.argmin())}): " if a.ndim > 2 else ""
        raise LinAlgError(f"linalg.eigh: {batch}{_ILL}, or holds values that are not finite.")
    try:
        if in_single(xp, a):
            values, vectors = _single_eigh(a, uplo, compute_v)
        elif compute_v:
            values, vectors = xp.linalg.eigh(a, UPLO=uplo.upper())
        else:
            values, vectors = xp.linalg.eigvalsh(a, UPLO=uplo.upper()), None
    except np.linalg.LinAlgError as e:
        raise LinAlgError(f"linalg.eigh: {_ILL} ({e}).") from None
    if vectors is None:
        return xp.ascontiguousarray(values), xp.empty(0, a.dtype)
    return xp.ascontiguousarray(values), column_major(xp, vectors)


@vjp_helper
def eigh_backward(gl: Any, gv: Any, values: Any, v: Any, with_vectors: bool) -> Any:
    """Seeger et al. (2017), "Auto-differentiating linear algebra",
    https://arxiv.org/abs/1710.08717; for complex vectors, only for functions that do not depend
    on their phase."""
    if gl is None and gv is None:
        return None
    if not with_vectors:
        raise RuntimeError(
            "_linalg_eigh: the gradient needs the eigenvectors; call with compute_v=True"
        )
    if gv is None:
        return (v * columns(gl)) @ mH(v)
    inner = mH(v) @ gv
    if v._k.dtype.is_complex:
        check_phase(
            "linalg_eigh_backward",
            aten.imag(diag(inner)),
            "eigenvectors",
            "quantity, so it is ill-defined.",
        )
    inner = inner / differences(values)
    kept = aten.diag_embed(gl) if gl is not None else 0
    result = v @ (inner - aten.diag_embed(diag(inner)) + kept) @ mH(v)
    return (result + mH(result)) * 0.5


@composite(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    method=False,
    spaces=(),
    out=True,
    tags=("lapack", "out_same_dtype"),
    autocast="float32:cpu",
)
def linalg_eigh(self: Any, uplo: str) -> Any:
    """(L, V) with A = V diag(L) Vᴴ for Hermitian A, L ascending."""
    return named(linalg_eigh, _linalg_eigh.call(self, uplo, True))


@composite(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    method=False,
    spaces=(),
    out=True,
    autocast="float32:cpu",
)
def linalg_eigvalsh(self: Any, uplo: str) -> Any:
    """The eigenvalues of Hermitian matrices, ascending."""
    return _linalg_eigh.call(self, uplo, wants_gradient(self))[0]


# ---- general matrices ---------------------------------------------------------------------------

_COMPLEX = {"f": np.dtype(np.complex64), "d": np.dtype(np.complex128)}


def _check_eig(name: str, a: Any) -> None:
    check_square(name, a, "linalg_eig_out_cpu")


def _complex(dtype: Any) -> Any:
    return _COMPLEX.get(dtype.char, dtype)


def _eig_meta(a: Any) -> Any:
    _check_eig("linalg.eig", a)
    dtype = _complex(a.dtype)
    return MetaArray(a.shape[:-1], dtype), column_meta(a.shape, dtype)


def _run(a: Any, vectors: bool) -> Any:
    """(eigenvalues, eigenvectors or None) of matrices in host memory."""
    if not bool(np.isfinite(a).all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    try:
        if in_single(np, a):
            return _single_eig(a, vectors)
        return np.linalg.eig(a) if vectors else (np.linalg.eigvals(a), None)
    except np.linalg.LinAlgError as e:
        raise LinAlgError(f"linalg.eig: {_ILL} ({e}).") from None


def _single_eig(a: Any, vectors: bool) -> Any:
    dtype = _complex(a.dtype)
    values, found = np.empty(a.shape[:-1], dtype), np.empty(a.shape, dtype)
    geev = routine(lapack, "geev", a.dtype)
    work = int(routine(lapack, "geev_lwork", a.dtype)(a.shape[-1], 0, int(vectors))[0].real)
    for i in each(a.shape[:-2]):
        *parts, _, right, info = geev(a[i], compute_vl=0, compute_vr=int(vectors), lwork=work)
        if info:
            raise np.linalg.LinAlgError(f"error code: {info}")
        values[i] = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
        if vectors:
            found[i] = right if len(parts) == 1 else _paired(right, parts[1])
    return values, found if vectors else None


def _paired(right: Any, imaginary: Any) -> Any:
    """LAPACK keeps a conjugate pair of vectors as real part and imaginary part."""
    first = np.flatnonzero(imaginary > 0)
    made = right.astype(np.complex64)
    made[:, first] += 1j * right[:, first + 1]
    made[:, first + 1] = made[:, first].conj()
    return made


@op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"self": "eig_backward(g0, g1, result0, result1, self.dtype)"},
    meta=_eig_meta,
    autocast="float32:cpu",
)
def linalg_eig(xp: Any, a: Any) -> Any:
    """(L, V) with A = V diag(L) V⁻¹, complex in any case; the columns of V have length 1."""
    _check_eig("linalg.eig", a)
    dtype = _complex(a.dtype)
    if not a.size:
        return xp.empty(a.shape[:-1], dtype), column_empty(xp, a.shape, dtype)
    values, vectors = _run(host(xp, a), True)
    return device(xp, values.astype(dtype), column_major(np, vectors, dtype))


@op(
    "_linalg_eigvals(Tensor self) -> Tensor",
    method=False,
    spaces=(),
    half=False,
    meta=lambda a: _eig_meta(a)[0],
)
def _linalg_eigvals(xp: Any, a: Any) -> Any:
    """The eigenvalues without a gradient."""
    _check_eig("linalg.eigvals", a)
    if not a.size:
        return xp.empty(a.shape[:-1], _complex(a.dtype))
    return device(xp, _run(host(xp, a), False)[0].astype(_complex(a.dtype)))


@vjp_helper
def eig_backward(gl: Any, gv: Any, values: Any, v: Any, dtype: Any) -> Any:
    """Boeddeker et al. (2017), "On the computation of complex-valued gradients",
    https://arxiv.org/abs/1701.00392, for vectors of length 1."""
    if gl is None and gv is None:
        return None
    vh = mH(v)
    if gv is None:
        middle = rows(gl) * vh
    else:
        inner = vh @ gv
        check_phase(
            "linalg_eig_backward",
            aten.imag(diag(inner)),
            "eigenvectors",
            "quantity, so it is ill-defined.",
        )
        inner = inner - (vh @ v) * columns(aten.real(diag(inner)))
        inner = inner / aten.conj(differences(values))
        inner = inner - aten.diag_embed(diag(inner))
        if gl is not None:
            inner = inner + aten.diag_embed(gl)
        middle = inner @ vh
    result = aten.linalg_solve(vh, middle)
    return result if dtype.is_complex else aten.real(result)


@composite(
    "linalg_eigvals(Tensor self) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    tags=("out_unrecorded",),
    autocast="float32:cpu",
)
def linalg_eigvals(self: Any) -> Any:
    """The eigenvalues of square matrices, complex, in no order."""
    return linalg_eig.call(self)[0] if wants_gradient(self) else _linalg_eigvals.call(self)


offer("eig", "eigvals", "eigh", "eigvalsh")
