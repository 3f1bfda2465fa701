"""Products of vectors and of several tensors: inner, outer, cross, Kronecker, chains.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#blas-and-lapack-operations
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import need
from torchlab._core.ops._lapack import offer
from torchlab._core.ops._matrices import check_float
from torchlab._core.ops._reduce import scalar_name
from torchlab._core.ops.kernels import multiply_add
from torchlab._core.settings import warn_once
from torchlab._core.tensor import strides_of

# ---- two vectors --------------------------------------------------------------------------------


def _vectors(name: str, a: Any, b: Any) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors ({name} of shapes "
            f"{list(a.shape)} and {list(b.shape)})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {scalar_name(a)} and "
            f"{scalar_name(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to "
            "have the same number of elements, but got different numbers"
        )
    if a.dtype.kind == "b":
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")


@op(
    "vdot(Tensor self, Tensor other) -> Tensor",
    out=True,
    tags=("out_same_dtype",),
    autocast="promote:accelerator",
    vjp={"self": "conj_of(g) * other", "other": "g * self"},
    meta=lambda a, b: MetaArray((), a.dtype),
)
def vdot(xp: Any, a: Any, b: Any) -> Any:
    """The inner product of two vectors, the first one conjugated."""
    _vectors("vdot", a, b)
    return xp.asarray(xp.vdot(a, b))


@composite("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
           out=True, method=False, spaces=(), autocast="lower")  # fmt: skip
def vecdot(x: Any, y: Any, dim: int) -> Any:
    """The inner products of vectors along `dim`, those of x conjugated."""
    check_float("linalg.vecdot", x._a)
    if x._k.dtype is not y._k.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x._k.dtype.scalar_name} and y of type {y._k.dtype.scalar_name} instead"
        )
    if x._a.ndim == 1 and y._a.ndim == 1 and x._a.shape == y._a.shape:
        return (aten.vdot if x._k.dtype.is_complex else aten.dot)(x, y)
    return aten.sum(aten.mul(aten.conj(x) if x._k.dtype.is_complex else x, y), dim)


@composite("ger(Tensor self, Tensor vec2) -> Tensor", out=True)
def ger(self: Any, vec2: Any) -> Any:
    """The outer product of two vectors."""
    if self._a.ndim != 1 or vec2._a.ndim != 1:
        raise RuntimeError(
            f"outer: Expected 1-D argument, got {self._a.ndim}-D and {vec2._a.ndim}-D"
        )
    return aten.mul(aten.reshape(self, (self._a.size, 1)), vec2)


@face("outer", out=True)
def outer(self: Any, vec2: Any) -> Any:
    """The outer product of two vectors: (n), (m) → (n, m)."""
    return ger.call(self, vec2)


@composite(
    "inner(Tensor self, Tensor other) -> Tensor", out=True, tags=("out_copied", "out_same_dtype")
)
def inner(self: Any, other: Any) -> Any:
    """Inner products over the last dimensions: (…, k), (…, k) → (…, …); numbers are multiplied."""
    a, b = self._a, other._a
    if not a.ndim or not b.ndim:
        return aten.mul(self, other)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    return aten.tensordot(self, other, ([-1], [-1]))


@composite("kron(Tensor self, Tensor other) -> Tensor", out=True)
def kron(self: Any, other: Any) -> Any:
    """The Kronecker product: every element of `self` times the whole of `other`."""
    n = max(self._a.ndim, other._a.ndim)
    a = (1,) * (n - self._a.ndim) + self._a.shape
    b = (1,) * (n - other._a.ndim) + other._a.shape
    left = aten._unsafe_view(self, tuple(x for m in a for x in (m, 1)))
    right = aten._unsafe_view(other, tuple(x for m in b for x in (1, m)))
    r = aten.mul(left, right)
    shape = tuple(p * q for p, q in zip(a, b, strict=True))
    if layout.view_strides(r._a.shape, strides_of(r), shape) is None:
        r = aten.contiguous(r)
    return aten._unsafe_view(r, shape)


# ---- the cross product --------------------------------------------------------------------------


def _cross_shape(a: Any, b: Any, dim: int) -> tuple[int, ...]:
    if a.ndim != b.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, but got {a.ndim} and "
            f"{b.ndim}."
        )
    d = layout.wrap_dim(dim, a.ndim)
    if a.ndim == 0 or a.shape[d] != 3 or b.shape[d] != 3:
        sizes = [x.shape[d] if x.ndim else 1 for x in (a, b)]
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and "
            f"{sizes[1]}"
        )
    return layout.broadcast_shapes(a.shape, b.shape)


@op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    out=True,
    method=False,
    spaces=(),
    half=False,
    vjp={
        "self": "summed_to(linalg_cross(conj_of(other), g, dim=dim), self.shape)",
        "other": "summed_to(linalg_cross(g, conj_of(self), dim=dim), other.shape)",
    },
    meta=lambda a, b, dim=-1: MetaArray(_cross_shape(a, b, dim), np.result_type(a, b)),
)
def linalg_cross(xp: Any, a: Any, b: Any, dim: int) -> Any:
    """The vectors at right angles to pairs of vectors of three elements along `dim`."""
    shape = _cross_shape(a, b, dim)
    need("fcViu", "cross", a)
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}")
    r = xp.empty(shape, xp.result_type(a, b))
    a, b, c = (xp.moveaxis(xp.broadcast_to(x, shape), dim, 0) if x is not r
               else xp.moveaxis(x, dim, 0) for x in (a, b, r))  # fmt: skip
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c[i] = multiply_add(xp, -(a[k] * b[j]), a[j], b[k])
    return r


@face("cross", out=True, autocast="promote:accelerator")
def cross(self: Any, other: Any, dim: Any = None) -> Any:
    """The cross product along `dim`, by default the first dimension of size 3."""
    if dim is None:
        dim = next((d for d, n in enumerate(self._a.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(
                f"no dimension of size 3 in input (cross: shape {list(self._a.shape)})"
            )
    return linalg_cross.function(self, other, dim=dim)


# ---- chains of matrices -------------------------------------------------------------------------


def _order(sizes: list[int]) -> list[list[int]]:
    """Where to split each product of matrices i … j so that the fewest multiplications are needed;
    matrix i is sizes[i] by sizes[i + 1]. Dynamic programming (Cormen et al., "Introduction to
    Algorithms", chapter on matrix-chain multiplication)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain(tensors: list[Any], split: list[list[int]], i: int, j: int) -> Any:
    if i == j:
        return tensors[i]
    k = split[i][j]
    return aten.mm(_chain(tensors, split, i, k), _chain(tensors, split, k + 1, j))


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    out=True,
    method=False,
    spaces=(),
    autocast="lower:accelerator",
)
def multi_dot(tensors: Any) -> Any:
    """The product of matrices in the order that costs least; the first and the last may be
    vectors."""
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    parts = list(tensors)
    first, last = parts[0]._a.ndim, parts[-1]._a.ndim
    for which, t in (("first", parts[0]), ("last", parts[-1])):
        if t._a.ndim not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {which} tensor must be 1D or 2D but got {t._a.ndim}D"
            )
    for i, t in enumerate(parts[1:-1], 1):
        if t._a.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t._a.ndim}D")
    for i, t in enumerate(parts):
        if t._k.dtype is not parts[0]._k.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{parts[0]._k.dtype.scalar_name} and tensor {i} is {t._k.dtype.scalar_name}"
            )
    if first == 1:
        parts[0] = aten.unsqueeze(parts[0], 0)
    if last == 1:
        parts[-1] = aten.unsqueeze(parts[-1], -1)
    for i in range(n - 1):
        a, b = parts[i]._a.shape, parts[i + 1]._a.shape
        if a[1] != b[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a)} and {list(b)} cannot "
                "be multiplied"
            )
    sizes = [parts[0]._a.shape[0], *(t._a.shape[1] for t in parts)]
    r = _chain(parts, _order(sizes), 0, n - 1)
    shape = (*(sizes[:1] if first == 2 else ()), *(sizes[-1:] if last == 2 else ()))
    return aten.view(r, shape)


