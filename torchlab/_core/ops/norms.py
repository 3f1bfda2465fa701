"""Norms of vectors and matrices, and the distance of two tensors.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.vector_norm.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import FUNCTIONS, aten, vjp_helper
from torchlab._core.ops._reduce import (
    accurate_sum,
    is_float,
    is_half,
    keep_reduced,
    reduced_dims,
    reduced_shape,
    row_major,
    scalar_name,
    widened,
)


def _real(d: np.dtype) -> np.dtype:
    return {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}.get(d.name, d)


def _norm(xp: Any, a: Any, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The p-norm of a float32, float64 or complex array, in its real type."""
    real = _real(a.dtype)
    if p == 2:
        squares = a.real * a.real + a.imag * a.imag if a.dtype.kind == "c" else a * a
        r = xp.sqrt(accurate_sum(xp, squares, dims, keepdim, real))
        if a.dtype.kind == "c" and xp.isnan(r).any():  # |∞ + NaN i| = ∞, as C has it
            size = xp.abs(a)
            r = xp.sqrt(accurate_sum(xp, size * size, dims, keepdim, real))
        return r
    if p == 0:
        return accurate_sum(xp, (a != 0).astype(real), dims, keepdim, real)
    size = xp.abs(a)
    if p == 1:
        return accurate_sum(xp, size, dims, keepdim, real)
    if math.isinf(p):
        if a.size == 0 and p > 0:
            return xp.zeros(layout.reduction_shape(a.shape, dims, keepdim), real)
        return (xp.maximum if p > 0 else xp.minimum).reduce(size, axis=dims, keepdims=keepdim)
    return accurate_sum(xp, size**p, dims, keepdim, real) ** real.type(1 / p)


def _check_empty(a: Any, p: float, dim: Any) -> None:
    """Norms of nothing are 0; the infinite and the negative ones are extremes and have none."""
    if a.size or not (p < 0 or p == math.inf):
        return
    shown = f"{p:g}"
    if dim is None or (type(dim) is not int and len(dim) == 0):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the "
            "operation does not have "
            "an identity"
        )
    for d in reduced_dims(dim, a.ndim):
        if a.shape[d] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {shown} norm on the dimension {d} because "
                "this dimension is empty "
                "and the operation does not have an identity"
            )


def _norm_dtype(a: Any, dtype: Any) -> np.dtype:
    """The type the norm is computed in, complex for complex operands."""
    if not is_float(a.dtype):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(a)}"
        )
    if dtype is None:
        return a.dtype
    own = dt.from_numpy(a.dtype)
    if dtype.is_complex != own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got "
            f"{dtype.scalar_name}"
        )
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "linalg.vector_norm: dtype should be floating point or complex. Got "
            f"{dtype.scalar_name}"
        )
    if dt.promote_types(own, dtype) is not dtype:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({own.scalar_name}) should be convertible "
            "without narrowing to "
            f"the specified dtype ({dtype.scalar_name})"
        )
    return dtype.np


