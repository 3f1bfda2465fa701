"""Approximate singular value decompositions of low rank, from random projections.

Halko, Martinsson and Tropp (2009), "Finding structure with randomness",
https://arxiv.org/abs/0909.4061, algorithms 4.4 and 5.1.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.svd_lowrank.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._lapack import mH


def _range_finder(a: Any, q: int, niter: int, m: Any) -> Any:
    """An orthonormal basis (…, rows, q) of nearly what A − M reaches."""
    r = aten.randn(a.shape[-1], q, dtype=a.dtype, device=a.device)

    def there(x: Any) -> Any:
        return aten.matmul(a, x) if m is None else aten.matmul(a, x) - aten.matmul(m, x)

    def back(x: Any) -> Any:
        y = aten.matmul(mH(a), x)
        return y if m is None else y - aten.matmul(mH(m), x)

    basis = aten.linalg_qr(there(r))[0]
    for _ in range(niter):
        basis = aten.linalg_qr(back(basis))[0]
        basis = aten.linalg_qr(there(basis))[0]
    return basis


def _lowrank(a: Any, q: int, niter: int, m: Any) -> Any:
    rows, columns = a.shape[-2:]
    if m is not None:
        m = aten.expand(m, tuple(a.shape))
    wide = rows < columns
    if wide:  # the projections cost less on the side that is short
        a = mH(a)
        m = None if m is None else mH(m)
    basis = _range_finder(a, q, niter, m)
    small = aten.matmul(mH(basis), a)
    if m is not None:
        small = small - aten.matmul(mH(basis), m)
    u, s, vh = aten._linalg_svd(small, False)
    u, v = aten.matmul(basis, u), mH(vh)
    return (v, s, u) if wide else (u, s, v)


def _shape(a: Any) -> tuple[int, int]:
    rows, columns = a.shape[-2:]
    return rows, columns


@face("svd_lowrank", method=False)
def svd_lowrank(
    A: Any,
    q: Any = 6,
    niter: Any = 2,
    M: Any = None,
) -> Any:
    """(U, S, V) with A − M ≈ U diag(S) Vᴴ of rank q (a little more than the rank sought), after
    `niter` power iterations. The projections are drawn from the default generator."""
    _shape(A)
    return _lowrank(A, 6 if q is None else q, 2 if niter is None else niter, M)


@face("pca_lowrank", method=False)
def pca_lowrank(
    A: Any,
    q: Any = None,
    center: bool = True,
    niter: int = 2,
) -> Any:
    """(U, S, V) of the matrix whose rows are observations, centred unless `center` is False: the
    columns of V are the principal directions."""
    rows, columns = _shape(A)
    if q is None:
        q = min(6, rows, columns)
    elif not (q >= 0 and q <= min(rows, columns)):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(rows, columns)}"
        )
    if not (niter >= 0):
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - aten.mean(A, (-2,), True)
    return _lowrank(A, q, niter, None)
