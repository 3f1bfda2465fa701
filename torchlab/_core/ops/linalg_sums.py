"""Products of matrices and vectors added to what is there: β · self + α · product.

With β = 0 the old values are not read: NaN in them does not come through.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.baddbmm.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._matrices import without_terms
from torchlab._core.ops._reduce import FLOAT32, is_half, scalar_name
from torchlab._core.ops.kernels import number

_BOOL = np.dtype(np.bool_)


def _check(name: str, refused: str, c: Any, a: Any, b: Any, shape: Any) -> None:
    """Types and sizes that go together."""
    if not (a.dtype == b.dtype == c.dtype):
        raise RuntimeError(
            f"{name}: expected self and both factors to have the same dtype, but got "
            f"{scalar_name(c)}, {scalar_name(a)} and {scalar_name(b)}; convert with .to()"
        )
    if a.dtype == _BOOL:
        raise NotImplementedError(f"\"{refused}\" not implemented for 'Bool'")
    check_expands(name, c.shape, shape)


def check_expands(name: str, old: Any, shape: Any) -> None:
    """Whether `old` broadcasts to `shape`, which it must not enlarge."""
    fits = len(old) <= len(shape) and all(
        n in (1, m) for n, m in zip(old[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise RuntimeError(
            f"{name}: The expanded size of self {list(old)} must match the size of the product "
            f"{list(shape)}"
        )


def combined(r: Any, c: Any, beta: Any, alpha: Any) -> Any:
    """alpha · r + beta · c, in r's memory."""
    if alpha != 1:
        r *= number(alpha, r.dtype)
    if beta != 0:
        r += c if beta == 1 else c * number(beta, c.dtype)
    return r


@vjp_helper
def times(g: Any, number: Any) -> Any:
    """The gradient of number · x: g times its conjugate."""
    if isinstance(number, complex):
        number = number.conjugate() if g._k.dtype.is_complex else number.real
    return g if number == 1 else g * number


# ---- matrix times vector ------------------------------------------------------------------------


def _addmv_shape(c: Any, m: Any, v: Any, beta: Any) -> tuple[int, ...]:
    if m.ndim != 2 or v.ndim != 1 or c.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {c.ndim}, {m.ndim}, {v.ndim} (addmv: shapes "
            f"{list(c.shape)}, {list(m.shape)}, {list(v.shape)})"
        )
    if m.shape[1] != v.shape[0] or c.ndim and c.shape[0] not in (1, m.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({c.size}), mat ({m.shape[0]}x{m.shape[1]}), vec "
            f"({v.shape[0]})"
        )
    if 0 in m.shape and beta != 0:  # nothing to add: PyTorch gives beta · self as it is
        return tuple(c.shape)
    return (m.shape[0],)


@op(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    tags=("out_same_dtype",),
    autocast="lower:accelerator",
    vjp={
        "self": "summed_to(times(g, beta), self.shape)",
        "mat": "times(ger(g, conj_of(vec)), alpha)",
        "vec": "times(mv(mH(mat), g), alpha)",
    },
    meta=lambda c, m, v, beta=1, alpha=1: MetaArray(_addmv_shape(c, m, v, beta), m.dtype),
)
def addmv(xp: Any, c: Any, m: Any, v: Any, beta: Any, alpha: Any) -> Any:
    """β · self + α · mat @ vec: (n), (n, k), (k) → (n)."""
    shape = _addmv_shape(c, m, v, beta)
    _check("addmv", "addmv_impl_cpu", c, m, v, shape)
    if not m.size:
        return without_terms("addmv", xp, c, shape, c.dtype, beta, 0 in shape)
    return combined(m.dot(v), c, beta, alpha)


# ---- outer products -----------------------------------------------------------------------------


def _addr_dtype(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    types = [dt.from_numpy(x.dtype) for x in (a, b, c)]
    d = dt.promote_types(dt.promote_types(types[0], types[1]), types[2])
    return d.np


def _addr_shape(c: Any, a: Any, b: Any) -> tuple[int, int]:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(
            f"addr: Expected 1-D argument vec1 and vec2, but got {a.ndim}-D and {b.ndim}-D"
        )
    shape = (a.shape[0], b.shape[0])
    check_expands("addr", c.shape, shape)
    return shape


def _check_factors(made: np.dtype, **factors: Any) -> None:
    """`addr` takes truth values for truth values only, integers for integers."""
    for name, value in factors.items():
        if made.kind != "b" and isinstance(value, (bool, np.bool_)):
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if made.kind in "iub" and not isinstance(value, (int, np.integer, np.bool_)):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )


def _columns_first(c: Any, shape: tuple[int, int]) -> bool:
    """Whether the result lies in memory column by column, as `self` does."""
    if tuple(c.shape) != shape:
        return False
    s, t = c.strides
    return 0 < s and 0 < t and (s < t or s == t and shape[0] < shape[1])


