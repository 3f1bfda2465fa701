"""Scaled dot-product attention.

Source: Vaswani and others, arXiv:1706.03762;
https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import layout
from torchlab._core.attention_backends import check_allowed, fused_allowed
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops._places import elements
from torchlab._core.ops.kernels import np, row_dot, row_sum

_masks: dict[tuple[int, int], Any] = {}


def causal_mask(rows: int, columns: int) -> Any:
    """True where a query may not look: above the diagonal. Cached."""
    found = _masks.get((rows, columns))
    if found is None:
        if len(_masks) > 64:
            _masks.clear()
        found = _masks[rows, columns] = np.triu(np.ones((rows, columns), bool), 1)
    return found


def _fused(q: Any, k: Any, v: Any, mask: Any = None) -> bool:
    """Whether PyTorch's fused kernel takes these arrays, by their layout. Its results lie in memory
    in an order of their own, so that `view` works on them; those of the plain formula are
    row-major, as are the few of masks that want a gradient, which it does not take either."""
    size = q.itemsize
    return (
        q.ndim == 4
        and q.shape[:2] == k.shape[:2] == v.shape[:2]
        and q.shape[3] == v.shape[3]
        and q.strides[3] == k.strides[3] == v.strides[3] == size
        and (mask is None or mask.ndim in (2, 4))
        and q.size > 0
        and k.size > 0
        and fused_allowed()
    )


def _output_strides(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The strides of the result (elements): those of the query; None if row-major."""
    if q.flags.c_contiguous or not _fused(q, k, v, mask):
        return None
    return layout.empty_like_strides(q.shape, elements(q))


def _empty(xp: Any, shape: Any, strides: Any, dtype: Any) -> Any:
    """A new array with these strides (elements), which leave no gaps."""
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    flat = xp.empty([shape[d] for d in order], dtype)
    out = flat.transpose([order.index(d) for d in range(len(shape))])
    if elements(out) != strides:  # dims of size 1
        steps = tuple(x * dtype.itemsize for x in strides)
        out = xp.lib.stride_tricks.as_strided(flat, shape, steps)
    return out


