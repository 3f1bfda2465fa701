"""Variance and standard deviation.

Two passes: the mean, then the squares of the distances from it, corrected by the distances' own
sum, which removes what rounding the mean has added. (Chan, Golub, LeVeque: Algorithms for computing
the sample variance, 1983.)
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.var.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import value_of
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import (
    accurate_sum,
    expand_reduced,
    is_float,
    keep_reduced,
    numpy_names,
    reduced_count,
    reduced_dims,
    reduced_shape,
)
from torchlab._core.settings import warn_user


def _moments(
    xp: Any, a: Any, dim: Any, correction: Any, keepdim: bool, name: str
) -> tuple[Any, Any]:
    """(variance, mean) in the type the arithmetic is done in; the variance is real."""
    if not is_float(a.dtype):
        said = name if "mean" in name else "std and var"
        raise RuntimeError(f"{said} only support floating point and complex dtypes")
    shape = reduced_shape(a, dim, keepdim)
    n = reduced_count(a.shape, dim)
    dof = n - (1 if correction is None else correction)
    if dof <= 0 or 0 in shape:
        warn_user(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
        )
    dims = reduced_dims(dim, a.ndim) if a.ndim else (0,)
    a = a if a.ndim else a.reshape(1)
    size = a.real.dtype.type(n)
    mean = accurate_sum(xp, a, dims, True, a.dtype) / size
    d = a - mean
    rest = accurate_sum(xp, d, dims, True, a.dtype) / size
    left = size.dtype.type(max(0.0, dof))
    if a.dtype.kind == "c":
        v = _spread(xp, d.real, rest.real, dims, size) / left
        v = v + _spread(xp, d.imag, rest.imag, dims, size) / left
    else:
        v = _spread(xp, d, rest, dims, size) / left
    return v.reshape(shape), (mean + rest).reshape(shape)


def _spread(xp: Any, d: Any, rest: Any, dims: tuple[int, ...], size: Any) -> Any:
    """Σ d², corrected by the mean `rest` of d."""
    return xp.maximum(accurate_sum(xp, d * d, dims, True, d.dtype) - size * rest * rest, 0)


def _meta(both: bool) -> Any:
    def rule(a: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        shape = reduced_shape(a, dim, keepdim)
        real = np.empty(0, a.dtype).real.dtype if a.dtype.kind == "c" else a.dtype
        first = MetaArray(shape, real)
        return (first, MetaArray(shape, a.dtype)) if both else first

    return rule


_ARGUMENTS = "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"


@op(
    f"var.correction({_ARGUMENTS}) -> Tensor",
    public=False,
    tags=("reduction",),
    meta=_meta(False),
    vjp={"self": "var_backward(g, self, dim, correction, keepdim)"},
)
def var_(xp: Any, a: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The variance over dimensions."""
    return _moments(xp, a, dim, correction, keepdim, "var")[0]


@op(
    f"std.correction({_ARGUMENTS}) -> Tensor",
    public=False,
    tags=("reduction",),
    meta=_meta(False),
    vjp={"self": "std_backward(g, result, self, dim, correction, keepdim)"},
)
def std_(xp: Any, a: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The standard deviation over dimensions."""
    return xp.sqrt(_moments(xp, a, dim, correction, keepdim, "std")[0])


@op(
    f"var_mean.correction({_ARGUMENTS}) -> (Tensor, Tensor)",
    public=False,
    method=False,
    meta=_meta(True),
    vjp={"self": "moments_backward(g0, g1, self, dim, correction, keepdim)"},
    tags=("reduction",),
)
def var_mean_(xp: Any, a: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Variance and mean over dimensions."""
    return _moments(xp, a, dim, correction, keepdim, "var_mean")


@op(
    f"std_mean.correction({_ARGUMENTS}) -> (Tensor, Tensor)",
    public=False,
    method=False,
    meta=_meta(True),
    vjp={"self": "std_mean_backward(g0, g1, result0, self, dim, correction, keepdim)"},
    tags=("reduction",),
)
def std_mean_(xp: Any, a: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Standard deviation and mean over dimensions."""
    v, mean = _moments(xp, a, dim, correction, keepdim, "std_mean")
    return xp.sqrt(v), mean


# ---- gradients ----------------------------------------------------------------------------------


@vjp_helper
def var_backward(g: Any, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """2 (x − mean) / (n − correction). Without degrees of freedom, over all elements: NaN at the
    mean, ∞ elsewhere."""
    shape = x._a.shape
    dof = reduced_count(shape, dim) - (1 if correction is None else correction)
    g = keep_reduced(g, shape, dim, keepdim)
    mean = aten.mean(x, reduced_dims(dim, len(shape)), True)
    if dim is None and dof <= 0:
        return g * aten.where(x == mean, float("nan"), float("inf"))
    return (2.0 / dof if dof else float("inf")) * g * (x - mean)


@vjp_helper
def std_backward(g: Any, result: Any, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Through the square root; 0 where the spread is 0."""
    return var_backward(aten.where(result == 0, 0, g / (result * 2)), x, dim, correction, keepdim)


def _mean_part(g: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    shape = x._a.shape
    return expand_reduced(g, shape, dim, keepdim) / reduced_count(shape, dim)


@vjp_helper
def moments_backward(g0: Any, g1: Any, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The gradient of (variance, mean), of which one may be missing."""
    a = var_backward(g0, x, dim, correction, keepdim) if g0 is not None else None
    b = _mean_part(g1, x, dim, keepdim) if g1 is not None else None
    return a if b is None else b if a is None else a + b


@vjp_helper
def std_mean_backward(
    g0: Any, g1: Any, std: Any, x: Any, dim: Any, correction: Any, keepdim: bool
) -> Any:
    """The gradient of (standard deviation, mean)."""
    g0 = aten.where(std == 0, 0, g0 / (std * 2)) if g0 is not None else None
    return moments_backward(g0, g1, x, dim, correction, keepdim)


# ---- the Python calls ---------------------------------------------------------------------------


def _declare(name: str, operator: Any, doc: str, method: bool) -> None:
    """var(), var(unbiased), var(dim, unbiased, keepdim), var(dim, *, correction, keepdim)."""

    def body(
        self: Any,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        if type(dim) is bool:
            dim, unbiased = None, dim
        if names:
            dim, keepdim = numpy_names(name, dim, keepdim, names)
        if unbiased is not None:
            if correction is not None:
                raise TypeError(
                    f"{name}() received an invalid combination of arguments - both unbiased and "
                    "correction"
                )
            correction = 1 if value_of(name, "unbiased", 2, "bool", unbiased) else 0
        if dim is not None and type(dim) is not int:
            dim = layout.wrap_dims(dim, self._a.ndim) or None
        if out is not None:
            return operator.out(self, dim, correction, keepdim, out=out)
        r = operator.call(self, dim, correction=correction, keepdim=keepdim)
        return tuple(r) if isinstance(r, tuple) else r

    body.__doc__ = (
        doc + " `correction` (default 1) is subtracted from the count: the degrees of freedom."
    )
    face(name, method=method)(body)


_declare("var", var_, "The variance of all elements or over `dim`.", True)
_declare("std", std_, "The standard deviation of all elements or over `dim`.", True)
_declare("var_mean", var_mean_, "(variance, mean) of all elements or over `dim`.", False)
_declare("std_mean", std_mean_, "(standard deviation, mean) of all elements or over `dim`.", False)
