"""Batching rules of operators along dimensions: reductions, scans, sorts, softmax, transforms."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batches import declared
from torchlab._core.dispatch.batching.calls import Call, each, rule, wrap_dim
from torchlab._core.dispatch.levels import again, mapped
from torchlab._core.dispatch.registry import aten


def _lead(c: Call) -> str:
    return c.tensors()[0]


def _flat(c: Call) -> Any:
    """The first tensor as (batch, elements)."""
    name = _lead(c)
    return aten.reshape(c.front(name), (c.n, c.raw(name)._a.size))


def _one_dim(c: Call) -> Any:
    """An operator along `dim`. A 0-d tensor counts as one element in one dimension."""
    name = _lead(c)
    if len(c.tensors()) > 1:
        return _several(c)
    rank = c.rank(name)
    dim = wrap_dim(c.raw("dim"), rank, c.op.name) + 1
    if rank:
        return c.run(**{name: c.front(name), "dim": dim})
    made = c.call(**{name: aten.unsqueeze(c.front(name), 1), "dim": 1})
    return c.wrap(_scalars(made))


def _several(c: Call) -> Any:
    """All tensors have the shape of the first: gradients."""
    rank = c.rank(_lead(c))
    dim = wrap_dim(c.raw("dim"), rank, c.op.name) + 1
    full = {n: c.full(n) for n in c.tensors()}
    if rank:
        return c.run(**full, dim=dim)
    made = c.call(**{n: aten.unsqueeze(x, 1) for n, x in full.items()}, dim=1)
    return c.wrap(_scalars(made))


def _scalars(made: Any) -> Any:
    """(batch, 1) as (batch,)."""
    return mapped(lambda r: aten.select(r, 1, 0) if len(r._a.shape) == 2 else r, made)


each(
    "_softmax _log_softmax _safe_softmax _softmax_backward _log_softmax_backward cumsum cumprod"
    " cummax cummin logcumsumexp _reversed_cumsum _reversed_logcumsumexp _others_product"
    " _cumprod_zeros_backward max.dim min.dim median.dim nanmedian.dim mode kthvalue sort"
    " topk prod.dim_int glu",
    _one_dim,
)


def _many_dims(c: Call) -> Any:
    """A reduction over several dimensions; none given means all."""
    rank = c.rank("self")
    given = c.raw("dim")
    if isinstance(given, int):
        given = (given,)
    dims = range(rank) if not given else (wrap_dim(d, rank, c.op.name) for d in given)
    moved = tuple(d + 1 for d in dims)
    if rank:
        return c.run(self=c.front("self"), dim=moved)
    return c.wrap(_scalars(c.call(self=aten.unsqueeze(c.front("self"), 1), dim=(1,))))


each(
    "sum.dim_IntList mean.dim nansum all.dims any.dims amax amin count_nonzero logsumexp"
    " var.correction std.correction var_mean.correction std_mean.correction linalg_vector_norm"
    " hash_tensor",
    _many_dims,
)


@rule("sum.default", "mean.default")
def whole(c: Call) -> Any:
    op = declared(c.op.name, {"sum": "dim_IntList", "mean": "dim"}[c.op.name])
    return c.wrap(again(op, (_flat(c), (1,), False, c.raw("dtype"))))


@rule("prod.default")
def whole_product(c: Call) -> Any:
    return c.wrap(again(declared("prod", "dim_int"), (_flat(c), 1, False, c.raw("dtype"))))


@rule("max.default", "min.default")
def whole_extreme(c: Call) -> Any:
    return c.wrap(again(declared("a" + c.op.name), (_flat(c), (1,), False)))


@rule("median.default", "nanmedian.default")
def whole_median(c: Call) -> Any:
    return c.wrap(again(declared(c.op.name, "dim"), (_flat(c), 1, False))[0])


@rule("argmax", "argmin", "aminmax")
def place(c: Call) -> Any:
    """The dimension may be left out: all elements in a row."""
    if c.raw("dim") is not None:
        return _one_dim(c)
    made = c.call(self=_flat(c), dim=1, keepdim=False)
    if c.raw("keepdim"):
        shape = (c.n, *(1,) * c.rank("self"))
        made = mapped(lambda r: aten.reshape(r, shape), made)
    return c.wrap(made)


@rule("trace")
def trace(c: Call) -> Any:
    if c.rank("self") != 2:
        c.call(self=c.raw("self"))
    return c.wrap(aten.sum(aten.diagonal(c.front("self"), 0, 1, 2), -1))


@rule("flip")
def flip(c: Call) -> Any:
    rank = c.rank("self")
    if not rank:
        return c.wrap(aten.clone(c.front("self")))
    dims = tuple(wrap_dim(d, rank, "flip") + 1 for d in c.raw("dims"))
    return c.run(self=c.front("self"), dims=dims)


@rule("roll")
def roll(c: Call) -> Any:
    rank, dims = c.rank("self"), c.raw("dims")
    if isinstance(dims, int):
        dims = (dims,)
    if not dims:
        made = c.call(self=_flat(c), dims=(1,))
        return c.wrap(aten.reshape(made, (c.n, *c.shape("self"))))
    if not rank:
        return c.loop()
    moved = tuple(wrap_dim(d, rank, "roll") + 1 for d in dims)
    return c.run(self=c.front("self"), dims=moved)


@rule("rot90")
def rot90(c: Call) -> Any:
    rank = c.rank("self")
    dims = [wrap_dim(d, rank, "rot90") + 1 for d in c.raw("dims")]
    return c.run(self=c.front("self"), dims=dims)


@rule("_fft_c2c", "_fft_c2r", "_fft_r2c")
def fourier(c: Call) -> Any:
    rank = c.rank("self")
    dims = tuple(wrap_dim(d, rank, "fft") + 1 for d in c.raw("dim"))
    return c.run(self=c.front("self"), dim=dims)


@rule("diag_embed")
def diag_embed(c: Call) -> Any:
    rank = c.rank("self") + 1
    dims = {n: wrap_dim(c.raw(n), rank, "diag_embed") + 1 for n in ("dim1", "dim2")}
    return c.run(self=c.front("self"), **dims)


@rule("renorm")
def renorm(c: Call) -> Any:
    """What is left of each slice along `dim`, of all others the norm: as scaling by norms."""
    return c.loop()
