"""Batching rules of products of matrices and vectors: all are `matmul` of higher ranks."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, aligned, rule
from torchlab._core.dispatch.registry import aten


def _refused(c: Call, *names: str) -> bool:
    """Whether types or inner sizes do not fit: the loop then says what the operator says."""
    first = c.raw(names[0])
    return any(c.raw(n)._k.dtype is not first._k.dtype for n in names[1:])


@rule("mm", "bmm")
def mm(c: Call) -> Any:
    a, b = c.shape("self"), c.shape("mat2")
    rank = 2 if c.op.name == "mm" else 3
    if _refused(c, "self", "mat2") or len(a) != rank or len(b) != rank or a[-1] != b[-2]:
        return c.loop()
    if rank == 3 and a[0] != b[0]:
        return c.loop()
    return c.wrap(aten.matmul(c.front("self"), c.front("mat2")))


@rule("mv")
def mv(c: Call) -> Any:
    a, b = c.shape("self"), c.shape("vec")
    if _refused(c, "self", "vec") or len(a) != 2 or len(b) != 1 or a[1] != b[0]:
        return c.loop()
    if not c.has("vec"):
        return c.wrap(aten.matmul(c.front("self"), c.front("vec")))
    column = aten.unsqueeze(c.front("vec"), -1)
    return c.wrap(aten.squeeze(aten.matmul(c.front("self"), column), -1))


@rule("dot", "vdot")
def dot(c: Call) -> Any:
    other = "tensor" if "tensor" in c.names else "other"
    a, b = c.shape("self"), c.shape(other)
    if _refused(c, "self", other) or len(a) != 1 or len(b) != 1 or a != b:
        return c.loop()
    x, y = c.front("self"), c.front(other)
    if c.op.name == "vdot" and x._k.dtype.is_complex:
        x = aten.conj(x)
    if not c.has("self"):
        return c.wrap(aten.matmul(y, x))
    if not c.has(other):
        return c.wrap(aten.matmul(x, y))
    product = aten.matmul(aten.unsqueeze(x, -2), aten.unsqueeze(y, -1))
    return c.wrap(aten.select(aten.select(product, -1, 0), -1, 0))


def _sum(c: Call, product: Any) -> Any:
    """beta · self + alpha · product, without self where beta is 0."""
    alpha, beta = c.raw("alpha"), c.raw("beta")
    r = product if type(alpha) in (int, float) and alpha == 1 else aten.mul(product, alpha)
    if type(beta) in (int, float) and beta == 0:
        return r
    own = c.raw("self")
    return aten.add(own if type(beta) in (int, float) and beta == 1 else aten.mul(own, beta), r)


_FACTORS = {
    "addmm": ("mat1", "mat2", "mm"),
    "addmv": ("mat", "vec", "mv"),
    "addr": ("vec1", "vec2", "outer"),
    "baddbmm": ("batch1", "batch2", "bmm"),
    "addbmm": ("batch1", "batch2", "bmm"),
}


@rule(*_FACTORS)
def added(c: Call) -> Any:
    first, second, product = _FACTORS[c.op.name]
    own = c.raw("self")
    if _refused(c, "self", first, second) or own._k.dtype.category < 2:
        return c.loop()
    r = getattr(aten, product)(c.raw(first), c.raw(second))
    if c.op.name == "addbmm":
        r = aten.sum(r, 0)
    if len(own._a.shape) > len(r._a.shape):
        return c.loop()
    return aten.expand_as(_sum(c, r), r)


@rule("linalg_cross")
def cross(c: Call) -> Any:
    if c.rank("self") != c.rank("other"):
        return c.loop()
    dim = c.raw("dim")
    dim = dim if dim < 0 else dim - c.rank("self")
    return c.run(self=c.full("self"), other=c.full("other"), dim=dim)


@rule("dist")
def dist(c: Call) -> Any:
    difference = aten.sub(c.raw("self"), c.raw("other"))
    return aten.linalg_vector_norm(difference, c.raw("p"))


@rule("_cdist_forward")
def cdist(c: Call) -> Any:
    return c.run(**aligned(c, ("x1", "x2"), {"x1": 2, "x2": 2}))


@rule("_scaled_dot_product_attention")
def attention(c: Call) -> Any:
    """Any dimensions may come before the last two."""
    cores = dict.fromkeys(("query", "key", "value", "attn_mask"), 2)
    ranks = {c.rank(n) for n in ("query", "key", "value")}
    mask = c.raw("attn_mask")
    if len(ranks) != 1 or (mask is not None and len(mask._a.shape) < 2):
        return c.loop()
    full = {n: c.full(n) for n in ("query", "key", "value")}
    if mask is not None:
        full["attn_mask"] = aligned(c, cores, cores)["attn_mask"]
    return c.run(**full)


@rule("_attention_backward")
def attention_backward(c: Call) -> Any:
    return c.run(**{n: c.full(n) for n in c.tensors()})
