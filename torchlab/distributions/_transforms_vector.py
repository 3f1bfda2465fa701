"""Transforms between vectors and matrices: simplex, Cholesky factors, parts side by side.

Public as `torchlab.distributions.transforms`.
Source: https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.transforms;
for the stick breaking and the correlation matrices: the Stan reference manual, chapter
"Constraint transforms"; D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation
matrices based on vines and extended onion method", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions._transforms import Transform
from torchlab.distributions.utils import (
    finfo,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)


class CorrCholeskyTransform(Transform):
    """From an unconstrained vector of length D(D - 1)/2 to the Cholesky factor of a D × D
    correlation matrix: tanh of the entries are partial correlations, and each row is a broken
    stick of squares."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = aten.tanh(x)
        eps = finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        r: Any = vec_to_tril_matrix(x, diag=-1)
        # What is left of each row's unit length before every entry; the diagonal takes the rest.
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + aten.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * aten.pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Any) -> Any:
        left = 1 - aten.cumsum(y * y, -1)
        shifted = aten.pad(left[..., :-1], (1, 0), value=1)
        y_vec = tril_matrix_to_vec(y, diag=-1)
        t = y_vec / tril_matrix_to_vec(shifted, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = 1 - (y * y).cumsum(-1)
        # Over the strict lower triangle: column by column half the logarithm of what was left.
        sticks = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        tanh = -2 * (x + aten.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return sticks + tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], d, d)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return (*shape[:-2], d * (d - 1) // 2)


class SoftmaxTransform(Transform):
    """y = softmax(x): not bijective (a shift of x changes nothing), but the coordinates are of one
    kind, which suits optimisation."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Any) -> Any:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape


class StickBreakingTransform(Transform):
    """From K unconstrained numbers to the simplex of K + 1: each takes a sigmoid's share of what
    the earlier ones left. Bijective, which suits Hamiltonian Monte Carlo."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    @staticmethod
    def _offset(x: Any) -> Any:
        # So that x = 0 gives equal shares.
        n = x.shape[-1]
        return aten.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Any) -> Any:
        limits = finfo(x.dtype)
        share = aten.sigmoid(x - self._offset(x)).clamp(min=limits.tiny, max=1.0 - limits.eps)
        left = (1 - share).cumprod(-1)
        return aten.pad(share, (0, 1), value=1) * aten.pad(left, (1, 0), value=1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        left = aten.clamp(1 - head.cumsum(-1), min=finfo(y.dtype).tiny)
        return head.log() - left.log() + self._offset(head)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x)
        return (-x + aten.log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """From square matrices to lower triangular ones with a positive diagonal (its exponential)."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """From square matrices to positive definite ones: L Lᵀ of the lower Cholesky transform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Any) -> Any:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(aten.linalg_cholesky(y))


class CatTransform(Transform):
    """Transforms of consecutive parts along `dim`, `lengths` wide."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must have one entry for each of the "
                f"{len(self.transforms)} transforms"
            )
        self.dim = dim

    @lazy_property
    def event_dim(self) -> Any:  # type: ignore[override]
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} is out of range for {x.dim()} dimensions")
        if x.size(self.dim) != self.length:
            raise AssertionError(
                f"size {x.size(self.dim)} along dim {self.dim} does not match the sum of the "
                f"lengths, {self.length}"
            )
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [x.narrow(self.dim, s, n) for s, n in zip(starts, self.lengths, strict=True)]

    def _call(self, x: Any) -> Any:
        parts = zip(self.transforms, self._parts(x), strict=True)
        return aten.cat([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return aten.cat([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(before, after)
            if t.event_dim < self.event_dim:
                missing = self.event_dim - t.event_dim
                term = term.reshape((*tuple(term.shape)[: term.dim() - missing], -1)).sum(-1)
            terms.append(term)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return aten.cat(terms, dim)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transforms of the slices along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z: Tensor) -> list[Tensor]:
        if not -z.dim() <= self.dim < z.dim():
            raise AssertionError(f"dim {self.dim} is out of range for {z.dim()} dimensions")
        if z.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"size {z.size(self.dim)} along dim {self.dim} does not match the "
                f"{len(self.transforms)} transforms"
            )
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _call(self, x: Any) -> Any:
        pairs = zip(self._slice(x), self.transforms, strict=True)
        return aten.stack([t(part) for part, t in pairs], self.dim)

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self._slice(y), self.transforms, strict=True)
        return aten.stack([t.inv(part) for part, t in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = zip(self._slice(x), self._slice(y), self.transforms, strict=True)
        return aten.stack([t.log_abs_det_jacobian(a, b) for a, b, t in parts], self.dim)

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