@face("chain_matmul", method=False, autocast="lower:accelerator")
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of matrices in the order that costs least (`torchlab.linalg.multi_dot`)."""
    warn_once(
        "chain_matmul",
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than "
        "multiple parameters.",
    )
    parts = matrices[0] if len(matrices) == 1 and type(matrices[0]) in (list, tuple) else matrices
    for i, t in enumerate(parts):
        if t._a.ndim != 2:
            raise RuntimeError(
                f"Tensor dimension is {t._a.ndim}, expected 2 instead (chain_matmul: tensor {i})"
            )
    if not parts:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(parts) == 1:
        return aten.clone(parts[0]) if out is None else aten.copy_(out, parts[0])
    return multi_dot.function(list(parts), out=out)


# ---- Vandermonde --------------------------------------------------------------------------------


@face("linalg_vander", method=False, spaces=())
def vander(x: Any, *, N: Any = None) -> Any:
    """The powers 0 … N − 1 of each element: (…, n) → (…, n, N)."""
    d = x._k.dtype
    if not (d.is_complex or d.is_floating_point and d.itemsize > 2) and (
        d.is_floating_point or d.name == "bool"
    ):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{d.scalar_name}"
        )
    if not x._a.ndim and N is None:
        raise RuntimeError(
            "linalg.vander: N may not be None for a tensor without dimensions; pass N"
        )
    shape = x._a.shape or (1,)
    n = shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = aten.cumprod(aten.expand(aten.unsqueeze(x, -1), (*shape, n - 1)), -1)
    one = aten.ones((*shape, 1), dtype=powers.dtype, device=x.device)
    return aten.cat([one, powers], -1)


offer("vecdot", "cross", "multi_dot", "vander")