def _addr_meta(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> MetaArray:
    n, m = shape = _addr_shape(c, a, b)
    strides = (1, max(n, 1)) if _columns_first(c, shape) else None
    return MetaArray(shape, _addr_dtype(c, a, b), strides)


@op(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    vjp={
        "self": "summed_to(times(g, beta), self.shape)",
        "vec1": "times(mv(g, conj_of(vec2)), alpha)",
        "vec2": "times(mv(transpose(g, 0, 1), conj_of(vec1)), alpha)",
    },
    meta=_addr_meta,
    autocast="lower:accelerator",
)
def addr(xp: Any, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """β · self + α · vec1 ⊗ vec2: (n, m), (n), (m) → (n, m)."""
    shape, made = _addr_shape(c, a, b), _addr_dtype(c, a, b)
    _check_factors(made, beta=beta, alpha=alpha)
    if made == _BOOL:
        r = a[:, None] & b & bool(alpha)
        r = r | c if beta else r
    else:
        x, y = a.astype(made, copy=False), b.astype(made, copy=False)
        r = combined(x[:, None] * y, c.astype(made, copy=False), beta, alpha)
    if _columns_first(c, shape):
        return r.T.reshape(-1).reshape(shape[::-1]).T
    return r.reshape(shape)


# ---- batches ------------------------------------------------------------------------------------


def _batch_shape(name: str, a: Any, b: Any) -> tuple[int, int, int]:
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError(
            f"{name}: batch1 and batch2 must be 3D tensors, got {list(a.shape)} and {list(b.shape)}"
        )
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    return a.shape[0], a.shape[1], b.shape[2]


@op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    inplace=True,
    out=True,
    tags=("out_same_dtype",),
    autocast="lower",
    vjp={
        "self": "summed_to(times(g, beta), self.shape)",
        "batch1": "times(bmm(g, mH(batch2)), alpha)",
        "batch2": "times(bmm(mH(batch1), g), alpha)",
    },
    meta=lambda c, a, b, beta=1, alpha=1: MetaArray(_batch_shape("baddbmm", a, b), a.dtype),
)
def baddbmm(xp: Any, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """β · self + α · batch1 @ batch2: (b, n, m), (b, n, k), (b, k, m) → (b, n, m)."""
    shape = _batch_shape("baddbmm", a, b)
    if (0 in shape or not a.size) and c.dtype == a.dtype:  # batch2 may be of any type there
        check_expands("baddbmm", c.shape, shape)
        return without_terms("baddbmm", xp, c, shape, b.dtype, beta, 0 in shape)
    _check("baddbmm", "baddbmm", c, a, b, shape)
    return combined(xp.matmul(a, b), c, beta, alpha)


@op(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    tags=("grows",),  # in place, a target of another size gets the result's
    autocast="lower",
    vjp={
        "self": "summed_to(times(g, beta), self.shape)",
        "batch1": "times(addbmm_left(g, batch2), alpha)",
        "batch2": "times(addbmm_right(g, batch1), alpha)",
    },
    meta=lambda c, a, b, beta=1, alpha=1: MetaArray(_batch_shape("addbmm", a, b)[1:], c.dtype),
)
def addbmm(xp: Any, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """β · self + α · Σ batch1ᵢ @ batch2ᵢ: (n, m), (b, n, k), (b, k, m) → (n, m)."""
    count, n, m = _batch_shape("addbmm", a, b)
    if not count or (not a.size or not b.size) and a.dtype == b.dtype == c.dtype:
        check_expands("addbmm", c.shape, (n, m))  # (of no matrices the types do not matter)
        if a.dtype == _BOOL:
            beta = 1  # PyTorch multiplies by it even so, and refuses
        return without_terms("addbmm", xp, c, (n, m), c.dtype, beta, 0 in (n, m))
    _check("addbmm", "addmm_impl_cpu_", c, a, b, (n, m))
    if is_half(a.dtype):  # PyTorch rounds the sum after every product
        r = c.astype(FLOAT32)
        for i in range(count):
            product = a[i].astype(FLOAT32).dot(b[i].astype(FLOAT32))
            r = combined(product, r, beta if i == 0 else 1, alpha).astype(a.dtype).astype(FLOAT32)
        return xp.broadcast_to(r, (n, m)).astype(a.dtype)
    k = a.shape[2]
    rows = a.swapaxes(0, 1).reshape(n, count * k)  # the sum over the batch is a longer product
    return combined(rows.dot(b.reshape(count * k, m)), c, beta, alpha)


@vjp_helper
def addbmm_left(g: Any, b: Any) -> Any:
    g = aten.expand(aten.unsqueeze(g, 0), (b._a.shape[0], *g._a.shape))
    t = aten.transpose(b, 1, 2)
    return aten.bmm(g, aten.conj(t) if b._k.dtype.is_complex else t)


@vjp_helper
def addbmm_right(g: Any, a: Any) -> Any:
    g = aten.expand(aten.unsqueeze(g, 0), (a._a.shape[0], *g._a.shape))
    t = aten.transpose(a, 1, 2)
    return aten.bmm(aten.conj(t) if a._k.dtype.is_complex else t, g)


__all__ = ["addbmm", "addmv", "addr", "baddbmm", "check_expands", "combined", "times"]
