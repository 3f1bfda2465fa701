"""Linear algebra of batches of Gaussian variables.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#multivariatenormal
"""

from __future__ import annotations

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """(*, n, m) matrices times (*, m) vectors; the batches broadcast."""
    return aten.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def solve_lower(lower: Tensor, right: Tensor) -> Tensor:
    """lower⁻¹ right, for lower triangular matrices."""
    return aten.linalg_solve_triangular(lower, right, upper=False)


def half_log_det(lower: Tensor) -> Tensor:
    """Half the log determinant of L Lᵀ."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def batch_mahalanobis(lower: Tensor, x: Tensor) -> Tensor:
    """xᵀ (L Lᵀ)⁻¹ x for L of batch shape (*b, n, n) and x of (*s, *b, n)."""
    n = x.shape[-1]
    batch = aten.broadcast_shapes(tuple(lower.shape)[:-2], tuple(x.shape)[:-1])
    lower_batch = tuple(lower.shape)[:-2]
    if tuple(batch) == lower_batch or not lower_batch:
        # One solve for all vectors that share a matrix.
        vectors = x.expand((*batch, n))
        if not lower_batch:
            flat = vectors.reshape(-1, n).T
            return solve_lower(lower, flat).pow(2).sum(-2).reshape(batch)
        return solve_lower(lower, vectors.unsqueeze(-1)).pow(2).sum((-2, -1))
    matrices = lower.expand((*batch, n, n))
    return solve_lower(matrices, x.expand((*batch, n)).unsqueeze(-1)).pow(2).sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of precision⁻¹, without inverting it: factor it from the other
    end, and invert the triangle."""
    flipped = aten.linalg_cholesky(aten.flip(precision, (-2, -1)))
    upper_inverse = aten.flip(flipped, (-2, -1)).transpose(-2, -1)
    identity = aten.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_lower(upper_inverse, identity.expand(precision.shape))


def trace_of_squares(bmat: Tensor) -> Tensor:
    """trace(X Xᵀ) of (*, n, m) matrices."""
    return bmat.reshape((*tuple(bmat.shape)[:-2], -1)).pow(2).sum(-1)


def capacitance_tril(factor: Tensor, diag: Tensor) -> Tensor:
    """Cholesky factor of I + Wᵀ D⁻¹ W."""
    m = factor.size(-1)
    scaled = factor.mT / diag.unsqueeze(-2)
    k = aten.matmul(scaled, factor)
    return aten.linalg_cholesky(k + aten.eye(m, dtype=k.dtype, device=k.device))


def lowrank_logdet(factor: Tensor, diag: Tensor, capacitance: Tensor) -> Tensor:
    """log det(W Wᵀ + D) by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + diag.log().sum(-1)


def lowrank_mahalanobis(factor: Tensor, diag: Tensor, x: Tensor, capacitance: Tensor) -> Tensor:
    """xᵀ (W Wᵀ + D)⁻¹ x by the Woodbury matrix identity."""
    scaled = factor.mT / diag.unsqueeze(-2)
    inner = batch_mv(scaled, x)
    return (x.pow(2) / diag).sum(-1) - batch_mahalanobis(capacitance, inner)