def _meta(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    lead = layout.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    strides = _output_strides(q, k, v, mask)
    return (
        MetaArray((*lead, q.shape[-2], v.shape[-1]), q.dtype, strides),
        MetaArray((*lead, q.shape[-2], k.shape[-2]), q.dtype),
    )


def _decomposed(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    scores = aten.matmul(q * scale, aten.transpose(k, -2, -1))
    if mask is not None:
        scores = (
            aten.where(mask, scores, -math.inf) if mask._k.dtype.name == "bool" else scores + mask
        )
    if is_causal:
        mask = aten.to(wrap(causal_mask(*scores._a.shape[-2:])), q._k.device)
        scores = aten.masked_fill(scores, mask, -math.inf)
    p = aten._safe_softmax(scores, -1)
    out = aten.matmul(p, v)
    strides = _output_strides(q._a, k._a, v._a, None if mask is None else mask._a)
    if strides is not None:
        order = layout.dim_order(out._a.shape, strides)
        back = [order.index(d) for d in range(4)]
        out = aten.permute(aten.contiguous(aten.permute(out, order)), back)
    return out, p


@op(
    "_scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, "
    "bool is_causal, float scale) -> "
    "(Tensor output, Tensor probabilities)",
    public=False,
    meta=_meta,
    decompose=_decomposed,
    grad_name="ScaledDotProductFlashAttentionForCpuBackward0",
    vjp={
        "query, key, value, attn_mask": (
            "attention_backward(g0, g1, query, key, value, attn_mask, "
            "result1, is_causal, scale, "
            "needs)"
        )
    },
)
def attention(xp: Any, q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """softmax(q kᵀ · scale + mask) v, and the probabilities. Rows without any admitted key are
    zero."""
    s = xp.matmul(q * q.dtype.type(scale), xp.swapaxes(k, -1, -2))
    low = -xp.inf
    if mask is not None:
        if mask.dtype == bool:
            xp.copyto(s, low, where=xp.logical_not(mask))
        else:
            s += mask
    if is_causal:
        xp.copyto(s, low, where=xp.asarray(causal_mask(*s.shape[-2:])))
    if s.size:
        top = xp.maximum.reduce(s, axis=-1, keepdims=True)
        if mask is not None:
            top = xp.where(
                top == low, s.dtype.type(0), top
            )  # exp(−inf − 0) = 0, where −inf + inf is NaN
        s -= top
        xp.exp(s, out=s)
        total = row_sum(xp, s)
        if mask is not None:
            total = xp.where(total == 0, s.dtype.type(1), total)
        s /= total
    strides = _output_strides(q, k, v, mask)
    out = None if strides is None else _empty(xp, q.shape, strides, s.dtype)
    return xp.matmul(s, v, out=out), s


@vjp_helper
def attention_backward(
    g: Any,
    gp: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    p: Any,
    is_causal: bool,
    scale: float,
    needs: Any,
) -> Any:
    """The gradients of query, key, value and a mask of numbers."""
    if (
        gp is None
        and not grad_enabled()
        and not needs[3]
        and q._a.shape[:-2] == k._a.shape[:-2] == v._a.shape[:-2]
    ):
        return (*_attention_backward.call(g, q, k, v, p, scale), None)
    if grad_enabled():  # once more from the inputs, so that it can be differentiated again
        p = _decomposed(q, k, v, mask, is_causal, scale)[1]
    gs = None if g is None else aten.matmul(g, aten.transpose(v, -2, -1))
    gs = gs if gp is None else gp if gs is None else gs + gp
    gs = p * (gs - aten.sum(gs * p, -1, True))
    return (
        aten.matmul(gs, k) * scale if needs[0] else None,
        aten.matmul(aten.transpose(gs, -2, -1), q) * scale if needs[1] else None,
        aten.matmul(aten.transpose(p, -2, -1), g) if needs[2] and g is not None else None,
        gs if needs[3] else None,
    )


def _gradient_strides(q: Any, k: Any, v: Any, of: Any) -> Any:
    """The strides of a gradient (elements): the positions' dim before the heads', which is how most
    models come to have heads, so that taking them back copies nothing; None if row-major."""
    if not _fused(q, k, v):
        return None
    _, heads, n, width = of.shape
    return (heads * n * width, width, heads * width, 1)


@op(
    "_attention_backward(Tensor grad_output, Tensor query, Tensor key, Tensor value, Tensor "
    "probabilities, float scale) -> "
    "(Tensor, Tensor, Tensor)",
    public=False,
    meta=lambda g, q, k, v, p, s: tuple(
        MetaArray(t.shape, t.dtype, _gradient_strides(q, k, v, t)) for t in (q, k, v)
    ),
)
def _attention_backward(xp: Any, g: Any, q: Any, k: Any, v: Any, p: Any, scale: float) -> Any:
    """The three gradients from the saved probabilities."""
    oq, ok, ov = (
        None if strides is None else _empty(xp, t.shape, strides, t.dtype)
        for t in (q, k, v)
        for strides in (_gradient_strides(q, k, v, t),)
    )
    gv = xp.matmul(xp.swapaxes(p, -1, -2), g, out=ov)
    gs = xp.matmul(g, xp.swapaxes(v, -1, -2))
    gs -= row_dot(xp, gs, p)
    gs *= p
    gs *= gs.dtype.type(scale)
    return xp.matmul(gs, k, out=oq), xp.matmul(xp.swapaxes(gs, -1, -2), q, out=ok), gv


def _check(q: Any, k: Any, v: Any, mask: Any, is_causal: bool) -> None:
    for t in (q, k, v):
        if t._a.ndim < 2:
            raise RuntimeError(
                "scaled_dot_product_attention: Expected query, key, and value to all be at least "
                "2 dimensional, but got "
                f"Query dim: {q._a.ndim}, Key dim: {k._a.ndim} and Value dim: {v._a.ndim} instead."
            )
    if not q._k.dtype is k._k.dtype is v._k.dtype:
        raise RuntimeError(
            "scaled_dot_product_attention: Expected query, key, and value to have the same dtype, "
            "but got query.dtype: "
            f"{q.dtype} key.dtype: {k.dtype} and value.dtype: {v.dtype} instead."
        )
    if q._k.dtype.is_complex:
        need(FLOATS, "softmax_lastdim_kernel_impl", q._a)
    if not q._k.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {q._k.dtype.scalar_name}")
    if q._a.shape[-1] != k._a.shape[-1] or k._a.shape[-2] != v._a.shape[-2]:
        raise RuntimeError(
            f"scaled_dot_product_attention: query {list(q._a.shape)}, key {list(k._a.shape)} and "
            "value "
            f"{list(v._a.shape)} do not fit: (…, L, E), (…, S, E), (…, S, V) expected"
        )
    if mask is not None:
        # PyTorch's plain formula, which all but four dimensions go to, takes one of the two.
        if is_causal and not (fused_allowed() and q._a.ndim == 4):
            raise RuntimeError(
                "scaled_dot_product_attention: Explicit attn_mask should not be set when "
                "is_causal=True"
            )
        if (
            mask._k.dtype.name != "bool"
            and mask._k.dtype is not q._k.dtype
            and mask._k.dtype.name != "float32"
        ):
            raise RuntimeError(
                "scaled_dot_product_attention: Expected attn_mask dtype to be bool or float or to "
                "match query dtype, but "
                f"got attn_mask.dtype: {mask.dtype} and query.dtype: {q.dtype} instead."
            )


def _check_fits(q: Any, k: Any, mask: Any) -> None:
    """Raise RuntimeError if the scores do not take the mask without growing."""
    lead = layout.broadcast_shapes(q._a.shape[:-2], k._a.shape[:-2])
    scores = (*lead, q._a.shape[-2], k._a.shape[-2])
    both = tuple(layout.broadcast_shapes(scores, mask._a.shape))
    if both != scores:
        raise RuntimeError(
            f"output with shape {list(scores)} doesn't match the broadcast shape {list(both)}"
        )


@face("scaled_dot_product_attention", method=False, spaces=("nn.functional",), autocast="lower")
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query keyᵀ · scale + mask) value: (…, L, E), (…, S, E), (…, S, V) → (…, L, V).

    attn_mask: True where a query may look, or numbers to add; rows that may look nowhere give
    zeros.
    scale: 1 / √E unless given. enable_gqa: fewer heads of key and value, each for several of query.
    """
    _check(query, key, value, attn_mask, is_causal)
    check_allowed(query._k.device.type == "cpu")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if scale is None:
        scale = 1 / math.sqrt(query._a.shape[-1]) if query._a.shape[-1] else 1.0
    if enable_gqa:
        heads = query._a.shape[-3]
        key, value = (
            t if t._a.shape[-3] == heads else aten.repeat_interleave(t, heads // t._a.shape[-3], -3)
            for t in (key, value)
        )
    if attn_mask is not None:
        _check_fits(query, key, attn_mask)
    out, p = attention.call(query, key, value, attn_mask, is_causal, float(scale))
    if dropout_p > 0:
        return aten.matmul(aten.dropout(p, dropout_p, True), value)
    return out
