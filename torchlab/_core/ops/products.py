"""Products over dimensions, running products, and their gradients where factors are 0.

Without zeros the gradient of a product is the product over the factor; with zeros it is the product
of the others, which kernels here find in one pass. Their own gradients (for second derivatives)
build all pairs.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.prod.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import (
    FLOAT32,
    expand_reduced,
    integers_to_int64,
    is_half,
    keep_reduced,
    lanes,
    numpy_names,
    reduced_count,
    reduction_meta,
    row_major,
    squeeze,
)


def _conj(x: Any) -> Any:
    return aten.conj(x) if x._k.dtype.is_complex else x


def _product(xp: Any, a: Any, axis: Any, dtype: np.dtype, keepdims: bool) -> Any:
    wide = FLOAT32 if is_half(dtype) else dtype
    if a.dtype != wide and not (a.dtype.kind in "iub" and wide.kind in "iu"):
        a = a.astype(wide)
    r = xp.asarray(xp.multiply.reduce(a, axis=axis, dtype=wide, keepdims=keepdims))
    return row_major(r if wide == dtype else r.astype(dtype))


@op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    public=False,
    tags=("reduction",),
    half=False,
    vjp={"self": "prod_backward(g, self, result, None, False)"},
    grad_name="ProdBackward0",
    meta=lambda a, dtype=None: MetaArray((), integers_to_int64(a, dtype)),
    autocast="float32",
)
def prod_all(xp: Any, a: Any, dtype: Any) -> Any:
    """The product of all elements."""
    return _product(xp, a, None, integers_to_int64(a, dtype), False)


@op(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "prod_backward(g, self, result, dim, keepdim)"},
    grad_name="ProdBackward1",
    tags=("reduction",),
    meta=reduction_meta(integers_to_int64),
    autocast="float32",
)
def prod_dim(xp: Any, a: Any, dim: int, keepdim: bool, dtype: Any) -> Any:
    """The product along a dimension."""
    lane, d = lanes(a, dim)
    return squeeze(_product(xp, lane, d, integers_to_int64(a, dtype), True), d, keepdim, a.ndim)


@face("prod")
def prod(
    self: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    **names: Any,
) -> Any:
    """The product of all elements, or along `dim`; integers and bools are multiplied in int64."""
    if names:
        dim, keepdim = numpy_names("prod", dim, keepdim, names)
    if dim is None:
        return (
            prod_all.out(self, dtype, out=out)
            if out is not None
            else prod_all.call(self, dtype=dtype)
        )
    if type(dim) is not int and not hasattr(dim, "__index__"):
        raise TypeError(
            f"prod() received an invalid combination of arguments - got ({type(dim).__name__}), "
            "but expected one of: "
            "(*, torch.dtype dtype = None), (int dim, bool keepdim = False, *, torch.dtype dtype = "
            "None)"
        )
    if out is not None:
        return prod_dim.out(self, dim, keepdim, dtype, out=out)
    return prod_dim.call(self, dim, keepdim, dtype=dtype)


@vjp_helper
def prod_backward(g: Any, x: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """g times the product of the other elements."""
    dtype, shape = x._k.dtype, x._a.shape
    if dtype is not result._k.dtype:
        x = aten.to(x, dtype=result._k.dtype)
    if not shape:
        return aten.to(expand_reduced(g, shape, dim, keepdim), dtype=dtype)
    if not x._level and aten.all(x).item():  # (wrappers have no data to look at)
        quotient = keep_reduced(result, shape, dim, keepdim) / x
        return aten.to(expand_reduced(g, shape, dim, keepdim) * _conj(quotient), dtype=dtype)
    if reduced_count(shape, dim) == 1:
        return aten.to(expand_reduced(g, shape, dim, keepdim), dtype=dtype)
    if dim is None:
        others = aten.reshape(aten._others_product(aten.reshape(x, (-1,)), 0), shape)
    else:
        others = aten._others_product(x, dim)
    return aten.to(expand_reduced(g, shape, dim, keepdim) * _conj(others), dtype=dtype)


@op(
    "_others_product(Tensor self, int dim) -> Tensor",
    public=False,
    vjp={"self": "others_product_backward(g, self, dim)"},
    meta=lambda a, dim: MetaArray(a.shape, a.dtype),
)
def others_product(xp: Any, a: Any, dim: int) -> Any:
    """For every element the product of the others along a dimension."""
    x = xp.moveaxis(a, dim, 0)
    r = xp.ones(x.shape, x.dtype)
    if x.shape[0]:
        xp.multiply.accumulate(x[:-1], axis=0, out=r[1:])
        r[:-1] *= xp.multiply.accumulate(x[:0:-1], axis=0)[::-1]
    return xp.moveaxis(r, 0, dim).copy(order="C")


def _squares(x: Any, dim: int) -> tuple[Any, Any, int]:
    """Copies of x along a new dimension `dim`: in copy i, element i along the old one (now dim + 1)
    is 1. Also the mask of those places, to be broadcast, and dim."""
    shape = x._a.shape
    dim = layout.wrap_dim(dim, len(shape))
    n = shape[dim]
    eye = aten.view(
        aten.eye(n, dtype=x.dtype, device=x.device) == 1, (n, n, *(1,) * (len(shape) - dim - 1))
    )
    return aten.where(eye, 1, aten.unsqueeze(x, dim)), eye, dim


@vjp_helper
def others_product_backward(g: Any, x: Any, dim: int) -> Any:
    """Σ over i ≠ k of gᵢ times the product of all elements but i and k."""
    pairs, eye, dim = _squares(x, dim)
    terms = aten.unsqueeze(g, dim + 1) * _conj(aten._others_product(pairs, dim + 1))
    return aten.sum(aten.where(eye, 0, terms), dim)


# ---- running products ---------------------------------------------------------------------------


@op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    vjp={"self": "cumprod_backward(g, self, result, dim)"},
    meta=lambda a, dim, dtype=None: MetaArray(a.shape, integers_to_int64(a, dtype)),
    autocast="float32:accelerator",
)
def cumprod(xp: Any, a: Any, dim: int, dtype: Any) -> Any:
    """The product of all elements up to each one along a dimension."""
    lane, dim = lanes(a, dim)
    made = integers_to_int64(a, dtype)
    if made.kind == "b" and a.ndim and a.size:
        raise NotImplementedError("\"cumprod_out_cpu\" not implemented for 'Bool'")
    wide = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}.get(
        made.kind, FLOAT32 if is_half(made) else made
    )
    r = xp.cumprod(lane if not is_half(lane.dtype) else lane.astype(FLOAT32), axis=dim, dtype=wide)
    return row_major(r.astype(made, copy=False)).reshape(a.shape)


@vjp_helper
def cumprod_backward(g: Any, x: Any, result: Any, dim: int) -> Any:
    """Σ over i ≥ k of gᵢ times the product of all elements up to i but k."""
    dtype = x._k.dtype
    if dtype is not result._k.dtype:
        x = aten.to(x, dtype=result._k.dtype)
    if not x._a.size or not x._a.ndim or x._a.shape[dim] == 1:
        r = aten.clone(g)
    elif not x._level and aten.all(x).item():
        r = aten._reversed_cumsum(g * _conj(result), dim) / _conj(x)
    else:
        r = aten._cumprod_zeros_backward(g, x, dim)
    return aten.to(r, dtype=dtype)


@op(
    "_cumprod_zeros_backward(Tensor grad, Tensor self, int dim) -> Tensor",
    public=False,
    meta=lambda g, a, dim: MetaArray(a.shape, a.dtype),
    vjp={"grad, self": "cumprod_zeros_double_backward(g, grad, self, dim, needs)"},
)
def cumprod_zeros_backward(xp: Any, g: Any, a: Any, dim: int) -> Any:
    """The gradient of cumprod where there are zeros: up to the first zero by division, at the first
    zero by leaving it out, after it nothing."""
    g, x = xp.moveaxis(g, dim, 0), xp.moveaxis(a, dim, 0)
    zero = x == 0
    rank = xp.cumsum(zero, axis=0)
    before = rank == 0
    first = zero & (rank == 1)
    safe = xp.where(before, x, x.dtype.type(1))
    head = xp.where(before, g * xp.conj(xp.cumprod(safe, axis=0)), 0)
    left_out = xp.where(rank == 1, xp.where(first, x.dtype.type(1), x), x.dtype.type(1))
    known = xp.cumprod(safe, axis=0)[-1:]  # the product before the first zero
    tail = xp.where(rank == 1, g * xp.conj(known * xp.cumprod(left_out, axis=0)), 0)
    r = xp.where(before, xp.cumsum(head[::-1], axis=0)[::-1] / xp.conj(safe), 0) + xp.where(
        first, tail.sum(axis=0), 0
    )
    return xp.moveaxis(r, 0, dim).astype(a.dtype).copy(order="C")


@vjp_helper
def cumprod_zeros_double_backward(c: Any, g: Any, x: Any, dim: int, needs: Any) -> Any:
    """With Q[k, i] = Π of the elements up to i but k, the first gradient is Σᵢ≥ₖ gᵢ Q[k, i]."""
    pairs, eye, dim = _squares(x, dim)
    q = aten.cumprod(pairs, dim + 1)
    n = x._a.shape[dim]
    rows = aten.arange(n, device=x.device)
    later = aten.view(aten.unsqueeze(rows, 0) >= aten.unsqueeze(rows, 1), eye._a.shape)
    cotangent = aten.where(later, aten.unsqueeze(c, dim + 1), 0)
    to_g = aten.sum(cotangent * q, dim) if needs[0] else None
    if not needs[1]:
        return to_g, None
    inner = cumprod_backward(_conj(cotangent) * aten.unsqueeze(g, dim), pairs, q, dim + 1)
    return to_g, aten.sum(aten.where(eye, 0, inner), dim)