@op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    public=False,
    method=False,
    half=False,
    tags=("reduction",),
    autocast="float32:accelerator",
    # (a count hands nothing back)
    vjp={"self": "None if ord == 0 else norm_backward(g, self, ord, result, dim, keepdim)"},
    meta=lambda a, ord=2, dim=None, keepdim=False, dtype=None: MetaArray(
        reduced_shape(a, dim, keepdim), _real(_norm_dtype(a, dtype))
    ),
)
def vector_norm_(xp: Any, a: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The p-norm of the elements, in all or over dimensions."""
    made = _norm_dtype(a, dtype)
    shape = reduced_shape(a, dim, keepdim)
    _check_empty(a, float(ord), dim)
    a = widened(a) if is_half(made) else a.astype(made, copy=False)
    dims = reduced_dims(dim, a.ndim) if a.ndim else (0,)
    r = _norm(xp, a if a.ndim else a.reshape(1), float(ord), dims, keepdim)
    return row_major(xp.asarray(r, dtype=_real(made))).reshape(shape)


@vjp_helper
def norm_backward(g: Any, x: Any, ord: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a p-norm; the subgradient 0 where the norm is 0."""
    p = float(ord)
    shape, dtype = x._a.shape, x._k.dtype
    if p == 0:
        return aten.zeros_like(x)
    if result._k.dtype is not dtype.to_real():
        x = aten.to(x, dtype=dt.promote_types(dtype, result._k.dtype))
    g, norm = keep_reduced(g, shape, dim, keepdim), keep_reduced(result, shape, dim, keepdim)
    if p == 1:
        r = aten.sgn(x) * g
    elif p == 2:
        r = g * aten.masked_fill(x / norm, norm == 0, 0)
    elif math.isinf(p):
        size = aten.abs(x)
        best = (size == norm) | aten.isnan(size)
        count = aten.sum(best, reduced_dims(dim, len(shape)), True) if shape else 1
        r = aten.sgn(x) * (g / count * best)  # a product: the gradient's NaN reaches all elements
    elif p < 1:
        part = aten.masked_fill(aten.sgn(x) * aten.pow(aten.abs(x), p - 1), x == 0, 0)
        r = part * (g * aten.pow(norm, 1 - p))
    elif p < 2:
        part = aten.sgn(x) * aten.pow(aten.abs(x), p - 1)
        r = part * aten.masked_fill(g / aten.pow(norm, p - 1), norm == 0, 0)
    else:
        part = x * aten.pow(aten.abs(x), p - 2)
        r = part * aten.masked_fill(g / aten.pow(norm, p - 1), norm == 0, 0)
    return aten.to(r, dtype=dtype)


@face("vector_norm", method=False, spaces=("linalg",))
def vector_norm(
    self: Any,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """(Σ |x|ᵖ)^(1/p) of all elements, or over `dim`; p = ord. ±∞ is the largest or smallest |x|, 0
    counts what is not 0."""
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    if out is not None:
        return vector_norm_.out(self, ord, dim, keepdim, dtype, out=out)
    return vector_norm_.function(self, ord, dim, keepdim, dtype=dtype)


# ---- matrices -----------------------------------------------------------------------------------


def _check_matrix(x: Any, name: str) -> None:
    if x._a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if not x._k.differentiable:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{x._k.dtype.scalar_name}"
        )


def _best(x: Any, dim: int, ord: Any) -> Any:
    """The largest or smallest along `dim`, which stays; a norm of nothing is 0."""
    if ord > 0 and x._a.shape[dim] == 0:
        return aten.sum(x, dim, True)
    return (aten.amax if ord > 0 else aten.amin)(x, dim, True)


@face(
    "matrix_norm",
    method=False,
    spaces=("linalg",),
    autocast="float32:accelerator",
    out=True,
    tags=("out_copied", "out_same_dtype"),
)
def matrix_norm(
    self: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of matrices in two dimensions: "fro", "nuc", ±1 and ±∞ (sums of columns, of rows),
    ±2 (singular values)."""
    name = "linalg.matrix_norm"
    _check_matrix(self, name)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    check_ints(name, "dim", dim)
    dim = tuple(dim)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (layout.wrap_dim(d, self._a.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm.function(self, 2, (rows, columns), keepdim, dtype=dtype)
    x = self if dtype is None else aten.to(self, dtype=dtype)
    if ord == "nuc" or abs(ord) == 2:
        s = aten.linalg_svdvals(aten.movedim(x, (rows, columns), (-2, -1)))
        r = aten.sum(s, -1) if ord == "nuc" else aten.squeeze(_best(s, -1, ord), -1)
    else:
        along, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = vector_norm_.function(x, 1, along, True)
        r = aten.squeeze(_best(sums, over, ord), (rows, columns))
    if keepdim:
        r = aten.view(
            r, tuple(1 if i in (rows, columns) else n for i, n in enumerate(self._a.shape))
        )
    return r


@face("linalg_norm", method=False, spaces=(), out=True, tags=("out_copied", "out_same_dtype"))
def linalg_norm(
    self: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """`torchlab.linalg.norm`: of vectors or matrices, by the number of dimensions or of `dim`."""
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    n = self._a.ndim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if ord is not None and dims is None and n not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{n}D."
        )
    if ord is not None and (isinstance(ord, str) or (len(dims) if dims is not None else n) == 2):
        return matrix_norm.function(self, ord, dims or (-2, -1), keepdim, dtype=dtype)
    return vector_norm.function(self, 2 if ord is None else ord, dims, keepdim, dtype=dtype)


FUNCTIONS.setdefault("linalg", set()).add("norm")


# ---- the older names ----------------------------------------------------------------------------


def _norm_method(
    self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The p-norm of all elements, or over `dim`."""
    return norm.body(self, p, dim, keepdim, None, dtype)


@face("norm", method=_norm_method, autocast="float32:accelerator")
def norm(
    self: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """The p-norm of all elements, or over `dim`; "fro" is p = 2, "nuc" matrices' nuclear norm."""
    if p == "nuc":
        dim = tuple(range(self._a.ndim)) if dim is None else dim
        return matrix_norm.function(self, "nuc", dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid p strings are 'fro' and 'nuc', got {p}")
    if p == "fro" and isinstance(dim, (list, tuple)) and len(dim) > 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}"
        )
    return vector_norm.function(
        self, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype, out=out
    )


@face("frobenius_norm", method=False, out=True, autocast="float32:accelerator")
def frobenius_norm(self: Any, dim: Any, keepdim: bool = False) -> Any:
    """√Σ|x|² over one or two dimensions."""
    dims = (dim,) if type(dim) is int else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead "
            "(frobenius_norm)"
        )
    return norm.function(self, 2, dims, keepdim)


@face("nuclear_norm", method=False, out=True, autocast="float32:accelerator")
def nuclear_norm(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the singular values of a matrix, or of matrices in two dimensions."""
    if type(dim) is bool:  # nuclear_norm(x, True): the matrix's, dimensions kept
        dim, keepdim = None, dim
    if dim is None and self._a.ndim != 2:
        raise RuntimeError(
            f"Expected a tensor with 2 dimensions, but got a tensor with {self._a.ndim} dimensions "
            "instead (nuclear_norm)"
        )
    return matrix_norm.function(self, "nuc", (0, 1) if dim is None else tuple(dim), keepdim)


@face("norm_except_dim", method=False)
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The p-norms over all dimensions but `dim`, which stays; dim = −1 is the norm of all."""
    if dim == -1:
        return norm.function(v, pow)
    d = layout.wrap_dim(dim, v._a.ndim)
    others = tuple(i for i in range(v._a.ndim) if i != d)
    return norm.function(v, pow, others, True) if others else aten.abs(v)


@op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    tags=("out_same_dtype",),
    vjp={"self": "renorm_backward(g, self, p, dim, maxnorm)"},
    meta=lambda a, p, dim, maxnorm: MetaArray(_renorm_check(a, p, dim, maxnorm), a.dtype),
    autocast="float32:accelerator",
)
def renorm(xp: Any, a: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Slices along `dim` whose p-norm exceeds `maxnorm` are scaled down to it."""
    _renorm_check(a, p, dim, maxnorm)
    x = widened(a)
    d = layout.wrap_dim(dim, a.ndim)
    size = _norm(xp, x, float(p), tuple(i for i in range(a.ndim) if i != d), True)
    factor = xp.where(size > maxnorm, size.dtype.type(maxnorm) / (size + _RENORM_EPS), 1)
    r = xp.multiply(x, factor.astype(_real(a.dtype)).astype(_real(x.dtype)), order="C")
    return r.astype(a.dtype, copy=False)


_RENORM_EPS = np.float32(1e-7)  # a scaled slice stays within the bound


def _renorm_check(a: Any, p: Any, dim: int, maxnorm: Any) -> tuple[int, ...]:
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p={p}")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if a.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {a.ndim} dimensions")
    layout.wrap_dim(dim, a.ndim)
    if not is_float(a.dtype):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(a)} (renorm)"
        )
    return tuple(a.shape)


@vjp_helper
def renorm_backward(g: Any, x: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Scaled slices x · m / (‖x‖ + ε): also their norms depend on x."""
    d = layout.wrap_dim(dim, x._a.ndim)
    others = tuple(i for i in range(x._a.ndim) if i != d)
    size = vector_norm_.function(x, p, others, True)
    over = size > maxnorm
    inverse = 1 / (size + float(_RENORM_EPS))
    product = g * (aten.conj(x) if x._k.dtype.is_complex else x)
    if x._k.dtype.is_complex:
        product = aten.real(product)
    to_size = aten.where(over, -maxnorm * inverse * inverse * aten.sum(product, others, True), 0)
    direct = g * aten.where(over, maxnorm * inverse, 1)
    return direct + norm_backward(to_size, x, p, size, others, True)


def _difference_type(a: Any, b: Any) -> dt.dtype:
    """The type of a − b, as `sub` has it."""
    own = [dt.from_numpy(x.dtype) for x in (a, b)]
    if dt.bool_ in own:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported")
    if (a.ndim > 0) == (b.ndim > 0):
        common = dt.promote_types(*own)
    else:
        common = dt.combine(*(own if a.ndim else own[::-1]), None)
    if common.category < dt.FLOAT:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{common.scalar_name} instead."
        )
    return common


@op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    half=False,
    meta=lambda a, b, p=2: MetaArray((), _real(_difference_type(a, b).np)),
    vjp={
        "self": "norm_backward(g, self - other, p, result, None, False)",
        "other": "-norm_backward(g, self - other, p, result, None, False)",
    },
    autocast="float32:accelerator",
)
def dist(xp: Any, a: Any, b: Any, p: Any) -> Any:
    """The p-norm of self − other, broadcast."""
    layout.broadcast_shapes(a.shape, b.shape)
    common = _difference_type(a, b).np
    a, b = (x.astype(common, copy=False) for x in (a, b))
    if common.itemsize > 2:
        return _norm(xp, (a - b).reshape(-1), float(p), (0,), False)
    d = (a.astype(np.float32) - b.astype(np.float32)).astype(common).astype(np.float32)
    return _norm(xp, d.reshape(-1), float(p), (0,), False).astype(common)
