"""Powers and the exponential of matrices.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.matrix_exp.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import each, offer
from torchlab._core.ops._matrices import check_float, fresh_strides, mH

scipy_linalg = lazy("scipy.linalg")
cupyx_linalg = lazy("cupyx.scipy.linalg")


def _check_square(name: str, a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by"
            f" {a.shape[-1]} matrices"
        )


@composite("linalg_matrix_power(Tensor self, int n) -> Tensor",
           out=True, method=False, spaces=())  # fmt: skip
def linalg_matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices; negative n takes the inverse: squares, from the last bit
    of n to the first."""
    _check_square("linalg.matrix_power", self._a)
    if n == 0:
        size = self._a.shape[-1]
        return aten.copy_(aten.clone(self), aten.eye(size, dtype=self.dtype, device=self.device))
    if n < 0:
        self, n = aten.linalg_inv(self), -n
    if n == 1:
        return aten.clone(self)
    if n == 3:
        return aten.matmul(aten.matmul(self, self), self)
    result, square = None, None
    while n:
        square = self if square is None else aten.matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            result = square if result is None else aten.matmul(result, square)
    return result


@face("matrix_power", out=True)
def matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices (`torchlab.linalg.matrix_power`)."""
    return linalg_matrix_power.function(self, n)


def _exp_meta(a: Any) -> MetaArray:
    _check_square("linalg.matrix_exp", a)
    check_float("linalg.matrix_exp", a)
    return MetaArray(a.shape, a.dtype)


@op(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    method=False,
    spaces=(),
    vjp={"self": "matrix_exp_backward(g, self)"},
    meta=_exp_meta,
)
def linalg_matrix_exp(xp: Any, a: Any) -> Any:
    """Σ Aᵏ / k! of square matrices."""
    _exp_meta(a)
    if not a.size:
        return xp.zeros(a.shape, a.dtype)
    if xp is np:
        wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64, copy=False)
        return fresh_strides(np.ascontiguousarray(scipy_linalg.expm(wide), dtype=a.dtype))
    r = xp.empty(a.shape, a.dtype)
    for i in each(a.shape[:-2]):
        r[i] = cupyx_linalg.expm(a[i])
    return r


@vjp_helper
def matrix_exp_backward(g: Any, a: Any) -> Any:
    """The derivative of the exponential in a direction G is the corner of exp([[A, G], [0, A]])
    (Mathias 1996, https://doi.org/10.1137/S0895479895283409); of its adjoint, that of Aᴴ."""
    h = mH(a)
    n = h._a.shape[-1]
    top, bottom = aten.cat([h, g], -1), aten.cat([aten.zeros_like(h), h], -1)
    whole = aten.linalg_matrix_exp(aten.cat([top, bottom], -2))
    return aten.narrow(aten.narrow(whole, -2, 0, n), -1, n, n)


@face("matrix_exp")
def matrix_exp(self: Any) -> Any:
    """The exponential of square matrices (`torchlab.linalg.matrix_exp`)."""
    return linalg_matrix_exp.function(self)


offer("matrix_power", "matrix_exp")
