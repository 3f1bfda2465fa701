"""Covariances and correlations of rows of observations.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.cov.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.settings import warn_user


def _check_weights(name: str, w: Any, n: int, floating: bool) -> None:
    if w is None:
        return
    if w._a.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{w._a.ndim} dimensions"
        )
    d = w._k.dtype
    if (d.is_floating_point if floating else d.category == dt.INT) is False:
        kind = "floating point" if floating else "integral"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {d.scalar_name} dtype"
        )
    if w._a.size != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {w._a.size} != {n}"
        )
    if n and aten.any(w < 0).item():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@face("cov")
def cov(self: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of variables (rows) over observations (columns), which `fweights` repeat and
    `aweights` weight: (variables, observations) → (variables, variables)."""
    if self._a.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{self._a.ndim} dimensions"
        )
    if self._k.dtype is dt.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = aten.view(self, (1, -1)) if self._a.ndim < 2 else self
    n = x._a.shape[1]
    _check_weights("fweights", fweights, n, False)
    _check_weights("aweights", aweights, n, True)
    w = fweights
    if aweights is not None:
        w = aweights if w is None else w * aweights
    total = n if w is None else aten.sum(w)
    if w is not None and (not n or total.item() == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = aten.div(aten.sum(x if w is None else x * w, 1), total)
    if w is not None and aweights is not None and correction:
        norm = total - correction * aten.sum(w * aweights) / total
    else:
        norm = total - correction
    if (norm if w is None else norm.item()) <= 0:
        warn_user("cov(): degrees of freedom is <= 0")
        norm = 0
    x = x - aten.unsqueeze(mean, 1)
    right = aten.t(x if w is None else x * w)
    c = aten.mm(x, aten.conj(right) if right._k.dtype.is_complex else right)
    return aten.squeeze(aten.div(c, norm))


@face("corrcoef")
def corrcoef(self: Any) -> Any:
    """Pearson's correlations of variables (rows) over observations (columns)."""
    if self._a.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{self._a.ndim} dimensions"
        )
    c = aten.cov(self)
    if not c._a.ndim:
        return c / c
    variances = aten.diagonal(c)
    deviations = aten.sqrt(aten.real(variances) if c._k.dtype.is_complex else variances)
    c = c / aten.unsqueeze(deviations, 1) / aten.unsqueeze(deviations, 0)
    if c._k.dtype.is_complex:
        return aten.complex(aten.clamp(aten.real(c), -1, 1), aten.clamp(aten.imag(c), -1, 1))
    return aten.clamp(c, -1, 1)
