"""The derivative of an operator along given tangents, from its declaration: Note [Duals].

`tangents` has the shape of the arguments: a tensor, None, or a list of these for each. The result
has one entry for each result of the operator, None where nothing depends on a tangent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import duals
from torchlab._core.dispatch.generate import nodes
from torchlab._core.dispatch.generate.source import compile_source, ident
from torchlab._core.dispatch.levels import again, lifted
from torchlab._core.dispatch.registry import aten, vjp_helpers
from torchlab._core.tensor import Tensor
from torchlab.autograd.api import grad
from torchlab.autograd.grad_mode import enable_grad, no_grad

RULES: dict[str, Callable[..., Any]] = {}  # declaration or name → rule, where none can be derived

# Linear in all tensors together that may carry a tangent: the operator itself on the tangents.
LINEAR = frozenset(
    "neg sum mean cumsum flip roll rot90 cat stack index index_select gather take repeat "
    "max_unpool tril triu embedding trace clone _conj conj real imag _fft_r2c _fft_c2r _fft_c2c "
    "unfold_backward diag_embed col2im im2col pixel_shuffle reflection_pad1d reflection_pad2d "
    "reflection_pad3d replication_pad1d replication_pad2d replication_pad3d".split()
)


def tangent(op: Any, primals: list[Any], tangents: list[Any], result: Any) -> Any:
    """The tangents of the results of `op`."""
    given = [t for t in _flat(tangents) if t is not None]
    if not given or not (op.vjp or op.family == "composite"):
        return None
    rule = RULES.get(f"{op.name}.{op.overload}") or RULES.get(op.name)
    if rule is not None:
        return rule(op, primals, tangents, result)
    if op.family == "view" or op.name in LINEAR:
        made = _linear(op, primals, tangents)
        if made is not None:
            return made
    if op.family in ("unary", "binary", "pointwise") and _is_real(primals, given, result):
        f = op._cache.get("tangent")
        if f is None:
            f = op._cache["tangent"] = _formula(op) or _twice
        return f(op, primals, tangents, result)
    return _twice(op, primals, tangents, result)


duals.tangent_rule.append(tangent)


def _flat(args: Any) -> list[Any]:
    return [y for x in args for y in (x if type(x) in (list, tuple) else (x,))]


def _is_real(primals: Any, given: Any, result: Any) -> bool:
    every = [*_flat(primals), *given, result]
    return not any(isinstance(x, Tensor) and x.dtype.is_complex for x in every)


def _linear(op: Any, primals: list[Any], tangents: list[Any]) -> Any:
    args = []
    for a, p, t in zip(op.schema.arguments, primals, tangents, strict=True):
        if a.type.base != "Tensor" or p is None:
            args.append(p)
        elif type(p) in (list, tuple):
            differentiable = a.name in op.vjp
            args.append(
                [_or_zeros(x, y) for x, y in zip(p, t, strict=True)] if differentiable else p
            )
        elif a.name in op.vjp:
            args.append(_or_zeros(p, t))
        else:
            args.append(p)
    return again(op, args)


def _or_zeros(p: Any, t: Any) -> Any:
    return t if t is not None or not isinstance(p, Tensor) else aten.zeros_like(p)


def rule(*names: str) -> Callable[[Any], Any]:
    """Let the decorated function (op, primals, tangents, result) give the tangent of `names`."""

    def declare(fn: Any) -> Any:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return declare


@rule("constant_pad_nd")
def _pad(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """Zeros around the tangent, whatever the value is padded with."""
    return again(op, (tangents[0], primals[1], 0))


@rule("linalg_vector_norm")
def _vector_norm(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """The gradient of each norm times the tangent, summed: at 0 the gradient is 0, too."""
    x, order, dim, keepdim, dtype = primals
    t = tangents[0] if dtype is None else aten.to(tangents[0], dtype)
    one = aten.ones_like(result)
    slope = vjp_helpers["norm_backward"](one, x, order, result, dim, keepdim)
    products = aten.real(aten.mul(aten.conj(slope), t))
    if dim is None or dim == () or dim == []:
        dim = tuple(range(x._a.ndim))
    return aten.to(aten.sum(products, dim, keepdim), result._k.dtype) if dim else products


@rule("logcumsumexp")
def _logcumsumexp(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """d log Σ exp xᵢ = Σ exp(xᵢ - result) dxᵢ. Sums of exponentials run over positive and negative
    tangents apart, so that nothing overflows or vanishes (PyTorch's tangents do)."""
    (x, dim), t = primals, tangents[0]
    if x._a.ndim == 0:
        return t
    if any(y._level or y.requires_grad for y in (x, t)):
        return _logcumsumexp_whole(x, t, dim, result)
    if x._k.dtype.is_complex:
        top = aten.amax(aten.real(x), dim, True)
        weighted = aten.cumsum(aten.mul(aten.exp(aten.sub(x, top)), t), dim)
        return aten.div(weighted, aten.exp(aten.sub(result, top)))

    def part(size: Any) -> Any:
        total = aten.logcumsumexp(aten.add(x, aten.log(size)), dim)
        return aten.exp(aten.sub(total, result))

    return aten.sub(part(aten.clamp(t, min=0)), part(aten.clamp(aten.neg(t), min=0)))


@rule("_reversed_logcumsumexp")
def _reversed_logcumsumexp(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    (x, dim), t = primals, tangents[0]
    if x._a.ndim == 0:
        return t
    x, t, result = (aten.flip(y, (dim,)) for y in (x, t, result))
    return aten.flip(_logcumsumexp(op, (x, dim), (t,), result), (dim,))


def _logcumsumexp_whole(x: Any, t: Any, dim: int, result: Any) -> Any:
    """The same with a matrix of all exp(xⱼ - resultᵢ), which can be differentiated again: where
    sums run over positive and negative tangents apart, a tangent of 0 has no derivative."""
    n = x._a.shape[dim]
    x, t, result = (aten.movedim(y, dim, -1) for y in (x, t, result))
    place = aten.arange(n, device=x.device)
    after = aten.gt(aten.unsqueeze(place, 0), aten.unsqueeze(place, 1))
    away = aten.sub(aten.unsqueeze(x, -2), aten.unsqueeze(result, -1))
    weights = aten.masked_fill(aten.exp(aten.masked_fill(away, after, 0)), after, 0)
    return aten.movedim(aten.sum(aten.mul(weights, aten.unsqueeze(t, -2)), (-1,)), -1, dim)


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """Linear in the log probabilities; the sum of the weights depends on none of them."""
    if tangents[0] is None:  # the weights of classes count as constants
        return None, None
    return again(op, (tangents[0], *primals[1:]))[0], None


@rule("std.correction", "std_mean.correction")
def _deviation(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """d σ = Σ Re((x - mean)* dx) / ((n - correction) σ); 0 where σ is 0, as PyTorch has it."""
    (x, dim, correction, keepdim), t = primals, tangents[0]
    dims = tuple(range(x._a.ndim)) if dim is None or not len(dim) else tuple(dim)
    sigma = result[0] if op.name == "std_mean" else result
    n = 1
    for d in dims:
        n *= x._a.shape[d] if x._a.ndim else 1
    away = aten.sub(x, aten.mean(x, dims, True)) if x._a.ndim else aten.sub(x, x)
    products = aten.mul(aten.conj(away), t)
    if products._k.dtype.is_complex:
        products = aten.real(products)
    total = aten.sum(products, dims, keepdim) if x._a.ndim else products
    left = n - (1 if correction is None else correction)
    slope = aten.div(total, aten.mul(sigma, max(left, 0)))
    made = aten.masked_fill(slope, aten.eq(sigma, 0), 0)
    if op.name == "std":
        return made
    return made, aten.mean(t, dims, keepdim) if t._a.ndim else t


@rule("linalg_eig")
def _eig(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """dλ is the diagonal of W = V⁻¹ dA V, dV = V (W / (λⱼ - λᵢ)) less what would change a column's
    length. One use of the eigenvectors: split among several, what depends on a derivative's phase
    would not cancel."""
    values, vectors = result
    t = aten.to(tangents[0], vectors._k.dtype)
    w = aten.linalg_solve(vectors, aten.matmul(t, vectors))
    dl = aten.diagonal(w, 0, -2, -1)
    gaps = aten.sub(aten.unsqueeze(values, -2), aten.unsqueeze(values, -1))
    n = gaps._a.shape[-1]
    own = aten.eq(aten.unsqueeze(aten.arange(n), 0), aten.unsqueeze(aten.arange(n), 1))
    parts = aten.masked_fill(aten.div(w, aten.masked_fill(gaps, own, 1)), own, 0)
    dv = aten.matmul(vectors, parts)
    along = aten.real(aten.sum(aten.mul(aten.conj(vectors), dv), (-2,), True))
    return dl, aten.sub(dv, aten.mul(vectors, along))


@rule("_ctc_loss")
def _ctc(op: Any, primals: Any, tangents: Any, result: Any) -> Any:
    """Refused, as in PyTorch: what it calls the gradient of log_probs is that of what a log_softmax
    was applied to."""
    raise NotImplementedError(
        "Trying to use forward AD with _ctc_loss that does not support it because it has not been"
        " implemented yet. Use reverse mode: backward(), torch.func.grad"
    )


# ---- element by element ------------------------------------------------------------------------


def _formula(op: Any) -> Any:
    """A function from the vjp formulas: each is the derivative for one argument times `g`. None if
    they cannot be read so."""
    p = nodes.plan(op)
    if p.outputs != 1 or any(len(f.targets) != 1 or f.text == "needs" for f in p.formulas):
        return None
    if any("needs" in f.text or "node" in f.text for f in p.formulas):
        return None
    i = ident(op)
    names = "".join(a.name + ", " for a in op.schema.arguments)
    lines = ["def tangent(op, primals, tangents, result):", f"    {names}= primals"]
    for slot, expression in p.values.items():
        tensor = expression.split("._")[0]
        if slot == expression:
            continue
        fallback = {"shape": "()", "dtype": "None", "device": "None", "ndim": "0"}.get(
            slot.rsplit("_", 1)[1]
        )
        if fallback is None:
            return None
        lines.append(f"    {slot} = {expression} if isinstance({tensor}, T) else {fallback}")
    lines.append("    total = None")
    order = {a.name: n for n, a in enumerate(op.schema.arguments)}
    for f in p.formulas:
        (target,) = f.targets
        lines += [
            f"    g = tangents[{order[target]}]",
            "    if g is not None:",
            "        if g._k.dtype is not result._k.dtype:",
            "            g = to_dtype(g, result._k.dtype)",
            "        if g._a.shape != result._a.shape:",
            "            g = expanded(g, result._a.shape)",
            f"        term = {f.text}",
            "        if term is not None:",
            "            total = term if total is None else total + term",
        ]
    lines.append("    return finish(total, result)")
    env = {"finish": _finish, "to_dtype": _to_dtype, "expanded": _expanded}
    return compile_source(f"{op.qualname} (tangent {i})", "\n".join(lines) + "\n", env, "tangent")


def _to_dtype(g: Tensor, dtype: Any) -> Any:
    return aten.to(g, dtype)


def _expanded(g: Tensor, shape: Any) -> Any:
    return aten.expand(g, shape)


def _finish(total: Any, result: Tensor) -> Any:
    if total is None:
        return None
    if total._k.dtype is not result._k.dtype:
        total = aten.to(total, result._k.dtype)
    if total._a.shape != result._a.shape:
        total = aten.clone(aten.expand(total, result._a.shape))
    return total


# ---- everything else ---------------------------------------------------------------------------


def _twice(op: Any, primals: list[Any], tangents: list[Any], result: Any) -> Any:
    """u → Jᵀu is linear, and its vjp along the tangents is J times the tangents."""
    inputs: list[Any] = []
    along: list[Any] = []

    def taking_part(p: Any, t: Any) -> Any:
        if t is None or not isinstance(p, Tensor) or not p._k.differentiable:
            return p
        x = aten.alias(lifted(p))
        if not x.requires_grad:
            x.requires_grad_()
        inputs.append(x)
        along.append(lifted(t))
        return x

    with enable_grad():
        args = [
            type(p)(taking_part(x, y) for x, y in zip(p, t, strict=True))
            if type(p) in (list, tuple)
            else taking_part(p, t)
            for p, t in zip(primals, tangents, strict=True)
        ]
        recorded = any(x.requires_grad for x in (*_flat(primals), *along) if isinstance(x, Tensor))
        again_made = again(op, args)
        ys = again_made if isinstance(again_made, (list, tuple)) else [again_made]
        at = [i for i, y in enumerate(ys) if isinstance(y, Tensor) and y.requires_grad]
        made: list[Any] = [None] * len(ys)
        if at:
            with no_grad():
                us = [aten.zeros_like(lifted(ys[i])) for i in at]
                us = [aten.alias(lifted(u)).requires_grad_() for u in us]
            outs = [ys[i] for i in at]
            gs = grad(outs, inputs, us, create_graph=True, allow_unused=True)
            pairs = [
                (g, t) for g, t in zip(gs, along, strict=True) if g is not None and g.requires_grad
            ]
            found: Any = [None] * len(us)
            if pairs:
                roots, ts = zip(*pairs, strict=True)
                found = grad(roots, us, ts, create_graph=True, allow_unused=True)
            for i, u, t in zip(at, us, found, strict=True):
                if t is None:
                    t = aten.zeros_like(u)
                elif not recorded:
                    t = aten.alias(t)
                    t._e = t._v = None  # behind nothing: a view would ask its base for gradients
                made[i] = t
    if not isinstance(again_made, (list, tuple)):
        return made[0]
    return made


__all__ = ["LINEAR", "RULES", "tangent"]
